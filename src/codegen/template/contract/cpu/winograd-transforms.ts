// The transforms of Winograd's minimal filtering F(4,3) in the form of Lavin and Gray (2016): four
// neighbouring results of three taps by six products instead of twelve, at the points 0, ±1, ±2
// and ∞. Along two axes each is applied twice, so 36 products stand for 144.

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
