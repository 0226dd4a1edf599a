// What callers of a model in C meet: every element type, codes, languages besides C, and machines without a C library.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bindings } from '../../../src/aot/c/bundle.ts';
import type { EntryPoint } from '../../../src/aot/entry.ts';
import * as sn from '../../../src/index.ts';
import { manualSeed, setDevice, type Tensor } from '../../../src/index.ts';
import { Dropout, Linear, ReLU, Sequential } from '../../../src/nn/index.ts';
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
  strict,
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
  test('a list of sizes has a function for each, and every dtype goes in and out', async () => {
    const types = { a: 'i8', b: 'u16', c: 'i64', d: 'bool', e: 'f16', f: 'f64' } as const;
    const pass = (x: Readonly<Record<keyof typeof types, Tensor>>): Record<string, Tensor> => ({
      ...Object.fromEntries(
        Object.entries(x).map(([key, value]) => [`${key}Out`, key === 'd' ? value : value.add(value)]),
      ),
      count: sn.cast(x.d, 'f32').sum(),
    });
    const at = ({ batch }: Readonly<Record<string, number>>): EntryPoint =>
      point('pass', pass, [
        Object.fromEntries(
          Object.entries(types).map(([key, dtype]) => [key, sn.zeros([batch!, 2], { dtype })]),
        ),
      ]);
    const { files, model } = await builtC([
      { name: 'pass', sizes: [{ batch: 1 }, { batch: 3 }], at } as never,
    ]);
    expect(model.functions.map(({ name }) => name)).toEqual(['model_pass_batch_1', 'model_pass_batch_3']);
    const folder = madeC(files);
    const inputs = {
      a: Int8Array.of(-3, 4),
      b: Uint16Array.of(40000, 7),
      c: BigInt64Array.of(-5_000_000_000n, 2n),
      // Any byte but 0 is true.
      d: Uint8Array.of(255, 0),
      e: Uint16Array.of(0x3c00, 0xc000),
      f: Float64Array.of(0.1, -2),
    };
    for (const [name, values] of Object.entries(inputs))
      fs.writeFileSync(path.join(folder, name), new Uint8Array(values.buffer));
    const found = numbersOf(expectRun('./demo', ['model_pass_batch_1', ...Object.keys(inputs)], folder));
    expect(Object.fromEntries(found)).toEqual({
      aOut: [[-6, 8]],
      bOut: [[80000 - 65536, 14]],
      cOut: [[-10_000_000_000, 4]],
      dOut: [[1, 0]],
      eOut: [[0x4000, 0xc400]],
      fOut: [[0.2, -4]],
      count: [[1]],
    });
  });

  test('every code is given for what it says', async () => {
    manualSeed(3);
    const state = learner(new Sequential(new Linear(20, 16), new ReLU(), new Linear(16, 4)));
    const given = [sn.zeros([8, 20]), sn.tensor(labels, { dtype: 'i32' }), 0.01];
    const { files } = await builtC([point('train', train, given)], { state });
    const folder = madeC(files, 'libmodel.a');
    const program = main(
      [
        'static float x[160];\nstatic int32_t labels[8];\nstatic float loss = 5.0f;\nstatic model other;\n',
        'static unsigned char copy[MODEL_WEIGHTS_BYTES + 1] __attribute__((aligned(64)));\n',
      ],
      [
        'printf("null %d", model_init(NULL, weights, sizeof weights));',
        'printf(" %d", model_init(&other, NULL, sizeof weights));',
        'printf(" %d", model_train(&context, NULL, labels, 0.1f, &loss));',
        'printf(" %d", model_train(&context, x, labels, 0.1f, NULL));',
        'printf(" %d\\n", model_seed(NULL, 1));',
        'printf("state %d %d %d\\n", model_train(&other, x, labels, 0.1f, &loss), model_seed(&other, 1), model_state(&other) == NULL);',
        'memcpy(copy + 1, weights, sizeof weights);',
        'printf("alignment %d", model_init(&other, copy + 1, sizeof weights));',
        'printf(" %d\\n", model_init((model *)(void *)((unsigned char *)(void *)&other + 8), weights, sizeof weights));',
        'printf("size %d %d\\n", model_init(&other, weights, sizeof weights - 1), model_init(&other, weights, 0));',
        'memcpy(copy, weights, sizeof weights); copy[0] ^= 1;',
        'printf("format %d\\n", model_init(&other, copy, sizeof weights));',
        'memcpy(copy, weights, sizeof weights); copy[8] ^= 1;',
        'printf("model %d\\n", model_init(&other, copy, sizeof weights));',
        'int damaged = 0;',
        'for (size_t i = 64; i < sizeof weights; i++) {',
        '  memcpy(copy, weights, sizeof weights); copy[i] ^= 4;',
        '  damaged += model_init(&other, copy, sizeof weights) == MODEL_E_DAMAGED;',
        '}',
        'printf("damaged %d\\n", (int)sizeof weights - 64 - damaged);',
        'printf("after %d\\n", model_train(&other, x, labels, 0.1f, &loss));',
        'labels[3] = -2;',
        'printf("index %d", model_train(&context, x, labels, 0.1f, &loss));',
        'printf(" %d %d\\n", (int)context.index, (int)loss);',
        'printf("what %d\\n", strstr(context.what, "crossEntropy: label is outside the 4 classes") != NULL);',
        'labels[3] = 3;',
        'printf("again %d", model_train(&context, x, labels, 0.1f, &loss));',
        'printf(" %d\\n", context.what == NULL);',
        'int texts = 0;',
        'for (int i = 0; i <= MODEL_E_INDEX; i++) texts += strlen(model_error(i)) > 5;',
        'printf("texts %d %d\\n", texts, strcmp(model_error(99), "no code of this model"));',
      ],
    );
    expect(Object.fromEntries(numbersOf(ranC(folder, program)))).toEqual({
      null: [[1, 1, 1, 1, 1]],
      state: [[7, 7, 1]],
      alignment: [[2, 2]],
      size: [[3, 3]],
      format: [[4]],
      model: [[5]],
      damaged: [[0]],
      after: [[7]],
      index: [[8, -2, 5]],
      what: [[1]],
      again: [[0, 1]],
      texts: [[9, 0]],
    });
  });

  test('a freestanding model needs memcpy and memset alone', async () => {
    manualSeed(3);
    const state = learner(
      new Sequential(new Linear(20, 16), new ReLU(), new Dropout(0.5), new Linear(16, 4)),
    );
    const given = [sn.zeros([8, 20]), sn.tensor(labels, { dtype: 'i32' }), 0.01];
    const { files } = await builtC([point('train', train, given)], {
      state,
      freestanding: true,
      embed: true,
    });
    expect(files.has('main.c')).toBe(false);
    const folder = madeC(files);
    expect(String(files.get('model.c')).match(/#include <(.*)>/g)).toEqual(['#include <stdint.h>']);
    expectRun(
      'cc',
      [...strict, '-O2', '-ffreestanding', '-fno-math-errno', '-c', '-o', 'free.o', 'model.c'],
      folder,
    );
    for (const object of ['model.o', 'free.o']) {
      const missing = expectRun('nm', ['-u', object], folder)
        .trim()
        .split(/\s*U\s+|\n/);
      expect(new Set(missing.filter((name) => name !== ''))).toEqual(new Set(['memcpy', 'memset']));
    }
  });

  test('C++, Rust and Swift call it by declarations of their own', async ({ skip }) => {
    manualSeed(3);
    const state = learner(new Sequential(new Linear(20, 16), new ReLU(), new Linear(16, 4)));
    const images = sn.randn([8, 20]);
    const points = [
      point('predict', predict, [images]),
      point('train', train, [images, sn.tensor(labels, { dtype: 'i32' }), 0.01]),
      point('none', (_state: unknown, x: Tensor) => ({ y: x.mul(2) }), [sn.zeros([0])]),
      point('default', (_state: unknown, x: Tensor) => ({ y: x.mul(2) }), [sn.zeros([1])]),
    ];
    const { files } = await builtC(points, { state, embed: true, bindings, threads: 2 });
    const folder = madeC(files, 'libmodel.a');
    const logits = await numbers(predict(state, images).logits);
    const values = await numbers(images);
    fs.writeFileSync(
      path.join(folder, 'use.cpp'),
      `#include <cstdio>
#include "model.hpp"
int main() {
  model_cpp::model first;
  first.start(2);
  model_cpp::model own(std::move(first));
  try {
    own.start(3);
  } catch (const model_cpp::error &error) {
    std::printf("threads %d\\n", error.code == MODEL_E_THREADS);
  }
  own.start(2);
  std::vector<float> x{ ${values.join(', ')} };
  std::vector<int32_t> labels{ ${labels.join(', ')} };
  std::printf("logits");
  for (float value : own.predict(x).logits) std::printf(" %.9g", value);
  std::printf("\\nnone %d", static_cast<int>(own.none({}).y.size()));
  std::printf("\\ndefault %g", own.default_({4}).y[0]);
  labels[2] = 4;
  try {
    own.train(x, labels, 0.01f);
  } catch (const model_cpp::error &error) {
    std::printf("\\ncode %d\\n", error.code == MODEL_E_INDEX);
  }
  x.pop_back();
  try {
    own.predict(x);
  } catch (const std::invalid_argument &error) {
    std::printf("sizes %d\\n", std::string(error.what()) == "images: expected 160 elements, got 159");
  }
}
`,
    );
    const found: Map<string, number[][]>[] = [];
    if (spawnSync('g++', ['--version']).status === 0) {
      const flags = ['-std=c++17', '-Wall', '-Wextra', '-Werror', '-Wno-narrowing', '-O0'];
      expectRun('g++', [...flags, '-o', 'use-cpp', 'use.cpp', 'libmodel.a', '-lm', '-pthread'], folder);
      found.push(numbersOf(expectRun('./use-cpp', [], folder)));
      expect(found[0]!.get('sizes')).toEqual([[1]]);
      expect(found[0]!.get('threads')).toEqual([[1]]);
      expect(found[0]!.get('none')).toEqual([[0]]);
      expect(found[0]!.get('default')).toEqual([[8]]);
    }
    fs.writeFileSync(
      path.join(folder, 'use.rs'),
      `#[path = "model.rs"]
mod model;
fn main() {
    let mut own = Box::new(model::Context::new());
    let x: [f32; 160] = [${values.map((value) => value.toExponential()).join(', ')}];
    let mut labels: [i32; 8] = [${labels.join(', ')}];
    let (mut logits, mut best, mut loss) = ([0f32; 32], [0i32; 8], [0f32; 1]);
    let mut room = Box::new(model::Aligned([0; model::threads_bytes(2)]));
    unsafe {
        let weights = std::ptr::addr_of!(model::model_weights);
        assert_eq!(model::model_init(&mut *own, weights.cast(), model::WEIGHTS_BYTES), model::OK);
        let bytes = std::mem::size_of_val(&*room);
        assert_eq!(model::model_start(&mut *own, 2, (&mut *room as *mut model::Aligned<_>).cast(), bytes), model::OK);
        assert_eq!(model::model_predict(&mut *own, &x, &mut logits, &mut best), model::OK);
        labels[2] = 4;
        let code = model::model_train(&mut *own, &x, &labels, 0.01, &mut loss);
        println!("logits{}", logits.iter().map(|value| format!(" {}", value)).collect::<String>());
        println!("code {}", (code == model::E_INDEX) as i32);
        assert_eq!(own.index, 4);
        assert_eq!(model::model_stop(&mut *own), model::OK);
    }
}
`,
    );
    if (spawnSync('rustc', ['--version']).status === 0) {
      const linked = [
        '-C',
        'link-arg=libmodel.a',
        '-C',
        'link-arg=-lm',
        '-C',
        'link-arg=-pthread',
        '-D',
        'warnings',
      ];
      expectRun('rustc', [...linked, '-o', 'use-rust', 'use.rs'], folder);
      found.push(numbersOf(expectRun('./use-rust', [], folder)));
    }
    const swift = ranSwift(
      folder,
      `var own = try Model()
try own.start(threads: 2)
do { try own.start(threads: 3) } catch let error as ModelError { print("threads", error.code == 9 ? 1 : 0) }
try own.start(threads: 2)
var x: [Float] = [${values.join(', ')}]
var labels: [Int32] = [${labels.join(', ')}]
print("logits", try own.predict(images: x).logits.map { "\\($0)" }.joined(separator: " "))
print("none", try own.none(x: []).y.count)
print("default", try own.\`default\`(x: [4]).y[0])
let before = own.state
let loss = try own.train(images: x, labels: labels, rate: 0.01).loss
try own.load(state: before)
print("again", try own.train(images: x, labels: labels, rate: 0.01).loss == loss ? 1 : 0, own.state == before ? 1 : 0)
labels[2] = 4
do { _ = try own.train(images: x, labels: labels, rate: 0.01) } catch let error as ModelError {
    print("code", error.code == 8 && error.description.contains("4") ? 1 : 0)
}
x.removeLast()
do { _ = try own.predict(images: x) } catch let error as ModelError {
    print("sizes", error.description == "images: expected 160 elements, got 159" ? 1 : 0)
}
do { _ = try Model(ModelWeights([1, 2, 3])) } catch let error as ModelError { print("weights", error.code) }
`,
    );
    if (swift !== undefined) {
      const printed = numbersOf(swift);
      found.push(printed);
      expect(printed.get('sizes')).toEqual([[1]]);
      expect(printed.get('threads')).toEqual([[1]]);
      expect(printed.get('again')).toEqual([[1, 0]]);
      expect(printed.get('weights')).toEqual([[3]]);
      expect(printed.get('none')).toEqual([[0]]);
      expect(printed.get('default')).toEqual([[8]]);
    }
    if (found.length === 0) skip('there is neither g++ nor rustc nor swiftc');
    for (const printed of found) {
      expectClose(printed.get('logits')?.[0], logits);
      expect(printed.get('code')).toEqual([[1]]);
    }
  });

  // The test above says nothing of the languages that it left out.
  test.for(['g++', 'rustc', 'swiftc'])('%s compiles its declarations', (compiler, { skip }) => {
    if (spawnSync(compiler, ['--version']).status !== 0) skip(`there is no ${compiler}`);
  });

  test('what C cannot do is said', async () => {
    const x = sn.zeros([2]);
    const double = (value: Tensor): Tensor => value.mul(2);
    await expect(builtC([point('double', double, [x])], { name: 'struct' })).rejects.toMatchObject({
      code: 'E_VALUE',
      message: expect.stringContaining('"struct" cannot begin the names of C') as string,
    });
  });
});
