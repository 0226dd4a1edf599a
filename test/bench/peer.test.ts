// `bench/peer.mjs`, as the driver loads it: by plain Node, in a process of its own, over what `npm
// run build` made.

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { timedWorkloads } from '../../src/workloads/timed/workloads.ts';
import { errorOf } from '../../src/workloads/timed/references.ts';
import { root } from '../structure/source.ts';

const names = JSON.parse(readFileSync(join(root, 'bench/peer/names.json'), 'utf8')) as Readonly<
  Record<string, string>
>;
const driver = join(root, '../shared/bench');

/** What statements that have `peers` of the peer module hand to `print`. */
async function printed(body: string): Promise<unknown> {
  const module = pathToFileURL(join(root, 'bench/peer.mjs')).href;
  const program = [
    `const { peers } = await import('${module}');`,
    'const print = (value) => process.stdout.write(JSON.stringify(value), () => process.exit());',
    body,
  ].join('\n');
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  return JSON.parse(stdout);
}

test('the names of the driver stand for all timed workloads', () => {
  expect([...new Set(Object.values(names))]).toEqual(timedWorkloads.map(({ name }) => name));
});

describe('the peer module', () => {
  test('offers a device of each kind, and their workloads by the names of the driver', async () => {
    const [peers, device, workloads] = (await printed(
      "const { device, workloads } = await peers['ours-wasm-1t']();" +
        'print([Object.keys(peers), device, Object.keys(workloads)]);',
    )) as [string[], string, string[]];
    expect(peers).toEqual([
      'ours-webgpu',
      'ours-wasm-1t',
      'ours-wasm-2t',
      'ours-native-1t',
      'ours-native-2t',
    ]);
    expect(device).toMatch(/^wasm:1: /);
    const own = workloads.filter((name) => !name.startsWith('W9-'));
    expect(own).toEqual(Object.keys(names));
    if (!existsSync(driver)) return void console.log(`not held against the driver: no ${driver}`);
    const { WORKLOADS: known } = (await import(pathToFileURL(join(driver, 'common.mjs')).href)) as {
      readonly WORKLOADS: readonly string[];
    };
    // The driver asks ours for all but W8g, which is a variant of another library; networks are
    // there where their files are.
    const hasNetworks = existsSync(join(root, '../shared/onnx/models'));
    expect(workloads.filter((name) => name.startsWith('W'))).toEqual(
      known.filter((name) => name !== 'W8g' && (hasNetworks || !name.startsWith('W9-'))),
    );
  });

  test.each(['W1f', 'W8j'])('computes %s, and counts the calls of WebGPU', async (name) => {
    const workload = timedWorkloads.find((one) => one.name === names[name])!;
    const reference = workload.reference().slice(0, 1000);
    const [before, after, values] = (await printed(
      "const { counts, workloads } = await peers['ours-webgpu']();" +
        `const { run, output } = await workloads['${name}']();` +
        'await run(); const before = { ...counts }; await run(); const after = { ...counts };' +
        `const values = await output(); const at = ${JSON.stringify(reference.map(([at]) => at))};` +
        'print([before, after, at.map((place) => values[place])]);',
    )) as [Record<string, number>, Record<string, number>, number[]];
    expect(after['dispatch']! - before['dispatch']!).toBe(1);
    expect(after['submit']! - before['submit']!).toBe(1);
    expect(after['pipelines']).toBe(before['pipelines']);
    const placed = reference.map(([, value], i) => [i, value] as const);
    expect(errorOf(values, placed)).toBeLessThanOrEqual(workload.tolerance);
  });
});
