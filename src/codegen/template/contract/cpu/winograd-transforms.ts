// The transforms of Winograd's minimal filtering F(4,3) in the form of Lavin and Gray (2016): four
// neighbouring results of three taps by six products instead of twelve, at the points 0, ±1, ±2
// and ∞. Along two axes each is applied twice, so 36 products stand for 144. The transposed
// transforms give the gradient by the taps: of six points of the input and six of the results'
// gradient, multiplied point by point and summed over tiles.

import { constant, operation, splat, type LoopBuilder } from '../../../loop/builder.ts';
import type { Value } from '../../../loop/loop.ts';

/** Results of a tile along an axis, and elements of the input that they see. */
export const tileResults = 4;
export const tileInputs = 6;

/** Numbers of points in a tile of two axes. */
export const tilePoints = 36;

type Arithmetic = {
  readonly sum: (x: Value, y: Value) => Value;
  readonly less: (x: Value, y: Value) => Value;
  readonly times: (x: Value, factor: number) => Value;
};

function arithmeticOf(b: LoopBuilder): Arithmetic {
  const named = (op: 'add' | 'sub' | 'mul', x: Value, y: Value): Value =>
    b.let(operation(op, [x, y], x.type), 't');
  return {
    sum: (x, y) => named('add', x, y),
    less: (x, y) => named('sub', x, y),
    times: (x, factor) => named('mul', x, splat(constant(factor, x.type), x.width)),
  };
}

/** Six elements of the input → six points. */
export function inputPoints(b: LoopBuilder, d: readonly Value[]): readonly Value[] {
  const { sum, less, times } = arithmeticOf(b);
  const [d0, d1, d2, d3, d4, d5] = d as [Value, Value, Value, Value, Value, Value];
  const [even, odd] = [less(d4, times(d2, 4)), less(d3, times(d1, 4))];
  const [wide, far] = [less(d4, d2), times(less(d3, d1), 2)];
  return [
    sum(times(less(d0, d2), 4), wide),
    sum(even, odd),
    less(even, odd),
    sum(wide, far),
    less(wide, far),
    less(sum(times(d1, 4), d5), times(d3, 5)),
  ];
}

/** Three weights → six points. */
export function weightPoints(b: LoopBuilder, g: readonly Value[]): readonly Value[] {
  const { sum, less, times } = arithmeticOf(b);
  const [g0, g1, g2] = g as [Value, Value, Value];
  const [even, odd] = [times(sum(g0, g2), -1 / 6), times(g1, 1 / 6)];
  const [wide, far] = [sum(times(g0, 1 / 24), times(g2, 1 / 6)), times(g1, 1 / 12)];
  return [times(g0, 1 / 4), less(even, odd), sum(even, odd), sum(wide, far), less(wide, far), g2];
}

/** Six points of products → four results. */
export function results(b: LoopBuilder, m: readonly Value[]): readonly Value[] {
  const { sum, less, times } = arithmeticOf(b);
  const [m0, m1, m2, m3, m4, m5] = m as [Value, Value, Value, Value, Value, Value];
  const [near, turn] = [sum(m1, m2), less(m1, m2)];
  const [far, bend] = [sum(m3, m4), less(m3, m4)];
  return [
    sum(sum(m0, near), far),
    sum(turn, times(bend, 2)),
    sum(near, times(far, 4)),
    sum(sum(turn, times(bend, 8)), m5),
  ];
}

/** Four gradients of results → six points: `results`, transposed. */
export function resultPoints(b: LoopBuilder, g: readonly Value[]): readonly Value[] {
  const { sum, less, times } = arithmeticOf(b);
  const [g0, g1, g2, g3] = g as [Value, Value, Value, Value];
  const [even, odd] = [sum(g0, g2), sum(g1, g3)];
  const [wide, far] = [sum(g0, times(g2, 4)), times(sum(g1, times(g3, 4)), 2)];
  return [g0, sum(even, odd), less(even, odd), sum(wide, far), less(wide, far), g3];
}

/** Six points of products → the gradients of three weights: `weightPoints`, transposed. */
export function weightGradients(b: LoopBuilder, m: readonly Value[]): readonly Value[] {
  const { sum, less, times } = arithmeticOf(b);
  const [m0, m1, m2, m3, m4, m5] = m as [Value, Value, Value, Value, Value, Value];
  const near = times(sum(m1, m2), 1 / 6);
  const far = sum(m3, m4);
  return [
    sum(less(times(m0, 1 / 4), near), times(far, 1 / 24)),
    sum(times(less(m2, m1), 1 / 6), times(less(m3, m4), 1 / 12)),
    sum(less(times(far, 1 / 6), near), m5),
  ];
}

export const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Applies a transform along both axes of a square: `at` gives its elements. */
export function twice(
  count: number,
  at: (y: number, x: number) => Value,
  along: (line: readonly Value[]) => readonly Value[],
): readonly (readonly Value[])[] {
  const columns = range(count).map((x) => along(range(count).map((y) => at(y, x))));
  return range(columns[0]!.length).map((y) => along(columns.map((column) => column[y]!)));
}
