// Loop → CUDA C text that is meant to be read: one statement a line, the Loop's own names, parentheses only where needed. It includes
// nothing, so that NVRTC and nvcc take it as it is; all but the entry point stands in a namespace of the kernel's own, so that
// many kernels can follow each other in one program. Nothing is scheduled here. Meant for --fmad=false: what a kernel fuses
// into one rounding is then what its Loop says, whatever was put into the kernel.

import type { ProgramTileMap } from '../../runtime/program.ts';
import { divisors, type Known } from '../divisible.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../loop.ts';
import { nameTable, type Names } from '../names.ts';
import { rangesOf, isBounded, withShifts, type Ranges } from '../ranges.ts';
import { atLeast, call, choice, component, infix, level, primary, type Term } from '../term.ts';
import { spellAtomic, spellLoad, spellStore, type Scribe } from './access.ts';
import { spellMatrix } from './matrix.ts';
import { literal } from './literal.ts';
import { isTaken } from './names.ts';
import { Prelude } from './prelude.ts';
import { layShared, type SharedPlan } from './shared.ts';
import { spell, type Site } from './spelling.ts';
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

/** Characters of an expression, and of a line of parameters. */
const longest = 240;
const widest = 100;

class Emitter implements Scribe {
  readonly #loop: Loop;
  readonly #shared: SharedPlan;
  readonly prelude = new Prelude();
  readonly names: Names;
  readonly known: Known;
  readonly #ranges: Ranges;
  readonly buffers: ReadonlyMap<string, LoopBuffer>;
  readonly #lines: string[] = [];
  #indent = '  ';

  constructor(loop: Loop, shared: SharedPlan) {
    this.#loop = loop;
    this.#shared = shared;
    this.names = nameTable(loop, isTaken);
    this.known = divisors(loop);
    this.#ranges = rangesOf(loop);
    this.buffers = new Map(loop.buffers.map((buffer) => [buffer.name, buffer]));
  }

  module(): string {
    const spelled = (name: string): string => this.names.buffer(name);
    for (const line of this.#shared.declarations(spelled, this.prelude)) this.line(line);
    this.#body(this.#loop.body);
    const entry = `${this.#entry()} {\n${this.#lines.join('\n')}\n}`;
    const parts = [
      this.#loop.header.map((line) => `// ${line}`).join('\n'),
      `namespace ${this.#loop.name}_module {`,
      this.prelude.text,
      entry,
      '}',
    ];
    return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
  }

  #entry(): string {
    const { buffers, name, usesScalars, workgroup, tileMaps = [], mbarriers } = this.#loop;
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
    // Warp groups share out the registers of a whole multiprocessor.
    const bounds = mbarriers === undefined ? String(threads) : `${threads}, 1`;
    const head = `extern "C" __global__ void __launch_bounds__(${bounds})`;
    const line = `${name}(${params.join(', ')})`;
    return `${head}\n${line.length <= widest ? line : `${name}(\n    ${params.join(',\n    ')})`}`;
  }

  line(text: string): void {
    this.#lines.push(`${this.#indent}${text}`);
  }

  #nested(body: readonly Stmt[]): void {
    this.#indent += '  ';
    this.#body(body);
    this.#indent = this.#indent.slice(2);
  }

  #body(body: readonly Stmt[]): void {
    for (const stmt of body) this.#stmt(stmt);
  }

  #stmt(stmt: Stmt): void {
    switch (stmt.kind) {
      case 'let':
      case 'var': {
        const value = this.value(stmt.value).text;
        const type = this.prelude.type(stmt.value.type, stmt.value.width);
        const kind = stmt.kind === 'let' ? `const ${type}` : type;
        this.line(`${kind} ${this.names.variable(stmt.name)} = ${value};`);
        return;
      }
      case 'assign':
        this.line(`${this.names.variable(stmt.name)} = ${this.value(stmt.value).text};`);
        return;
      case 'store':
        spellStore(this, stmt);
        return;
      case 'atomic':
        spellAtomic(this, stmt);
        return;
      case 'for': {
        const name = this.names.variable(stmt.name);
        const start = this.value(stmt.start).text;
        const end = this.atom(stmt.end, 'end');
        const step = stmt.step === 1 ? `${name}++` : `${name} += ${stmt.step}`;
        this.line(`for (int ${name} = ${start}; ${name} < ${atLeast(end, level.shift)}; ${step}) {`);
        this.#nested(stmt.body);
        this.line('}');
        return;
      }
      case 'if':
        this.line(`if (${this.value(stmt.condition).text}) {`);
        this.#nested(stmt.then);
        if (stmt.else !== undefined && stmt.else.length > 0) {
          this.line('} else {');
          this.#nested(stmt.else);
        }
        this.line('}');
        return;
      case 'subgroupReduce': {
        const { type, width } = stmt.value;
        const value = this.atom(stmt.value, 'own');
        const spelled = this.prelude.type(type, width);
        const reduced = spellWarp(stmt, value, this.#loop, this.prelude).text;
        this.line(`const ${spelled} ${this.names.variable(stmt.name)} = ${reduced};`);
        return;
      }
      case 'barrier':
        this.line('__syncthreads();');
        return;
      case 'comment':
        for (const line of stmt.text.split('\n')) this.line(`// ${line}`);
        return;
      case 'shuffle':
      case 'loadMatrix':
      case 'mma':
      case 'asyncCopy':
      case 'asyncCommit':
      case 'asyncWait':
        spellMatrix(this, stmt);
        return;
      case 'initBarrier':
      case 'arrive':
      case 'awaitBarrier':
      case 'copyTile':
      case 'wgmma':
      case 'wgmmaFence':
      case 'wgmmaCommit':
      case 'wgmmaWait':
      case 'setRegisters':
        spellWarpgroup(this, stmt);
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
          return this.#short(choice(this.value(test.arg), yes!, no!), value);
        }
        const site: Site = {
          type: value.type,
          width: value.width,
          args: value.args.map((arg) => this.value(arg)),
          types: value.args.map((arg) => arg.type),
          last: last?.kind === 'constant' ? last.value : undefined,
          bounded: value.type === 'i32' && isBounded(value, this.#loop, this.#ranges),
          prelude: this.prelude,
        };
        return this.#short(spell(withShifts(value, this.#loop, this.#ranges), site), value);
      }
      case 'load':
        return this.#short(spellLoad(this, value), value);
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
    const [x, y, z] = this.#loop.workgroup;
    if (of === 'count') return primary(String(Math.ceil((x * y * z) / 32)));
    const thread = flatThread(this.#loop);
    return primary(
      `int(${infix(of === 'place' ? '&' : '>>', thread, primary(of === 'place' ? '31u' : '5')).text})`,
    );
  }

  /** Names an expression that has grown long: lines stay readable. */
  #short(term: Term, { type, width }: Value): Term {
    if (term.text.length < longest) return term;
    const name = this.names.fresh('part');
    this.line(`const ${this.prelude.type(type, width)} ${name} = ${term.text};`);
    return primary(name);
  }

  atom(value: Value, hint: string): Term {
    const term = this.value(value);
    if (value.kind === 'constant' || value.kind === 'variable') return term;
    const name = this.names.fresh(hint);
    this.line(`const ${this.prelude.type(value.type, value.width)} ${name} = ${term.text};`);
    return primary(name);
  }
}
