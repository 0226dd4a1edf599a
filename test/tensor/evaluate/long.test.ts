// Long chains of operations, each legal and short in an eager library: they are computed on every
// device in bounded time, without running out of stack, locals or registers, and a loop that never
// awaits holds a bounded graph.
//
// Runs in a process of its own: it counts what the collector leaves in memory.
// Runs alone: it measures time and the memory of the process.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice, tensor, type Tensor } from '../../../src/index.ts';
import { clearCache } from '../../../src/tensor/evaluate/cache.ts';
import { builder, pendingHandles } from '../../../src/tensor/handle/recording.ts';
import { settledAt } from '../../support/collector.ts';
import { everyDevice } from '../../support/devices.ts';

afterAll(() => setDevice(undefined));

interface Chain {
  readonly length: number;
  readonly step: (x: Tensor) => Tensor;
  /** The step on a number. */
  readonly on: (x: number) => number;
}

/** Abramowitz and Stegun 7.1.26 is good to 1.5e-7: enough for what single precision keeps. */
function erf(x: number): number {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series =
    ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}

const chains: Readonly<Record<string, Chain>> = {
  sines: { length: 1500, step: (x) => x.sin(), on: Math.sin },
  sums: { length: 10_000, step: (x) => x.add(1.5), on: (x) => x + 1.5 },
  'hyperbolic tangents': {
    length: 700,
    step: (x) => x.tanh().mul(1.1),
    on: (x) => 1.1 * Math.tanh(x),
  },
  'arc cosines': { length: 800, step: (x) => x.mul(0.4).acos(), on: (x) => Math.acos(0.4 * x) },
  gelus: {
    length: 200,
    step: (x) => x.gelu(),
    on: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  },
};

describe.for(everyDevice)('on %s', (device) => {
  beforeAll(() => setDevice(device));

  test.for(Object.entries(chains))('a chain of %s', async ([, chain]) => {
    clearCache();
    const start = [0.1, 0.5, 2];
    const before = process.cpuUsage();
    let x = tensor(start);
    for (let i = 0; i < chain.length; i++) x = chain.step(x);
    const found = await x.array();
    const { user, system } = process.cpuUsage(before);
    const expected = start.map((value) => {
      for (let i = 0; i < chain.length; i++) value = chain.on(value);
      return value;
    });
    expect(found).toEqual(expected.map((value) => expect.closeTo(value, 3)));
    // Processor time, so that the machine may do something else as well. Some 3 s are used.
    expect((user + system) / 1e6).toBeLessThan(40);
  });
});

test('a loop that never awaits holds a bounded graph', async () => {
  setDevice('interpreter');
  clearCache();
  let x = tensor([0.5]);
  await x.add(1).data();
  const heap = (): Promise<number> => settledAt(() => process.memoryUsage().heapUsed);
  const before = await heap();
  let [nodes, pending] = [0, 0];
  for (let i = 0; i < 60_000; i++) {
    x = x.add(1).tanh();
    nodes = Math.max(nodes, builder().size);
    pending = Math.max(pending, pendingHandles().size);
  }
  expect(nodes).toBeLessThanOrEqual(20_100);
  expect(nodes).toBeGreaterThan(15_000);
  expect(pending).toBeLessThanOrEqual(20_100);
  const [found] = (await x.array()) as number[];
  let expected = 0.5;
  for (let i = 0; i < 60_000; i++) expected = Math.tanh(expected + 1);
  expect(found).toBeCloseTo(expected, 5);
  // All six times 20,000 nodes are 100 MB; what the cache keeps of the structures is a few.
  expect((await heap()) - before).toBeLessThan(60e6);
});
