// `sinter build` as someone at a command line meets it.
//
// Runs on the sources: it builds programs of TypeScript, which import them.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { measuredSchedules, setDevice } from '../../src/index.ts';
import { removeFolders, temporary } from '../aot/bundles.ts';
import { sinter } from '../support/cli.ts';

afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

const module = path.resolve(import.meta.dirname, '../aot/perceptron.ts');
const pooled = path.resolve(import.meta.dirname, '../aot/pooled.ts');

test('builds a folder that runs, and says what is in it', async () => {
  const folder = path.join(temporary(), 'made', 'here');
  const { code, out } = await sinter('build', module, '--out', folder, '--target', 'wasm', '--json');
  expect(code).toBe(0);
  const result = JSON.parse(out) as Record<string, unknown>;
  expect(result).toMatchObject({
    out: folder,
    targets: ['wasm'],
    weights: 14,
  });
  expect((result['entries'] as string[]).toSorted()).toEqual(['noise', 'predict', 'train']);
  expect(result['scriptGzip']).toBeLessThan(8700);
  const use = `import { load } from ${JSON.stringify(path.join(folder, 'index.js'))};
const model = await load();
const { best } = await model.predict({ images: new Float32Array(160) });
console.log(best.length, model.description);
model.dispose();`;
  const made = spawnSync(process.execPath, ['--input-type=module', '--eval', use], { encoding: 'utf8' });
  expect([made.stderr, made.stdout]).toEqual(['', expect.stringMatching(/^8 WebAssembly SIMD, /)]);
});

test('leaves checks of labels and indices out where that is asked for', async () => {
  const program = async (...more: readonly string[]): Promise<string> => {
    const folder = temporary();
    const args = ['--out', folder, '--export', 'train', '--target', 'wasm', ...more];
    expect((await sinter('build', module, ...args)).code).toBe(0);
    return fs.readFileSync(path.join(folder, 'program.json'), 'utf8');
  };
  expect(await program()).toContain('"what":"crossEntropy: label"');
  expect(await program('--no-checks')).not.toContain('"checks"');
});

test('replaces a bundle, and nothing that is none', async () => {
  const folder = temporary();
  const build = (...more: readonly string[]): ReturnType<typeof sinter> =>
    sinter('build', module, '--out', folder, '--export', 'predict', ...more);
  const mine = path.join(folder, 'package.json');
  fs.writeFileSync(mine, '{}');
  const refused = await build();
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('its package.json would be')]);
  expect(fs.readdirSync(folder)).toEqual(['package.json']);
  fs.rmSync(mine);
  const own = path.join(folder, 'own.txt');
  fs.writeFileSync(own, 'mine');
  expect((await build('--target', 'webgpu,wasm')).code).toBe(0);
  expect(fs.existsSync(path.join(folder, 'wasm.js'))).toBe(true);
  expect((await build('--target', 'webgpu')).code).toBe(0);
  expect(fs.existsSync(path.join(folder, 'wasm.js'))).toBe(false);
  expect(fs.readdirSync(path.join(folder, 'kernels')).every((name) => name.endsWith('.wgsl'))).toBe(true);
  expect(fs.readFileSync(own, 'utf8')).toBe('mine');
  const file = await sinter('build', module, '--out', own);
  expect([file.code, file.err]).toEqual([2, expect.stringContaining('is no folder to write to')]);
});

test('tells people what it wrote', async () => {
  const folder = temporary();
  const { code, out } = await sinter('build', module, '--out', folder, '--export', 'predict');
  expect(code).toBe(0);
  expect(out).toMatch(/index\.js .* gzipped/);
  expect(out).toMatch(/kernels\/ .* 2 for webgpu, 2 for wasm|kernels\/ .* for webgpu, .* for wasm/);
  expect(fs.existsSync(path.join(folder, 'README.md'))).toBe(true);
});

test('builds a program for the sizes that a module leaves open, others where asked', async () => {
  const folder = temporary();
  const said = await sinter(
    'build',
    pooled,
    '--out',
    folder,
    '--target',
    'wasm',
    '--dim',
    'batch=1..2',
    '--json',
  );
  expect([said.code, said.err]).toEqual([0, '']);
  const { load } = (await import(path.join(folder, 'index.js'))) as {
    load: () => Promise<Record<'pooled' | 'doubled', (inputs: object) => Promise<object>>>;
  };
  const model = await load();
  for (const batch of [1, 2])
    expect(await model.pooled({ x: new Float32Array(4 * batch).fill(1) })).toEqual({
      mean: Float32Array.of(4, 4),
    });
  await expect(model.pooled({ x: new Float32Array(12) })).rejects.toThrow(
    'batch is 3 in x: built for batch 1 to 2',
  );
  expect(await model.doubled({ y: Float32Array.of(1, 2) })).toEqual({ twice: Float32Array.of(2, 4) });
  const types = fs.readFileSync(path.join(folder, 'index.d.ts'), 'utf8');
  expect(types).toContain('/** Built for batch 1 to 2. */\n  pooled(inputs: {');
  expect(types).toContain('/** f32[batch, 4] */\n    x: Sized<Float32Array>;');
  const kernels = fs.readdirSync(path.join(folder, 'kernels'));
  // One function is the same at all sizes.
  expect(kernels.filter((name) => name.startsWith('doubled'))).toHaveLength(1);
  (model as unknown as { dispose(): void }).dispose();
});

test('measures schedules where the device is here, and takes those of a file', async () => {
  vi.stubEnv('SINTER_CACHE', temporary());
  const file = path.join(temporary(), 'schedules.json');
  const args = ['--export', 'pooled', '--dim', 'batch=8', '--json', '--out'];
  try {
    const said = await sinter('build', pooled, ...args, temporary(), '--tune');
    expect(said.code).toBe(0);
    expect(said.err).toMatch(/^(?:build: --tune: nothing is measured for webgpu: .+)?$/);
    expect(JSON.parse(said.out)).toMatchObject({ tuned: { wasm: 1 } });
    const { entries } = measuredSchedules();
    const found = Object.entries(entries).filter(
      ([key]) => / on wasm/.test(key) && key.startsWith('dot 1x8x4x2 '),
    );
    expect(found).toHaveLength(1);
    fs.writeFileSync(file, JSON.stringify({ version: 1, entries: Object.fromEntries(found) }));
    const again = await sinter('build', pooled, ...args, temporary(), '--schedules', file);
    expect([again.code, again.err]).toEqual([0, '']);
    expect(JSON.parse(again.out)).toMatchObject({ tuned: { wasm: 1 } });
    const [[key, schedule]] = found as [[string, unknown]];
    const two = { version: 1, entries: { [key]: schedule, [`${key} other`]: schedule } };
    fs.writeFileSync(file, JSON.stringify(two));
    const refused = await sinter('build', pooled, ...args, temporary(), '--schedules', file);
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('several machines for wasm')]);
  } finally {
    vi.unstubAllEnvs();
  }
});

test.each([
  [['build'], 'no FILE given'],
  [['build', module], 'no folder given'],
  [['build', 'nothing.ts', '--out', 'x'], 'there is no file nothing.ts'],
  [
    ['build', module, '--out', 'x', '--target', 'abacus'],
    "there are no bundles for 'abacus': expected cuda, webgpu, wasm",
  ],
  [['build', module, '--out', 'x', '--arch', 'sm_80'], '--arch: expects --target with cuda'],
  [
    ['build', module, '--out', 'x', '--target', 'cuda', '--arch', 'sm_80,volta'],
    "--arch: 'volta' is not the name of a GPU: expected names such as sm_80, sm_90a or compute_80",
  ],
  [['build', module, '--out', 'x', '--export', 'nothing'], "exports no function 'nothing'"],
  [['build', module, '--out', 'x', '--dim', 'batch=1,2'], 'sizes are left open, and inputs have them fixed'],
  [
    ['build', module, '--out', 'x', '--schedules', 'nothing.json'],
    '--schedules: nothing.json cannot be read',
  ],
  [['build', module, '--out', 'x', '--fix', 'shape=1'], 'is no ONNX model'],
  [['build', module, '--out', 'x', '--shard-size', '0'], 'expects a whole number of at least 1'],
])('%j is refused with what to do', async (args, words) => {
  const { code, err } = await sinter(...args);
  expect([code, err]).toEqual([2, expect.stringContaining(words)]);
});
