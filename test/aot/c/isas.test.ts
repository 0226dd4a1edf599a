// Models in C with kernels for several instruction sets: each computes what Sinter computes, on the same state, and the processor
// decides which of them runs.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { compile, manualSeed, setDevice } from '../../../src/index.ts';
import { BatchNorm2d, Conv2d, Dropout, Flatten, Linear, ReLU, Sequential } from '../../../src/nn/index.ts';
import type { CIsa } from '../../../src/aot/c/isas.ts';
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
import { expectClose, labels, learner, main, numbers, point, train } from './learner.ts';

beforeAll(() => {
  setDevice('wasm');
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

/** What the processor is said to have, by the kernel of Linux. */
function processorFlags(): ReadonlySet<string> {
  const text = process.arch === 'x64' ? fs.readFileSync('/proc/cpuinfo', 'utf8') : '';
  return new Set(/^flags\s*:(.*)$/m.exec(text)?.[1]?.trim().split(' '));
}

/** The best of these sets that the processor has. */
function expectedIsa(built: readonly CIsa[]): string {
  const flags = processorFlags();
  const needed: Record<CIsa, readonly string[]> = {
    avx512: ['avx512f', 'avx512bw', 'avx512cd', 'avx512dq', 'avx512vl'],
    avx2: ['avx2', 'fma', 'bmi1', 'bmi2'],
  };
  return built.find((isa) => needed[isa].every((flag) => flags.has(flag))) ?? 'portable';
}

describe.skipIf(missing !== undefined)(`C${missing === undefined ? '' : `: ${reason}`}`, () => {
  test('a network learns by every instruction set, and one goes on from the state of another', async () => {
    manualSeed(4);
    const layers = [new Conv2d(3, 16, 3, { padding: 1 }), new BatchNorm2d(16), new ReLU(), new Flatten()];
    const state = learner(new Sequential(...layers, new Dropout(0.25), new Linear(16 * 36, 20)));
    const images = sn.randn([8, 3, 6, 6]);
    const given = sn.tensor(labels, { dtype: 'i32' });
    const { files } = await builtC([point('train', train, [images, given, 0.01])], {
      state,
      isas: ['avx2', 'avx512'],
    });
    manualSeed(7);
    const step = compile(train);
    const losses: number[] = [];
    let now = state;
    for (let i = 0; i < 12; i++) {
      const { state: next, loss } = step(now, images, given, 0.02);
      now = next;
      losses.push(Number(await loss.item()));
    }
    const program = main(
      [
        arrayOf('float', 'x', await numbers(images)),
        arrayOf('int32_t', 'labels', labels),
        'static float loss;\n',
      ],
      [
        'FILE *file = fopen("state.bin", "rb");',
        'if (file == NULL) expect_ok(model_seed(&context, 7));',
        'else if (fread(model_state(&context), 1, MODEL_STATE_BYTES, file) != MODEL_STATE_BYTES) return 3;',
        'if (file != NULL) fclose(file);',
        'printf("isa_%s\\n", model_isa());',
        'for (int i = 0; i < 4; i++) {',
        '  expect_ok(model_train(&context, x, labels, 0.02f, &loss));',
        '  show("loss", &loss, 1);',
        '}',
        'file = fopen("state.bin", "wb");',
        'if (file == NULL || fwrite(model_state(&context), 1, MODEL_STATE_BYTES, file) != MODEL_STATE_BYTES) return 4;',
        'fclose(file);',
      ],
    );
    const folder = madeC(files, 'libmodel.a');
    const all: readonly (readonly CIsa[])[] = [['avx512', 'avx2'], ['avx2'], []];
    // Other processors than those have the portable kernels alone.
    const sets = process.arch === 'x64' ? all : [[]];
    for (const [k, built] of sets.entries()) {
      const make = ['-s', '-C', folder, 'CFLAGS=-O0 -Werror', `ISAS=${built.join(' ')}`];
      if (k > 0) for (const target of ['clean', 'libmodel.a']) expectRun('make', [...make, target]);
      const found = numbersOf(ranC(folder, program));
      expect([...found.keys()]).toContain(`isa_${expectedIsa(built)}`);
      expectClose(found.get('loss')!.flat(), losses.slice(4 * k, 4 * k + 4), 4);
    }
    expect(losses[11]).toBeLessThan(losses[0]!);
  });

  test('functions whose names end in that of a set stay apart from those for the set', async () => {
    const x = sn.randn([4]);
    const twice = (y: sn.Tensor): sn.Tensor => y.mul(2);
    const thrice = (y: sn.Tensor): sn.Tensor => y.mul(3);
    const points = [point('scaled', twice, [x]), point('scaled_avx2', thrice, [x])];
    const { files } = await builtC(points, { isas: ['avx512', 'avx2'] });
    const program = main(
      ['static const float x[4] = { 1, 2, 3, 4 };\nstatic float y[4];\n'],
      [
        'expect_ok(model_scaled(&context, x, y));',
        'show("scaled", y, 4);',
        'expect_ok(model_scaled_avx2(&context, x, y));',
        'show("other", y, 4);',
      ],
    );
    const found = numbersOf(ranC(madeC(files, 'libmodel.a'), program));
    expect([found.get('scaled'), found.get('other')]).toEqual([[[2, 4, 6, 8]], [[3, 6, 9, 12]]]);
  });

  test('whose kernels have more lanes, and that have no others where they were not asked for', async () => {
    const points = [point('square', (x: sn.Tensor) => x.matmul(x), [sn.randn([64, 64])])];
    const { files, model } = await builtC(points, { isas: ['avx512', 'avx2'] });
    const widest = (name: string): number =>
      Math.max(...[...String(files.get(name)).matchAll(/f32x(\d+)/g)].map((found) => Number(found[1])));
    expect(['model.c', 'model_avx2.c', 'model_avx512.c'].map(widest)).toEqual([4, 8, 16]);
    expect(model.variants.map(({ isa }) => isa)).toEqual(['avx512', 'avx2']);
    const { files: plain } = await builtC(points);
    expect([...plain.keys()].filter((name) => name.endsWith('.c'))).toEqual(['model.c', 'main.c']);
    for (const text of plain.values()) expect(String(text)).not.toMatch(/avx|isa/i);
    // The portable file alone is a model, too.
    const folder = madeC(files, 'libmodel.a');
    expectRun('cc', ['-std=c11', '-c', '-o', path.join(folder, 'alone.o'), path.join(folder, 'model.c')]);
  });
});
