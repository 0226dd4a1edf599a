// Random convolutions: strides, dilations of both sides, padding (negative, too), groups, one and two spatial axes.

import * as fc from 'fast-check';

import { binary } from '../../../src/ir/build.ts';
import type { Graph, Node } from '../../../src/ir/graph.ts';
import { Sketch } from '../cases.ts';

export interface Convolution {
  readonly images: number;
  readonly groups: number;
  readonly inputs: number;
  readonly outputs: number;
  readonly axes: readonly Axis[];
  readonly epilogue: boolean;
  readonly pick: number;
}

interface Axis {
  readonly size: number;
  readonly taps: number;
  readonly stride: number;
  readonly dilation: number;
  readonly spread: number;
  readonly low: number;
  readonly high: number;
}

const axis: fc.Arbitrary<Axis> = fc.record({
  size: fc.integer({ min: 1, max: 14 }),
  taps: fc.integer({ min: 1, max: 8 }),
  stride: fc.integer({ min: 1, max: 3 }),
  dilation: fc.integer({ min: 1, max: 2 }),
  spread: fc.integer({ min: 1, max: 3 }),
  low: fc.integer({ min: -1, max: 3 }),
  high: fc.integer({ min: -1, max: 3 }),
});

/** Room that an axis leaves beyond its first output. */
function slack({ size, taps, dilation, spread, low, high }: Axis): number {
  return (size - 1) * spread + 1 + low + high - ((taps - 1) * dilation + 1);
}

export const convolution: fc.Arbitrary<Convolution> = fc.record({
  images: fc.integer({ min: 1, max: 2 }),
  groups: fc.integer({ min: 1, max: 3 }),
  inputs: fc.integer({ min: 1, max: 3 }),
  outputs: fc.integer({ min: 1, max: 9 }),
  axes: fc.array(
    axis.filter((one) => slack(one) >= 0),
    { minLength: 1, maxLength: 2 },
  ),
  epilogue: fc.boolean(),
  pick: fc.nat(),
});

export function convolutionOf(convolution: Convolution): Graph {
  const s = new Sketch();
  const z = convolutionIn(s, convolution);
  return s.graph(convolution.epilogue ? [z, binary(s.b, 'max', z, 0)] : [z]);
}

/** The convolution of two new inputs. */
export function convolutionIn(s: Sketch, { images, groups, inputs, outputs, axes }: Convolution): Node {
  const x = s.input([images, groups * inputs, ...axes.map(({ size }) => size)]);
  const w = s.input([groups * outputs, inputs, ...axes.map(({ taps }) => taps)]);
  return s.conv(x, w, {
    strides: axes.map(({ stride }) => stride),
    padLow: axes.map(({ low }) => low),
    padHigh: axes.map(({ high }) => high),
    lhsDilation: axes.map(({ spread }) => spread),
    rhsDilation: axes.map(({ dilation }) => dilation),
    groups,
  });
}
