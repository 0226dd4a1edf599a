// `sinter bench`: a real run of two small workloads, ratios against a driver that only pretends, and the references that results
// are held to.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compare, geometricMean, ours, rivals } from '../../src/cli/bench-peers.ts';
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

let folder = '';
beforeAll(async () => {
  setDevice('webgpu:software');
  folder = await mkdtemp(join(tmpdir(), 'sinter-bench-test-'));
});
afterAll(() => rm(folder, { recursive: true }));

describe('a run', () => {
  test('times, checks and counts the workloads named; the last line is the result as JSON', async () => {
    const { code, out, err } = await bench(
      '--device',
      'webgpu:software',
      '--workload',
      'W8j,W4-256',
      '--json',
    );
    expect([code, out.split('\n')]).toEqual([0, [expect.stringMatching(/^\{/)]]);
    const result = JSON.parse(out) as BenchResult;
    expect(result).toMatchObject({
      device: 'webgpu:software',
      workloads: [
        { workload: 'W8j', kernels: 1, bytes: 3 * 4 * 64, ok: true },
        { workload: 'W4-256', kernels: 1, bytes: 3 * 4 * 256 * 256, ok: true },
      ],
      replay: [],
    });
    for (const line of result.workloads) {
      if (!('ms' in line)) throw new Error('not measured');
      const { min, lowerQuartile, median, upperQuartile } = line.ms;
      expect(min).toBeGreaterThan(0);
      expect([min, lowerQuartile, median, upperQuartile]).toEqual(
        [min, lowerQuartile, median, upperQuartile].sort((a, b) => a - b),
      );
      expect(line.first).toBeGreaterThan(min);
    }
    expect(err).toContain('W4-256: ');
  });

  test.each(timedWorkloads.filter(({ name }) => !['W1', 'W4-512', 'W4-1024'].includes(name)))(
    '$name gives its reference',
    { timeout: 120_000 },
    async (workload) => {
      const { error, runs } = await measure(workload, quick);
      expect(error).toBeLessThanOrEqual(workload.tolerance);
      expect(runs).toBe(2);
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
    [['--workload', 'W99'], "there is no workload 'W99': expected replay, or some of\n  W1 "],
    [['--repeat', '0'], "--repeat: expects a whole number of at least 1, got '0'"],
    [['--against', 'numpy'], "--against: there is no 'numpy': expected some of jax-webgpu, "],
    [['--peers', '/nowhere'], '--peers: there is no /nowhere/driver.mjs'],
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

/** A driver that writes these results, and says what it was asked. */
function driverOf(results: readonly object[], code = 0): string {
  return [
    "import fs from 'node:fs';",
    "const at = (name) => process.argv[process.argv.indexOf('--' + name) + 1];",
    `for (const line of ${JSON.stringify(results)}) fs.appendFileSync(at('out'), JSON.stringify(line) + '\\n');`,
    "console.log(['asked', at('peers'), at('workloads'), at('repeat'), process.env.OURS].join(' '));",
    `if (${code} !== 0) console.error('out of luck');`,
    `process.exitCode = ${code};`,
  ].join('\n');
}

describe('--peers', () => {
  const line = (peer: string, workload: string, median: number, first: number): object => {
    return { peer, workload, median_ms: median, first_ms: first, check: 'ok' };
  };

  test('runs the driver of a folder and divides the fastest other library by ours', async () => {
    const results = [
      line(ours, 'W2', 10, 90),
      line(ours, 'W2', 8, 100),
      line('jax-webgpu', 'W2', 40, 60),
      line('jax-webgpu', 'W2', 32, 70),
      line('tfjs-webgpu', 'W2', 50, 45),
      line(ours, 'W8j', 2, 10),
      line('jax-webgpu', 'W8j', 1, 10),
      { peer: 'tfjs-webgpu', workload: 'W8j', error: 'no adapter' },
    ];
    await writeFile(join(folder, 'driver.mjs'), driverOf(results));
    const args = ['--device', 'webgpu:software', '--peers', folder, '--workload', 'W2,W8j', '--repeat', '2'];
    const { code, out, err } = await bench(...args);
    expect(code).toBe(0);
    expect(err).toContain(`asked ${[ours, ...rivals].join()} W2,W8j 2 `);
    expect(err).toMatch(/bench[\\/]peer\.mjs$/m);
    expect(out).toMatch(/^W2 +1 +8.00 MiB +8.00 +32.00 +50.00 +4.00 +90.00 +0.50$/m);
    expect(out).toMatch(/^W8j +1 +768 B +2.00 +1.00 +– +0.50 +10.00 +1.00$/m);
    expect(out).toContain('W8j tfjs-webgpu: no adapter');
    expect(out).toContain(`geometric mean of the ratios: ${Math.sqrt(2).toFixed(2)}`);
    const json = JSON.parse((await bench(...args, '--json')).out) as BenchResult;
    expect(json.geometricMean).toBeCloseTo(Math.sqrt(2), 12);
    expect(json.workloads.map((at) => 'ratio' in at && at.ratio)).toEqual([4, 0.5]);
  });

  test('asks for the libraries named only', async () => {
    await writeFile(join(folder, 'driver.mjs'), driverOf([]));
    const { err } = await bench('--peers', folder, '--against', 'tfjs-webgpu', '--workload', 'W2');
    expect(err).toContain(`asked ${ours},tfjs-webgpu W2 1 `);
  });

  test('a driver that fails is a failure, with its last words', async () => {
    await writeFile(join(folder, 'driver.mjs'), driverOf([], 3));
    const { code, err } = await bench('--peers', folder, '--workload', 'W2');
    expect(code).toBe(1);
    expect(err).toMatch(/driver\.mjs ended with 3\n {2}out of luck$/);
  });

  test('a wrong result is a problem, and what did not run has no ratio', () => {
    const wrong = { ...line(ours, 'W2', 1, 1), check: 'FAIL' };
    const [comparison] = compare(['W2'], [wrong as never]);
    expect(comparison).toMatchObject({ ratio: undefined, problems: [`${ours}: its result is off (FAIL)`] });
    expect(compare(['W3'], [])[0]).toMatchObject({ ours: undefined, others: [], ratio: undefined });
    expect(geometricMean([])).toBeUndefined();
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
