// Values of ONNX models that follow from open sizes alone, such as masks and positions: what a model gives that is built for
// ranges is what ONNX Runtime gives at each size.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bindings } from '../../src/aot/c/bundle.ts';
import type { OpenPoint } from '../../src/aot/sizes.ts';
import type { Inputs, Outputs } from '../../src/bundle-runtime/runtime.ts';
import { onnxProgram } from '../../src/cli/program/onnx-file.ts';
import * as sn from '../../src/index.ts';
import { dim, manualSeed, setDevice, type Tensor } from '../../src/index.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { Embedding, LayerNorm, Linear } from '../../src/nn/index.ts';
import { exportOnnx } from '../../src/onnx/index.ts';
import { sinter } from '../support/cli.ts';
import { attribute, modelOf, node, port } from '../support/onnx/file.ts';
import { mostPositions, positions, typesOfPositions } from '../support/onnx/positions.ts';
import { runInPeer } from '../support/onnx/runtime.ts';
import { removeFolders, temporary } from './bundles.ts';
import { builtC, madeC, missing, numbersOf, ranC, reason } from './c/folders.ts';
import { main } from './c/learner.ts';

beforeAll(() => {
  setDevice('wasm');
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

const mostBatch = 4;

/** Ends of the ranges, sizes that are equal to one another or to those of x, and some between. */
const sizes = [
  [mostBatch, mostPositions],
  [1, 1],
  [2, 7],
  [1, mostPositions],
  [mostBatch, 1],
  [3, 3],
  [2, 8],
  [3, 16],
] as const;

const dims = ['--dim', `batch=1..${mostBatch}`, '--dim', `length=1..${mostPositions}`];

function file(bytes: Uint8Array): string {
  const at = path.join(temporary(), 'model.onnx');
  fs.writeFileSync(at, bytes);
  return at;
}

/** A model in a file as the function `run`, with the ranges of its sizes. */
async function opened(bytes: Uint8Array): Promise<OpenPoint> {
  const { at } = await onnxProgram(file(bytes), ['batch', 'length']);
  const ranges = new Map([
    ['batch', { min: 1, max: mostBatch, multipleOf: 1 }],
    ['length', { min: 1, max: mostPositions, multipleOf: 1 }],
  ]);
  return { name: 'run', sizes: [{}], ranges, at };
}

/** Arguments, which programs in C make too. */
function given(batch: number, length: number): { x: HostArray; mask: HostArray; ids: HostArray } {
  const count = batch * length;
  const x = Float32Array.from({ length: count * 8 }, (_, i) => (((i * 7) % 11) - 5) / 4);
  const mask = Uint8Array.from({ length: count }, (_, i) => Number(i % length === 0 || (i + batch) % 5 > 0));
  const ids = BigInt64Array.from({ length: count }, (_, i) => BigInt((7 * i + length) % 20));
  return {
    x: { dtype: 'f32', shape: [batch, length, 8], data: x },
    mask: { dtype: 'bool', shape: [batch, length], data: mask },
    ids: { dtype: 'i64', shape: [batch, length], data: ids },
  };
}

const filling = `  const int count = batch * length;
  for (int i = 0; i < count * 8; i++) x[i] = (float)(i * 7 % 11 - 5) / 4.0f;
  for (int i = 0; i < count; i++) mask[i] = i % length == 0 || (i + batch) % 5 > 0;
  for (int i = 0; i < count; i++) ids[i] = (7 * i + length) % 20;
  memset(context.arena, 255, sizeof context.arena);
`;

/** Prints numbers, infinite ones as the largest that f32 has. */
const printing = `static float x[768];
static uint8_t mask[96];
static int64_t ids[96];
static void print(const char *name, int count, const void *data, int bytes)
{
  printf("%s", name);
  for (int i = 0; i < count; i++) {
    double value = bytes == 1 ? ((const uint8_t *)data)[i] : bytes == 8 ? (double)((const int64_t *)data)[i] : ((const float *)data)[i];
    printf(" %.9g", value < -3.4e38 ? -3.4e38 : value);
  }
  printf("\\n");
}
`;

function numbersIn(data: ArrayLike<number | bigint>): number[] {
  return Array.from(data, (value) => Math.max(Number(value), -3.4e38));
}

function expectNear(found: readonly number[] | undefined, expected: readonly number[], what: string): void {
  expect(found, what).toHaveLength(expected.length);
  const odd = expected.findIndex(
    (value, i) => !(Math.abs(found![i]! - value) <= 1e-4 * Math.max(1, Math.abs(value))),
  );
  expect(odd < 0 ? undefined : [odd, found![odd], expected[odd]], what).toBeUndefined();
}

/** A decoder of two heads, with a triangle and positions, as an exported model. */
async function decoder(): Promise<Uint8Array> {
  manualSeed(5);
  const width = 16;
  const table = new Embedding(20, width);
  const places = new Embedding(mostPositions, width);
  const [qkv, out, first, last] = [
    new Linear(width, 3 * width),
    new Linear(width, width),
    new LayerNorm([width]),
    new LayerNorm([width]),
  ];
  const decode = (ids: Tensor, mask: Tensor): Record<string, Tensor> => {
    const [batch, length] = ids.shape as readonly [number, number];
    const x = table.forward(ids).add(places.forward(sn.arange(length)));
    const [q, k, v] = qkv
      .forward(first.forward(x))
      .reshape([batch, length, 3, 2, width / 2])
      .permute([2, 0, 3, 1, 4])
      .unbind(0) as [Tensor, Tensor, Tensor];
    const causal = sn.ones([length, length], { dtype: 'bool' }).tril();
    const allowed = sn.logicalAnd(causal, mask.unsqueeze(1).unsqueeze(1));
    const mixed = sn.scaledDotProductAttention(q, k, v, { mask: allowed });
    const y = x.add(out.forward(mixed.transpose(1, 2).reshape([batch, length, width])));
    const logits = last.forward(y).matmul(table.weight.transpose(0, 1));
    return { logits, seen: allowed.select(2, -1).any(1) };
  };
  const [batch, length] = [dim('batch', { max: mostBatch }), dim('length', { max: mostPositions })];
  const examples = [sn.zeros([2, 5], { dtype: 'i64' }), sn.ones([2, 5], { dtype: 'bool' })];
  const { bytes } = await exportOnnx(decode, examples, {
    dims: [
      [batch, length],
      [batch, length],
    ],
  });
  return bytes;
}

const made = {
  'masks, positions and tables': {
    bytes: () => Promise.resolve(positions()),
    inputs: ['x', 'mask'],
    types: typesOfPositions,
  },
  'a decoder that was exported': {
    bytes: decoder,
    inputs: ['ids', 'mask'],
    types: { logits: 1, seen: 9 } as Readonly<Record<string, number>>,
  },
} as const;

describe.each(Object.entries(made))('%s', (_, { bytes, inputs, types }) => {
  let model: Uint8Array;
  let expected: Readonly<Record<string, HostArray>>[];
  beforeAll(async () => {
    model = await bytes();
    expected = [];
    for (const [batch, length] of sizes) {
      const all = given(batch, length);
      expected.push(await runInPeer(model, Object.fromEntries(inputs.map((name) => [name, all[name]]))));
    }
  });

  test.skipIf(missing !== undefined)(
    `in C, on one thread and on two${missing === undefined ? '' : `: ${reason}`}`,
    async () => {
      const { files, notes } = await builtC([await opened(model)], { threads: 2, bindings });
      expect(notes).toEqual([]);
      const folder = madeC(files);
      const names = Object.keys(types);
      const word = (name: string): string => ({ 1: 'float', 7: 'int64_t', 9: 'uint8_t' })[types[name]!]!;
      const most = mostBatch * mostPositions ** 2 * 2;
      const arrays = names.map((name) => `static ${word(name)} out_${name}[${most}];\n`).join('');
      const shown = names.map((name) => {
        const counts = sizes.map((_size, i) => expected[i]![name]!.data.length);
        const list = `(const int[]){ ${counts.join(', ')} }[at]`;
        return `  print("${name}", ${list}, out_${name}, sizeof(${word(name)}));\n`;
      });
      const called = `model_run(&context, batch, length, ${inputs.join(', ')}, ${names.map((name) => `out_${name}`).join(', ')})`;
      const calls = sizes.map(([batch, length], i) => `call(${batch}, ${length}, ${i});`);
      const program = main(
        [
          printing,
          arrays,
          `static unsigned char room[MODEL_THREADS_BYTES(2)] __attribute__((aligned(64)));\n`,
          `static void call(int batch, int length, int at)\n{\n${filling}  expect_ok(${called});\n${shown.join('')}}\n`,
        ],
        [
          ...calls,
          'expect_ok(model_start(&context, 2, room, sizeof room));',
          ...calls,
          'expect_ok(model_stop(&context));',
        ],
      );
      const found = numbersOf(ranC(folder, program, 'model', ['-pthread']));
      for (const [i, size] of sizes.entries())
        for (const name of names) {
          const numbers = numbersIn(expected[i]![name]!.data as ArrayLike<number | bigint>);
          for (const turn of [i, i + sizes.length])
            expectNear(found.get(name)?.[turn], numbers, `${name} at ${size.join(', ')}`);
        }
    },
  );

  test('in a bundle on wasm', async () => {
    const out = temporary();
    const built = await sinter('build', file(model), '--out', out, '--target', 'wasm', ...dims);
    expect([built.code, built.err]).toEqual([0, '']);
    const { load } = (await import(path.join(out, 'index.js'))) as {
      load: (options: object) => Promise<{ run(inputs: Inputs): Promise<Outputs>; dispose(): void }>;
    };
    const bundle = await load({ target: 'wasm', threads: 1 });
    for (const [i, [batch, length]] of sizes.entries()) {
      const all = given(batch, length);
      const found = await bundle.run(
        Object.fromEntries(
          inputs.map((name) => [name, { data: all[name].data, shape: all[name].shape }]),
        ) as Inputs,
      );
      for (const [name, { data }] of Object.entries(expected[i]!))
        expectNear(
          numbersIn(found[name] as ArrayLike<number | bigint>),
          numbersIn(data as ArrayLike<number | bigint>),
          `${name} at ${batch}, ${length}`,
        );
    }
    bundle.dispose();
  });
});

test('elements that the host computes by no rule are refused, with the node and what to do', async () => {
  const squares = modelOf({
    inputs: [port('x', 1, ['length'])],
    outputs: [port('y', 7, [2, 'found'])],
    nodes: [
      node('Shape', ['x'], ['size']),
      node('Concat', ['size', 'size'], ['sizes'], [attribute('axis', 0)]),
      node('ConstantOfShape', ['sizes'], ['zeros']),
      node('Cos', ['zeros'], ['ones']),
      node('NonZero', ['ones'], ['y'], [], '', 'places'),
    ],
  });
  const at = file(squares);
  const { code, err } = await sinter('build', at, '--out', temporary(), '--dim', 'length=2..60');
  expect(code).toBe(1);
  expect(err).toContain("NonZero 'places'");
  expect(err).toContain('its elements follow from open sizes');
  expect(err).toContain('try: a size instead of a range');
});

test('sizes that follow from elements are refused, with the node and what to do', async () => {
  const found = modelOf({
    inputs: [port('x', 1, ['length'])],
    outputs: [port('y', 7, [1, 'found'])],
    nodes: [node('NonZero', ['x'], ['y'], [], '', 'places')],
  });
  const { code, err } = await sinter('build', file(found), '--out', temporary(), '--dim', 'length=2..60');
  expect(code).toBe(1);
  expect(err).toContain("NonZero 'places': needs the elements of 'x' while it is recorded");
  expect(err).toContain('try: a model in which no shape follows from elements');
});
