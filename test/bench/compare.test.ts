// `bench/compare.ts`: what it asks a driver for, and what it makes of the results, with a driver
// that only pretends.

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compareLibraries, devices } from '../../bench/compare.ts';
import { compare, geometricMean, ours, type Figure, type Result } from '../../bench/compare/comparison.ts';

const { rivals } = devices['webgpu']!(1);
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sinter-compare-test-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Runs the command; gives what it prints, and its progress. */
async function ran(...args: readonly string[]): Promise<{ readonly out: string; readonly notes: string }> {
  const [out, notes]: [string[], string[]] = [[], []];
  await compareLibraries(
    args,
    (text) => out.push(text),
    (text) => notes.push(text),
  );
  return { out: out.join('\n'), notes: notes.join('\n') };
}

/**
 * Puts a driver into the folder that writes these results, says what it was asked, and ends with
 * this code.
 */
async function pretend(results: readonly Result[], code = 0): Promise<void> {
  const lines = [
    "import fs from 'node:fs';",
    "const at = (name) => process.argv[process.argv.indexOf('--' + name) + 1];",
    `for (const line of ${JSON.stringify(results)}) fs.appendFileSync(at('out'), JSON.stringify(line) + '\\n');`,
    "console.log(['asked', at('peers'), at('workloads'), at('repeat'), process.env.OURS, ...(process.argv.includes('--timeout-ms') ? [at('timeout-ms')] : [])].join(' '));",
    `if (${code} !== 0) console.error('out of luck');`,
    `process.exitCode = ${code};`,
  ];
  await writeFile(join(folder, 'driver.mjs'), lines.join('\n'));
}

/**
 * Puts a python into the folder that knows softmax only: it measures these times, and gives a constant
 * as its result. Without times it fails.
 */
async function pretendPython(times: object | undefined, result: number): Promise<string> {
  const python = join(folder, 'python');
  const lines = [
    `#!${process.execPath}`,
    "const fs = require('node:fs');",
    "const file = process.argv[process.argv.indexOf('--measure') + 1];",
    "if (process.argv.includes('--list')) console.log('gelu\\nsoftmax');",
    `else if (${times === undefined}) { console.error('no luck today'); process.exitCode = 3; }`,
    `else { fs.writeFileSync(file, new Float32Array(2 ** 20).fill(${result})); console.log(${JSON.stringify(JSON.stringify(times ?? {}))}); }`,
  ];
  await writeFile(python, lines.join('\n'));
  await chmod(python, 0o755);
  return python;
}

function line(peer: string, workload: string, median: number, first: number): Result {
  return { peer, workload, median_ms: median, first_ms: first, check: 'ok' };
}

describe('a comparison', () => {
  test('runs the driver of a folder and divides the fastest other library by ours', async () => {
    await pretend([
      line(ours, 'W2', 10, 90),
      { ...line(ours, 'W2', 8, 100), min_ms: 7, n_dispatch: 3 },
      line('jax-webgpu', 'W2', 40, 60),
      line('jax-webgpu', 'W2', 32, 70),
      line('tfjs-webgpu', 'W2', 50, 45),
      line(ours, 'W8j', 2, 10),
      line('jax-webgpu', 'W8j', 1, 10),
      { peer: 'tfjs-webgpu', workload: 'W8j', error: 'no adapter' },
    ]);
    const args = [folder, '--workload', 'W2,W8j', '--repeat', '2'];
    const { out, notes } = await ran(...args);
    expect(notes).toContain(`asked ${[ours, ...rivals].join()} W2,W8j 2 `);
    expect(notes).toMatch(/bench[\\/]peer\.mjs$/m);
    expect(out).toMatch(/^W2 +softmax +1 +8.00 MiB +8.00 +32.00 +50.00 +4.00 +90.00 +0.50$/m);
    expect(out).toMatch(/^W8j +additionsCompiled +1 +768 B +2.00 +1.00 +– +0.50 +10.00 +1.00$/m);
    expect(out).toContain('W8j tfjs-webgpu: no adapter');
    expect(out).toContain(`geometric mean of the ratios: ${Math.sqrt(2).toFixed(2)}`);
    const json = JSON.parse((await ran(...args, '--json')).out) as {
      readonly geometricMean: number;
      readonly workloads: readonly { readonly name: string; readonly ratio: number; readonly ours: Figure }[];
    };
    expect(json.geometricMean).toBeCloseTo(Math.sqrt(2), 12);
    expect(json.workloads[0]!.ours).toMatchObject({ median: 8, least: 7, dispatches: 3 });
    expect(json.workloads.map(({ name, ratio }) => [name, ratio])).toEqual([
      ['softmax', 4],
      ['additionsCompiled', 0.5],
    ]);
  });

  test('asks for the libraries named only', async () => {
    await pretend([]);
    const { notes } = await ran(folder, '--against', 'tfjs-webgpu', '--workload', 'W2');
    expect(notes).toContain(`asked ${ours},tfjs-webgpu W2 1 `);
  });

  test('measures one thread of WebAssembly beside the libraries that compute there', async () => {
    await pretend([line('ours-wasm-1t', 'W2', 8, 100), line('jax-wasm-1t', 'W2', 4, 50)]);
    const { out, notes } = await ran(folder, '--device', 'wasm', '--workload', 'W2');
    expect(notes).toContain('asked ours-wasm-1t,jax-wasm-1t,ort-web-wasm-1t,tfjs-wasm-1t W2 1 ');
    expect(out).toMatch(/^W2 +softmax +1 +8.00 MiB +8.00 +4.00 +0.50 +100 +0.50$/m);
  });

  test('asks for so many threads of every library', async () => {
    await pretend([line('ours-wasm-2t', 'W2', 8, 100), line('jax-wasm-2t', 'W2', 4, 50)]);
    const { out, notes } = await ran(folder, '--device', 'wasm', '--threads', '2', '--workload', 'W2');
    expect(notes).toContain('asked ours-wasm-2t,jax-wasm-2t,ort-web-wasm-2t,tfjs-wasm-2t W2 1 ');
    expect(out).toMatch(/^W2 +softmax +1 +8.00 MiB +8.00 +4.00 +0.50 /m);
  });

  test('measures compiled C beside WebAssembly, which is no rival, and PyTorch by turns with the driver', async () => {
    await pretend([
      { ...line('ours-native-2t', 'W2', 8, 100), min_ms: 2 },
      { ...line('ours-wasm-2t', 'W2', 3, 50), min_ms: 3 },
      { ...line('ort-node-2t', 'W2', 16, 50), min_ms: 12 },
    ]);
    const times = { first_ms: 9, median_ms: 24, min_ms: 6 };
    const python = await pretendPython(times, 1 / 1024);
    const args = [folder, '--device', 'native', '--threads', '2', '--repeat', '2', '--python', python];
    const { out, notes } = await ran(...args, '--workload', 'W2,W8');
    const asked = ['W2', 'W8', 'W2', 'W8'].map(
      (name) => `asked ours-native-2t,ours-wasm-2t,ort-node-2t ${name} 1 `,
    );
    expect(notes.match(/asked \S+ \S+ 1 /g)).toEqual(asked);
    expect(notes).toContain('W2 pytorch-2t 24 ms (min 6)');
    // The driver, which only pretends, gives the lines of W2 at each turn. The constant is no softmax.
    expect(out).toMatch(/^W2 +softmax +1 +8.00 MiB +8.00 +3.00 +16.00 +24.00 +2.00 /m);
    expect(out).toMatch(/^W8 +additionsEager .* – +– +– +– +– /m);
    expect(out).toContain('W2 pytorch-2t: its result is off (FAIL)');
    const { out: least } = await ran(...args, '--least', '--workload', 'W2');
    expect(least).toMatch(/^W2 +softmax +1 +8.00 MiB +2.00 +3.00 +12.00 +6.00 +3.00 /m);
  });

  test('says what PyTorch says where it fails', async () => {
    await pretend([]);
    const python = await pretendPython(undefined, 0);
    const { out } = await ran(folder, '--device', 'native', '--workload', 'W2', '--python', python);
    expect(out).toContain(`W2 pytorch-1t: ${python} ended with 3: no luck today`);
  });

  test('gives slow libraries the time that it is told', async () => {
    await pretend([]);
    const { notes } = await ran(folder, '--workload', 'W2', '--timeout', '90');
    expect(notes).toMatch(/peer\.mjs 90000$/m);
  });

  test('fails where the driver fails, with its last words', async () => {
    await pretend([], 3);
    await expect(ran(folder, '--workload', 'W2')).rejects.toThrow(
      /driver\.mjs ended with 3\n {2}out of luck$/,
    );
  });

  test('has a problem where a result is wrong, and no ratio where one did not run', () => {
    const [wrong] = compare(['W2'], [{ ...line(ours, 'W2', 1, 1), check: 'FAIL' }]);
    expect(wrong).toMatchObject({ ratio: undefined, problems: [`${ours}: its result is off (FAIL)`] });
    expect(compare(['W3'], [])[0]).toMatchObject({ ours: undefined, others: [], ratio: undefined });
    expect(geometricMean([])).toBeUndefined();
  });
});

describe('mistakes say what is expected', () => {
  test.each([
    [[], 'expected one folder\n\nusage: npx tsx bench/compare.ts DIR'],
    [['/nowhere'], 'there is no /nowhere/driver.mjs'],
    [
      ['/nowhere', '--device', 'abacus'],
      "--device: there is no 'abacus': expected some of webgpu, wasm, native",
    ],
    [['/nowhere', '--against', 'numpy'], "--against: there is no 'numpy': expected some of jax-webgpu, "],
    [['/nowhere', '--workload', 'W99'], "--workload: there is no 'W99': expected some of W1, W1f, "],
    [['/nowhere', '--threads', 'all'], "--threads: expects a whole number of at least 1, got 'all'"],
    [['/nowhere', '--timeout', 'long'], "--timeout: expects a number of seconds above 0, got 'long'"],
    [['/nowhere', '--repeat', '0'], "--repeat: expects a whole number of at least 1, got '0'"],
  ])('%j', async (args, message) => {
    await expect(ran(...args)).rejects.toThrow(message);
  });

  test('--help says how it is called', async () => {
    expect((await ran('--help')).out).toMatch(/^usage: npx tsx bench\/compare\.ts DIR/);
  });
});
