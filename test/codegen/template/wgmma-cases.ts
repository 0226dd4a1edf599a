// Products and convolutions for warp groups, at sizes around the edges of lines and tiles, and the schedules that
// there are for them.

import * as fc from 'fast-check';
import { legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import type { ContractTiling } from '../../../src/codegen/template/contract/strategies.ts';
import { add, binary, broadcast } from '../../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { tapsFirst } from '../../../src/schedule/flat-taps.ts';
import { passes } from '../../../src/schedule/passes/pipeline.ts';
import type { Target } from '../../../src/schedule/target.ts';
import { Sketch } from '../cases.ts';
import { problemOf, type Product } from './product-graph.ts';

/** And which of its schedules. */
export interface PickedProduct extends Product {
  readonly pick: number;
}

/** Around the edges of lines and tiles; most are such that strides are multiples of 16 bytes. */
const size = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(8, 16, 56, 64, 72, 128, 136, 200) },
  { weight: 1, arbitrary: fc.constantFrom(1, 2, 3, 50) },
);
export const product: fc.Arbitrary<PickedProduct> = fc.record({
  dtype: fc.constantFrom('f16', 'bf16'),
  batch: fc.integer({ min: 1, max: 2 }),
  m: size,
  n: size,
  k: size,
  turnLhs: fc.boolean(),
  turnRhs: fc.boolean(),
  sharedRhs: fc.boolean(),
  lhs: fc.constantFrom('whole', 'whole', 'heads', 'repeated'),
  epilogue: fc.boolean(),
  pick: fc.nat(),
});

export function warpgroupSchedules(graph: Graph, target: Target): readonly ContractTiling[] {
  return legalTilings(problemOf(graph, target), target).filter(({ kind }) => kind === 'wgmma');
}

/** A convolution whose operands a device copies, and which of its schedules. */
export interface PickedConvolution {
  readonly dtype: 'f16' | 'bf16';
  readonly images: number;
  readonly channels: number;
  readonly outputs: number;
  readonly axes: readonly { readonly size: number; readonly taps: number; readonly dilation: number }[];
  /** Lines of padding before the first, and how many of those that taps need on each side are at the left. */
  readonly above: number;
  readonly left: number;
  /** Bias and relu. */
  readonly epilogue: boolean;
  readonly pick: number;
}

const taps = fc.constantFrom(1, 2, 3);
const dilation = fc.constantFrom(1, 1, 2);
const places = fc.constantFrom(
  [7, 8],
  [7, 7],
  [11, 10],
  [9, 24],
  [13, 16],
  [40, 3],
  [3, 40],
  [1, 64],
  [64, 1],
);
export const convolution: fc.Arbitrary<PickedConvolution> = fc
  .record({
    dtype: fc.constantFrom('f16', 'bf16'),
    images: fc.integer({ min: 1, max: 2 }),
    channels: fc.constantFrom(56, 64, 120, 128),
    outputs: fc.constantFrom(64, 120, 128),
    places,
    taps: fc.tuple(taps, taps).filter(([kh, kw]) => kh * kw > 1),
    dilation: fc.tuple(dilation, dilation),
    above: fc.integer({ min: 0, max: 3 }),
    left: fc.integer({ min: 0, max: 4 }),
    epilogue: fc.boolean(),
    pick: fc.nat(),
  })
  .map(({ places: [lines, width], taps: [kh, kw], dilation: [dh, dw], left, ...rest }) => {
    const line = { size: width!, taps: kw, dilation: dw };
    // A picture of one line is one without lines.
    const isLine = lines === 1 && kw > 1;
    const axes = isLine ? [line] : [{ size: lines!, taps: kh, dilation: dh }, line];
    return { ...rest, axes, left: Math.min(left, (kw - 1) * dw) };
  })
  .filter(({ axes, left }) => {
    const { size, taps: along, dilation: apart } = axes.at(-1)!;
    return axes.length === 1 || Math.max(left, (along - 1) * apart - left) <= size;
  });

export function convolutionGraph(of: PickedConvolution): Graph {
  const { dtype, images, channels, outputs, axes, above, left, epilogue } = of;
  const s = new Sketch();
  const x = s.input([images, channels, ...axes.map(({ size }) => size)], dtype);
  const w = s.input([outputs, channels, ...axes.map((axis) => axis.taps)], dtype);
  const reach = axes.map((axis) => (axis.taps - 1) * axis.dilation);
  const ones = axes.map(() => 1);
  const isPlane = axes.length === 2;
  const y = s.conv(x, w, {
    strides: ones,
    lhsDilation: ones,
    rhsDilation: axes.map((axis) => axis.dilation),
    padLow: isPlane ? [above, left] : [left],
    padHigh: isPlane ? [Math.max(reach[0]! - above, 1), reach[1]! - left] : [reach[0]! - left],
  });
  if (!epilogue) return s.graph([y]);
  const bias = s.b.add('reshape', [s.input([outputs], dtype)], { shape: [1, outputs, ...ones] }) as Node;
  return s.graph([binary(s.b, 'max', add(s.b, y, broadcast(s.b, bias, dims(y))), 0)]);
}

/** The graph as kernels are made of it. */
export function prepared(graph: Graph, target: Target): Graph {
  return passes.reduce((before, pass) => pass.run(before, target), graph);
}

/** What the kernel of a convolution reads in the order of its buffers: its weight taps first, and its input. */
export function laidInputs([input, weight]: readonly HostArray[]): readonly [HostArray, HostArray] {
  const s = new Sketch();
  const { dtype, shape } = weight!;
  const turned = s.b.add('permute', [s.input(shape, dtype)], { order: tapsFirst(shape.length) }) as Node;
  return [interpret(s.graph([turned]), [weight!])[0]!, input!];
}
