// What a sweep accumulates. The state of a fold is a few values: the reduction so far; an extremum and its
// position; or a pair of reductions (gpu/fused.ts). Every fold takes elements of a row, combines two states,
// and finally asks for totals over the invocations that share the row.

import type { Node } from '../../../../ir/graph.ts';
import type { IndexExpr } from '../../../../ir/index-algebra/expr.ts';
import type { RowStage } from '../../../../schedule/kernel.ts';
import { addInts, constant, mulInts, operation, splat, type LoopBuilder } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import { registerOf, type Lowering } from '../../../expression/lowering.ts';
import type { Value, Width } from '../../../loop/loop.ts';
import { beats, combine, identity, type Best } from '../../shared/monoid.ts';
import type { Ask } from '../../shared/join.ts';

/**
 * One step of a row. Where it may lie past the end, `valid` tells; what is evaluated is then an
 * element of the row anyway.
 */
export interface RowStep {
  readonly lowering: Lowering;
  readonly valid: Value | undefined;
}

/** What a fold has accumulated. */
export type State = readonly Value[];
export type Results = ReadonlyMap<Node, Value>;

export interface RowFold {
  /** What its values are called. */
  readonly names: readonly string[];
  /** Declares registers, with nothing accumulated. */
  open(width: Width): State;
  /** The state after further steps, in order; or after the first ones. */
  take(state: State | undefined, steps: readonly RowStep[]): State;
  /** Two states as one; a comes first in the row. */
  combine(a: State, b: State): State;
  /**
   * Asks for totals, round by round; returns what the row's reductions give. `perRow` lowers values
   * of the whole row.
   */
  join(state: State, perRow: () => Lowering): Generator<readonly Ask[], Results, readonly Value[]>;
}

export function select(condition: Value, yes: Value, no: Value): Value {
  return operation('where', [condition, yes, no], yes.type);
}

/** What a step contributes to a reduction: nothing where it lies past the end. */
function termOf(b: LoopBuilder, { lowering, valid }: RowStep, { value, monoid }: RowStage): Value {
  const term = lowering.value(value);
  // What lies past the end repeats an element of the row: which changes nothing for an idempotent
  // monoid (min, max).
  if (valid === undefined || (monoid !== 'sum' && monoid !== 'prod')) return term;
  return b.let(select(valid, term, identity(monoid, term.type, 1)), 'term');
}

/** A reduction with a monoid. */
export function reduction(b: LoopBuilder, stage: RowStage): RowFold {
  const { monoid } = stage;
  return {
    names: [monoid],
    open: (width) => [b.var(monoid, identity(monoid, registerOf(stage.dtype), width))],
    take: (state, steps) => {
      const terms = steps.map((step) => termOf(b, step, stage));
      const all = state === undefined ? terms : [state[0]!, ...terms];
      return [all.reduce((x, y, i) => combine(monoid, i === 1 ? x : b.let(x, monoid), y))];
    },
    combine: ([x], [y]) => [combine(monoid, x!, y!)],
    *join([value]) {
      const [total] = yield [{ monoid, value: value! }];
      return new Map([[stage.node, b.let(rounded(total!, stage.dtype), `row_${monoid}`)]]);
    },
  };
}

/**
 * The least or greatest of floats by one instruction, which ignores NaN: a flag records whether
 * there was one.
 */
export function flaggedExtremum(b: LoopBuilder, stage: RowStage): RowFold {
  const op = stage.monoid === 'min' ? 'pmin' : 'pmax';
  const monoid = stage.monoid === 'min' ? 'min' : 'max';
  const beyond = (x: Value, y: Value): Value => operation(op, [x, y], 'f32');
  const either = (x: Value, y: Value): Value => operation('or', [x, y], 'bool');
  return {
    names: [monoid, 'odd'],
    open: (width) => [
      b.var(monoid, identity(monoid, 'f32', width)),
      b.var('odd', constant(0, 'bool', width)),
    ],
    take: (state, steps) =>
      steps.reduce<State | undefined>((so, { lowering }) => {
        const term = lowering.value(stage.value);
        const odd = operation('isNan', [term], 'bool');
        return so === undefined ? [term, odd] : [beyond(so[0]!, term), either(so[1]!, odd)];
      }, state)!,
    combine: ([x, odd], [y, other]) => [beyond(x!, y!), either(odd!, other!)],
    *join([value, odd]) {
      const [best, flag] = yield [
        { monoid, value: value! },
        { monoid: 'or', value: odd! },
      ];
      const total = b.let(select(flag!, constant(NaN, 'f32'), best!), `row_${monoid}`);
      return new Map([[stage.node, total]]);
    },
  };
}

/** The place of an extremum. `first` is the place that each lane of this invocation sees first. */
export function extremum(b: LoopBuilder, stage: RowStage, column: IndexExpr, first: Value): RowFold {
  const monoid = stage.monoid === 'min' ? 'min' : 'max';
  const type = registerOf(stage.dtype);
  const best = ([value, at]: State): Best => ({ value: value!, at: at! });
  const better = (into: State, from: State, earlier: boolean): State => {
    const wins = beats(b, monoid, best(from), best(into), earlier);
    return [
      b.let(select(wins, from[0]!, into[0]!), 'best'),
      b.let(select(wins, from[1]!, into[1]!), 'best_at'),
    ];
  };
  return {
    names: ['best', 'best_at'],
    open: (width) => [
      b.var('best', identity(monoid, type, width)),
      // Before anything is seen, the place is the first that will be: a row of identities gives its
      // first index.
      b.var('best_at', splat(first, width)),
    ],
    take: (state, steps) => {
      const seen = steps.map(({ lowering }): State => [
        lowering.value(stage.value),
        lowering.index(lowering.place(column)),
      ]);
      const all = state === undefined ? seen : [state, ...seen];
      return all.reduce((x, y) => better(x, y, false));
    },
    combine: (x, y) => better(x, y, true),
    *join([value, at]) {
      const [top] = yield [{ monoid, value: value! }];
      let holds = operation('eq', [value!, top!], 'bool');
      if (type === 'f32' || type === 'f64') {
        const nan = (x: Value): Value => operation('isNan', [x], 'bool');
        holds = operation('or', [holds, operation('and', [nan(value!), nan(top!)], 'bool')], 'bool');
      }
      const ownPlace = b.let(select(holds, at!, constant(0x7fffffff)), 'best_at');
      const [place] = yield [{ monoid: 'min', value: ownPlace }];
      return new Map([[stage.node, place!]]);
    },
  };
}

/**
 * The greatest of floats by one instruction, where it does not matter what it is if there is a NaN.
 */
function plainMaximum(b: LoopBuilder, stage: RowStage): RowFold {
  const beyond = (x: Value, y: Value): Value => operation('pmax', [x, y], 'f32');
  return {
    ...reduction(b, stage),
    take: (state, steps) => [
      steps.map(({ lowering }) => lowering.value(stage.value)).reduce(beyond, state![0]!),
    ],
    combine: ([x], [y]) => [beyond(x!, y!)],
  };
}

/**
 * The fold of a stage where a core has the row for itself. `poisoned`: NaN reaches all results
 * without the stage.
 */
export function foldOnCore(
  b: LoopBuilder,
  stage: RowStage,
  column: IndexExpr,
  first: Value,
  poisoned: boolean,
): RowFold {
  if (stage.arg) return extremum(b, stage, column, first);
  if (poisoned) return plainMaximum(b, stage);
  const isExtreme = stage.monoid === 'min' || stage.monoid === 'max';
  return isExtreme && stage.dtype === 'f32' ? flaggedExtremum(b, stage) : reduction(b, stage);
}

/** One lane of every value of a state. */
export function laneOfState(state: State, lane: number): State {
  return state.map((value) =>
    value.width === 1 ? value : { kind: 'lane', arg: value, lane, type: value.type, width: 1 },
  );
}

/** The places of a group of four steps, as lanes. */
export function placesOf(group: Value): Value {
  const offsets: Value = {
    kind: 'vector',
    args: [0, 1, 2, 3].map((lane) => constant(lane)),
    type: 'i32',
    width: 4,
  };
  return addInts(mulInts(group, constant(4)), offsets);
}
