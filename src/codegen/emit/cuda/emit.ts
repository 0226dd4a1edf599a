// Loop → CUDA C text that is meant to be read: one statement a line, the Loop's own names,
// parentheses only where needed. It includes nothing, so that NVRTC and nvcc take it as it is; all
// but the entry point stands in a namespace of the kernel's own, so that many kernels can follow
// each other in one program. Nothing is scheduled here. Meant for --fmad=false: products and sums
// are then fused into one rounding only where the Loop has an `fma`, whatever kernel they are in.

import type { ProgramTileMap } from '../../../runtime/program.ts';
import { CTextEmitter, type OwnStmt } from '../shared/c-text.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import { isMatrixStmt, isWarpgroupStmt } from '../../loop/walk.ts';
import { isBounded, withShifts } from '../../loop/ranges.ts';
import { call, choice, component, infix, primary, type Term } from '../shared/term.ts';
import { spellAtomic, spellLoad, spellStore, type CudaScribe } from './access.ts';
import { spellMatrix } from './matrix.ts';
import { literal } from './literal.ts';
import { isTaken } from './names.ts';
import { CudaPrelude } from './prelude.ts';
import { layShared, type SharedPlan } from './shared.ts';
import { spell, type CudaSite } from './spelling.ts';
import { flatThread, spellWarp } from './warp.ts';
import { spellWarpgroup, tileMapsOf } from './warpgroup.ts';

/** A kernel's text, and the workgroup memory that its launch must ask for. */
export interface CudaKernel {
  readonly source: string;
  /** Bytes of dynamic shared memory, where the static limit is passed. */
  readonly sharedBytes?: number;
  /** The tensor maps that the launch passes. */
  readonly tileMaps?: readonly ProgramTileMap[];
}

/** The CUDA C of one kernel. */
export function emitCuda(loop: Loop): CudaKernel {
  const shared = layShared(loop);
  const source = new Emitter(loop, shared).module();
  return {
    source,
    ...(shared.dynamicBytes > 0 && { sharedBytes: shared.dynamicBytes }),
    ...(loop.tileMaps !== undefined && { tileMaps: tileMapsOf(loop) }),
  };
}

/** Characters of a line of parameters. */
const widest = 100;

class Emitter extends CTextEmitter implements CudaScribe {
  readonly #shared: SharedPlan;
  readonly prelude = new CudaPrelude();

  constructor(loop: Loop, shared: SharedPlan) {
    super(loop, isTaken);
    this.#shared = shared;
  }

  module(): string {
    const spelled = (name: string): string => this.names.buffer(name);
    for (const line of this.#shared.declarations(spelled, this.prelude)) this.line(line);
    const body = this.written(this.loop.body);
    const entry = `${this.#entry()} {\n${body}\n}`;
    const parts = [
      this.loop.header.map((line) => `// ${line}`).join('\n'),
      `namespace ${this.loop.name}_module {`,
      this.prelude.text,
      entry,
      '}',
    ];
    return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
  }

  #entry(): string {
    const { buffers, name, usesScalars, workgroup, tileMaps = [], mbarriers } = this.loop;
    const params = buffers
      .filter(({ space }) => space === 'global')
      .map((buffer) => {
        const type = this.prelude.element(buffer.dtype);
        const spelled = this.names.buffer(buffer.name);
        return buffer.access === 'read' ? `const ${type} *__restrict__ ${spelled}` : `${type} *${spelled}`;
      });
    if (usesScalars) params.push('const unsigned *__restrict__ scalars');
    for (const { name: map } of tileMaps)
      params.push(`const __grid_constant__ ${this.prelude.use('TileMap')} ${this.names.buffer(map)}`);
    const threads = workgroup[0] * workgroup[1] * workgroup[2];
    // Warp groups redistribute the registers of a multiprocessor (setmaxnreg): one block each.
    const bounds = mbarriers === undefined ? String(threads) : `${threads}, 1`;
    const head = `extern "C" __global__ void __launch_bounds__(${bounds})`;
    const line = `${name}(${params.join(', ')})`;
    return `${head}\n${line.length <= widest ? line : `${name}(\n    ${params.join(',\n    ')})`}`;
  }

  protected declared(
    kind: 'let' | 'var' | 'counter',
    { type, width }: Pick<Value, 'type' | 'width'>,
  ): string {
    const spelled = this.prelude.type(type, width);
    return kind === 'let' ? `const ${spelled}` : spelled;
  }

  protected own(stmt: OwnStmt): void {
    if (isMatrixStmt(stmt)) {
      spellMatrix(this, stmt);
      return;
    }
    if (isWarpgroupStmt(stmt)) {
      spellWarpgroup(this, stmt);
      return;
    }
    switch (stmt.kind) {
      case 'store':
        spellStore(this, stmt);
        return;
      case 'atomic':
        spellAtomic(this, stmt);
        return;
      case 'subgroupReduce': {
        const value = this.atom(stmt.value, 'own');
        const reduced = spellWarp(stmt, value, this.loop, this.prelude).text;
        this.line(`${this.declared('let', stmt.value)} ${this.names.variable(stmt.name)} = ${reduced};`);
        return;
      }
      case 'barrier':
        this.line('__syncthreads();');
        return;
      default:
        stmt satisfies never;
    }
  }

  value(value: Value): Term {
    switch (value.kind) {
      case 'constant':
        return literal(value, this.prelude);
      case 'variable':
        return primary(this.names.variable(value.name));
      case 'builtin':
        return primary(`int(${value.of === 'workgroup' ? 'blockIdx' : 'threadIdx'}.${'xyz'[value.axis]})`);
      case 'subgroup':
        return this.#subgroup(value.of);
      case 'op': {
        const last = value.args.at(-1);
        const [test] = value.args;
        // One condition for all lanes chooses whole vectors.
        if (value.op === 'where' && test?.kind === 'splat') {
          const [yes, no] = value.args.slice(1).map((arg) => this.value(arg));
          return this.short(choice(this.value(test.arg), yes!, no!), value);
        }
        const site: CudaSite = {
          type: value.type,
          width: value.width,
          args: value.args.map((arg) => this.value(arg)),
          types: value.args.map((arg) => arg.type),
          last: last?.kind === 'constant' ? last.value : undefined,
          bounded: value.type === 'i32' && isBounded(value, this.loop, this.ranges),
          prelude: this.prelude,
        };
        return this.short(spell(withShifts(value, this.loop, this.ranges), site), value);
      }
      case 'load':
        return this.short(spellLoad(this, value), value);
      case 'scalar': {
        const word = primary(`scalars[${value.slot}]`);
        if (value.type === 'u32') return word;
        if (value.type === 'bool') return infix('!=', word, primary('0u'));
        return call(value.type === 'f32' ? '__uint_as_float' : 'int', [word]);
      }
      case 'vector': {
        const parts = value.args.map((arg) => this.value(arg).text);
        return primary(`${this.prelude.type(value.type, value.width)}{${parts.join(', ')}}`);
      }
      case 'splat':
        if (value.width === 1) return this.value(value.arg);
        return call(this.prelude.splat(value.type, value.width), [this.value(value.arg)]);
      case 'lane':
        return value.arg.width === 1 ? this.value(value.arg) : component(this.value(value.arg), value.lane);
      default:
        return value satisfies never;
    }
  }

  /** Warps are 32 consecutive invocations. */
  #subgroup(of: 'place' | 'number' | 'count'): Term {
    const [x, y, z] = this.loop.workgroup;
    if (of === 'count') return primary(String(Math.ceil((x * y * z) / 32)));
    const thread = flatThread(this.loop);
    return primary(
      `int(${infix(of === 'place' ? '&' : '>>', thread, primary(of === 'place' ? '31u' : '5')).text})`,
    );
  }
}
