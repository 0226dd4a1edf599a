// Models in C whose calls are shared by threads: the same bits for any number of them, with scratch memory and state, and codes for
// what cannot be.

import { spawnSync } from 'node:child_process';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { manualSeed, setDevice, type Tensor } from '../../../src/index.ts';
import { Conv2d, Flatten, Linear, ReLU, Sequential } from '../../../src/nn/index.ts';
import {
  arrayOf,
  builtC,
  expectRun,
  madeC,
  missing,
  numbersOf,
  reason,
  removeFolders,
  strict,
} from './folders.ts';
import { expectClose, labels, learner, main, numbers, point, predict, train } from './learner.ts';
import { writeFileSync } from 'node:fs';

beforeAll(() => {
  setDevice('wasm');
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

/** What a program prints that is linked with threads. */
function ranThreads(folder: string, text: string, flags: readonly string[] = ['-O1']): string {
  const [source, program] = ['program.c', 'program'].map((name) => path.join(folder, name)) as [
    string,
    string,
  ];
  writeFileSync(source, text);
  const made = [...strict, ...flags, '-I', folder, '-o', program, source, path.join(folder, 'libmodel.a')];
  expectRun('cc', [...made, '-lm', '-pthread']);
  return expectRun(program, [], folder);
}

const hasSanitizer =
  missing === undefined &&
  spawnSync('cc', ['-fsanitize=thread', '-x', 'c', '-', '-o', '/dev/null'], {
    input: 'int main(void) { return 0; }',
  }).status === 0;

describe.skipIf(missing !== undefined)(`C with threads${missing === undefined ? '' : `: ${reason}`}`, () => {
  test('a network learns to the same bits by one thread and by four', async () => {
    manualSeed(4);
    const layers = [new Conv2d(3, 16, 3, { padding: 1 }), new ReLU(), new Flatten()];
    const state = learner(new Sequential(...layers, new Linear(16 * 1024, 20)));
    const images = sn.randn([8, 3, 32, 32]);
    const given = sn.tensor(labels, { dtype: 'i32' });
    const { files } = await builtC(
      [point('train', train, [images, given, 0.01]), point('predict', predict, [images])],
      { state, threads: 4 },
    );
    expect(files.get('model.c')).toMatch(/model__share\(ctx->pool, /);
    const program = main(
      [
        arrayOf('float', 'x', await numbers(images)),
        arrayOf('int32_t', 'labels', labels),
        'static float loss, logits[160];\nstatic int32_t best[8];\n',
        'static unsigned char room[MODEL_THREADS_BYTES(4)] __attribute__((aligned(64)));\n',
      ],
      [
        'for (int threads = 1; threads <= 4; threads++) {',
        '  begin();',
        '  expect_ok(model_start(&context, threads, room, sizeof room));',
        '  for (int i = 0; i < 3; i++) {',
        '    expect_ok(model_train(&context, x, labels, 0.02f, &loss));',
        '    show("loss", &loss, 1);',
        '  }',
        '  expect_ok(model_predict(&context, x, logits, best));',
        '  show("logits", logits, 160);',
        '  expect_ok(model_stop(&context));',
        '}',
      ],
    );
    const folder = madeC(files, 'libmodel.a');
    const found = numbersOf(ranThreads(folder, program));
    const losses = found.get('loss')!.flat();
    for (let threads = 2; threads <= 4; threads++)
      expect(losses.slice(3 * (threads - 1), 3 * threads)).toEqual(losses.slice(0, 3));
    for (const logits of found.get('logits')!) expect(logits).toEqual(found.get('logits')![0]);
    const step = sn.compile(train);
    let now = state;
    for (const loss of losses.slice(0, 3)) {
      const { state: next, loss: expected } = step(now, images, given, 0.02);
      now = next;
      expectClose([loss], [Number(await expected.item())], 4);
    }
  });

  /** Rows that are sorted in scratch memory, and a product. */
  const scores = (x: Tensor): Tensor => sn.matmul(sn.sort(x, 1)[0], x.transpose(0, 1)).softmax();

  async function built(): Promise<{ readonly folder: string; readonly x: Tensor }> {
    const x = sn.randn([256, 256]);
    const { files } = await builtC([point('scores', scores, [x])], { threads: 3 });
    return { folder: madeC(files, 'libmodel.a'), x };
  }
  const calls = (x: readonly number[], lines: readonly string[]): string =>
    main(
      [
        arrayOf('float', 'x', x),
        'static float one[65536], many[65536];\n',
        'static unsigned char room[MODEL_THREADS_BYTES(3) + 64] __attribute__((aligned(64)));\n',
      ],
      lines,
    );

  test('codes say what cannot be, and change nothing', async () => {
    const { folder, x } = await built();
    const program = calls(await numbers(x), [
      'int codes[] = {',
      '  model_start(NULL, 2, room, sizeof room) == MODEL_E_NULL, model_start(&context, 2, NULL, 0) == MODEL_E_NULL,',
      '  model_start(&context, 2, room + 8, sizeof room - 8) == MODEL_E_ALIGNMENT,',
      '  model_start(&context, 2, room, MODEL_THREADS_BYTES(2) - 1) == MODEL_E_SIZE,',
      '  model_start(&context, 0, room, sizeof room) == MODEL_E_THREADS,',
      '  model_start(&context, 4, room, sizeof room) == MODEL_E_THREADS,',
      '  model_stop(&context) == MODEL_OK,',
      '  model_start(&context, 2, room, sizeof room) == MODEL_OK,',
      '  model_start(&context, 2, room, sizeof room) == MODEL_E_THREADS,',
      '  model_scores(&context, x, many) == MODEL_OK,',
      '  model_stop(&context) == MODEL_OK, model_stop(&context) == MODEL_OK,',
      '  model_scores(&context, x, one) == MODEL_OK, memcmp(one, many, sizeof one) == 0,',
      '  strcmp(model_error(MODEL_E_THREADS), "no code of this model") != 0 };',
      'for (int i = 0; i < (int)(sizeof codes / sizeof *codes); i++) printf("code %d\\n", codes[i]);',
    ]);
    const found = numbersOf(ranThreads(folder, program)).get('code')!;
    expect(found.flat()).toEqual(found.map(() => 1));
    expect(found).toHaveLength(15);
  });

  test.skipIf(!hasSanitizer)('no thread reads what another writes meanwhile', async () => {
    const { folder, x } = await built();
    expectRun('make', ['-s', '-C', folder, 'clean']);
    expectRun('make', ['-s', '-C', folder, 'CFLAGS=-O1 -g -march=native -fsanitize=thread', 'libmodel.a']);
    const program = calls(await numbers(x), [
      'expect_ok(model_scores(&context, x, one));',
      'for (int i = 0; i < 3; i++) {',
      '  expect_ok(model_start(&context, 3, room, sizeof room));',
      '  for (int k = 0; k < 3; k++) expect_ok(model_scores(&context, x, many));',
      '  expect_ok(model_stop(&context));',
      '  if (memcmp(one, many, sizeof one) != 0) return 5;',
      '}',
      'printf("same 1\\n");',
    ]);
    expect(ranThreads(folder, program, ['-O1', '-fsanitize=thread'])).toBe('same 1\n');
  });

  test('models without threads ask for none', async () => {
    const { files } = await builtC([point('scores', scores, [sn.randn([64, 64])])]);
    expect([...files.keys()]).not.toContain('model_threads.c');
    expect([...files.values()].join('\n')).not.toMatch(/pthread|MOST_THREADS|E_THREADS/);
  });

  test.each([1, 2.5, 257])('%s threads are refused', async (threads) => {
    await expect(builtC([point('scores', scores, [sn.randn([4, 4])])], { threads })).rejects.toMatchObject({
      code: 'E_VALUE',
    });
  });

  test('a freestanding model has none', async () => {
    const asked = builtC([point('scores', scores, [sn.randn([4, 4])])], { threads: 2, freestanding: true });
    await expect(asked).rejects.toMatchObject({ code: 'E_VALUE' });
  });
});
