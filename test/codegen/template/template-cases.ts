// The edge cases of every template (cases.ts) made ready to run, and how near a result must come.

import { expect } from 'vitest';
import type { HostArray } from '../../../src/ir/value.ts';
import { randomArray } from '../../support/random/values.ts';
import { cases, Sketch } from '../cases.ts';

export function prepare(name: string): { graph: ReturnType<Sketch['graph']>; inputs: HostArray[] } {
  const sketch = new Sketch();
  const graph = sketch.graph(cases[name]!(sketch));
  const inputs = graph.parameters.map(({ dtype, shape }, i) =>
    randomArray(dtype, shape as number[], i + 1, 'tame'),
  );
  return { graph, inputs };
}

/** Largest difference relative to the largest expected magnitude; 16-bit results may differ by a rounding. */
function distance(actual: HostArray, expected: HostArray): number {
  let [worst, scale] = [0, 1e-30];
  for (let i = 0; i < expected.data.length; i++) {
    const [want, got] = [Number(expected.data[i]), Number(actual.data[i])];
    if (Object.is(want, got)) continue;
    if (Number.isFinite(want)) scale = Math.max(scale, Math.abs(want));
    worst = Math.max(worst, Number.isNaN(want - got) ? Infinity : Math.abs(want - got));
  }
  return worst / scale;
}

export function expectNear(actual: readonly HostArray[], expected: readonly HostArray[]): void {
  actual.forEach((got, i) => {
    const want = expected[i]!;
    expect({ dtype: got.dtype, shape: got.shape, size: got.data.length }).toEqual({
      dtype: want.dtype,
      shape: want.shape,
      size: want.data.length,
    });
    expect(distance(got, want)).toBeLessThan(want.dtype === 'f16' || want.dtype === 'bf16' ? 1e-2 : 1e-5);
  });
}
