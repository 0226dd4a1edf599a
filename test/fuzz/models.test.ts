// ONNX models and bundles that were changed anywhere, and what lies beside them.

import * as path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import type { LoadOptions } from '../../src/bundle-runtime/runtime.ts';
import { ones, tensor, type Tensor } from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { built, removeFolders, written } from '../aot/bundles.ts';
import { attribute, float, int64, modelOf, node, port } from '../support/onnx/file.ts';
import { home, keepsTo, served } from './law.ts';
import { mutated } from './mutate.ts';

const limits = { maxBytes: 2 ** 22, maxNodes: 3000 };

const model = modelOf({
  inputs: [port('x', 1, ['batch', 4])],
  outputs: [port('y', 1, ['batch', 2])],
  initializers: [
    float(
      'w',
      [4, 3],
      Array.from({ length: 12 }, (_, i) => i / 4 - 1),
    ),
    int64('two', [1], [2n]),
    int64('zero', [1], [0n]),
    {
      name: 'bias',
      dataType: 1,
      dims: [3n],
      dataLocation: 1,
      externalData: [
        { key: 'location', value: 'weights.bin' },
        { key: 'offset', value: '0' },
        { key: 'length', value: '12' },
      ],
    },
  ],
  nodes: [
    node('MatMul', ['x', 'w'], ['m']),
    node('Add', ['m', 'bias'], ['b']),
    node('Slice', ['b', 'zero', 'two', 'one'], ['y']),
    node('Constant', [], ['one'], [attribute('value_ints', [0])]),
  ],
});

test('ONNX', async () => {
  served.set('weights.bin', new Uint8Array(12));
  await keepsTo(
    {
      whole: [model],
      make: (draw) => mutated(draw, model),
      read: async (bytes) => {
        served.set('model.onnx', bytes);
        const loaded = await loadOnnx(`${home}model.onnx`, limits);
        const inputs = loaded.inputs.map(({ name }) => [name, new Float32Array(8)] as const);
        const found = await loaded.run(Object.fromEntries(inputs));
        for (const value of Object.values(found)) if ('data' in value) await value.data();
        return found;
      },
      sizeOf: ({ length }) => length,
    },
    6000,
    100,
  );
});

interface Loaded {
  readonly [entry: string]: unknown;
  dispose(): void;
}

let files: ReadonlyMap<string, Uint8Array>;
let load: (options: LoadOptions) => Promise<Loaded>;
beforeAll(async () => {
  const w = tensor(Array.from({ length: 16 }, (_, i) => i / 4)).reshape([4, 4]);
  const fn = (x: Tensor): Tensor => x.matmul(w).add(1);
  const bundle = await built([{ name: 'run', fn: fn as never, inputs: [ones([4, 4])] }], {
    targets: ['wasm'],
  });
  const text = new TextEncoder();
  files = new Map(
    [...bundle.files].map(([name, content]) => [
      name,
      typeof content === 'string' ? text.encode(content) : content,
    ]),
  );
  ({ load } = (await import(path.join(written(bundle), 'index.js'))) as { load: typeof load });
});
afterAll(removeFolders);

// Few: weights that end early are asked for again, some seconds long. test/aot/damaged.test.ts changes every value of program.json.
test('bundles', async () => {
  const data = [...files.keys()].filter((name) => !/^(?:index|files|package|README)\b/.test(name));
  await keepsTo(
    {
      whole: [{ name: 'program.json', bytes: files.get('program.json')! }],
      make: (draw) => {
        const name = draw(3) > 0 ? 'program.json' : data[draw(data.length)]!;
        return { name, bytes: mutated(draw, files.get(name)!) };
      },
      read: async ({ name, bytes }) => {
        for (const [each, content] of files) served.set(each, content);
        served.set(name, bytes);
        const loaded = await load({ target: 'wasm', threads: 1, base: home });
        try {
          const run = loaded['run'] as ((inputs: object) => Promise<unknown>) | undefined;
          await run?.({ x: new Float32Array(16).fill(1) });
        } finally {
          loaded.dispose();
        }
      },
      sizeOf: ({ bytes }) => bytes.length,
      // Its classes are those of the bundle's own code.
      isOwn: (error) => {
        const { name, code } = error as { name?: unknown; code?: unknown };
        return /^(?:Sinter|Parse|Device|Tensor)Error$/.test(String(name)) && String(code).startsWith('E_');
      },
    },
    120,
    40,
  );
});
