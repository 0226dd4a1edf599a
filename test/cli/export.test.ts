// `sinter export` as someone at a command line meets it.
//
// Runs on the sources: it exports programs of TypeScript, which import them.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { exportOnnx } from '../../src/onnx/index.ts';
import { decode } from '../../src/onnx/wire.ts';
import { inputs, predict, state } from '../aot/perceptron.ts';
import { sinter } from '../support/cli.ts';
import { hostOf, hostsOf } from '../support/onnx/exported.ts';
import { runInPeer } from '../support/onnx/runtime.ts';
import { expectClose } from '../support/random/graph.ts';

const folder = mkdtempSync(join(tmpdir(), 'export-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
  sn.setDevice(undefined);
});

const module = resolve(import.meta.dirname, '../aot/perceptron.ts');

test('writes a model that ONNX Runtime runs, its state among the inputs', async () => {
  const out = join(folder, 'made', 'predict.onnx');
  const { code, out: said } = await sinter('export', module, '--export', 'predict', '--out', out, '--json');
  expect(code).toBe(0);
  expect(JSON.parse(said)).toMatchObject({ out, entry: 'predict', files: {} });
  const graph = decode('Model', readFileSync(out)).graph!;
  const names = graph.input.map(({ name }) => name!);
  expect(names).toContain('model.layers[0].weight');
  expect(graph.output.map(({ name }) => name)).toEqual(['logits', 'best']);
  const layers = state.model.layers as unknown as Readonly<Record<string, sn.Tensor>>[];
  const [images] = inputs.predict;
  const weights = [0, 2].flatMap((i) =>
    ['weight', 'bias'].map((key) => [`model.layers[${i}].${key}`, layers[i]![key]!] as const),
  );
  const others = graph.input.filter(({ name }) => name!.startsWith('optimizer'));
  const zeros = others.map(({ name, type }) => {
    const shape = type!.tensor!.shape!.dim.map(({ value }) => Number(value ?? 0n));
    return [name!, sn.zeros(shape, { dtype: type!.tensor!.elemType === 6 ? 'i32' : 'f32' })] as const;
  });
  const given = await hostsOf(Object.fromEntries([...weights, ...zeros, ['images', images]]));
  const found = await runInPeer(out, given);
  expectClose(found['logits']!, await hostOf(predict(state, images).logits), 1e-5);
});

test('puts weights beside the model, and tells people what it wrote', async () => {
  const source = join(import.meta.dirname, '../aot/perceptron.ts');
  const out = join(folder, 'noise.onnx');
  const { code, err } = await sinter('export', source, '--export', 'noise', '--out', out);
  expect(code).toBe(1);
  expect(err).toContain('randomBits');
  const train = await sinter('export', source, '--export', 'train', '--out', out, '--external', 'w.bin');
  expect([train.code, train.out]).toEqual([0, expect.stringMatching(/^wrote train to .*noise\.onnx: /)]);
  expect(readdirSync(folder)).toContain('noise.onnx');
});

test('writes no weights over the model', async () => {
  const out = join(folder, 'same.bin');
  const weight = sn.ones([16, 32]);
  const model = await exportOnnx((x: sn.Tensor) => x.add(weight), [weight], { externalData: 'same.bin' });
  await expect(model.save(out)).rejects.toThrow('has that name');
  expect(existsSync(out)).toBe(false);
});

test('leaves sizes open that lie in ranges, and says which axes cannot', async () => {
  const source = join(folder, 'open.ts');
  const index = JSON.stringify(resolve(import.meta.dirname, '../../src/index.ts'));
  writeFileSync(
    source,
    `import * as sn from ${index};
export const scores = (x: sn.Tensor, { mask }: { mask: sn.Tensor }) => x.softmax(-1).mul(mask);
export const twice = (x: sn.Tensor) => x.neg();
const x = ({ batch, length }: Record<string, number>) => sn.ones([batch!, length!]);
export const inputs = (at: Record<string, number>) =>
  ({ scores: [x(at), { mask: x(at) }], twice: [sn.ones([2 * at.batch!])] });
`,
  );
  const out = join(folder, 'open.onnx');
  const dims = ['--dim', 'batch=1..64', '--dim', 'length=1..500'];
  const made = await sinter('export', source, '--export', 'scores', ...dims, '--out', out);
  expect([made.code, made.err]).toEqual([0, '']);
  const shapes = decode('Model', readFileSync(out)).graph!.input.map(({ type }) =>
    type!.tensor!.shape!.dim.map(({ param }) => param),
  );
  expect(shapes).toEqual([
    ['batch', 'length'],
    ['batch', 'length'],
  ]);
  const [x, mask] = [sn.randn([3, 9]), sn.randn([3, 9])];
  const found = await runInPeer(out, await hostsOf({ x, mask }));
  expectClose(Object.values(found)[0]!, await hostOf(x.softmax(-1).mul(mask)), 1e-5);
  const other = await sinter('export', source, '--export', 'twice', ...dims, '--out', out);
  expect([other.code, other.err]).toEqual([
    2,
    expect.stringContaining('axis 0 of an input is 4 where batch is 2'),
  ]);
});

test('asks for what is missing', async () => {
  const several = await sinter('export', module, '--out', join(folder, 'm.onnx'));
  expect([several.code, several.err]).toEqual([2, expect.stringContaining('try: --export')]);
  expect((await sinter('export', module)).err).toContain('no file to write');
  expect((await sinter('export')).err).toContain('no FILE given');
});
