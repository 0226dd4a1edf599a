// Writes arithmetic at one width as plainly as on paper: `m.add(m.mul(x, 2), 1)`. Equal values are
// one node, so that what is used twice can be named and is computed once.

import { constant, operandsOf, withOperands } from '../../../loop/builder.ts';
import type { LoopOp, RegisterType, Stmt, Value, Width } from '../../../loop/loop.ts';

/**
 * A number stands for a constant of the other operand's type, a bigint for one of 64 bits that no
 * number is.
 */
export type Operand = Value | number | bigint;

const isValue = (operand: Operand): operand is Value => typeof operand === 'object';

/**
 * Nodes of the values of one statement, the statements that must come before it, and the names
 * given so far.
 */
export class Draft {
  readonly stmts: Stmt[] = [];
  readonly #name: (hint: string) => string;
  readonly #nodes = new Map<string, Value>();
  readonly #ids = new Map<Value, number>();
  readonly #named = new Map<Value, Value>();

  constructor(name: (hint: string) => string) {
    this.#name = name;
  }

  /** The one node for all values of equal structure (hash-consing). */
  node(value: Value): Value {
    if (this.#ids.has(value)) return value;
    const { kind, type, width } = value;
    const operands = operandsOf(value).map((operand) => this.node(operand));
    const ids = operands.map((operand) => this.#ids.get(operand));
    const key = `${kind} ${type} ${width} ${ids.join()} ${ownFields(value)}`;
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const node = withOperands(value, operands);
    this.#nodes.set(key, node);
    this.#ids.set(node, this.#ids.size);
    return node;
  }

  /** Declares a mutable register, and gives what reads it. */
  var(hint: string, value: Value): Value {
    const { type, width } = value;
    const name = this.#name(hint);
    this.stmts.push({ kind: 'var', name, value: this.written([value], hint)[0]! });
    return this.node({ kind: 'variable', name, type, width });
  }

  /** A value under a name. */
  let(hint: string, value: Value): Value {
    const [text] = this.written([value], hint);
    if (text!.kind === 'variable' || text!.kind === 'constant') return text!;
    return this.#define(hint, value, text!);
  }

  /**
   * The values as a statement takes them: what they use more than once, in names that are defined
   * before it.
   */
  written(values: readonly Value[], hint: string): readonly Value[] {
    const uses = new Map<Value, number>();
    const count = (value: Value): void => {
      const before = uses.get(value) ?? 0;
      uses.set(value, before + 1);
      if (before === 0 && !this.#named.has(value)) operandsOf(value).forEach(count);
    };
    values.forEach(count);
    const texts = new Map<Value, Value>();
    const write = (value: Value): Value => {
      const named = this.#named.get(value) ?? texts.get(value);
      if (named !== undefined) return named;
      const operands = operandsOf(value).map(write);
      const text = withOperands(value, operands);
      const shared = uses.get(value)! > 1 && operands.length > 0;
      if (shared) return this.#define(hint, value, text);
      texts.set(value, text);
      return text;
    };
    return values.map(write);
  }

  #define(hint: string, value: Value, text: Value): Value {
    const name = this.#name(hint);
    this.stmts.push({ kind: 'let', name, value: text });
    const variable = this.node({ kind: 'variable', name, type: value.type, width: value.width });
    this.#named.set(value, variable);
    return variable;
  }

  /** A name for a loop counter. */
  name(hint: string): string {
    return this.#name(hint);
  }

  /**
   * A draft of the statements inside a branch or loop: it knows what is named out here, but names
   * nothing out here.
   */
  inner(): Draft {
    const inner = new Draft(this.#name);
    for (const [key, value] of this.#nodes) inner.#nodes.set(key, value);
    for (const [value, id] of this.#ids) inner.#ids.set(value, id);
    for (const [value, variable] of this.#named) inner.#named.set(value, variable);
    return inner;
  }
}

/** The attributes that distinguish a value from others of its kind, type, width and operands. */
function ownFields(value: Value): string | number {
  switch (value.kind) {
    case 'constant':
      return Object.is(value.value, -0) ? '-0' : String(value.exact ?? value.value);
    case 'variable':
      return value.name;
    case 'builtin':
      return `${value.of}.${value.axis}`;
    case 'subgroup':
      return value.of;
    case 'op':
      return value.op;
    case 'load':
      return `${value.buffer}/${value.aligned}`;
    case 'scalar':
      return value.slot;
    case 'lane':
      return value.lane;
    case 'vector':
    case 'splat':
      return '';
    default:
      return value satisfies never;
  }
}

/**
 * What floats of a type are made of: their bits are integers of these types, the sign is the
 * highest.
 */
const formats = {
  f32: { bits: 'i32', word: 'u32', sign: -0x80000000, high: -(2 ** 12) },
  f64: { bits: 'i64', word: 'u64', sign: -(2n ** 63n), high: -(2 ** 27) },
} as const;

/**
 * Operations on values of one width; where nothing else says what a number is, it is a float of one
 * type.
 */
export class Terms {
  readonly draft: Draft;
  readonly width: Width;
  readonly float: 'f32' | 'f64';
  /** What names of sub-expressions begin with. */
  readonly hint: string;

  constructor(draft: Draft, width: Width, hint: string, float: 'f32' | 'f64' = 'f32') {
    this.draft = draft;
    this.width = width;
    this.hint = hint;
    this.float = float;
  }

  /** The same operations on nodes of an inner draft. */
  inside(draft: Draft): Terms {
    return new Terms(draft, this.width, this.hint, this.float);
  }

  constant(value: number | bigint, type: RegisterType = this.float): Value {
    return this.draft.node(constant(value, type, this.width));
  }

  op(op: LoopOp, operands: readonly Operand[], result?: RegisterType): Value {
    const type = operands.findLast(isValue)?.type ?? this.float;
    const args = operands.map((operand) => (isValue(operand) ? operand : this.constant(operand, type)));
    // Bits of floats are integers here: they wrap.
    return this.draft.node({ kind: 'op', op, args, type: result ?? type, width: this.width, wraps: true });
  }

  add(a: Operand, b: Operand): Value {
    return this.op('add', [a, b]);
  }
  sub(a: Operand, b: Operand): Value {
    return this.op('sub', [a, b]);
  }
  mul(a: Operand, b: Operand): Value {
    return this.op('mul', [a, b]);
  }
  div(a: Operand, b: Operand): Value {
    return this.op('div', [a, b]);
  }
  neg(x: Value): Value {
    return this.op('neg', [x]);
  }
  abs(x: Value): Value {
    return this.op('abs', [x]);
  }
  floor(x: Value): Value {
    return this.op('floor', [x]);
  }
  sqrt(x: Value): Value {
    return this.op('sqrt', [x]);
  }
  /** The lesser; the first where one is NaN or both are equal. */
  pmin(a: Operand, b: Operand): Value {
    return this.op('pmin', [a, b]);
  }
  /** The greater; the first where one is NaN or both are equal. */
  pmax(a: Operand, b: Operand): Value {
    return this.op('pmax', [a, b]);
  }
  min(a: Operand, b: Operand): Value {
    return this.op('min', [a, b]);
  }
  max(a: Operand, b: Operand): Value {
    return this.op('max', [a, b]);
  }
  and(a: Operand, b: Operand): Value {
    return this.op('and', [a, b]);
  }
  or(a: Operand, b: Operand): Value {
    return this.op('or', [a, b]);
  }
  xor(a: Operand, b: Operand): Value {
    return this.op('xor', [a, b]);
  }
  not(a: Value): Value {
    return this.op('not', [a]);
  }
  shl(a: Value, count: number): Value {
    return this.op('shl', [a, count]);
  }
  shr(a: Value, count: number): Value {
    return this.op('shr', [a, count]);
  }
  lt(a: Operand, b: Operand): Value {
    return this.op('lt', [a, b], 'bool');
  }
  le(a: Operand, b: Operand): Value {
    return this.op('le', [a, b], 'bool');
  }
  eq(a: Operand, b: Operand): Value {
    return this.op('eq', [a, b], 'bool');
  }
  ne(a: Operand, b: Operand): Value {
    return this.op('ne', [a, b], 'bool');
  }
  /** Two numbers are floats. */
  where(condition: Value, yes: Operand, no: Operand): Value {
    const type = isValue(yes) ? yes.type : isValue(no) ? no.type : this.float;
    const choice = (x: Operand): Value => (isValue(x) ? x : this.constant(x, type));
    return this.op('where', [condition, choice(yes), choice(no)], type);
  }
  isNan(x: Value): Value {
    return this.ne(x, x);
  }
  /** The number as a float. */
  toReal(x: Value): Value {
    return this.op('cast', [x], this.float);
  }
  /** The bits as a float. */
  real(bits: Value): Value {
    return this.op('bitcast', [bits], this.float);
  }
  /** The bits as a signed integer. */
  bits(x: Value): Value {
    return this.op('bitcast', [x], formats[this.float].bits);
  }
  /** The bits as an unsigned integer. */
  word(x: Value): Value {
    return this.op('bitcast', [x], formats[this.float].word);
  }
  /** c₀ + x·(c₁ + x·(c₂ + …)). */
  polynomial(x: Value, coefficients: readonly number[]): Value {
    return coefficients
      .slice(0, -1)
      .reduceRight<Operand>(
        (sum, c) => this.add(this.mul(x, sum), c),
        coefficients[coefficients.length - 1]!,
      ) as Value;
  }
  /** The bit that says that x is negative, as a signed integer. */
  signBit(x: Value): Value {
    return this.and(this.bits(x), formats[this.float].sign);
  }
  /** Puts x's sign on a number that has none, or the same. */
  withSign(size: Value, x: Value): Value {
    return this.real(this.or(this.bits(size), this.signBit(x)));
  }
  /** x without the lower half of its fraction: products of two such numbers are exact. */
  high(x: Value): Value {
    return this.real(this.and(this.bits(x), formats[this.float].high));
  }
  /** Whether any lane is true, one bool. `anyLaneOf` (any-lane.ts) knows this shape. */
  any(x: Value): Value {
    const node = (value: Value): Value => this.draft.node(value);
    const lanes = Array.from({ length: this.width }, (_, lane) =>
      this.width === 1 ? x : node({ kind: 'lane', arg: x, lane, type: 'bool', width: 1 }),
    );
    return lanes.reduce((some, one) =>
      node({ kind: 'op', op: 'or', args: [some, one], type: 'bool', width: 1 }),
    );
  }
}
