// `sinter run` as someone at a command line meets it: models of three kinds, files of every format,
// and what goes wrong.
//
// Runs on the sources: it runs programs of TypeScript, which import them.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { encode as encodePng } from 'fast-png';
import { encode as encodeJpeg } from 'jpeg-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunResult } from '../../src/cli/run/run.ts';
import { readTensorProto, writeTensorProto } from '../../src/onnx/tensor-file.ts';
import { setDevice } from '../../src/index.ts';
import {
  readNpy,
  readNpz,
  readSafetensors,
  writeNpy,
  writeNpz,
  writeSafetensors,
  type HostTensor,
} from '../../src/io/index.ts';
import { removeFolders, temporary } from '../aot/bundles.ts';
import { sinter } from '../support/cli.ts';

const blend = path.resolve(import.meta.dirname, 'blend.ts');
const squeezenet = path.resolve(import.meta.dirname, '../../../shared/onnx/models/squeezenet');

let folder = '';
beforeAll(() => {
  folder = temporary();
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

/** Runs `sinter run` on wasm; gives what `--json` says. */
async function run(...args: string[]): Promise<RunResult> {
  const { code, out, err } = await sinter('run', ...args, '--device', 'wasm:1', '--json');
  expect([code, err]).toEqual([0, '']);
  return JSON.parse(out) as RunResult;
}

function file(name: string, content: Uint8Array | string): string {
  const place = path.join(folder, name);
  fs.writeFileSync(place, content);
  return place;
}

function floats(shape: readonly number[], data: readonly number[]): HostTensor {
  return { dtype: 'f32', shape, data: new Uint8Array(Float32Array.from(data).buffer) };
}

function valuesOf({ data }: HostTensor): number[] {
  return Array.from(new Float32Array(data.slice().buffer));
}

const shape = [1, 3, 2, 4];
const ramp = floats(
  shape,
  Array.from({ length: 24 }, (_, i) => i / 8),
);
const doubled = valuesOf(ramp).map((value) => 2 * value + 0.5);

describe('a module', () => {
  test('runs on the inputs that it exports, and sums up what comes out', async () => {
    const { outputs, model } = await run(blend);
    expect(model).toBe('blend.ts: fn');
    expect(outputs).toEqual([
      {
        name: 'blended',
        dtype: 'f32',
        shape,
        min: 0.5,
        max: 0.5,
        mean: 0.5,
        nan: 0,
        first: [0.5, 0.5, 0.5, 0.5, 0.5],
      },
      { name: 'next', dtype: 'i32', shape: [3], min: 6, max: 8, mean: 7, nan: 0, first: [6, 7, 8] },
    ]);
    const shown = await sinter('run', blend, '--device', 'wasm:1', '--repeat', '3');
    expect(shown.out).toMatch(/blended {2,}f32\[1, 3, 2, 4\] .* 0\.5, .*…\nnext {2,}i32\[3\] .* 6, 7, 8/);
    expect(shown.err).toMatch(/blend\.ts: fn on wasm:1: .*loaded in .* first call .* median .* of 3 calls/);
  });

  test('takes numbers from the command line, whole ones as integers', async () => {
    const { outputs } = await run(blend, '--input', 'options.ids=1,2,-3', '--input', 'options.strength=2.5');
    expect(outputs[0]?.first[0]).toBe(2.5);
    expect(outputs[1]?.first).toEqual([2, 3, -2]);
  });

  test('is filled with numbers that a seed decides', async () => {
    const [a, b, c] = [
      await run(blend, '--random', '1'),
      await run(blend, '--random', '1'),
      await run(blend, '--random', '2'),
    ];
    expect(a.outputs).toEqual(b.outputs);
    expect(a.outputs[0]?.first).not.toEqual(c.outputs[0]?.first);
  });
});

describe('files of tensors', () => {
  const ids: HostTensor = {
    dtype: 'i64',
    shape: [3],
    data: new Uint8Array(BigInt64Array.of(1n, 2n, 3n).buffer),
  };

  test.each([
    ['a.npy', '', () => writeNpy(ramp)],
    [
      'a.npz',
      '#image',
      () =>
        writeNpz([
          ['image', ramp],
          ['ids', ids],
        ]),
    ],
    [
      'a.safetensors',
      '#image',
      () =>
        writeSafetensors([
          ['image', ramp],
          ['ids', ids],
        ]),
    ],
    ['a.pb', '', () => writeTensorProto({ name: 'image', ...ramp })],
  ] as const)('%s is read', async (name, member, content) => {
    const place = file(name, content());
    const out = path.join(folder, 'read.npz');
    const { written } = await run(blend, '--input', `image=${place}${member}`, '--output', out);
    expect(written).toEqual([out]);
    const tensors = await readNpz(fs.readFileSync(out));
    expect([...tensors.keys()]).toEqual(['blended', 'next']);
    expect(valuesOf(tensors.get('blended')!)).toEqual(doubled);
  });

  test.each([
    ['b.npy', (bytes: Uint8Array) => readNpy(bytes)],
    ['b.npz', async (bytes: Uint8Array) => (await readNpz(bytes)).get('blended')!],
    ['b.safetensors', (bytes: Uint8Array) => readSafetensors(bytes).tensors.get('blended')!],
    ['b.pb', (bytes: Uint8Array) => readTensorProto(bytes)],
  ] as const)('%s is written', async (name, read) => {
    const place = path.join(folder, name);
    await run(blend, '--input', `image=${file('in.npy', writeNpy(ramp))}`, '--output', `blended=${place}`);
    const found = await read(fs.readFileSync(place));
    expect([found.dtype, found.shape, valuesOf(found)]).toEqual(['f32', shape, doubled]);
  });

  test('named twice, one file holds both outputs', async () => {
    const place = path.join(folder, 'both.safetensors');
    const { written } = await run(blend, '--output', `next=${place}`, '--output', `blended=${place}`);
    expect(written).toEqual([place]);
    expect([...readSafetensors(fs.readFileSync(place)).tensors.keys()].sort()).toEqual(['blended', 'next']);
  });

  test('of NumPy’s own dtypes go into narrower ones where every integer fits', async () => {
    const wide: HostTensor = {
      dtype: 'f64',
      shape,
      data: new Uint8Array(Float64Array.from(valuesOf(ramp)).buffer),
    };
    const { outputs } = await run(
      blend,
      '--input',
      `image=${file('wide.npy', writeNpy(wide))}`,
      '--input',
      `options.ids=${file('ids.npy', writeNpy(ids))}`,
    );
    expect(outputs[0]?.max).toBe(doubled.at(-1));
    expect(outputs[1]?.first).toEqual([2, 3, 4]);
    const huge = { ...ids, data: new Uint8Array(BigInt64Array.of(1n, 2n ** 40n, 3n).buffer) };
    const { code, err } = await sinter(
      'run',
      blend,
      '--device',
      'wasm:1',
      '--input',
      `options.ids=${file('huge.npy', writeNpy(huge))}`,
    );
    expect([code, err]).toEqual([1, expect.stringContaining('is i32, got i64: 1099511627776 does not fit')]);
  });
});

describe('images', () => {
  const pixels = Uint8Array.from({ length: 24 }, (_, i) => 10 * i);

  test('PNG: channels first, from 0 to 1, normalised', async () => {
    const place = file('a.png', encodePng({ width: 4, height: 2, channels: 3, data: pixels }));
    const out = path.join(folder, 'image.npy');
    await run(
      blend,
      '--input',
      `image=${place}`,
      '--mean',
      '0.5,0.25,0',
      '--std',
      '1,0.5,2',
      '--output',
      `blended=${out}`,
    );
    const [mean, std] = [
      [0.5, 0.25, 0],
      [1, 0.5, 2],
    ];
    valuesOf(readNpy(fs.readFileSync(out))).forEach((value, i) => {
      const [channel, pixel] = [Math.floor(i / 8), i % 8];
      const sample = (pixels[3 * pixel + channel]! / 255 - mean[channel]!) / std[channel]!;
      expect(value).toBeCloseTo(2 * sample + 0.5, 5);
    });
  });

  test('PNG: channels last, as integers, grey where there is one channel', async () => {
    const source = 'export const fn = (x, grey) => ({ x: x.add(1), grey: grey.add(0) });';
    const sinterUrl = JSON.stringify(path.resolve(import.meta.dirname, '../../src/index.ts'));
    const module = file(
      'bytes.mts',
      `import { zeros } from ${sinterUrl};\n${source}\nexport const inputs = [zeros([1, 2, 4, 3], { dtype: 'i32' }), zeros([2, 4])];`,
    );
    const place = file('c.png', encodePng({ width: 4, height: 2, channels: 3, data: pixels }));
    const out = path.join(folder, 'bytes.npz');
    await run(module, '--input', `x=${place}`, '--input', `grey=${place}`, '--output', out);
    const tensors = await readNpz(fs.readFileSync(out));
    const whole = Array.from(new Int32Array(tensors.get('x')!.data.slice().buffer));
    expect(whole).toEqual(Array.from(pixels, (value) => value + 1));
    const luma = 0.299 * pixels[3]! + 0.587 * pixels[4]! + 0.114 * pixels[5]!;
    expect(valuesOf(tensors.get('grey')!)[1]).toBeCloseTo(luma / 255, 5);
  });

  test('JPEG: near what was packed', async () => {
    const rgba = Uint8Array.from({ length: 32 }, (_, i) => (i % 4 === 3 ? 255 : 102));
    const place = file('a.jpg', encodeJpeg({ width: 4, height: 2, data: rgba }, 95).data);
    const { outputs } = await run(blend, '--input', `image=${place}`);
    expect(outputs[0]?.mean).toBeCloseTo(2 * 0.4 + 0.5, 1);
  });

  test('that are none are refused by name', async () => {
    for (const name of ['no.png', 'no.jpg']) {
      const place = file(name, pixels);
      const { code, err } = await sinter('run', blend, '--input', `image=${place}`, '--device', 'wasm:1');
      expect([code, err]).toEqual([1, expect.stringMatching(/no\.(?:png|jpg) is neither PNG nor JPEG/)]);
    }
  });

  test('of another size are refused with both sizes', async () => {
    const place = file('b.png', encodePng({ width: 2, height: 4, channels: 3, data: pixels }));
    const { code, err } = await sinter('run', blend, '--input', `image=${place}`, '--device', 'wasm:1');
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('has 2 × 4 pixels (width × height), the input image takes 4 × 2'),
    ]);
  });
});

describe('what is expected', () => {
  const expected = floats(shape, doubled);

  test('is compared within a tolerance', async () => {
    const [input, right] = [file('x.npy', writeNpy(ramp)), file('y.npy', writeNpy(expected))];
    const { comparisons } = await run(blend, '--input', `image=${input}`, '--expect', `blended=${right}`);
    expect(comparisons).toMatchObject([{ name: 'blended', ok: true, difference: 0, wrong: 0, count: 24 }]);
    const off = floats(
      shape,
      doubled.map((value, i) => (i === 13 ? value + 0.5 : value)),
    );
    const wrong = await sinter(
      'run',
      blend,
      '--device',
      'wasm:1',
      '--input',
      `image=${input}`,
      '--expect',
      `blended=${file('off.npy', writeNpy(off))}`,
    );
    expect(wrong.code).toBe(1);
    expect(wrong.out).toContain('wrong: 1 of 24 elements are off by more than 0.001');
    expect(wrong.out).toContain('max |difference| 0.5 at [0, 1, 1, 1]: 3.75, expected 4.25');
    expect(wrong.err).toContain('sinter: run: not as expected: blended');
  });

  test('must have the shape', async () => {
    const flat = file('flat.npy', writeNpy({ ...expected, shape: [24] }));
    const { code, out } = await sinter('run', blend, '--device', 'wasm:1', '--expect', `blended=${flat}`);
    expect([code, out]).toEqual([1, expect.stringContaining('the shape [1, 3, 2, 4], expected [24]')]);
  });
});

describe('profiles', () => {
  test('time every kernel, as a table and as a trace', async () => {
    const trace = path.join(folder, 'trace.json');
    const { profile } = await run(blend, '--profile', '--trace', trace);
    expect(profile).toMatchObject({ measured: true, calls: 5 });
    expect(profile!.kernels.length).toBeGreaterThan(0);
    expect(profile!.kernels.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 6);
    const events = JSON.parse(fs.readFileSync(trace, 'utf8')) as { ph: string; dur?: number }[];
    expect(events.filter(({ ph, dur }) => ph === 'X' && dur! >= 0)).toHaveLength(profile!.kernels.length);
    const { out } = await sinter('run', blend, '--profile', '--device', 'wasm:1');
    expect(out).toMatch(/kernel .* µs .* share[^]*all \d+[^]*medians of 5 calls/);
  });
});

describe('a model and its bundle', () => {
  test('functions run from what `sinter build` wrote', async () => {
    const bundle = path.join(folder, 'blend');
    expect((await sinter('build', blend, '--out', bundle, '--target', 'wasm')).code).toBe(0);
    const input = ['--input', `image=${file('ramp.npy', writeNpy(ramp))}`];
    const out = path.join(folder, 'built.npy');
    await run(
      bundle,
      ...input,
      '--input',
      'options.ids=1,2,3',
      '--input',
      'options.strength=0.5',
      '--output',
      `blended=${out}`,
    );
    expect(valuesOf(readNpy(fs.readFileSync(out)))).toEqual(doubled);
    const { code, err } = await sinter('run', bundle, ...input, '--device', 'wasm');
    expect([code, err]).toEqual([
      2,
      expect.stringContaining(
        'the input options.ids of i32[3] is not given\n  try: --input options.ids=FILE',
      ),
    ]);
    const other = await sinter('run', bundle, '--export', 'other');
    expect([other.code, other.err]).toEqual([2, expect.stringContaining("has no entry 'other': fn")]);
    fs.mkdirSync(path.join(folder, 'half'));
    const half = file('half/program.json', '{"version":0}');
    file('half/index.js', '');
    const strange = await sinter('run', path.dirname(half));
    expect([strange.code, strange.err]).toEqual([
      1,
      expect.stringContaining(`${half} is not a bundle that this version of sinter writes`),
    ]);
    const modelled = await sinter('run', bundle, '--random', '1', '--profile', '--device', 'wasm');
    expect([modelled.code, modelled.out]).toEqual([
      0,
      expect.stringContaining('shares are modelled from flops'),
    ]);
  });

  test('squeezenet gives what its files expect, and so does what was built from it', async (it) => {
    if (!fs.existsSync(squeezenet)) it.skip('there are no models beside the repository');
    const [model, input, right] = ['model.onnx', 'input_0.pb', 'output_0.pb'].map((name) =>
      path.join(squeezenet, name),
    ) as [string, string, string];
    const { comparisons, profile } = await run(model, '--input', input, '--expect', right, '--profile');
    expect(comparisons).toMatchObject([{ ok: true, count: 1000 }]);
    expect(profile!.kernels.length).toBeGreaterThan(20);
    const bundle = path.join(folder, 'squeezenet');
    expect((await sinter('build', model, '--out', bundle, '--target', 'wasm')).code).toBe(0);
    const built = await run(bundle, '--input', input, '--expect', right, '--repeat', '2');
    expect(built.comparisons).toMatchObject([{ ok: true, count: 1000 }]);
    expect(built.times).toMatchObject({ calls: 2 });
  });
});

test.each([
  [[], 'run: no MODEL given'],
  [['nothing.onnx'], 'there is no file or folder nothing.onnx'],
  [[import.meta.dirname], 'is no bundle: there is no index.js'],
  [
    [blend, '--input', 'picture=1'],
    "there is no input 'picture': expected NAME=FILE with image, options.ids",
  ],
  [[blend, '--input', 'image=nothing.npy'], 'there is no file nothing.npy'],
  [
    [blend, '--input', 'image=a.tiff'],
    'a.tiff is neither a file of a tensor (.npy, .npz, .safetensors or .pb)',
  ],
  [[blend, '--input', 'image=nothing.png'], 'there is no file nothing.png'],
  [[blend, '--input', 'image=1,2'], 'the input image of f32[1, 3, 2, 4] cannot be f32[2]'],
  [[blend, '--output', 'out.txt'], 'out.txt is of no known kind'],
  [[blend, '--output', 'no/where/out.npy'], '--output: there is no folder no/where for out.npy'],
  [[blend, '--trace', 'no/where/trace.json'], '--trace: there is no folder no/where for trace.json'],
  [[blend, '--output', 'out.npy'], 'out.npy takes one tensor, and there are 2: blended, next'],
  [[blend, '--expect', 'other=out.npy'], "--expect: there is no output 'other'"],
  [[blend, '--dim', 'batch=2'], "no input has a size called 'batch': all sizes are fixed"],
  [[blend, '--rtol', 'small'], "--rtol: expects a number of at least 0, got 'small'"],
  [[blend, '--mean', '1,x'], "--mean: expects numbers, one by channel or one for all, got 'x'"],
])('%j is refused with what to do', async (args, words) => {
  const { code, err } = await sinter('run', ...args, '--device', 'wasm:1');
  expect([code, err]).toEqual([2, expect.stringContaining(words)]);
});
