// Bundles that are built with `check` are compared with the interpreter where they run: right ones are found to be right on
// every target, and of kernels that were changed after the build those are named that are wrong.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { EntryPoint } from '../../src/aot/entry.ts';
import type { OpenPoint } from '../../src/aot/sizes.ts';
import { measured, misfitOf, seededBytes, type ExpectedValue } from '../../src/bundle-runtime/expected.ts';
import type { BundleCheckOptions } from '../../src/bundle-runtime/check.ts';
import type { BundleTarget } from '../../src/bundle-runtime/manifest.ts';
import type { DeviceCheck } from '../../src/check/report.ts';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import { standIn } from '../cuda/standin/standin.ts';
import { built, written } from './bundles.ts';
import * as perceptron from './perceptron.ts';
import { usePlaces } from './places.ts';

const { places, gpu } = usePlaces();
const found = standIn();
const targets: readonly BundleTarget[] = ['cuda', 'webgpu', 'wasm'];

/** Builds functions, and gives what checks them. `change` changes the kernels' files. */
async function checking(
  points: readonly (EntryPoint | OpenPoint)[],
  options: Parameters<typeof built>[1] = {},
  change: (file: string, content: Buffer) => Buffer = (_, content) => content,
): Promise<{
  readonly folder: string;
  readonly check: (options: BundleCheckOptions) => Promise<DeviceCheck<undefined>>;
}> {
  const folder = written(await built(points, { targets, check: true, ...options }));
  for (const name of fs.readdirSync(path.join(folder, 'kernels'))) {
    const file = path.join(folder, 'kernels', name);
    fs.writeFileSync(file, change(name, fs.readFileSync(file)));
  }
  const { check } = (await import(pathToFileURL(path.join(folder, 'check.js')).href)) as {
    check: (options: BundleCheckOptions) => Promise<DeviceCheck<undefined>>;
  };
  return { folder, check };
}

const n = 48;
const square = (seed: number): Tensor =>
  sn.tensor(
    Float32Array.from({ length: n * n }, (_, i) => Math.sin(seed + 7 * i) / 8),
    { shape: [n, n] },
  );
const point = (fn: (...args: never[]) => unknown, inputs: readonly unknown[]): EntryPoint => {
  return { name: 'run', fn, inputs };
};

/** Layers of equal kernels and others, with a running step count that the update reads as a number. */
function several(x: Tensor): Readonly<Record<string, Tensor>> {
  const w = square(2);
  let h = x;
  for (let layer = 0; layer < 3; layer++) h = h.matmul(w).softmax(-1);
  return { sums: h.cumsum(1), best: h.argmax(1), sorted: sn.sort(x, 1)[0], lower: x.sub(0.1).exp() };
}

describe.each(Object.keys(places))('on %s', (place) => {
  const options = (): BundleCheckOptions => {
    const { target, device, threads } = places[place]!();
    return {
      ...(target && { target }),
      ...(device !== undefined && { device }),
      ...(threads && { threads }),
    };
  };
  beforeEach(({ skip }) => {
    if (place === 'cuda' && !found.available) skip(found.reason);
  });

  test('a right bundle with a state, random numbers and several functions is right', async () => {
    const { train, predict, noise, inputs } = perceptron;
    const points = Object.entries({ train, predict, noise }).map(([name, fn]): EntryPoint => {
      return { name, fn: fn as EntryPoint['fn'], inputs: inputs[name as keyof typeof inputs] };
    });
    const { check } = await checking(points, { state: perceptron.state });
    const done: number[] = [];
    const result = await check({ ...options(), onProgress: (count) => void done.push(count) });
    expect(result.wrong, String(result)).toEqual([]);
    expect(result.skipped).toBe(0);
    expect(new Set(result.kernels.map(({ program }) => program))).toEqual(
      new Set(['train', 'predict', 'noise']),
    );
    expect(String(result)).toMatch(/^all right: .* beside the interpreter, on /);
    expect(done.length).toBeGreaterThan(result.kernels.length);
  });

  test('kernels of many kinds are right', async () => {
    const indices = sn.tensor([3, 1, 4, 1, 5, 40], { dtype: 'i32' });
    const run = (x: Tensor, at: Tensor): readonly Tensor[] => {
      const q = x.reshape([1, 2, 24, n]);
      return [
        ...Object.values(several(x)),
        x.indexSelect(0, at),
        sn.scatterAdd(x, 0, sn.broadcastTo(at.reshape([6, 1]), [6, n]), sn.ones([6, n])),
        sn.scaledDotProductAttention(q, q, q, { isCausal: true }),
        sn.where(x.gt(0), x, -Infinity),
        sn.foriLoop(0, 5, (_: Tensor, h: Tensor) => h.matmul(x).tanh(), x),
        x.to('f16').matmul(x.to('f16')),
      ];
    };
    const { check } = await checking([point(run, [square(1), indices])]);
    const result = await check(options());
    expect(result.wrong, String(result)).toEqual([]);
    expect(result.kernels.length).toBeGreaterThan(8);
    for (const { count, reads, writes, name } of result.kernels)
      expect([name, count > 0, reads.length + writes.length > 0]).toEqual([name, true, true]);
  });

  test('a number that an earlier kernel writes over is what it was for later ones', async () => {
    const state = { count: sn.tensor(3), sums: sn.zeros([n, n]) };
    const run = ({ count, sums }: typeof state, x: Tensor): object => {
      const next = count.add(1);
      return { state: { count: next, sums: sums.add(x.matmul(x).cumsum(0).mul(count)) }, count: next };
    };
    const { check } = await checking([point(run, [square(1)])], { state });
    const result = await check(options());
    expect(result.wrong, String(result)).toEqual([]);
  });

  test('weights in fewer bits, sizes in lists and sizes in ranges are right', async () => {
    const rows = (sizes: Pick<OpenPoint, 'sizes' | 'ranges'>): OpenPoint => ({
      name: 'run',
      ...sizes,
      at: ({ length }) =>
        point((x: Tensor) => x.matmul(square(2)).softmax(-1).cumsum(0), [sn.ones([length!, n])]),
    });
    const ranges = new Map([['length', { min: 1, max: 40, multipleOf: 1 }]]);
    for (const open of [{ sizes: [{ length: 3 }, { length: 17 }] }, { sizes: [{}], ranges }]) {
      const { check } = await checking([rows(open)], { format: 'q8_0' });
      const result = await check(options());
      expect(result.wrong, String(result)).toEqual([]);
      expect(result.kernels.length).toBeGreaterThan(1);
    }
  });
});

/** The instruction that adds four floats, and the one that subtracts them. */
const [add, sub] = [Buffer.from([0xfd, 0xe4, 0x01]), Buffer.from([0xfd, 0xe5, 0x01])];

function withSub(content: Buffer): Buffer {
  const changed = Buffer.from(content);
  for (let at = changed.indexOf(add); at >= 0; at = changed.indexOf(add, at + 1)) sub.copy(changed, at);
  return changed;
}

describe('a bundle whose kernels are wrong', () => {
  /** Where softmax's sums are. */
  const isRows = (file: string): boolean => /row_reduction/.test(file);

  test('on wasm: they are named, and what reads their results is not judged', async () => {
    const { check } = await checking([point(several, [square(1)])], { targets: ['wasm'] }, (file, content) =>
      isRows(file) ? withSub(content) : content,
    );
    const result = await check({ threads: 1 });
    expect(result.wrong.length, String(result)).toBeGreaterThan(0);
    for (const { kind, verdict } of result.wrong) expect([kind, verdict]).toEqual(['row-reduction', 'wrong']);
    expect(result.skipped).toBeGreaterThan(0);
    expect(result.kernels.filter(({ verdict }) => verdict === 'right').length).toBeGreaterThan(1);
    expect(String(result)).toContain('more read what these wrote');
    expect(result.workarounds!.entries).toMatchObject([{ device: 'wasm', avoid: [] }]);
    expect(result.workarounds!.entries[0]!.instead).toBeUndefined();
  });

  test('on webgpu: they are named, and the other target is right instead', async () => {
    const { check } = await checking([point(several, [square(1)])], {}, (file, content) => {
      if (!file.endsWith('.wgsl') || !isRows(file)) return content;
      return Buffer.from(content.toString().replace(/(out0\[[^\]]+\]) = ([^;]+);/, '$1 = ($2) * 1.01;'));
    });
    const result = await check({ target: 'webgpu', device: gpu() });
    expect(result.wrong.length, String(result)).toBeGreaterThan(0);
    for (const { kind, name } of result.wrong) {
      expect(kind).toBe('row-reduction');
      expect(String(result)).toContain(name);
    }
    expect(result.device).toBe('webgpu');
    expect(String(result)).toContain(result.description);
    expect(result.workarounds!.entries).toMatchObject([{ device: 'webgpu', instead: 'wasm' }]);
  });

  test.each(['webgpu', 'wasm'] as const)('%s: a kernel that cannot be made has failed', async (target) => {
    const { check } = await checking([point(several, [square(1)])], { targets: [target] }, (file, content) =>
      isRows(file) ? Buffer.concat([content, Buffer.from('nonsense')]) : content,
    );
    const result = await check(target === 'wasm' ? { threads: 1 } : { device: gpu() });
    expect(result.wrong.length, String(result)).toBeGreaterThan(0);
    for (const { kind, verdict, problem } of result.wrong)
      expect([kind, verdict, problem!.length > 0]).toEqual(['row-reduction', 'failed', true]);
  });

  test('a check of another build is refused', async () => {
    const [own, other] = await Promise.all([
      checking([point(several, [square(1)])], { targets: ['wasm'] }),
      checking([point((x: Tensor) => x.exp(), [square(1)])], { targets: ['wasm'] }),
    ]);
    fs.copyFileSync(path.join(other.folder, 'check.json'), path.join(own.folder, 'check.json'));
    await expect(own.check({ threads: 1 })).rejects.toMatchObject({
      code: 'E_FORMAT',
      message: expect.stringContaining('another build') as string,
    });
  });
});

test('a bundle has the check only where it is asked for, and its other files are the same', async () => {
  const points = [point((x: Tensor) => x.exp(), [square(1)])];
  const [plain, checked] = [await built(points), await built(points, { check: true })];
  const own = [...checked.files.keys()].filter((name) => !plain.files.has(name));
  expect(own.toSorted()).toEqual(['check.d.ts', 'check.js', 'check.json']);
  for (const [name, content] of plain.files)
    if (name !== 'README.md')
      expect([name, nameless(checked.files.get(name))]).toEqual([name, nameless(content)]);
  expect(String(checked.files.get('README.md'))).toContain('check.js');
  const script = String(checked.files.get('check.js'));
  // Bundlers of pages follow this, and take the rest of the bundle as they do without.
  expect(script).toMatch(/new URL\([`'"]\.\/check\.json[`'"], ?import\.meta\.url\)/);
  expect(script).toMatch(/from ?[`'"]\.\/index\.js[`'"]/);
  const bytes = gzipSync(script, { level: 9 }).length;
  console.log(`check.js: ${bytes} bytes gzipped`);
  expect(bytes).toBeLessThanOrEqual(5200);
});

/** Without the numbers by which tensors go. */
function nameless(content: string | Uint8Array | undefined): unknown {
  return typeof content === 'string' ? content.replaceAll(/"t\d+"/g, '"t"') : content;
}

describe('a digest', () => {
  const count = 1000;
  const data = Float32Array.from({ length: count }, (_, i) => Math.sin(i));
  const value = (limit: number): ExpectedValue => {
    const { samples, sums } = measured(data);
    const digest = {
      samples,
      sums,
      sampleLimits: samples.map(() => limit),
      sumLimits: sums.map(() => limit),
    };
    return { id: 0, buffer: 0, offset: 0, bytes: 4 * count, dtype: 'f32', shape: [10, 100], digest };
  };
  const bytesOf = (array: Float32Array): Uint8Array => new Uint8Array(array.buffer.slice(0));
  const none = (): boolean => false;
  let changed: Float32Array<ArrayBuffer>;
  beforeAll(() => {
    changed = data.slice();
  });

  test('takes what was measured', () => {
    expect(misfitOf(value(1e-6), bytesOf(data), none)).toBeUndefined();
  });

  test.each([0, 1, 333, 777, 998, 999])('sees element %i alone', (element) => {
    for (const other of [changed[element]! + 1, NaN, Infinity]) {
      const array = data.slice();
      array[element] = other;
      expect(misfitOf(value(1e-3), bytesOf(array), none)).toBeDefined();
    }
  });

  test('sees two neighbours that changed places', () => {
    for (let element = 0; element < count - 1; element += 31) {
      const array = data.slice();
      [array[element], array[element + 1]] = [array[element + 1]!, array[element]!];
      expect(misfitOf(value(1e-4), bytesOf(array), none)).toBeDefined();
    }
  });

  test('says where, and leaves out what was not written', () => {
    const array = data.slice();
    array[999] = 7;
    expect(misfitOf(value(1e-3), bytesOf(array), none)).toMatchObject({
      difference: { wrong: 1, count: 32, at: [9, 99], got: 7 },
    });
    expect(misfitOf(value(1e-3), bytesOf(array), (first) => first === 999 * 4)).toBeUndefined();
    array[999] = data[999]!;
    array[500] = 7;
    expect(misfitOf(value(1e-3), bytesOf(array), none)).toMatchObject({
      problem: expect.stringMatching(/sum of the elements from \[4, 69\] to|from \[5, 0\] to/) as string,
    });
  });

  test.each(['f32', 'f16', 'bf16', 'f64', 'i8', 'u16', 'i32', 'i64', 'bool'] as const)(
    'inputs of %s are the same for a seed, others for another, and within their range',
    (dtype) => {
      const input = { dtype, count: 99, low: 0, high: 1 };
      const bytes = seededBytes(input, 3);
      expect(bytes).toEqual(seededBytes(input, 3));
      expect(bytes).not.toEqual(seededBytes(input, 4));
      expect(bytes.length % 4).toBe(0);
    },
  );
});
