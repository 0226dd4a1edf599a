// `sinter bench`: a real run of two small workloads, what a replayed run costs, and the references
// that results are held to.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BenchResult } from '../../src/cli/bench/bench.ts';
import { measureReplay, replayTable } from '../../src/cli/bench/replay.ts';
import { measure, prepare, spread } from '../../src/cli/bench/measure.ts';
import * as sn from '../../src/index.ts';
import { setDevice } from '../../src/index.ts';
import { timedWorkloads } from '../../src/workloads/timed/workloads.ts';
import { uniform } from '../../src/workloads/timed/inputs.ts';
import { errorOf } from '../../src/workloads/timed/references.ts';
import { sinter, type Said } from '../support/cli.ts';

const bench = (...args: string[]): Promise<Said> => sinter('bench', ...args);

const quick = { warmMs: 0, budgetMs: 0, leastRuns: 2 };

beforeAll(() => setDevice('webgpu:software'));

describe('a run', () => {
  test('times, checks and counts the workloads named; the last line is the result as JSON', async () => {
    const { code, out, err } = await bench(
      '--device',
      'webgpu:software',
      '--workload',
      'additionsCompiled,matmul256',
      '--json',
    );
    expect([code, out.split('\n')]).toEqual([0, [expect.stringMatching(/^\{/)]]);
    const result = JSON.parse(out) as BenchResult;
    expect(result).toMatchObject({
      device: 'webgpu:software',
      workloads: [
        { workload: 'additionsCompiled', kernels: 1, bytes: 3 * 4 * 64, ok: true },
        { workload: 'matmul256', kernels: 1, bytes: 3 * 4 * 256 * 256, ok: true },
      ],
      replay: [],
    });
    for (const line of result.workloads) {
      const { min, lowerQuartile, median, upperQuartile } = line.ms;
      expect(min).toBeGreaterThan(0);
      expect([min, lowerQuartile, median, upperQuartile]).toEqual(
        [min, lowerQuartile, median, upperQuartile].sort((a, b) => a - b),
      );
      expect(line.first).toBeGreaterThan(min);
    }
    expect(err).toContain('matmul256: ');
  });

  /** What takes seconds on the software adapter. */
  const long = ['gelu', 'matmul512', 'matmul1024', 'decodeAttention', 'gemv', 'gemvHalf', 'gemvQ8'];
  const training = ['convTrain', 'resnetTrain', 'lstmTrain'];

  test.each(timedWorkloads.filter(({ name }) => ![...long, ...training].includes(name)))(
    '$name gives its reference',
    async (workload) => {
      const { error, runs } = await measure(workload, quick);
      expect(error).toBeLessThanOrEqual(workload.tolerance);
      expect(runs).toBe(2);
    },
  );
});

describe('on WebAssembly', () => {
  beforeAll(() => setDevice('wasm:1'));
  afterAll(() => setDevice('webgpu:software'));

  test.each(timedWorkloads.filter(({ name }) => /Train$|^decode|^gemv/.test(name)))(
    '$name gives its reference',
    async (workload) => {
      const { error } = await measure(workload, { ...quick, leastRuns: 1 });
      expect(error).toBeLessThanOrEqual(workload.tolerance);
    },
  );
});

test('a run that fails is an error, not a fast run', async () => {
  const refused = (): sn.Tensor => sn.tensor([1, 2], { dtype: 'f64' }).add(1);
  const { run } = await prepare({ ...timedWorkloads[0]!, args: () => [], start: () => refused });
  await expect(run()).rejects.toThrow('f64[2] is not supported on wgsl:software');
});

describe('mistakes exit with 2 and say what there is', () => {
  test.each([
    [['--workload', 'gemm'], "there is no workload 'gemm': expected replay, decode, or some of\n  gelu "],
    [['--repeat', '0'], "--repeat: expects a whole number of at least 1, got '0'"],
    [['--speed', '3'], "bench: Unknown option '--speed'"],
  ])('%j', async (args, message) => {
    const { code, out, err } = await bench(...args);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });

  test('an unknown device exits with 1', async () => {
    const { code, err } = await bench('--device', 'abacus');
    expect([code, err]).toEqual([1, expect.stringContaining('there is no device')]);
    setDevice('webgpu:software');
  });
});

describe('replay', () => {
  test.each([1, 2, 3, 10, 100])('measures calls of a program of %i kernels', async (kernels) => {
    const replay = await measureReplay(kernels, 20);
    expect(replay).toMatchObject({ kernels, targetUs: 20 + 2 * kernels });
    expect(replay.us.min).toBeGreaterThan(0);
    expect(replay.us.median).toBeGreaterThanOrEqual(replay.us.min);
    expect(replayTable([replay]).split('\n')).toHaveLength(3);
  });
});

test('spread interpolates between neighbours', () => {
  expect(spread([4, 1, 3, 2])).toEqual({ median: 2.5, min: 1, lowerQuartile: 1.75, upperQuartile: 3.25 });
  expect(spread([5])).toEqual({ median: 5, min: 5, lowerQuartile: 5, upperQuartile: 5 });
});

describe('inputs and references', () => {
  test('come from seeds, the same on every machine', () => {
    expect([...uniform(3, 50)]).toEqual([...uniform(3, 50)]);
    expect([...uniform(4, 18)]).toEqual([
      -0.2036760300397873, 0.20679734647274017, 0.052552033215761185, -0.6021319031715393,
    ]);
  });

  test('an error is relative to the largest reference value, and NaN is infinitely wrong', () => {
    expect(
      errorOf(
        [1, 5],
        [
          [0, 1],
          [1, 4],
        ],
      ),
    ).toBe(0.25);
    expect(
      errorOf(
        [Number.NaN, 4],
        [
          [0, 1],
          [1, 4],
        ],
      ),
    ).toBe(Infinity);
  });
});
