// Convolutions that a core computes as something else: products of windows, dense convolutions of each phase, and, over three
// axes, convolutions of planes. On random geometries all are what the convolution is, in the graph and on the device.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { GraphBuilder, topological, type Graph, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Attrs } from '../../src/ir/ops.ts';
import { verify } from '../../src/ir/verify.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { convAsDot } from '../../src/schedule/passes/conv/as-dot.ts';
import { convByPhases } from '../../src/schedule/passes/conv/phases.ts';
import { convPlanes } from '../../src/schedule/passes/conv/planes.ts';
import { gpuTarget, targetOf, wasmTarget } from '../../src/schedule/target.ts';
import { runOnDevice } from '../support/execute.ts';
import { checkLaw, checkLawAsync } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';

interface Geometry {
  readonly x: readonly number[];
  readonly w: readonly number[];
  readonly attrs: Attrs<'conv'>;
}

interface Line {
  readonly size: number;
  readonly taps: number;
  readonly stride: number;
  readonly low: number;
  readonly high: number;
  readonly gap: number;
  readonly dilation: number;
}

/** `channels` are those of a group. */
function geometry(
  images: number,
  channels: number,
  outputs: number,
  lines: readonly Line[],
  groups = 1,
): Geometry {
  return {
    x: [images, groups * channels, ...lines.map(({ size }) => size)],
    w: [groups * outputs, channels, ...lines.map(({ taps }) => taps)],
    attrs: {
      strides: lines.map(({ stride }) => stride),
      padLow: lines.map(({ low }) => low),
      padHigh: lines.map(({ high }) => high),
      lhsDilation: lines.map(({ gap }) => gap),
      rhsDilation: lines.map(({ dilation }) => dilation),
      groups,
    },
  };
}

const between = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max });
/** As long as the padded input, but for a few taps. */
const few = fc
  .record({
    size: between(6, 12),
    places: between(1, 3),
    stride: between(1, 2),
    dilation: between(1, 2),
    low: between(-1, 2),
    high: between(-1, 2),
  })
  .map(({ size, places, stride, dilation, low, high }): Line => {
    const seen = size + low + high - (places - 1) * stride;
    return {
      size,
      taps: Math.max(1, Math.floor((seen - 1) / dilation) + 1),
      stride,
      low,
      high,
      gap: 1,
      dilation,
    };
  });
const spread = fc
  .record({
    size: between(1, 6),
    taps: between(1, 5),
    gap: between(1, 3),
    low: between(-1, 4),
    high: between(0, 4),
  })
  .filter(({ size, taps, gap, low, high }) => (size - 1) * gap + 1 + low + high >= taps)
  .map((line): Line => ({ ...line, stride: 1, dilation: 1 }));

const linesOf = (line: fc.Arbitrary<Line>): fc.Arbitrary<Line[]> =>
  fc.array(line, { minLength: 1, maxLength: 2 });
const windows = fc
  .tuple(fc.oneof(between(64, 72), between(16, 24)), between(1, 3), between(1, 20), linesOf(few))
  .map(([images, channels, outputs, lines]) => geometry(images, channels, outputs, lines));
const phases = fc
  .tuple(between(1, 2), between(24, 40), between(1, 5), linesOf(spread))
  .map(([images, channels, outputs, lines]) => geometry(images, channels, outputs, lines));

type Rewrite = typeof convAsDot;

/** Any line; `gap` between its elements. */
const line = (gap: fc.Arbitrary<number>): fc.Arbitrary<Line> =>
  fc
    .record({
      size: between(1, 6),
      taps: between(1, 3),
      stride: between(1, 2),
      low: between(-1, 2),
      high: between(-1, 2),
      gap,
      dilation: between(1, 2),
    })
    .filter(({ size, taps, low, high, gap, dilation }) => {
      const all = (size - 1) * gap + 1 + low + high;
      return all >= (taps - 1) * dilation + 1;
    });
const planes = fc
  .record({
    images: between(1, 3),
    channels: between(1, 4),
    outputs: between(1, 4),
    first: line(fc.constant(1)),
    second: line(between(1, 2)),
    third: line(between(1, 2)),
    groups: between(1, 3),
  })
  .map(({ images, channels, outputs, first, second, third, groups }) =>
    geometry(images, channels, outputs, [first, second, third], groups),
  );

/** The convolution of planes alone, without what it becomes further. */
const convAsPlanes: Rewrite = (...given) => {
  const found = convPlanes(...given);
  return found?.joined(found.conv as Node);
};

function graphOf({ x, w, attrs }: Geometry): Graph {
  const b = new GraphBuilder();
  const inputs = [x, w].map((shape, index) =>
    b.add('parameter', [], { index, name: `p${index}`, dtype: 'f32', shape }),
  );
  const out = b.add('conv', inputs as Node[], attrs) as Node;
  return { parameters: inputs as NodeOf<'parameter'>[], outputs: [out] };
}

/** The graph with its convolution rewritten; undefined where the rewrite leaves it. */
function rewritten(geometry: Geometry, by: Rewrite, target = wasmTarget): Graph | undefined {
  const b = new GraphBuilder();
  const inputs = [geometry.x, geometry.w].map((shape, index) =>
    b.add('parameter', [], { index, name: `p${index}`, dtype: 'f32', shape }),
  );
  const conv = b.add('conv', inputs as Node[], geometry.attrs) as NodeOf<'conv'>;
  const out = by(conv, inputs as Node[], b, target);
  return out && { parameters: inputs as NodeOf<'parameter'>[], outputs: [out] };
}

const valuesOf = ({ x, w }: Geometry): ReturnType<typeof randomArray>[] => [
  randomArray('f32', x, 1, 'tame'),
  randomArray('f32', w, 2, 'tame'),
];

describe.each([
  ['a product of windows', convAsDot, windows],
  ['dense convolutions of phases', convByPhases, phases],
  ['convolutions of planes', convAsPlanes, planes],
] as const)('%s', (_, rewrite, geometries) => {
  test('is what the convolution is', () => {
    let count = 0;
    checkLaw(200, geometries, (each) => {
      const other = rewritten(each, rewrite);
      if (other === undefined) return;
      count += 1;
      verify(other, 'the rewrite');
      const inputs = valuesOf(each);
      expectClose(interpret(other, inputs)[0]!, interpret(graphOf(each), inputs)[0]!, 1e-4);
    });
    expect(count).toBeGreaterThan(60);
  });

  test('is what a core computes', async () => {
    const device = await openDevice('wasm');
    await checkLawAsync(12, geometries, async (each) => {
      const inputs = valuesOf(each);
      const [found] = await runOnDevice(device, targetOf(device.facts), graphOf(each), inputs);
      expectClose(found!, interpret(graphOf(each), inputs)[0]!, 1e-4);
    });
  });

  test('leaves GPUs their own ways', () => {
    checkLaw(20, geometries, (each) => {
      expect(rewritten(each, rewrite, gpuTarget)).toBeUndefined();
    });
  });
});

test('of a strided convolution, the gradient by weights is one product, and the one by the input has no gaps', () => {
  const wide: Line = { size: 14, taps: 7, stride: 1, low: 1, high: 0, gap: 1, dilation: 2 };
  const byWeights = rewritten(geometry(16, 8, 16, [wide, wide]), convAsDot)!;
  expect(topological(byWeights.outputs).filter(({ op }) => op === 'conv' || op === 'dot')).toMatchObject([
    { op: 'dot' },
  ]);
  const gaps: Line = { size: 7, taps: 3, stride: 1, low: 1, high: 2, gap: 2, dilation: 1 };
  const byInput = rewritten(geometry(4, 16, 8, [gaps, gaps]), convByPhases)!;
  const convs = topological(byInput.outputs).filter((node): node is NodeOf<'conv'> => node.op === 'conv');
  expect(convs.length).toBe(4);
  for (const { attrs } of convs) expect(attrs.lhsDilation).toEqual([1, 1]);
});

test('of few rows, a product pays only where taps lie apart', () => {
  const line = (dilation: number): Line => {
    return { size: 6 * dilation + 1, taps: 7, stride: 1, low: 0, high: 0, gap: 1, dilation };
  };
  const isProduct = (images: number, dilation: number): boolean =>
    rewritten(geometry(images, 8, 16, [line(dilation), line(dilation)]), convAsDot) !== undefined;
  expect([isProduct(16, 1), isProduct(64, 1)]).toEqual([false, true]);
  expect([isProduct(8, 2), isProduct(16, 2)]).toEqual([false, true]);
});
