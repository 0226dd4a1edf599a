// The demo, shortened: it trains on the software adapter, tells how it goes on stderr, and its last line is the result.

import { expect, test } from 'vitest';
import { runCli } from '../../src/cli/run.ts';
import { essay } from '../../src/workloads/essay.ts';

test(
  'the loss falls from ln(alphabet); the last line is the result as JSON',
  { timeout: 180_000 },
  async () => {
    const [out, err]: [string[], string[]] = [[], []];
    const code = await runCli(
      ['demo', '--json', '--steps', '40', '--length', '4', '--device', 'webgpu:software'],
      {
        columns: undefined,
        line: (text) => out.push(text),
        note: (text) => err.push(text),
        mark: (text) => err.push(text),
        live: () => undefined,
      },
    );
    expect(code).toBe(0);
    expect(out).toHaveLength(1);
    const result = JSON.parse(out[0]!) as Record<string, number | string>;
    expect(Object.keys(result)).toEqual([
      'firstLoss',
      'lastLoss',
      'steps',
      'kernelsPerStep',
      'device',
      'msPerStep',
    ]);
    const start = Math.log(new Set(essay).size);
    expect(Math.abs(Number(result['firstLoss']) - start)).toBeLessThan(0.2);
    expect(result['lastLoss']).toBeLessThan(0.75 * start);
    expect(result).toMatchObject({ steps: 40, device: 'webgpu:software' });
    expect(result['kernelsPerStep']).toBeGreaterThan(0);
    expect(result['msPerStep']).toBeGreaterThan(0);
    const told = err.join('\n');
    for (const part of ['device   webgpu:software', 'what it writes', 'the kernels of a step', 'step 1/40']) {
      expect(told).toContain(part);
    }
  },
);
