// Models as C compute what they compute in Sinter: forward passes, train steps whose state lives in a context, and loops.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { compile, manualSeed, setDevice, type Tensor } from '../../../src/index.ts';
import {
  BatchNorm2d,
  Conv2d,
  Dropout,
  Flatten,
  Linear,
  MaxPool2d,
  ReLU,
  Sequential,
} from '../../../src/nn/index.ts';
import {
  arrayOf,
  builtC,
  expectRun,
  madeC,
  missing,
  numbersOf,
  ranC,
  reason,
  removeFolders,
} from './folders.ts';
import { expectClose, labels, learner, main, numbers, point, predict, train } from './learner.ts';

beforeAll(() => {
  setDevice('wasm');
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

describe.skipIf(missing !== undefined)(`C${missing === undefined ? '' : `: ${reason}`}`, () => {
  test('a perceptron predicts, from C and from C++', async () => {
    manualSeed(3);
    const state = learner(new Sequential(new Linear(20, 16), new ReLU(), new Linear(16, 4)));
    const images = sn.randn([8, 20]);
    const { files } = await builtC([point('predict', predict, [images])], { state });
    const folder = madeC(files, 'all', '-O2');
    const { logits, best } = predict(state, images);
    const values = await numbers(images);
    const program = main(
      [arrayOf('float', 'x', values), 'static float logits[32];\nstatic int32_t best[8];\n'],
      [
        'expect_ok(model_predict(&context, x, logits, best));',
        'show("logits", logits, 32);',
        'for (int i = 0; i < 8; i++) printf("best %d\\n", (int)best[i]);',
      ],
    );
    const found = numbersOf(ranC(folder, program));
    expectClose(found.get('logits')?.[0], await numbers(logits));
    expect(found.get('best')).toEqual((await numbers(best)).map((value) => [value]));
    // Calls without state have weights alone, which stay in the file.
    expect(files.get('model.h')).toContain('#define MODEL_STATE_BYTES 64\n');
    fs.writeFileSync(path.join(folder, 'use.cpp'), '#include "model.h"\nint main() { return MODEL_OK; }\n');
    if (spawnSync('g++', ['--version']).status === 0)
      expectRun(
        'g++',
        ['-std=c++17', '-Wall', '-Wextra', '-Werror', '-pedantic', '-fsyntax-only', 'use.cpp'],
        folder,
      );
    // The program of the folder reads inputs from files, and prints the same.
    fs.writeFileSync(path.join(folder, 'x.bin'), new Uint8Array(Float32Array.from(values).buffer));
    const printed = numbersOf(expectRun('./demo', ['predict', 'x.bin'], folder));
    expectClose(printed.get('logits')?.[0]?.slice(0, 16), (await numbers(logits)).slice(0, 16));
    expectClose(printed.get('best')?.[0], await numbers(best));
  });

  test('fifty steps of Adam with dropout lose as they do in Sinter, and go on from a saved state', async () => {
    manualSeed(3);
    const state = learner(
      new Sequential(new Linear(20, 32), new ReLU(), new Dropout(0.25), new Linear(32, 4)),
    );
    const images = sn.randn([8, 20]);
    const given = sn.tensor(labels, { dtype: 'i32' });
    const { files } = await builtC([point('train', train, [images, given, 0.01])], { state });
    const folder = madeC(files, 'libmodel.a', '-O2');
    manualSeed(7);
    const step = compile(train);
    const losses: number[] = [];
    let now = state;
    for (let i = 0; i < 50; i++) {
      const { state: next, loss } = step(now, images, given, 0.02);
      now = next;
      losses.push(Number(await loss.item()));
    }
    const call = 'expect_ok(model_train(&context, x, labels, 0.02f, &loss)); show("loss", &loss, 1);';
    const program = main(
      [
        arrayOf('float', 'x', await numbers(images)),
        arrayOf('int32_t', 'labels', labels),
        'static float loss;\nstatic unsigned char saved[MODEL_STATE_BYTES];\n',
      ],
      [
        'expect_ok(model_seed(&context, 7));',
        `for (int i = 0; i < 50; i++) {`,
        '  if (i == 40) memcpy(saved, model_state(&context), sizeof saved);',
        `  ${call}`,
        '}',
        'begin();',
        'memcpy(model_state(&context), saved, sizeof saved);',
        `for (int i = 40; i < 50; i++) { ${call} }`,
        'float weight[640];',
        'memcpy(weight, (unsigned char *)model_state(&context) + MODEL_STATE_MODEL_LAYERS_0_WEIGHT_AT, sizeof weight);',
        'show("weight", weight, 640);',
      ],
    );
    const found = numbersOf(ranC(folder, program));
    const all = found.get('loss')!.flat();
    expectClose(all.slice(0, 50), losses, 4);
    expect(all.slice(50)).toEqual(all.slice(40, 50));
    expect(losses[49]).toBeLessThan(losses[0]! / 2);
    expectClose(found.get('weight')?.[0], await numbers((now.model.layers[0] as Linear).weight), 3);
  });

  test('a network of convolutions learns, and two contexts do not meet', async () => {
    manualSeed(4);
    const state = learner(
      new Sequential(
        new Conv2d(1, 4, 3, { padding: 1 }),
        new BatchNorm2d(4),
        new ReLU(),
        new MaxPool2d(2),
        new Flatten(),
        new Linear(64, 4),
      ),
    );
    const [one, two] = [sn.randn([8, 1, 8, 8]), sn.randn([8, 1, 8, 8])];
    const given = sn.tensor(labels, { dtype: 'i32' });
    const { files } = await builtC([point('train', train, [one, given, 0.01])], { state });
    const folder = madeC(files, 'libmodel.a', '-O2');
    const step = compile(train);
    const lossesOn = async (images: Tensor): Promise<number[]> => {
      const losses: number[] = [];
      let now = state;
      for (let i = 0; i < 4; i++) {
        const { state: next, loss } = step(now, images, given, 0.01);
        now = next;
        losses.push(Number(await loss.item()));
      }
      return losses;
    };
    const program = main(
      [
        arrayOf('float', 'one', await numbers(one)),
        arrayOf('float', 'two', await numbers(two)),
        arrayOf('int32_t', 'labels', labels),
        'static float loss;\nstatic model other;\n',
      ],
      [
        'expect_ok(model_init(&other, weights, sizeof weights));',
        'for (int i = 0; i < 4; i++) {',
        '  expect_ok(model_train(&context, one, labels, 0.01f, &loss)); show("one", &loss, 1);',
        '  expect_ok(model_train(&other, two, labels, 0.01f, &loss)); show("two", &loss, 1);',
        '}',
      ],
    );
    const found = numbersOf(ranC(folder, program));
    expectClose(found.get('one')?.flat(), await lossesOn(one), 4);
    expectClose(found.get('two')?.flat(), await lossesOn(two), 4);
  });

  test('loops run as often as data say', async () => {
    const root = (x: Tensor): { root: Tensor; sums: Tensor } => {
      const [found] = sn.whileLoop(
        ([guess]: readonly [Tensor]) => guess!.mul(guess!).sub(x).abs().gt(1e-4).any(),
        ([guess]: readonly [Tensor]) => [guess!.add(x.div(guess!)).mul(0.5)] as const,
        [sn.ones([3])] as const,
      ) as readonly [Tensor];
      const [, sums] = sn.scan(
        (carry: Tensor, row: Tensor) => [carry.add(row), carry.mul(row)] as const,
        sn.zeros([3]),
        sn.stack([x, x, x]),
      ) as readonly [Tensor, Tensor];
      return { root: found, sums };
    };
    const x = sn.tensor([4, 9, 2]);
    const { files } = await builtC([point('root', root, [x])], { name: 'loops', embed: true });
    expect(files.has('loops.bin')).toBe(false);
    const folder = madeC(files, 'all', '-O2');
    const printed = numbersOf(expectRun('./demo', ['root'], folder));
    // Of zeros, too.
    expect(printed.get('root')?.[0]).toHaveLength(3);
    fs.writeFileSync(path.join(folder, 'x.bin'), new Uint8Array(Float32Array.of(4, 9, 2).buffer));
    const found = numbersOf(expectRun('./demo', ['root', 'x.bin'], folder));
    const expected = root(x);
    expectClose(found.get('root')?.[0], await numbers(expected.root));
    expectClose(found.get('sums')?.[0], await numbers(expected.sums));
  });
});
