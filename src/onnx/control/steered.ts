// If, Loop and Scan as branches and loops of the program, if their bodies can be recorded once: `cond`,
// `scan` and `whileLoop`. Returns undefined if they cannot, because types change from iteration to iteration,
// sequences are passed on, or the host has to know elements inside. Such loops are recorded iteration by
// iteration (control.ts).

import { SinterError } from '../../errors.ts';
import { cond, whileLoop } from '../../tensor/ops/control/branch.ts';
import { scan } from '../../tensor/ops/control/scan.ts';
import { logicalAnd } from '../../tensor/ops/elementwise/compare.ts';
import { full } from '../../tensor/ops/creation/creation.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { currentBudget } from '../budget.ts';
import type { ElementType } from '../element.ts';
import type { GraphPlan } from '../plan.ts';
import { GraphScope, type RunPlan, type Walk } from '../scope.ts';
import { knownData, Value } from '../value.ts';

/** A body cannot be recorded once. */
class Unsteered extends Error {}

/** What `record` gives; undefined where a body cannot be recorded once. */
function attempt<T>(record: () => T): T | undefined {
  try {
    return record();
  } catch (error) {
    if (error instanceof Unsteered) return undefined;
    // What else is wrong shows again when it is walked, and what was spent is spent.
    if (error instanceof SinterError && error.code !== 'E_LIMIT') return undefined;
    throw error;
  }
}

/**
 * Records a loop; its body's nodes count as often as it turns at most, as they do where it is
 * written out: a small file must not ask for any amount of work.
 */
function turned<T>(turns: number, record: () => T): T {
  const budget = currentBudget();
  const before = budget.spent;
  const result = record();
  if (turns > 1) budget.spend((turns - 1) * (budget.spent - before), 'the turns of a loop');
  return result;
}

/** The end of a walk that may not wait. */
function atOnce<T>(walk: Walk<T>): T {
  const { done, value } = walk.next();
  if (done !== true) throw new Unsteered();
  return value;
}

/** A body on values for its inputs, in a recording of its own. */
function inside(
  body: GraphPlan,
  values: readonly (Value | undefined)[],
  scope: GraphScope,
  run: RunPlan,
): Value[] {
  currentBudget().spend(1 + values.length, 'a round of a loop');
  const inner = new GraphScope(scope, true);
  body.inputs.forEach((name, i) => {
    const value = values[i];
    if (value !== undefined) inner.set(name, value);
  });
  return atOnce(run(body, inner));
}

/** Tensors of values, of these types where they must have some. */
function tensorsOf(values: readonly Value[], types?: readonly (ElementType | undefined)[]): Tensor[] {
  return values.map((value, i) => {
    const wished = types?.[i];
    if (!value.isTensor || value.words !== undefined || (wished !== undefined && wished !== value.type))
      throw new Unsteered();
    return value.tensor;
  });
}

const valuesOf = (tensors: readonly Tensor[], types: readonly ElementType[]): Value[] =>
  tensors.map((tensor, i) => Value.of(tensor, types[i]));

/** The branch that a condition names, as a branch of the program. */
export function recordedIf(
  condition: Value,
  [onTrue, onFalse]: readonly [GraphPlan, GraphPlan],
  scope: GraphScope,
  run: RunPlan,
): Value[] | undefined {
  return attempt(() => {
    let types: ElementType[] | undefined;
    const branch = (plan: GraphPlan) => (): Tensor[] => {
      const values = inside(plan, [], scope, run);
      const tensors = tensorsOf(values, types);
      types ??= values.map(({ type }) => type);
      return tensors;
    };
    const flag = condition.tensor;
    const predicate = flag.shape.length === 0 ? flag : flag.reshape([]);
    const results = cond(predicate, branch(onTrue), branch(onFalse)) as Tensor[];
    return valuesOf(results, types!);
  });
}

/** Turns that a loop without a known bound may make, where the budget is not without end. */
export const mostRounds = 65536;

/** What a Loop hands on and gives; `limit` is infinite where there is none. */
export interface LoopParts {
  readonly body: GraphPlan;
  /** A count that is known, or elements of a tensor; undefined for none. */
  readonly limit: number | Value | undefined;
  /** Undefined where only the count ends the loop. */
  readonly condition: Value | undefined;
  readonly carried: readonly Value[];
}

const yes = (): Value => knownData('bool', [], Uint8Array.of(1));

/** A loop whose turns are counted beforehand, or one that gives no stacks, as a loop of the program. */
export function recordedLoop(parts: LoopParts, scope: GraphScope, run: RunPlan): Value[] | undefined {
  const { body, limit, condition, carried } = parts;
  // What is known throughout are shapes: these are computed on the host.
  if (carried.every(({ known }) => known !== undefined)) return undefined;
  const types = carried.map(({ type }) => type);
  const first = condition?.known?.data[0];
  const count = typeof limit === 'number' ? limit : undefined;
  const counted =
    count === undefined || (condition !== undefined && first === undefined) || first === 0
      ? undefined
      : attempt(() => {
          let given: ElementType[] = [];
          const turn = (state: Tensor[], _: unknown, index: Tensor): [Tensor[], Tensor[]] => {
            const held = [Value.of(index.cast('i64'), 'int64'), yes(), ...valuesOf(state, types)];
            const [goesOn, ...results] = inside(body, held, scope, run);
            // Where it may end early, how many slices there are is not known.
            if (condition !== undefined && !(goesOn!.known?.data[0] === 1)) throw new Unsteered();
            const slices = results.slice(carried.length);
            given = slices.map(({ type }) => type);
            return [tensorsOf(results.slice(0, carried.length), types), tensorsOf(slices)];
          };
          const [state, stacks] = turned(count, () =>
            scan(turn as never, tensorsOf(carried), undefined, { length: count }),
          );
          return [...valuesOf(state as Tensor[], types), ...valuesOf(stacks as Tensor[], given)];
        });
  if (counted !== undefined || condition === undefined || body.outputs.length - 1 > carried.length)
    return counted;
  // One that may never end is walked, where that is noticed.
  const isTrusted = currentBudget().limits.maxNodes === Infinity;
  const bound = count !== undefined && count <= mostRounds ? count : isTrusted ? 1 : undefined;
  if (bound === undefined) return undefined;
  return attempt(() => {
    const end = limit === undefined || typeof limit === 'number' ? limit : limit.tensor.reshape([]);
    const start = {
      index: full([], 0, { dtype: 'i32' }),
      goesOn: condition.tensor.reshape([]),
      state: tensorsOf(carried),
    };
    const more = ({ index, goesOn }: typeof start): Tensor =>
      end === undefined ? goesOn : logicalAnd(goesOn, index.lt(end));
    const turn = ({ index, state }: typeof start): typeof start => {
      const held = [Value.of(index.cast('i64'), 'int64'), yes(), ...valuesOf(state, types)];
      const [goesOn, ...results] = inside(body, held, scope, run);
      return {
        index: index.add(1) as Tensor<'i32'>,
        goesOn: goesOn!.tensor.reshape([]),
        state: tensorsOf(results, types),
      };
    };
    const { state } = turned(bound, () => whileLoop(more as never, turn as never, start)) as typeof start;
    return valuesOf(state, types);
  });
}

/** A Scan over lines whose slices lie along their first axes: the last state, and stacks. */
export function recordedScan(
  body: GraphPlan,
  start: readonly Value[],
  lines: readonly Value[],
  scope: GraphScope,
  run: RunPlan,
): { readonly state: Value[]; readonly stacks: Value[] } | undefined {
  return attempt(() => {
    const types = start.map(({ type }) => type);
    const lineTypes = lines.map(({ type }) => type);
    let given: ElementType[] = [];
    const turn = (state: Tensor[], slices: Tensor[]): [Tensor[], Tensor[]] => {
      const results = inside(body, [...valuesOf(state, types), ...valuesOf(slices, lineTypes)], scope, run);
      const rows = results.slice(start.length);
      given = rows.map(({ type }) => type);
      return [tensorsOf(results.slice(0, start.length), types), tensorsOf(rows)];
    };
    const trips = lines[0]?.shape[0] ?? 0;
    const [state, stacks] = turned(trips, () => scan(turn as never, tensorsOf(start), tensorsOf(lines)));
    return {
      state: valuesOf(state as Tensor[], types),
      stacks: valuesOf(stacks as Tensor[], given),
    };
  });
}
