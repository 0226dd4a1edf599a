// Loop → CUDA C text that is meant to be read: one statement a line, the Loop's own names,
// parentheses only where needed. It includes nothing, so that NVRTC and nvcc take it as it is; all
// but the entry point stands in a namespace of the kernel's own, so that many kernels can follow
// each other in one program. Nothing is scheduled here. Meant for --fmad=false: products and sums
// are then fused into one rounding only where the Loop has an `fma`, whatever kernel they are in.

import type { ProgramTileMap } from '../../../runtime/program.ts';
import { CTextEmitter, type OwnStmt } from '../shared/c-text.ts';
import type { Loop, Value, MatrixStmt, Stmt } from '../../loop/loop.ts';
import { isMatrixStmt, isWarpgroupStmt } from '../../loop/walk.ts';
import { isBounded, withShifts } from '../../loop/ranges.ts';
import { call, choice, component, infix, primary, type Term } from '../shared/term.ts';
import { spellAtomic, spellLoad, spellStore, type CudaScribe } from './access.ts';
import { literal, spell, type CudaSite } from './spelling.ts';
import { CudaPrelude } from './prelude.ts';
import { layShared, type SharedPlan } from './shared.ts';
import { spellWarpgroup, tileMapsOf } from './warpgroup.ts';
import { combining, functionNames } from '../../../ir/ops.ts';
import { definitions } from './prelude-functions.ts';

// The words that a Loop's names must not be in CUDA C: keywords of C++, words of CUDA, and what
// generated code calls by name.

const words = `
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept const
consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else
enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void
volatile wchar_t while xor xor_eq NULL INFINITY NAN
threadIdx blockIdx blockDim gridDim warpSize scalars main thread_y
float2 float3 float4 int2 int3 int4 uint2 uint3 uint4 double2 double4 dim3 uchar4 char4 short4 ushort4 size_t
fabsf fmodf powf fminf fmaxf
fabs fmod pow fmin fmax isnan min max abs
atomicAdd atomicMin atomicMax atomicAnd atomicOr atomicCAS`;
const taken: ReadonlySet<string> = new Set([
  ...words.trim().split(/\s+/),
  ...functionNames('cuda').flatMap((name) => [name, `${name}f`]),
]);

/**
 * Names that the prelude makes as they are needed, of functions on vectors, over warps and of warp
 * groups.
 */
const made =
  /^(?:wgmma(?:_words)?_n\d+_b?f16|warp(?:_part)?_[a-z]+_[fiub][a-z\d]+|\w+_(?:f|bf|i|u|bool)\d*x[24]|\w+[24]_of|(?:f|bf|i|u)\d+x[24])$/;

/** Whether CUDA C or the emitter gives a word another meaning. */
export function isTaken(name: string): boolean {
  return taken.has(name) || definitions.has(name) || made.test(name);
}

// The statements of matrix units in CUDA C. Fragments are short vectors; functions of the prelude
// split them into the registers that the PTX instructions take.

/** Writes the lines of a statement. */
function spellMatrix(scribe: CudaScribe, stmt: MatrixStmt): void {
  const { prelude, names } = scribe;
  const pointer = (buffer: string, index: Term): Term => infix('+', primary(names.buffer(buffer)), index);
  const define = (name: string, type: string, value: Term): void =>
    scribe.line(`const ${type} ${names.variable(name)} = ${value.text};`);
  switch (stmt.kind) {
    case 'loadMatrix': {
      const load = prelude.use(stmt.transposed ? 'load_matrix_trans' : 'load_matrix');
      define(stmt.name, 'uint4', call(load, [pointer(stmt.buffer, scribe.value(stmt.index))]));
      return;
    }
    case 'mma': {
      const sum = primary(names.variable(stmt.name));
      const multiply = prelude.use(`multiply_${stmt.operand}`);
      scribe.line(`${call(multiply, [sum, scribe.value(stmt.lhs), scribe.value(stmt.rhs)]).text};`);
      return;
    }
    case 'shuffle': {
      const { type, width } = stmt.value;
      const own = width === 1 ? scribe.value(stmt.value) : scribe.atom(stmt.value, 'own');
      const exchanged = (part: Term): Term => {
        // What a warp exchanges has 32 bits at least.
        const given = type === 'bool' ? call('int', [part]) : part;
        const taken = call('__shfl_xor_sync', [primary('0xffffffffu'), given, primary(String(stmt.mask))]);
        return type === 'bool' ? infix('!=', taken, primary('0')) : taken;
      };
      const parts = Array.from({ length: width }, (_, lane) => exchanged(component(own, lane)).text);
      const spelled = prelude.type(type, width);
      define(stmt.name, spelled, width === 1 ? exchanged(own) : primary(`${spelled}{${parts.join(', ')}}`));
      return;
    }
    case 'asyncCopy': {
      const to = pointer(stmt.buffer, scribe.value(stmt.index));
      const from = pointer(stmt.from, scribe.value(stmt.at));
      const inside = stmt.inside.kind === 'constant' && stmt.inside.value !== 0;
      const valid = inside ? primary('16') : choice(scribe.value(stmt.inside), primary('16'), primary('0'));
      scribe.line(`${call(prelude.use('cp_async16'), [to, from, valid]).text};`);
      return;
    }
    case 'asyncCommit':
      scribe.line(`${prelude.use('cp_async_commit')}();`);
      return;
    case 'asyncWait':
      scribe.line(`${prelude.use('cp_async_wait')}<${stmt.pending}>();`);
      return;
    default:
      stmt satisfies never;
  }
}

// A thread's position in its warp of 32, and reductions over a warp by shuffles. In a whole warp both
// partners of a shuffle combine the same two values. In a part of a warp all lanes get the result of the
// first. So all lanes end with the same bits.

/** The thread's number in its block, an unsigned. */
function flatThread({ workgroup: [x, y, z] }: Loop): Term {
  const at = (axis: 'x' | 'y' | 'z'): Term => primary(`threadIdx.${axis}`);
  const behind = (outer: Term, extent: number, inner: Term): Term =>
    infix('+', infix('*', outer, primary(`${extent}u`)), inner);
  if (z > 1) return behind(behind(at('z'), y, at('y')), x, at('x'));
  return y > 1 ? behind(at('y'), x, at('x')) : at('x');
}

/** The combination of `value` (a text that may be written several times) over the warp. */
function spellWarp(
  { monoid, value: { type, width } }: Extract<Stmt, { kind: 'subgroupReduce' }>,
  value: Term,
  loop: Loop,
  prelude: CudaPrelude,
): Term {
  const [x, y, z] = loop.workgroup;
  const threads = x * y * z;
  const combined = spell(combining[monoid], {
    type,
    width: 1,
    args: [primary('x'), primary('other')],
    types: [type, type],
    last: undefined,
    bounded: false,
    prelude,
  });
  // The last warp may have fewer lanes.
  const whole = threads % 32 === 0;
  const name = prelude.warp(monoid, type, combined.text, whole);
  const place = whole ? [] : [flatThread(loop), primary(`${threads}u`)];
  if (width === 1) return call(name, [value, ...place]);
  const parts = Array.from(
    { length: width },
    (_, lane) => call(name, [component(value, lane), ...place]).text,
  );
  return primary(`${prelude.type(type, width)}{${parts.join(', ')}}`);
}

const isConstant = (value: Value): boolean =>
  value.kind === 'constant' ||
  (value.kind === 'splat' && isConstant(value.arg)) ||
  (value.kind === 'vector' && value.args.every(isConstant));

/** x, m and c of (x & m) | c: by itself the compiler makes two instructions of it, each with one of the constants. */
function maskedBits({ op, args, type }: Extract<Value, { kind: 'op' }>): readonly Value[] | undefined {
  const [masked, bits] = args;
  if (op !== 'or' || type !== 'u32' || masked?.kind !== 'op' || masked.op !== 'and') return undefined;
  const [x, mask] = masked.args;
  return isConstant(mask!) && isConstant(bits!) ? [x!, mask!, bits!] : undefined;
}

/** A kernel's text, and the workgroup memory that its launch must ask for. */
interface CudaKernel {
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
    if (this.#isByWarps) this.line(`const int thread_y = ${this.prelude.use('of_warp')}(int(threadIdx.y));`);
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

  /** Whether all threads of a warp are in one line of the block, in a kernel that addresses tiles by lines. */
  get #isByWarps(): boolean {
    const { mbarriers, workgroup } = this.loop;
    return mbarriers !== undefined && workgroup[0] % 32 === 0;
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
      // Other warps run while one waits for memory.
      case 'prefetch':
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
        if (value.of === 'local' && value.axis === 1 && this.#isByWarps) return primary('thread_y');
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
        const masked = maskedBits(value);
        if (masked !== undefined) {
          const args = masked.map((arg) => this.value(arg));
          return this.short(call(this.prelude.andOr(value.width), args), value);
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
