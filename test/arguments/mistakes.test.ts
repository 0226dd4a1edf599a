// Mistakes that users made and that went unnoticed, or were told by bare errors: each is refused at the user's line, by a message that
// says what to write, and nothing after it is harmed.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SinterError } from '../../src/errors.ts';
import * as typed from '../../src/index.ts';
import * as io from '../../src/io/index.ts';
import * as nn from '../../src/nn/index.ts';
import * as optim from '../../src/optim/index.ts';
import { saveCheckpoint } from '../../src/train/index.ts';

beforeAll(() => typed.setDevice('interpreter'));
afterAll(() => typed.setDevice(undefined));

/** The public names as JavaScript sees them. */
type Loose = Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
const sn = typed as unknown as Loose;
const x = typed.ones([2, 3]);
const one = typed.tensor([1]);
const net = new nn.Linear(1, 1);

async function messageOf(run: () => unknown): Promise<string> {
  try {
    await run();
  } catch (error) {
    expect(error).toBeInstanceOf(SinterError);
    return (error as SinterError).message;
  }
  return 'nothing is thrown';
}

describe('a tensor where a number is meant', () => {
  const calls: readonly (readonly [string, () => unknown])[] = [
    ['leakyRelu', () => sn['leakyRelu']!(x, one)],
    ['elu', () => sn['elu']!(x, one)],
    ['softplus', () => sn['softplus']!(x, { beta: one })],
    ['layerNorm', () => sn['layerNorm']!(x, 3, undefined, undefined, { eps: one })],
    ['indexAdd', () => sn['indexAdd']!(x, 0, typed.tensor([0, 1], { dtype: 'i32' }), x, { alpha: one })],
    ['normal', () => sn['normal']!([2], { mean: one })],
    ['localResponseNorm', () => sn['localResponseNorm']!(typed.ones([1, 2, 2]), 1, { alpha: one })],
    ['nanToNum', () => sn['nanToNum']!(x, { nan: one })],
    ['batchNormUpdate', () => sn['batchNormUpdate']!([one, one], [one, one], 4, one)],
  ];

  test.each(calls)('%s', async (name, run) => {
    expect(await messageOf(run)).toMatch(
      new RegExp(`^${name}: \\w+ must be a .*number, got Tensor f32\\[1\\][^]*mistakes.test.ts:\\d+`),
    );
    expect(await typed.tensor([1, 2]).add(1).array()).toEqual([2, 3]);
  });
});

describe('options that there are not', () => {
  const calls: readonly (readonly [string, () => unknown, RegExp])[] = [
    ['sum', () => sn['sum']!(x, 0, { keepDim: true }), /^sum: there is no option 'keepDim'[^]*try: keepdim$/],
    ['softmax', () => sn['softmax']!(x, -1, { outDtype: 'f32' }), /^softmax: there is no option 'outDtype'/],
    ['a device', () => sn['tensor']!([1], { device: 'wasm' }), /^tensor: there is no option 'device'/],
    ['pinned', () => sn['tensor']!([1], { pinned: true }), /^tensor: there is no option 'pinned'/],
    ['dropout', () => sn['dropout']!(x, 0.5, { seeds: 3 }), /^dropout: there is no option 'seeds'/],
    ['mean', () => sn['mean']!(x, 0, { dtypes: 'f32' }), /^mean: there is no option 'dtypes'/],
    [
      'Adam',
      () => new optim.Adam(net, { learningRate: 0.1 } as object),
      /^Adam: there is no option 'learningRate'/,
    ],
    [
      'a bare rate',
      () => new optim.Adam(net, 0.01 as never),
      /^Adam: expects options as an object, got 0.01[^]*try: \{ lr: 0.01 \}$/,
    ],
    [
      'a group',
      () => new optim.SGD([{ params: net, momentun: 0.9 }]),
      /^SGD: there is no option 'momentun'[^]*try: momentum$/,
    ],
    ['Linear', () => new nn.Linear(2, 2, { biases: false } as object), /^Linear: .*'biases'[^]*try: bias$/],
  ];

  test.each(calls)('%s', async (_, run, message) => expect(await messageOf(run)).toMatch(message));
});

describe('files', () => {
  test('a path is no file', async () => {
    const load = io.loadSafetensors as (file: unknown) => unknown;
    expect(await messageOf(() => load('model.safetensors'))).toMatch(
      /^loadSafetensors: the file must be bytes .+ got 'model.safetensors'[^]*try: await readFile/,
    );
  });

  test('a file that is not there is E_IO', async () => {
    const error: unknown = await io.readFile('no-such-file.bin').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SinterError);
    expect((error as SinterError).code).toBe('E_IO');
    expect((error as SinterError).message).toMatch(/^readFile: no-such-file.bin: /);
  });

  test('what is no target, and no object of parts, is no checkpoint', async () => {
    const save = saveCheckpoint as (...args: readonly unknown[]) => Promise<void>;
    for (const target of [undefined, null, 3, '', {}, x]) {
      expect(await messageOf(() => save(target, {}))).toMatch(/^saveCheckpoint: the target must be a path/);
    }
    for (const parts of [undefined, null, 'text', [1], x]) {
      expect(await messageOf(() => save('unwritten', parts))).toMatch(/^saveCheckpoint: the parts must be/);
    }
    expect(await messageOf(() => save('unwritten', {}, { rgn: true }))).toMatch(/^saveCheckpoint: .*rng/s);
  });

  test.each([
    ['writeFile', io.writeFile],
    ['replaceFile', io.replaceFile],
  ] as const)('%s writes no other than bytes, to a path', async (name, fn) => {
    const write = fn as (...args: readonly unknown[]) => Promise<void>;
    for (const path of [undefined, null, 3, '', {}, x]) {
      expect(await messageOf(() => write(path, Uint8Array.of(1)))).toMatch(`${name}: the path must be`);
    }
    for (const bytes of [undefined, null, 'text', [1], x, new ArrayBuffer(2)]) {
      expect(await messageOf(() => write('unwritten', bytes))).toMatch(`${name}: the bytes must be bytes`);
    }
  });

  test('bytes that are too few for the shape are refused', async () => {
    const short = { dtype: 'f32', shape: [4], data: new Uint8Array(3) } as const;
    expect(await messageOf(() => io.fromHostTensor(short))).toMatch(
      /^fromHostTensor: f32\[4\] takes 16 bytes/,
    );
  });
});

describe('compiling and trees', () => {
  test('tune is named', async () => {
    const double = (x: typed.Tensor): typed.Tensor => x.mul(2);
    expect(await messageOf(() => sn['compile']!(double, { tune: 'yes' }))).toMatch(
      /^compile: tune must be true, false or \{ store \}, got 'yes'[^]*try: tune: true$/,
    );
    expect(await messageOf(() => sn['compile']!(double, { tune: { stores: 'a' } }))).toMatch(
      /^compile: there is no option 'stores'[^]*try: store$/,
    );
    expect(await messageOf(() => sn['compile']!(double, { tune: { store: 3 } }))).toMatch(
      /^compile: store must be a path or false, got 3/,
    );
  });

  test('a Map and a Set are no trees', async () => {
    const sum = (tree: Map<string, typed.Tensor>): typed.Tensor => tree.get('a')!.sum();
    const map = new Map([['a', typed.ones([2])]]);
    const told = (op: string): RegExp =>
      new RegExp(`^${op}: expects tensors in arrays and plain objects, got Map[^]*try: Object.fromEntries`);
    expect(await messageOf(() => (sn['compile']!(sum) as (tree: unknown) => unknown)(map))).toMatch(
      told('compile'),
    );
    expect(await messageOf(() => typed.grad(sum)(map))).toMatch(told('grad'));
    expect(await messageOf(() => typed.treeMap((at) => at, { a: new Set([one]) }))).toMatch(
      /got Set at .a[^]*try: \[...set\]/,
    );
    expect(await messageOf(() => typed.compile((at: typed.Tensor) => new Map([['a', at]]))(x))).toMatch(
      told('compile'),
    );
  });

  test('a schedule asked for a step that there is not', async () => {
    const restarts = optim.cosineAnnealingWarmRestarts({ lr: 1, t0: 4 });
    expect(await messageOf(() => restarts(Infinity))).toMatch(
      /^cosineAnnealingWarmRestarts: the step must be/,
    );
    expect(restarts(2 ** 53 - 4)).toBe(1);
    expect(restarts(6)).toBeCloseTo(restarts(2), 12);
    const bad = optim.lambdaLr({ lr: 1, factor: () => 'half' as unknown as number });
    expect(await messageOf(() => bad(0))).toMatch(
      /^lambdaLr: what factor gives must be a number, got 'half'/,
    );
  });
});

describe('layers', () => {
  test('Sequential names the layer', async () => {
    const model = new nn.Sequential(new nn.Linear(3, 4), new nn.ReLU(), new nn.Linear(5, 2));
    expect(await messageOf(() => model.forward(x))).toMatch(
      /^linear: inner sizes differ[^]*in layer 2 of Sequential, a Linear$/,
    );
    const outer = new nn.Sequential(new nn.Flatten(), new nn.Sequential((at: typed.Tensor) => at.matmul(at)));
    expect(await messageOf(() => outer.forward(x))).toMatch(
      /in layer 0 of Sequential, a function\n {2}in layer 1 of Sequential, a Sequential$/,
    );
  });

  test('a class instead of a layer', async () => {
    expect(await messageOf(() => new nn.Sequential(nn.ReLU as unknown as nn.Layer))).toMatch(
      /^Sequential: layer 0 must be a layer/,
    );
  });

  test('channels last', async () => {
    const image = typed.ones([1, 8, 8, 3]);
    expect(await messageOf(() => new nn.Conv2d(3, 4, 3).forward(image))).toMatch(/^conv2d: [^]*NCHW/);
  });

  test('a schedule that gives no rate', async () => {
    const param = typed.tensor([1, 2]).requiresGrad_();
    param.grad = typed.tensor([1, 1]);
    const adam = new optim.Adam([param], { lr: () => Number.NaN });
    expect(await messageOf(() => adam.step())).toMatch(
      /^Adam: what the schedule gives must be a number of at/,
    );
  });
});

describe('sizes one by one where a list is meant', () => {
  const any = (value: unknown): Loose => value as Loose;
  const calls: readonly (readonly [string, () => unknown, string])[] = [
    ['reshape', () => any(typed.ones([4]))['reshape']!(2, 2), 'reshape([2,2])'],
    ['view', () => any(typed.ones([4]))['view']!(2, -1), 'view([2,-1])'],
    ['expand', () => any(one)['expand']!(2, 3), 'expand([2,3])'],
    ['broadcastTo', () => any(one)['broadcastTo']!(2, 3, 4), 'broadcastTo([2,3,4])'],
    ['permute', () => any(x)['permute']!(1, 0), 'permute([1,0])'],
    ['tile', () => any(x)['tile']!(2, 2), 'tile([2,2])'],
    ['unflatten', () => any(typed.ones([4]))['unflatten']!(0, 2, 2), 'unflatten(0, [2,2])'],
    ...['zeros', 'ones', 'empty', 'rand', 'randn'].map(
      (name) => [name, () => sn[name]!(2, 3), `${name}([2,3]), all sizes in one array`] as const,
    ),
    ['zeros', () => sn['zeros']!(3), 'one array of all of them, [3, …]'],
    ['reshape', () => sn['reshape']!(x, 3, 2), 'one array of all of them, [3, …]'],
  ];
  test.each(calls)('%s', async (name, run, hint) => {
    const message = await messageOf(run);
    expect(message).toMatch(new RegExp(`^${name}: expects .* as an array of integers, got \\d`));
    expect(message).toContain('mistakes.test.ts:');
    expect(message.endsWith(`\n  try: ${hint}`)).toBe(true);
  });

  test('other mistakes of the same methods keep their words', async () => {
    expect(await messageOf(() => any(x)['reshape']!('2,3'))).not.toContain('try:');
    expect(await messageOf(() => any(x)['reshape']!([4]))).toMatch(/takes 4 elements/);
  });
});
