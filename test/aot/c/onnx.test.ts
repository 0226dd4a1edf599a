// Text models in ONNX whose batch and length are open, as C: what it gives at each size is what ONNX Runtime gives.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bindings } from '../../../src/aot/c/bundle.ts';
import type { SizeRange } from '../../../src/aot/points.ts';
import type { OpenPoint } from '../../../src/aot/sizes.ts';
import { onnxProgram } from '../../../src/cli/program/onnx-file.ts';
import { setDevice } from '../../../src/index.ts';
import { sinter } from '../../support/cli.ts';
import { bert, vocabulary } from '../../support/onnx/bert.ts';
import { attribute, float, int64, modelOf, node, port } from '../../support/onnx/file.ts';
import { runInPeer } from '../../support/onnx/runtime.ts';
import { temporary } from '../bundles.ts';
import {
  builtC,
  expectCpp,
  expectRun,
  madeC,
  missing,
  numbersOf,
  ranC,
  reason,
  removeFolders,
  strict,
} from './folders.ts';
import { expectClose, main } from './learner.ts';

beforeAll(() => {
  setDevice('wasm');
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

/** A model in a file as a function of this name, with ranges of its open sizes. */
async function opened(
  name: string,
  bytes: Uint8Array,
  ranges: Readonly<Record<string, SizeRange>>,
): Promise<OpenPoint> {
  const file = path.join(temporary(), 'model.onnx');
  fs.writeFileSync(file, bytes);
  const { at } = await onnxProgram(file, Object.keys(ranges));
  return {
    name,
    sizes: [{}],
    ranges: new Map(Object.entries(ranges)),
    at: (sizes) => ({ ...at(sizes), name }),
  };
}

const upTo = (max: number): SizeRange => ({ min: 1, max, multipleOf: 1 });

/** The inputs of a call, which programs in C make too. */
function given(batch: number, length: number, below: number): { ids: BigInt64Array; mask: boolean[] } {
  const all = Array.from({ length: batch * length }, (_, i) => i);
  return {
    ids: BigInt64Array.from(all, (i) => BigInt((7 * i + length) % below)),
    mask: all.map((i) => i % length === 0 || (i + batch) % 5 > 0),
  };
}

const filling = (below: number): string => `  for (int i = 0; i < batch * length; i++) {
    ids[i] = (7 * i + length) % ${below};
    mask[i] = i % length == 0 || (i + batch) % 5 > 0;
  }`;

const sizes = [
  [4, 24],
  [1, 1],
  [2, 7],
  [1, 24],
  [4, 1],
  [3, 16],
] as const;

/** Looks ids up, hides what the mask leaves out, and scores what is left against the table. */
const lookUp = modelOf({
  inputs: [port('ids', 7, ['batch', 'length']), port('mask', 9, ['batch', 'length'])],
  outputs: [
    port('scores', 1, ['batch', 'length', 5]),
    port('best', 7, ['batch', 'length']),
    port('left_out', 9, ['batch', 'length']),
  ],
  initializers: [
    float(
      'table',
      [5, 3],
      Array.from({ length: 15 }, (_, i) => Math.sin(3 * i)),
    ),
    float('nothing', [], [0]),
    int64('last', [1], [-1n]),
  ],
  nodes: [
    node('Gather', ['table', 'ids'], ['rows']),
    node('Unsqueeze', ['mask', 'last'], ['wide']),
    node('Where', ['wide', 'rows', 'nothing'], ['seen']),
    node('Transpose', ['table'], ['columns'], [attribute('perm', [1, 0])]),
    node('MatMul', ['seen', 'columns'], ['scores']),
    node('ArgMax', ['scores'], ['best'], [attribute('axis', -1), attribute('keepdims', 0)]),
    node('Not', ['mask'], ['left_out']),
  ],
});

/** Counts what the mask lets through; results have its length twice, in two ways. */
const counting = modelOf({
  inputs: [port('mask', 9, ['batch', 'length'])],
  outputs: [
    port('count', 7, ['batch']),
    port('pairs', 9, ['batch', 'length', 'length']),
    port('twice', 7, ['batch', 'doubled']),
  ],
  initializers: [int64('axes', [1], [1n]), int64('two', [1], [2n])],
  nodes: [
    node('Cast', ['mask'], ['ones'], [attribute('to', 7)]),
    node('ReduceSum', ['ones', 'axes'], ['count'], [attribute('keepdims', 0)]),
    node('Unsqueeze', ['mask', 'axes'], ['across']),
    node('Unsqueeze', ['mask', 'two'], ['down']),
    node('And', ['across', 'down'], ['pairs']),
    node('Concat', ['ones', 'ones'], ['twice'], [attribute('axis', 1)]),
  ],
});

describe.skipIf(missing !== undefined)(`C${missing === undefined ? '' : `: ${reason}`}`, () => {
  test('ids, masks and results have the sizes of each call, in two functions', async () => {
    const ranges = { batch: upTo(4), length: upTo(24) };
    const points = [await opened('look', lookUp, ranges), await opened('count', counting, ranges)];
    const { files, notes } = await builtC(points, { bindings });
    expect(notes).toEqual([]);
    const header = String(files.get('model.h'));
    const ofSizes = 'model *ctx, int64_t batch, int64_t length';
    expect(header).toContain(
      `int model_look(${ofSizes}, const int64_t *ids, const uint8_t *mask, float *scores, int64_t *best, uint8_t *left_out);`,
    );
    expect(header).toContain(
      `int model_count(${ofSizes}, const uint8_t *mask, int64_t *count, uint8_t *pairs, int64_t *twice);`,
    );
    const folder = madeC(files);
    expectRun('cc', [...strict, '-fsyntax-only', 'model.c', 'main.c'], folder);
    expectCpp(folder);
    const program = main(
      [
        `static int64_t ids[97], best[97], counts[5], twice[193];
static uint8_t mask[97], left_out[97], pairs[2305];
static float scores[481];
static void fill(int batch, int length)
{
${filling(5)}
}
static int look(int64_t batch, int64_t length)
{
  return model_look(&context, batch, length, ids, mask, scores, best, left_out);
}
static void call(int batch, int length)
{
  const int all = batch * length;
  fill(batch, length);
  memset(context.arena, 255, sizeof context.arena);
  scores[5 * all] = 77.0f;
  best[all] = counts[batch] = twice[2 * all] = 77;
  left_out[all] = pairs[all * length] = 77;
  expect_ok(look(batch, length));
  memset(context.arena, 255, sizeof context.arena);
  expect_ok(model_count(&context, batch, length, mask, counts, pairs, twice));
  show("scores", scores, 5 * all);
  printf("best");
  for (int i = 0; i < all; i++) printf(" %d", (int)best[i]);
  printf("\\nleft_out");
  for (int i = 0; i < all; i++) printf(" %d", left_out[i]);
  printf("\\ncount");
  for (int i = 0; i < batch; i++) printf(" %d", (int)counts[i]);
  printf("\\npairs");
  for (int i = 0; i < all * length; i++) printf(" %d", pairs[i]);
  printf("\\ntwice");
  for (int i = 0; i < 2 * all; i++) printf(" %d", (int)twice[i]);
  printf("\\nbeyond %d %d", scores[5 * all] == 77.0f, best[all] == 77 && counts[batch] == 77 && twice[2 * all] == 77);
  printf(" %d\\n", left_out[all] == 77 && pairs[all * length] == 77);
}
static void refused(int64_t batch, int64_t length)
{
  best[0] = counts[0] = 5;
  printf("code %d", look(batch, length) == MODEL_E_SHAPE);
  printf(" %d", model_count(&context, batch, length, mask, counts, pairs, twice) == MODEL_E_SHAPE);
  printf(" %d %lld\\n", best[0] == 5 && counts[0] == 5, (long long)context.index);
}
static void outside(int64_t id)
{
  fill(2, 3);
  ids[4] = id;
  best[0] = 5;
  printf("index %d", look(2, 3));
  printf(" %d %d\\n", context.index == id, best[0] == 5);
}
`,
      ],
      [
        ...sizes.map(([batch, length]) => `call(${batch}, ${length});`),
        'refused(0, 7);',
        'refused(5, 7);',
        'refused(4, 25);',
        'refused(1, -1);',
        'refused(INT64_C(4294967297), 1);',
        'outside(5);',
        'outside(-6);',
        'outside(INT64_C(4294967296));',
        'outside(INT64_MIN);',
        'fill(2, 3);',
        'ids[4] = -1;',
        'printf("wraps %d", look(2, 3));',
        'printf(" %d\\n", (int)best[4]);',
      ],
    );
    const found = numbersOf(ranC(folder, program));
    for (const [i, [batch, length]] of sizes.entries()) {
      const { ids, mask } = given(batch, length, 5);
      const shape = [batch, length];
      const hidden = { dtype: 'bool', shape, data: Uint8Array.from(mask, Number) } as const;
      const expected = {
        ...(await runInPeer(lookUp, { ids: { dtype: 'i64', shape, data: ids }, mask: hidden })),
        ...(await runInPeer(counting, { mask: hidden })),
      };
      for (const [name, { data }] of Object.entries(expected))
        expectClose(found.get(name)![i], Array.from(data as ArrayLike<number | bigint>, Number));
    }
    expect(new Set(found.get('beyond')!.flat())).toEqual(new Set([1]));
    expect(found.get('code')).toEqual([
      [1, 1, 1, 0],
      [1, 1, 1, 5],
      [1, 1, 1, 25],
      [1, 1, 1, -1],
      [1, 1, 1, 4294967297],
    ]);
    // The id as it was given, whatever it is counted from.
    expect(found.get('index')).toEqual(Array.from({ length: 4 }, () => [8, 1, 1]));
    expect(found.get('wraps')).toEqual([[0, 4]]);
  });

  test('an encoder whose nodes compute sizes of its shapes', async () => {
    const [file, out] = [path.join(temporary(), 'bert.onnx'), temporary()];
    fs.writeFileSync(file, bert());
    const dims = ['--dim', 'batch=1..4', '--dim', 'length=1..24'];
    const { code, err } = await sinter(
      'build',
      file,
      '--out',
      out,
      '--target',
      'c',
      '--isa',
      'avx2',
      ...dims,
    );
    expect([code, err]).toEqual([0, '']);
    expectRun('make', ['-s', '-C', out, 'CFLAGS=-O1 -Werror']);
    expectRun('cc', [...strict, '-fsyntax-only', 'model.c', 'main.c'], out);
    const program = main(
      [
        `static int64_t ids[96], mask[96];
static float hidden[96 * 16], pooled[4 * 16];
static void call(int batch, int length)
{
${filling(vocabulary)}
  memset(context.arena, 255, sizeof context.arena);
  expect_ok(model_run(&context, batch, length, ids, mask, hidden, pooled));
  show("hidden", hidden, batch * length * 16);
  show("pooled", pooled, batch * 16);
}
`,
      ],
      [
        ...sizes.map(([batch, length]) => `call(${batch}, ${length});`),
        'printf("code %d\\n", model_run(&context, 1, 25, ids, mask, hidden, pooled) == MODEL_E_SHAPE);',
      ],
    );
    const found = numbersOf(ranC(out, program));
    for (const [i, [batch, length]] of sizes.entries()) {
      const { ids, mask } = given(batch, length, vocabulary);
      const shape = [batch, length];
      const expected = await runInPeer(bert(), {
        ids: { dtype: 'i64', shape, data: ids },
        mask: { dtype: 'i64', shape, data: BigInt64Array.from(mask, BigInt) },
      });
      for (const name of ['hidden', 'pooled'])
        expectClose(found.get(name)![i], Array.from(expected[name]!.data as Float32Array), 4);
    }
    expect(found.get('code')).toEqual([[1]]);
  });
});
