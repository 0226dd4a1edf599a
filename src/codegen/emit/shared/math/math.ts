// Rewrites a Loop for languages that have no functions beyond the square root, or none of vectors
// (WebAssembly, C): operations on floats become sequences of those that processors have an
// instruction for, the same at every width, so that a scalar and a vector give the same bits. Shared
// parts are named; constants stay constants. What becomes of a `fma`, the language says.

import { CompilerBug } from '../../../../errors.ts';
import { byFormula } from '../../../../ir/formula.ts';
import { elementwiseRows, givesBool, type ElementwiseOp } from '../../../../ir/ops.ts';
import type { Loop, LoopOp, RegisterType, Stmt, Value } from '../../../loop/loop.ts';
import { operandsOf, withOperands } from '../../../loop/builder.ts';
import type { CommonFunctions, Functions } from './functions.ts';
import type { Angle } from './reduced.ts';
import { cosh, erf, exp, exp2, expm1, sinh, tanh } from './exp.ts';
import { mulhi, sign } from './integer.ts';
import { rareFunctions } from './rare.ts';
import { mayBeExpanded } from './needed.ts';
import { isLong } from '../../../loop/register.ts';
import { Draft, Terms } from './terms.ts';
import { declaredIn, rewritten, statementsIn, valuesOf } from '../../../loop/walk.ts';

const common: CommonFunctions & Functions = {
  unary: { sign, exp, exp2, expm1, sinh, cosh, tanh, erf },
  binary: {},
  ofAngle: {},
};

/** Operations on integers. */
const ofIntegers: Functions = { unary: { sign }, binary: { mulhi }, ofAngle: {} };

const none: Functions = { unary: {}, binary: {}, ofAngle: {} };

/** The functions on a type that `op` is one of, if it is one. */
function functionsFor(op: LoopOp, type: RegisterType): Functions {
  if (type !== 'f32' && type !== 'f64') return ofIntegers;
  if (!mayBeExpanded(op)) return none;
  if (type === 'f64') return rareFunctions.value.doubles;
  return op in common.unary ? common : rareFunctions.value.singles;
}

/** Whether the op's row has it written by its formula. */
function hasFormula(op: LoopOp): boolean {
  return Object.hasOwn(elementwiseRows, op) && elementwiseRows[op as ElementwiseOp].wasm === 'formula';
}

/** Whether `expandMath` replaces the operation on operands of this type. */
export function isExpanded(op: LoopOp, type: RegisterType): boolean {
  const isFloat = type === 'f32' || type === 'f64';
  // There are instructions for the upper halves of shorter products.
  if (op === 'mulhi') return isLong(type);
  if (op === 'mod' || op === 'fma') return isFloat;
  if (hasFormula(op)) return true;
  const { unary, binary, ofAngle } = functionsFor(op, type);
  return type !== 'bool' && (op in unary || op in binary || op in ofAngle);
}

/** The outermost operation in a value that is replaced. */
function expandedIn(value: Value): LoopOp | undefined {
  if (value.kind === 'op' && isExpanded(value.op, value.args[0]?.type ?? value.type)) return value.op;
  for (const operand of operandsOf(value)) {
    const found = expandedIn(operand);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * What becomes of a `fma`: a product and a sum, both rounded, which is the same on all machines; of
 * f32, lanes of a vector, and a product and a sum of f64; or itself.
 */
export type FusedAs = 'product-and-sum' | 'lanes' | 'itself';

/** The Loop without functions. */
export function expandMath(loop: Loop, fused: FusedAs = 'product-and-sum'): Loop {
  const taken = new Set<string>(loop.buffers.map(({ name }) => name));
  const mutable = new Set<string>();
  for (const name of declaredIn(loop.body)) taken.add(name);
  for (const stmt of statementsIn(loop.body)) if (stmt.kind === 'var') mutable.add(stmt.name);
  return { ...loop, body: new Expansion(taken, mutable, fused).body(loop.body, new Map()) };
}

class Expansion {
  readonly #taken: Set<string>;
  readonly #mutable: ReadonlySet<string>;
  readonly #fused: FusedAs;
  readonly #counts = new Map<string, number>();

  constructor(taken: Set<string>, mutable: ReadonlySet<string>, fused: FusedAs) {
    this.#taken = taken;
    this.#mutable = mutable;
    this.#fused = fused;
  }

  /** `angles`: what was reduced before, by the name of the angle. */
  body(body: readonly Stmt[], outer: ReadonlyMap<string, Angle>): readonly Stmt[] {
    const angles = new Map(outer);
    return body.flatMap((stmt) => this.#stmt(stmt, angles));
  }

  #name = (hint: string): string => {
    for (;;) {
      const count = this.#counts.get(hint) ?? 0;
      this.#counts.set(hint, count + 1);
      const name = count === 0 ? hint : `${hint}_${count}`;
      if (this.#taken.has(name)) continue;
      this.#taken.add(name);
      return name;
    }
  };

  /** The statement without functions, after what its values need. */
  #stmt(stmt: Stmt, angles: Map<string, Angle>): readonly Stmt[] {
    const inner = rewritten(stmt, { body: (body) => this.body(body, angles) });
    const values = valuesOf(stmt);
    const first = values.map(expandedIn).find((op) => op !== undefined);
    if (first === undefined) return [inner];
    const draft = new Draft(this.#name);
    const nodes = values.map((value) => this.#value(value, draft, angles));
    const written = draft.written(nodes, first)[Symbol.iterator]();
    return [...draft.stmts, rewritten(inner, { value: () => written.next().value! })];
  }

  #value(value: Value, draft: Draft, angles: Map<string, Angle>): Value {
    if (expandedIn(value) === undefined) return draft.node(value);
    if (value.kind !== 'op') {
      const operands = operandsOf(value).map((operand) => this.#value(operand, draft, angles));
      return draft.node(withOperands(value, operands));
    }
    const args = value.args.map((arg) => this.#value(arg, draft, angles));
    return this.#applied({ ...value, args }, draft, angles);
  }

  /** An operation on nodes. */
  #applied(value: Value, draft: Draft, angles: Map<string, Angle>): Value {
    if (value.kind !== 'op' || !isExpanded(value.op, value.args[0]!.type)) return draft.node(value);
    const { op, args, width } = value;
    const [a, b, c] = args;
    const m = new Terms(draft, width, op, a!.type === 'f64' ? 'f64' : 'f32');
    if (hasFormula(op)) {
      const { type } = args.at(-1)!;
      return byFormula<Value>(op as ElementwiseOp, args, {
        constant: (number) => m.constant(number, type),
        op: (name, parts) =>
          this.#applied(m.op(name, parts, givesBool(name) ? 'bool' : undefined), draft, angles),
      });
    }
    if (op === 'mod') return rareFunctions.value.mod(draft, op, a!, b!);
    if (op === 'fma') return this.#fusedAs(value, draft, [a!, b!, c!], m);
    const table = functionsFor(op, a!.type);
    const [one, two, turn] = [table.unary[op], table.binary[op], table.ofAngle[op]];
    if (one !== undefined) return one(m, a!);
    if (two !== undefined) return two(m, a!, b!);
    if (turn !== undefined) return turn(m, this.#angle(a!, draft, angles));
    throw new CompilerBug('math', `${op} has no function`);
  }

  #fusedAs(value: Value, draft: Draft, args: readonly [Value, Value, Value], m: Terms): Value {
    if (this.#fused === 'itself') return draft.node(value);
    if (this.#fused === 'lanes' && value.type === 'f32') return fusedLanes(draft, args, value.width);
    return m.add(m.mul(args[0], args[1]), args[2]);
  }

  /** An angle that has a name is reduced once. */
  #angle(x: Value, draft: Draft, angles: Map<string, Angle>): Angle {
    const name = x.kind === 'variable' && !this.#mutable.has(x.name) ? x.name : undefined;
    const known = name === undefined ? undefined : angles.get(name);
    if (known !== undefined) {
      const { rest, tail, quarter } = known;
      return {
        rest: draft.node(rest),
        ...(tail !== undefined && { tail: draft.node(tail) }),
        quarter: draft.node(quarter),
      };
    }
    const angle = rareFunctions.value.reduceAngle(draft, 'angle', x);
    if (name !== undefined) angles.set(name, angle);
    return angle;
  }
}

/**
 * A `fma` as an instruction of vectors: scalars are taken through one, so that they round as
 * vectors do.
 */
function fusedLanes(draft: Draft, args: readonly Value[], width: Value['width']): Value {
  const wide = (value: Value): Value =>
    width === 1 ? draft.node({ kind: 'splat', arg: value, type: 'f32', width: 4 }) : value;
  const whole = width === 1 ? 4 : width;
  const result = draft.node({ kind: 'op', op: 'fma', args: args.map(wide), type: 'f32', width: whole });
  return width === 1 ? draft.node({ kind: 'lane', arg: result, lane: 0, type: 'f32', width: 1 }) : result;
}
