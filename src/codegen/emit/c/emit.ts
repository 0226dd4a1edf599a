// Loop → C11 that is meant to be read: one statement a line, the Loop's own names, parentheses only
// where needed. Vectors are those of GCC and Clang. A function runs one workgroup, its invocations
// one after another; the entry calls it for a range of workgroups. Functions beyond the square root
// are made of basic operations first (shared/math/math.ts), so that no result depends on the
// machine's library. Nothing is undefined, whatever the elements are. Nothing is scheduled here.

import { CompilerBug } from '../../../errors.ts';
import { dtypeBytes } from '../../../ir/dtype.ts';
import type { Loop, LoopBuffer, RegisterType, Stmt, Value, Width } from '../../loop/loop.ts';
import { stmtAsText } from '../../loop/text.ts';
import { isBounded, withShifts } from '../../loop/ranges.ts';
import { CTextEmitter, type OwnStmt } from '../shared/c-text.ts';
import { anyLaneOf } from '../shared/math/any-lane.ts';
import { expandMath } from '../shared/math/math.ts';
import { callsFunctions } from '../shared/math/needed.ts';
import { isSerial } from '../shared/serial.ts';
import { call, choice, infix, level, prefix, primary, subscript, type Term } from '../shared/term.ts';
import { spellAtomic, spellLoad, spellPrefetch, spellStore, type CScribe } from './access.ts';
import { emptying, freely, holding, registersIn, type Registers } from './registers.ts';
import { usedIn, withoutUnread } from './live.ts';
import { CPrelude } from './prelude.ts';
import { widenVectors } from './rewrite/widen.ts';
import { addedProducts, literal, spell } from './spelling.ts';
import { elementType } from './types.ts';

/** A kernel's text, and what its launch needs. */
export interface CKernel {
  readonly source: string;
  /** Bytes of workgroup memory. */
  readonly sharedBytes?: number;
  /** Workgroups run in order, on one thread. */
  readonly serial?: boolean;
}

// The words that a Loop's names must not be in C: keywords, and what generated code calls by name.

const words = `
auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return
short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof main
group group_x group_y group_z local_x local_y local_z scalars scratch`;
const taken: ReadonlySet<string> = new Set(words.trim().split(/\s+/));

/** Names of types and of the prelude's functions. */
const made =
  /^(?:u?int\d+_t|_[A-Z_]\w*|__\w*|(?:even|odd)_bytes|dot_halves|empty_registers|philox_(?:block|word)|shuffle_[a-z]+\d+x\d+(?:_\d+)+|(?:\w+_)?(?:[iuf]\d+|bf16|bool)(?:x\d+)?(?:_u)?)$/;

/** Whether C or the emitter gives a word another meaning. */
export function isTaken(name: string): boolean {
  return taken.has(name) || made.test(name);
}

/** Bytes between which parts of workgroup memory begin: a cache line, and the widest vector. */
const alignment = 64;

/** The C of one kernel. `lanes`: of f32 in a register of the machine; 4 by default. */
export function emitC(loop: Loop, { lanes = 4 }: { readonly lanes?: 4 | 8 | 16 } = {}): CKernel {
  const wide = lanes === 4 ? loop : widenVectors(loop, lanes);
  const expanded = callsFunctions(wide) ? expandMath(wide, 'itself') : wide;
  const read = { ...expanded, body: withoutUnread(expanded.body) };
  const registers = lanes === 8 ? registersIn(read.body, 4 * lanes) : freely;
  const { source, sharedBytes } = new Emitter(read, registers).kernel();
  return {
    source,
    ...(sharedBytes > 0 && { sharedBytes }),
    ...(isSerial(loop) && { serial: true }),
  };
}

/** Characters of a line. */
const widest = 110;

/** A head and a list in parentheses, on one line if that is short. */
function listed(head: string, parts: readonly string[], tail: string, indent: string): string {
  const line = `${head}(${parts.join(', ')})${tail}`;
  if (line.length <= widest) return line;
  return `${head}(\n${indent}    ${parts.join(`,\n${indent}    `)})${tail}`;
}

const axes = ['x', 'y', 'z'] as const;

/** Of what is in no order, a constant comes last, where its value is looked at. */
function constantLast({ op, args }: Extract<Value, { kind: 'op' }>): readonly Value[] {
  if (op !== 'min' && op !== 'max') return args;
  return args[0]?.kind === 'constant' && args[1]?.kind !== 'constant' ? args.toReversed() : args;
}

class Emitter extends CTextEmitter implements CScribe {
  readonly prelude = new CPrelude();
  readonly #used: ReadonlySet<string>;
  readonly #registers: Registers;

  constructor(loop: Loop, registers: Registers) {
    super(loop, isTaken);
    this.#registers = registers;
    this.#used = usedIn(loop.body);
    const isShared = loop.buffers.some(({ space }) => space === 'workgroup');
    if (isShared && loop.workgroup.some((size) => size > 1))
      throw new CompilerBug('emit-c', `${loop.name}: invocations share memory, and run in turn`);
  }

  kernel(): { readonly source: string; readonly sharedBytes: number } {
    const { loop } = this;
    const { parts, sharedBytes } = this.#layShared();
    const params = [...this.#params()];
    const head = listed(
      `static inline void ${loop.name}_group`,
      params.map(([param]) => param),
      ' {',
      '',
    );
    const body = this.#invocations();
    const args = params.map(([, arg]) => arg ?? '');
    const group = `${head}\n${body}\n}`;
    const prelude = this.prelude.text;
    const source = [
      [...loop.header.map((line) => `// ${line}`.trimEnd()), '#include <stdint.h>'].join('\n'),
      '#ifndef SINTER_KERNEL\n#define SINTER_KERNEL\n#endif',
      prelude,
      group,
      this.#entry(args, parts),
    ];
    return { source: `${source.filter((part) => part !== '').join('\n\n')}\n`, sharedBytes };
  }

  /** Workgroup memory, one part behind another. */
  #layShared(): { readonly parts: ReadonlyMap<string, number>; readonly sharedBytes: number } {
    const parts = new Map<string, number>();
    let sharedBytes = 0;
    for (const { name, space, dtype, size } of this.loop.buffers) {
      if (space !== 'workgroup') continue;
      parts.set(name, sharedBytes);
      sharedBytes += alignment * Math.ceil((dtypeBytes(dtype) * size) / alignment);
    }
    return { parts, sharedBytes };
  }

  /** Parameters of the function of one workgroup, and what the entry passes. */
  *#params(): Generator<readonly [param: string, arg: string]> {
    const { loop } = this;
    if (axes.some((_, i) => this.#used.has(`workgroup.${i}`) && loop.grid[i]! > 1))
      yield ['int32_t group', 'group'];
    let binding = 0;
    for (const buffer of loop.buffers) {
      if (buffer.space !== 'global') continue;
      const arg = `buffers[${binding++}]`;
      if (this.#used.has(buffer.name)) yield [this.#pointer(buffer), arg];
    }
    if (this.#used.has('scalars')) yield ['const uint32_t *restrict scalars', 'scalars'];
    const { parts } = this.#layShared();
    for (const buffer of loop.buffers) {
      if (buffer.space !== 'workgroup' || !this.#used.has(buffer.name)) continue;
      const at = parts.get(buffer.name)!;
      const arg = at === 0 ? 'scratch' : `(${elementType(buffer.dtype)} *)((char *)scratch + ${at})`;
      yield [this.#pointer(buffer), arg];
    }
  }

  /** What is only read, and what a workgroup has alone, is in no other buffer. */
  #pointer({ name, space, access, dtype }: LoopBuffer): string {
    const type = elementType(dtype);
    const spelled = this.names.buffer(name);
    if (space === 'workgroup') return `${type} *restrict ${spelled}`;
    return access === 'read' ? `const ${type} *restrict ${spelled}` : `${type} *${spelled}`;
  }

  #entry(args: readonly string[], parts: ReadonlyMap<string, number>): string {
    const { name } = this.loop;
    const params = 'int32_t first, int32_t end, void *const *buffers, const uint32_t *scalars, void *scratch';
    const unused = [
      ...(args.some((arg) => arg.startsWith('buffers')) ? [] : ['buffers']),
      ...(this.#used.has('scalars') ? [] : ['scalars']),
      ...([...parts.keys()].some((part) => this.#used.has(part)) ? [] : ['scratch']),
    ];
    return [
      `SINTER_KERNEL void ${name}(\n    ${params}) {`,
      ...unused.map((one) => `  (void)${one};`),
      '  for (int32_t group = first; group < end; group++)',
      `    ${listed(`${name}_group`, args, ';', '    ')}`,
      '}',
    ].join('\n');
  }

  /** The body, for every invocation of the workgroup. */
  #invocations(): string {
    const { grid, workgroup, body } = this.loop;
    let rest = 'group';
    axes.forEach((axis, i) => {
      const isLast = grid.slice(i + 1).every((size) => size === 1);
      if (this.#used.has(`workgroup.${i}`) && grid[i]! > 1)
        this.line(`const int32_t group_${axis} = ${isLast ? rest : `${rest} % ${grid[i]!}`};`);
      if (grid[i]! > 1) rest = rest === 'group' ? `group / ${grid[i]!}` : `${rest} / ${grid[i]!}`;
    });
    const places = axes.map((axis, i) => [`local_${axis}`, workgroup[i]!] as const);
    return this.within(
      places
        .filter(([, size]) => size > 1)
        .toReversed()
        .map(([place, size]) => `for (int32_t ${place} = 0; ${place} < ${size}; ${place}++) {`),
      body,
    );
  }

  protected declared(
    kind: 'let' | 'var' | 'counter',
    { type, width }: Pick<Value, 'type' | 'width'>,
  ): string {
    const spelled = this.prelude.type(type, width);
    return kind === 'let' ? `const ${spelled}` : spelled;
  }

  protected override before(stmt: Stmt): void {
    if (this.#registers.emptied.has(stmt)) this.line(`${emptying(this.prelude)}();`);
  }

  protected own(stmt: OwnStmt): void {
    switch (stmt.kind) {
      case 'store':
        spellStore(this, stmt);
        return;
      case 'atomic':
        spellAtomic(this, stmt);
        return;
      case 'prefetch':
        spellPrefetch(this, stmt);
        return;
      default:
        throw new CompilerBug('emit-c', `invocations run in turn\n  in: ${stmtAsText(stmt)}`);
    }
  }

  combined(op: 'add' | 'mul' | 'min' | 'max' | 'and' | 'or', type: RegisterType, a: Term, b: Term): Term {
    const site = {
      type,
      width: 1,
      args: [a, b],
      types: [type, type],
      last: undefined,
      bounded: false,
    } as const;
    return spell(op, { ...site, prelude: this.prelude });
  }

  value(value: Value): Term {
    switch (value.kind) {
      case 'constant':
        return literal(value, this.prelude);
      case 'variable':
        return primary(this.names.variable(value.name));
      case 'builtin': {
        const size = (value.of === 'workgroup' ? this.loop.grid : this.loop.workgroup)[value.axis];
        if (size === 1) return primary('0');
        return primary(`${value.of === 'workgroup' ? 'group' : 'local'}_${axes[value.axis]}`);
      }
      case 'op':
        return this.#operation(value);
      case 'load': {
        const loaded = spellLoad(this, value);
        return this.#registers.held.has(value)
          ? call(holding(this.prelude, value), [loaded])
          : this.short(loaded, value);
      }
      case 'scalar':
        return this.#scalar(value);
      case 'vector': {
        const lanes = this.#shuffled(value);
        if (lanes !== undefined) return lanes;
        const parts = value.args.map((arg) => this.#laneBits(arg).text);
        return primary(`(${this.prelude.type(value.type, value.width)}){${parts.join(', ')}}`);
      }
      case 'splat':
        if (value.width === 1) return this.value(value.arg);
        return call(this.prelude.splat(value.type, value.width), [this.#laneBits(value.arg)]);
      case 'lane': {
        if (value.arg.width === 1) return this.value(value.arg);
        const lane = subscript(this.atom(value.arg, 'lanes'), String(value.lane));
        return value.type === 'bool' ? infix('!=', lane, primary('0')) : lane;
      }
      case 'subgroup':
        throw new CompilerBug('emit-c', 'there are no subgroups');
      default:
        return value satisfies never;
    }
  }

  /**
   * A vector of lanes of registers, two of them and twice their lanes at a time, or one and four times its lanes: of more, compilers put
   * together lanes one by one, or in memory. Undefined where it has others.
   */
  #shuffled(value: Extract<Value, { kind: 'vector' }>): Term | undefined {
    const { args, type, width } = value;
    const sources: Extract<Value, { kind: 'variable' }>[] = [];
    const places: number[] = [];
    for (const one of args) {
      if (one.kind !== 'lane' || one.arg.kind !== 'variable' || one.arg.width === 1) return undefined;
      const source = one.arg;
      let at = sources.findIndex(({ name }) => name === source.name);
      if (at < 0) at = sources.push(source) - 1;
      if (source.type !== type) return undefined;
      if (at > 1 || source.width !== sources[0]!.width) return this.#ofHalves(value);
      places.push(at * source.width + one.lane);
    }
    const [x, y = x] = sources as [(typeof sources)[number], (typeof sources)[number]?];
    if (width > 2 * x.width && (y !== x || width > 4 * x.width)) return this.#ofHalves(value);
    const name = this.prelude.shuffle(type, x.width, width, places);
    return call(name, [this.value(x), this.value(y)]);
  }

  /** A vector of the two halves of its lanes, if each can be shuffled. */
  #ofHalves({ args, type, width }: Extract<Value, { kind: 'vector' }>): Term | undefined {
    if (width <= 4) return undefined;
    const half = (width / 2) as Width;
    const [low, high] = [args.slice(0, half), args.slice(half)].map((lanes) =>
      this.#shuffled({ kind: 'vector', args: lanes, type, width: half }),
    );
    if (low === undefined || high === undefined) return undefined;
    return call(this.prelude.shuffle(type, half, width, [...args.keys()]), [low, high]);
  }

  /** A scalar as lanes hold it: a bool is all bits or none. */
  #laneBits(value: Value): Term {
    const term = this.value(value);
    return value.type === 'bool'
      ? prefix('-', term.level === level.primary ? term : primary(`(${term.text})`))
      : term;
  }

  /** A sum to which products of halves are added, for which processors have one instruction. */
  #sumOfProducts(args: readonly Value[], { op, type, width }: Value & { kind: 'op' }): Term | undefined {
    const [sum, dot] = args;
    if (op !== 'add' || type !== 'i32' || width === 1 || dot?.kind !== 'op' || dot.op !== 'dotI16')
      return undefined;
    const values = [...dot.args, sum!];
    const name = addedProducts(
      this.prelude,
      width,
      values.map((one) => one.type),
    );
    return call(
      name,
      values.map((one) => this.value(one)),
    );
  }

  #operation(value: Extract<Value, { kind: 'op' }>): Term {
    const { op, type, width } = value;
    const args = constantLast(value);
    const lanes = anyLaneOf(value);
    if (lanes !== undefined && lanes.width > 1) return this.#any(lanes);
    const sum = this.#sumOfProducts(args, value);
    if (sum !== undefined) return sum;
    const last = args.at(-1);
    const [test] = args;
    // One condition for all lanes chooses whole vectors.
    if (op === 'where' && test?.kind === 'splat') {
      const [yes, no] = args.slice(1).map((arg) => this.value(arg));
      return this.short(choice(this.value(test.arg), yes!, no!), value);
    }
    const isPlace = type === 'i32' && value.wraps !== true;
    const site = {
      type,
      width,
      args: args.map((arg) => this.value(arg)),
      types: args.map((arg) => arg.type),
      last: last?.kind === 'constant' ? last.value : undefined,
      bounded: isPlace || (type === 'i32' && isBounded(value, this.loop, this.ranges)),
      prelude: this.prelude,
    };
    return this.short(spell(withShifts(value, this.loop, this.ranges), site), value);
  }

  /** Whether any lane of a mask is true. */
  #any(mask: Value): Term {
    const type = this.prelude.type('bool', mask.width);
    const name = this.prelude.define(`any_${type}`, () =>
      [
        `static inline _Bool any_${type}(${type} x) {`,
        '  int32_t some = 0;',
        `  for (int i = 0; i < ${mask.width}; i++) some |= x[i];`,
        '  return some != 0;',
        '}',
      ].join('\n'),
    );
    return call(name, [this.value(mask)]);
  }

  #scalar({ slot, type }: Extract<Value, { kind: 'scalar' }>): Term {
    const word = primary(`scalars[${slot}]`);
    if (type === 'u32') return word;
    if (type === 'bool') return infix('!=', word, primary('0'));
    if (type === 'f32') return call(this.prelude.use('f32_bits_u32'), [word]);
    return { text: `(int32_t)${word.text}`, level: level.unary };
  }
}
