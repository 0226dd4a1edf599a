// The demo, shortened: it trains without a GPU, tells how it goes on stderr, and its last line is
// the result.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runCli } from '../../src/cli/commands.ts';

const essay = readFileSync(new URL('../../examples/essay.txt', import.meta.url), 'utf8');

test.each(['wasm', 'webgpu:software'])(
  'on %s the loss falls from ln(alphabet); the last line is the result as JSON',
  async (device) => {
    const [out, err]: [string[], string[]] = [[], []];
    const code = await runCli(['demo', '--json', '--steps', '40', '--length', '4', '--device', device], {
      columns: undefined,
      line: (text) => out.push(text),
      note: (text) => err.push(text),
      mark: (text) => err.push(text),
      live: () => undefined,
      part: () => undefined,
    });
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
    expect(result).toMatchObject({ steps: 40, device });
    expect(result['kernelsPerStep']).toBeGreaterThan(0);
    expect(result['msPerStep']).toBeGreaterThan(0);
    const told = err.join('\n');
    const parts = [
      `device   ${device}`,
      'what it writes',
      'the kernels of a step',
      'step 1/40',
      'f32[54,64] × 3 ← f32[12,32,64]',
    ];
    for (const part of parts) expect(told).toContain(part);
  },
);
