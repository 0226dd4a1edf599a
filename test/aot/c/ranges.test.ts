// Sizes within ranges in C: one function whose sizes are arguments, over a context with room for the largest. What lies
// beyond the sizes of a call is whatever was there: the context is filled with ones between calls.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bindings } from '../../../src/aot/c/bundle.ts';
import type { OpenPoint } from '../../../src/aot/sizes.ts';
import type { Sizes } from '../../../src/bundle-runtime/manifest.ts';
import * as sn from '../../../src/index.ts';
import { compile, manualSeed, setDevice, type Tensor } from '../../../src/index.ts';
import {
  builtC,
  expectRun,
  madeC,
  missing,
  numbersOf,
  ranC,
  ranSwift,
  reason,
  removeFolders,
} from './folders.ts';
import { expectClose, main, numbers } from './learner.ts';

beforeAll(() => {
  setDevice('wasm');
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

type Ranges = Readonly<Record<string, readonly [min: number, max: number, multipleOf: number]>>;

function ranged(fn: unknown, ranges: Ranges, inputs: (sizes: Sizes) => readonly unknown[]): OpenPoint {
  return {
    name: 'run',
    sizes: [{}],
    ranges: new Map(
      Object.entries(ranges).map(([name, [min, max, multipleOf]]) => [name, { min, max, multipleOf }]),
    ),
    at: (sizes) => ({ name: 'run', fn: fn as never, inputs: inputs(sizes) }),
  };
}

const table = sn.tensor(
  Array.from({ length: 80 }, (_, i) => Math.sin(i)),
  { shape: [10, 8] },
);

/** Attention over texts, with a mask, a scale that follows from the length, and views at places that do. */
function attend(ids: Tensor, mask: Tensor): Record<string, Tensor> {
  const [, length] = ids.shape as readonly [number, number];
  const x = sn.embedding(ids, table);
  const scores = x.matmul(x.transpose(-1, -2)).mul(1 / Math.sqrt(length));
  const y = scores.add(mask.unsqueeze(1)).softmax(-1).matmul(x);
  return { y, mean: y.mean(1), flat: y.reshape([-1]), last: y.slice(1, length - 1, length) };
}

/** With a state that each call changes. */
const counted = ({ calls }: { calls: Tensor }, ids: Tensor, mask: Tensor): unknown => ({
  state: { calls: calls.add(1) },
  ...attend(ids, mask),
});

const texts = ranged(counted, { batch: [1, 3, 1], length: [2, 130, 2] }, ({ batch, length }) => [
  sn.zeros([batch!, length!], { dtype: 'i32' }),
  sn.zeros([batch!, length!]),
]);

/** The inputs that the programs make too. */
function given(batch: number, length: number): [ids: Tensor, mask: Tensor] {
  const all = Array.from({ length: batch * length }, (_, i) => i);
  const shape = [batch, length];
  return [
    sn.tensor(
      all.map((i) => (i * 7) % 10),
      { shape, dtype: 'i32' },
    ),
    sn.tensor(
      all.map((i) => ((i * 37) % 101) / 64),
      { shape },
    ),
  ];
}

const filling = `  for (int i = 0; i < batch * length; i++) {
    ids[i] = i * 7 % 10;
    mask[i] = (float)(i * 37 % 101) / 64.0f;
  }`;

const sizes = [
  [3, 130],
  [1, 2],
  [2, 6],
  [1, 32],
  [3, 78],
  [2, 130],
] as const;

describe.skipIf(missing !== undefined)(`C${missing === undefined ? '' : `: ${reason}`}`, () => {
  test('one function serves all sizes of ranges, on threads and by every instruction set', async () => {
    const { files, model, notes } = await builtC([texts], {
      state: { calls: sn.zeros([1]) },
      bindings,
      isas: ['avx512'],
      threads: 2,
    });
    expect(notes).toEqual([]);
    expect(model.functions.map(({ name }) => name)).toEqual(['model_run']);
    expect(model.functions[0]!.programs.length).toBeLessThanOrEqual(6);
    expect(files.get('model.h')).toContain(
      'int model_run(model *ctx, int64_t batch, int64_t length, const int32_t *ids, const float *mask, ' +
        'float *y, float *mean, float *flat, float *last);',
    );
    const folder = madeC(files);
    const calls = `static int32_t ids[390];
static float mask[390], y[3120], mean[24], flat[3120], last[24];
static unsigned char room[MODEL_THREADS_BYTES(2)] __attribute__((aligned(64)));
static void call(int batch, int length)
{
${filling}
  memset(context.arena, 255, sizeof context.arena);
  y[batch * length * 8] = 77.0f;
  expect_ok(model_run(&context, batch, length, ids, mask, y, mean, flat, last));
  show("y", y, batch * length * 8);
  show("mean", mean, batch * 8);
  show("flat", flat, batch * length * 8);
  show("last", last, batch * 8);
  if (batch * length < 390) printf("beyond %d\\n", y[batch * length * 8] == 77.0f);
}
static void refused(int64_t batch, int64_t length)
{
  y[0] = 5.0f;
  printf("code %d", model_run(&context, batch, length, ids, mask, y, mean, flat, last));
  printf(" %d %d\\n", (int)context.index, y[0] == 5.0f);
  puts(context.what);
}
`;
    const program = main(
      [calls.replace('y[3120]', 'y[3121]')],
      [
        ...sizes.map(([batch, length]) => `call(${batch}, ${length});`),
        'refused(0, 2);',
        'refused(4, 2);',
        'refused(1, 132);',
        'refused(2, 77);',
        'refused(INT64_MIN, -2);',
        'ids[5] = 10;',
        'printf("index %d", model_run(&context, 2, 2, ids, mask, y, mean, flat, last) == MODEL_OK);',
        'printf(" %d", model_run(&context, 2, 4, ids, mask, y, mean, flat, last) == MODEL_E_INDEX);',
        'printf(" %d\\n", (int)context.index);',
        'expect_ok(model_start(&context, 2, room, sizeof room));',
        'call(3, 78);',
        'expect_ok(model_stop(&context));',
        'float calls;',
        'memcpy(&calls, (unsigned char *)model_state(&context) + MODEL_STATE_CALLS_AT, 4);',
        'printf("calls %d\\n", (int)calls);',
      ],
    );
    const linked = ranC(folder, program, 'model', ['-pthread']);
    const found = numbersOf(linked);
    for (const [i, [batch, length]] of [...sizes, [3, 78] as const].entries())
      for (const [name, expected] of Object.entries(attend(...given(batch, length))))
        expectClose(found.get(name)![i], await numbers(expected));
    expect(new Set(found.get('beyond')!.flat())).toEqual(new Set([1]));
    expect(found.get('code')).toEqual([
      [10, 0, 1],
      [10, 4, 1],
      [10, 132, 1],
      [10, 77, 1],
      [10, 0, 1],
    ]);
    expect(linked).toContain('run: batch: expected 1 to 3');
    expect(linked).toContain('run: length: expected 2 to 130, a multiple of 2');
    expect(found.get('index')).toEqual([[1, 1, 10]]);
    // The call with an index outside changes the state, as in all bundles.
    expect(found.get('calls')).toEqual([[sizes.length + 3]]);

    // The program of the folder, and other languages.
    const demo = numbersOf(expectRun('./demo', ['run', '2', '4'], folder));
    expect(demo.get('mean')![0]).toHaveLength(16);
    const beyond = spawnSync('./demo', ['run', '2', '5'], { cwd: folder, encoding: 'utf8' });
    expect([beyond.status, beyond.stderr]).toEqual([1, 'length: a size, 2 to 130, a multiple of 2\n']);
    const mean = await numbers(attend(...given(2, 6))['mean']!);
    for (const printed of otherLanguages(folder)) {
      expectClose(numbersOf(printed).get('mean')?.[0], mean);
      expect(numbersOf(printed).get('code')).toEqual([[1]]);
    }
  });

  test('sizes that follow, random numbers and functions of sizes are those of each size', async () => {
    const fn = (x: Tensor): Record<string, Tensor> => {
      const [n] = x.shape as readonly [number];
      return {
        noisy: x.add(sn.rand([n])).sub(sn.rand([n])),
        pooled: sn.avgPool2d(x.reshape([1, 1, 1, n]), [1, 3], { stride: [1, 2] }).reshape([-1]),
        scaled: x.mean().mul(Math.log(n)),
        limited: x.slice(0, 0, 2).add(Math.min(2 * n + 1, 701)),
      };
    };
    const drawing = ranged(fn, { count: [4, 400, 1] }, ({ count }) => [sn.zeros([count!])]);
    const { files, model } = await builtC([drawing], { bindings });
    expect(files.get('model.h')).toMatch(
      /takes count_1 \(count\): a size, 4 to 400\n +where size1 = floor\(/,
    );
    const folder = madeC(files);
    const lengths = [400, 4, 61, 13];
    const calls = `static float x[400], noisy[400], pooled[200], scaled[1], limited[2];
static void call(int n)
{
  for (int i = 0; i < n; i++) x[i] = (float)(i % 7);
  memset(context.arena, 255, sizeof context.arena);
  expect_ok(model_run(&context, n, x, noisy, pooled, scaled, limited));
  show("noisy", noisy, n);
  show("pooled", pooled, (n - 1) / 2);
  show("scaled", scaled, 1);
  show("limited", limited, 2);
}
`;
    const program = main([calls], ['model_seed(&context, 7);', ...lengths.map((n) => `call(${n});`)]);
    const found = numbersOf(ranC(folder, program));
    manualSeed(7);
    for (const [i, n] of lengths.entries()) {
      const x = sn.tensor(Array.from({ length: n }, (_, k) => k % 7));
      for (const [name, expected] of Object.entries(compile(fn)(x)))
        expectClose(found.get(name)![i], await numbers(expected));
    }
    const inSwift = ranSwift(
      folder,
      `import Foundation
let own = try Model(ModelWeights([UInt8](try Data(contentsOf: URL(fileURLWithPath: "model.bin")))))
let results = try own.run(count_1: 61, x: (0..<61).map { Float($0 % 7) })
print("pooled", results.pooled.map { "\\($0)" }.joined(separator: " "))
`,
    );
    if (inSwift !== undefined) expectClose(numbersOf(inSwift).get('pooled')![0], found.get('pooled')![2]!);
    expect(model.memory.bytes.arena).toBeLessThan(20_000);
    expect(numbersOf(expectRun('./demo', ['run', '13'], folder)).get('pooled')![0]).toHaveLength(6);
    await expect(builtC([drawing], { freestanding: true })).rejects.toMatchObject({
      code: 'E_UNSUPPORTED',
      message: expect.stringContaining('a freestanding model has no logarithm') as string,
    });
  });
});

/** What programs of C++ and Rust print that call the model, where there are compilers for them. */
function otherLanguages(folder: string): string[] {
  fs.writeFileSync(
    path.join(folder, 'use.cpp'),
    `#include <cstdio>
#include <fstream>
#include "model.hpp"
int main() {
  static unsigned char weights[MODEL_WEIGHTS_BYTES] __attribute__((aligned(64)));
  std::ifstream("model.bin", std::ios::binary).read(reinterpret_cast<char *>(weights), sizeof weights);
  model_cpp::model own(weights, sizeof weights);
  const int batch = 2, length = 6;
  std::vector<int32_t> ids(12);
  std::vector<float> mask(12);
${filling}
  const auto results = own.run(batch, length, ids, mask);
  std::printf("mean");
  for (float value : results.mean) std::printf(" %.9g", value);
  std::printf("\\n");
  try {
    own.run(2, 7, ids, mask);
  } catch (const model_cpp::error &error) {
    std::printf("code %d\\n", error.code == MODEL_E_SHAPE && results.flat.size() == 96 &&
                                 std::string(error.what()) == "run: length: expected 2 to 130, a multiple of 2");
  }
}
`,
  );
  fs.writeFileSync(
    path.join(folder, 'use.rs'),
    `#[path = "model.rs"]
mod model;
fn main() {
    let bytes = std::fs::read("model.bin").unwrap();
    let mut weights = Box::new(model::Aligned([0u8; model::WEIGHTS_BYTES]));
    weights.0.copy_from_slice(&bytes);
    let mut own = Box::new(model::Context::new());
    let ids: Vec<i32> = (0..12).map(|i| i * 7 % 10).collect();
    let mask: Vec<f32> = (0..12).map(|i| (i * 37 % 101) as f32 / 64.0).collect();
    let (mut y, mut mean, mut flat, mut last) = ([0f32; 96], [0f32; 16], [0f32; 96], [0f32; 16]);
    unsafe {
        assert_eq!(model::model_init(&mut *own, weights.0.as_ptr().cast(), model::WEIGHTS_BYTES), model::OK);
        let mut run = |length| {
            let results = (y.as_mut_ptr(), mean.as_mut_ptr(), flat.as_mut_ptr(), last.as_mut_ptr());
            let (ids, mask) = (ids.as_ptr(), mask.as_ptr());
            model::model_run(&mut *own, 2, length, ids, mask, results.0, results.1, results.2, results.3)
        };
        assert_eq!(run(6), model::OK);
        println!("code {}", (run(132) == model::E_SHAPE) as i32);
    }
    println!("mean{}", mean.iter().map(|value| format!(" {}", value)).collect::<String>());
}
`,
  );
  const printed: string[] = [];
  if (spawnSync('g++', ['--version']).status === 0) {
    const flags = ['-std=c++17', '-Wall', '-Wextra', '-Werror', '-O0'];
    expectRun('g++', [...flags, '-o', 'use-cpp', 'use.cpp', 'libmodel.a', '-lm', '-pthread'], folder);
    printed.push(expectRun('./use-cpp', [], folder));
  }
  if (spawnSync('rustc', ['--version']).status === 0) {
    const linked = ['libmodel.a', '-lm', '-pthread'].flatMap((one) => ['-C', `link-arg=${one}`]);
    expectRun('rustc', [...linked, '-D', 'warnings', '-o', 'use-rust', 'use.rs'], folder);
    printed.push(expectRun('./use-rust', [], folder));
  }
  const swift = ranSwift(
    folder,
    `import Foundation
let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: "model.bin")))
let own = try Model(ModelWeights(bytes))
let ids = (0..<12).map { Int32($0 * 7 % 10) }
let mask = (0..<12).map { Float($0 * 37 % 101) / 64 }
let results = try own.run(batch: 2, length: 6, ids: ids, mask: mask)
print("mean", results.mean.map { "\\($0)" }.joined(separator: " "))
do { _ = try own.run(batch: 2, length: 7, ids: ids, mask: mask) } catch let error as ModelError {
    let isSaid = error.description == "run: length: expected 2 to 130, a multiple of 2"
    print("code", error.code == 10 && results.flat.count == 96 && isSaid ? 1 : 0)
}
`,
  );
  if (swift !== undefined) printed.push(swift);
  return printed;
}
