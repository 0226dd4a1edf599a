// What operations take that are formulas of others.

import { tensor, zeros } from '../../../src/index.ts';
import {
  axes,
  axis,
  count,
  dtype,
  finite,
  flag,
  integer,
  like,
  maybe,
  meaning,
  notNegative,
  number,
  operand,
  options,
  positive,
  shape,
  someTensors,
  t,
  word,
  type Meaning,
} from '../kinds.ts';
import type { Rows } from './operation.ts';
import type { Wrong } from '../wrong.ts';

const x = t(2, 3);
const create = options({ dtype });
const maybeCount = maybe(count);
const value = meaning(
  () => 1,
  'nan',
  'infinity',
  'fraction',
  'negative',
  'large',
  'number',
  'true',
  'bigint',
);

function rows(names: string, ...places: readonly Meaning[]): Rows {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, places]));
}

/** The same, but for these wrong values, which are not valid here. */
function but(base: Meaning, ...names: readonly Wrong[]): Meaning {
  return { ...base, accepts: new Set([...base.accepts].filter((name) => !names.includes(name))) };
}

const close = options({ rtol: notNegative, atol: notNegative, equalNan: flag });
const integers = like(operand, () => tensor([1], { dtype: 'i32' }));
const scaled = options({ beta: operand, alpha: operand });
const listed = but(
  like(someTensors, () => [zeros([2, 3]), zeros([2, 3])]),
  'emptyList',
);
const splits = meaning(() => 1, 'number', 'bytes', 'emptyList', 'negative', 'large');
const triangle = options({ offset: integer, dtype: word('i32', 'i64') });

/** By name. */
export const formulaRows: Rows = {
  ...rows(
    'deg2rad rad2deg positive signbit isneginf isposinf frac frexp ravel fliplr flipud atleast1d ' +
      'atleast2d atleast3d',
    x,
  ),
  ...rows(
    'fmax fmin hypot logaddexp logaddexp2 heaviside trueDivide floatPower copysign ldexp nextafter',
    operand,
    operand,
  ),
  ...rows('gcd lcm', integers, integers),
  rsub: [operand, operand, options({ alpha: number })],
  ...rows('addcmul addcdiv', x, operand, operand, options({ value: number })),
  ...rows('clampMin clampMax', x, operand),
  ...rows('isclose allclose', operand, operand, close),
  equal: [x, x],
  addmm: [t(2, 2), x, t(3, 2), scaled],
  addmv: [t(2), x, t(3), scaled],
  addr: [t(3, 2), t(3), t(2), scaled],
  baddbmm: [t(2, 2, 2), t(2, 2, 3), t(2, 3, 2), scaled],
  addbmm: [t(2, 2), t(2, 2, 3), t(2, 3, 2), scaled],
  tensordot: [x, t(3, 2), maybe(like(count, () => 1))],
  ...rows('inner kron', x, x),
  vdot: [t(3), t(3)],
  diff: [x, maybeCount, maybe(axis), options({ prepend: x, append: x })],
  ...rows('trapezoid cumulativeTrapezoid', x, maybe(axis), options({ x, dx: number })),
  gradient: [x, axes, options({ spacing: number, edgeOrder: like(count, () => 1) })],
  stdMean: [x, axes, options({ keepdim: flag, correction: finite })],
  sumToSize: [x, shape(1, 3)],
  renorm: [x, positive, axis, notNegative],
  empty: [shape(2, 3), create],
  emptyLike: [x, create],
  ...rows('newZeros newOnes', x, shape(2, 3), create),
  newFull: [x, shape(2), value, create],
  fill: [
    x,
    but(
      like(operand, () => 1),
      'tensor',
      'bool',
      'integers',
    ),
  ],
  logspace: [finite, finite, count, maybe(number), create],
  ...rows('trilIndices triuIndices', count, maybeCount, triangle),
  diagflat: [x, maybe(integer)],
  ...rows('hstack vstack dstack columnStack', listed),
  ...rows('blockDiag broadcastTensors', someTensors),
  cartesianProd: [someTensors],
  combinations: [t(3), maybeCount, options({ withReplacement: flag })],
  tensorSplit: [x, splits, maybe(axis)],
  hsplit: [x, splits],
  vsplit: [x, splits],
  dsplit: [t(2, 2, 2), splits],
  rot90: [x, maybe(integer), maybe(shape(0, 1))],
  movedim: [x, but(axes, 'nothing'), but(axes, 'nothing')],
  swapaxes: [x, axis, like(axis, () => 1)],
  reshapeAs: [x, t(3, 2)],
};
