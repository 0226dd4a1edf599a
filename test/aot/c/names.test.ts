// Names of functions, inputs and results that meet in some language: differing in case alone, or called as what the files for C,
// C++, Rust and Swift declare themselves. Whatever they are, the files compile, and each function is the one that was asked for.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bindings } from '../../../src/aot/c/bundle.ts';
import type { OpenPoint } from '../../../src/aot/sizes.ts';
import * as sn from '../../../src/index.ts';
import { setDevice, type Tensor } from '../../../src/index.ts';
import {
  builtC,
  expectCpp,
  expectRun,
  madeC,
  missing,
  numbersOf,
  ranSwift,
  reason,
  removeFolders,
} from './folders.ts';
import { point } from './learner.ts';

beforeAll(() => {
  setDevice('wasm');
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

/** Gives its number times x. */
const times =
  (factor: number): unknown =>
  (x: Tensor) => ({ y: x.mul(factor) });

/** Functions that meet each other in case, results that meet functions, and functions of C that meet methods. */
const titles = [
  'run',
  'Run',
  'run_results',
  'RunResults',
  'runResults',
  'model_run',
  'model_init',
  'check',
  'String',
];

/** What inputs and outputs are called that files of some language use themselves. */
const words = [
  'check',
  'sized',
  'error',
  'results_',
  'run',
  'run_results',
  'RunResults',
  'model',
  'Model',
  'model_run',
  'MODEL_OK',
  'MODEL_E_SHAPE',
  'Int',
  'Int64',
  'Swift',
];

/** Adds everything, over an axis that is open. */
const sum: OpenPoint = {
  name: 'sum',
  sizes: [{}],
  ranges: new Map([['n', { min: 2, max: 5, multipleOf: 1 }]]),
  at: ({ n }) => ({
    name: 'sum',
    fn: ((...[given]: readonly [Readonly<Record<string, Tensor>>]) => {
      const total = Object.values(given).reduce((all, one) => all.add(one));
      return { std: total, Float: total.mul(2), sum_results: total.mul(3) };
    }) as never,
    inputs: [Object.fromEntries(words.map((word) => [word, sn.zeros([n!])]))],
  }),
};

/** The members of a class in Swift that are declared in it, not in its types. */
function members(swift: string, kind: 'func' | 'struct'): string[] {
  return [...swift.matchAll(new RegExp(`^ {4}(?:public|private) ${kind} \`?(\\w+)`, 'gm'))].map(
    ([, name]) => name!,
  );
}

describe.skipIf(missing !== undefined)(`C${missing === undefined ? '' : `: ${reason}`}`, () => {
  test('functions keep apart that meet in some language', async ({ skip }) => {
    const points = titles.map((title, i) => point(title, times(i + 2), [sn.zeros([1])]));
    const { files, model } = await builtC([...points, sum], { embed: true, bindings });
    const folder = madeC(files);
    titles.forEach((title, i) => {
      expect(numbersOf(expectRun('./demo', [title], folder)).get('y')).toEqual([[0]]);
      expect(model.functions[i]!.name).toBe(`model_${title}`);
    });

    const swift = String(files.get('model.swift'));
    const all = [...members(swift, 'func'), ...members(swift, 'struct')];
    expect(all.length).toBeGreaterThan(2 * points.length);
    expect([...new Set(all)]).toEqual(all);
    const ofC = [...String(files.get('model.h')).matchAll(/\b(model_\w+)\(/g)].map(([, name]) => name);
    expect(ofC).toContain('model_run');
    expect(all.filter((name) => ofC.includes(name))).toEqual([]);

    const given = words.map((_, i) => `{ ${i}, 1 }`).join(', ');
    fs.writeFileSync(
      path.join(folder, 'use.cpp'),
      `#include <cstdio>
#include "model.hpp"
int main() {
  model_cpp::model own;
  std::printf("run %g\\n", own.run({1}).y[0]);
  std::printf("Run %g\\n", own.Run({1}).y[0]);
  std::printf("run_results %g\\n", own.run_results({1}).y[0]);
  std::printf("RunResults %g\\n", own.RunResults({1}).y[0]);
  std::printf("runResults %g\\n", own.runResults({1}).y[0]);
  std::printf("model_run %g\\n", own.model_run({1}).y[0]);
  std::printf("model_init %g\\n", own.model_init({1}).y[0]);
  std::printf("check %g\\n", own.check_({1}).y[0]);
  std::printf("String %g\\n", own.String({1}).y[0]);
  const auto sums = own.sum(2, ${given});
  std::printf("std %g %g\\n", sums.std[0], sums.std[1]);
  try {
    own.sum(6, ${given});
  } catch (const model_cpp::error &error) {
    std::printf("code %d\\n", error.code == MODEL_E_SHAPE);
  }
}
`,
    );
    fs.writeFileSync(
      path.join(folder, 'use.rs'),
      `#[path = "model.rs"]
mod model;
fn main() {
    let mut own = Box::new(model::Context::new());
    let x = [1f32];
    let mut y = [0f32];
    unsafe {
        let weights = std::ptr::addr_of!(model::model_weights);
        assert_eq!(model::model_init(&mut *own, weights.cast(), model::WEIGHTS_BYTES), model::OK);
${titles
  .map(
    (title) => `        assert_eq!(model::model_${title}(&mut *own, &x, &mut y), model::OK);
        println!("${title} {}", y[0]);
`,
  )
  .join('')}    }
}
`,
    );
    const printed: Map<string, number[][]>[] = [];
    if (spawnSync('g++', ['--version']).status === 0) {
      const flags = ['-std=c++17', '-Wall', '-Wextra', '-Werror', '-O0'];
      expectRun('g++', [...flags, '-o', 'use-cpp', 'use.cpp', 'libmodel.a', '-lm'], folder);
      printed.push(numbersOf(expectRun('./use-cpp', [], folder)));
      const total = (words.length * (words.length - 1)) / 2;
      expect(printed[0]!.get('std')).toEqual([[total, words.length]]);
      expect(printed[0]!.get('code')).toEqual([[1]]);
    }
    if (spawnSync('rustc', ['--version']).status === 0) {
      const linked = ['-C', 'link-arg=libmodel.a', '-C', 'link-arg=-lm', '-D', 'warnings'];
      expectRun('rustc', [...linked, '-A', 'non_snake_case', '-o', 'use-rust', 'use.rs'], folder);
      printed.push(numbersOf(expectRun('./use-rust', [], folder)));
    }
    const called = titles.map((title) => (title === 'check' || title === 'String' ? `${title}_` : title));
    const calls = called.map((method, i) => {
      const own = method.startsWith('model_') ? `${method}_` : method;
      return `print("${titles[i]!}", try own.${own}(x: [1]).y[0])\n`;
    });
    const inSwift = ranSwift(folder, `let own = try Model()\n${calls.join('')}`);
    if (inSwift !== undefined) printed.push(numbersOf(inSwift));
    if (printed.length === 0) skip('there is neither g++ nor rustc nor swiftc');
    for (const found of printed)
      for (const [i, title] of titles.entries()) expect(found.get(title), title).toEqual([[i + 2]]);
  });

  test.each<[prefix: string, titles: readonly string[], threads?: number]>([
    // Constants begin with the prefix in capitals.
    ['M', ['OK', 'H', 'E_NULL', 'STATE_BYTES', 'SWIFT_H', 'ok', 'code']],
    // A function of the module for Rust.
    ['threads', ['bytes', 'BYTES'], 2],
    // A kernel, and a function of the demo.
    ['map', ['mul_0', 'mul_0_2', 'map_mul_0']],
    ['run', ['x', 'run_x']],
  ])('functions behind %s are none of the names that files have', async (name, own, threads) => {
    const points = own.map((title, i) => point(title, times(i + 2), [sn.zeros([1])]));
    const { files, model } = await builtC(points, {
      name,
      embed: true,
      bindings,
      ...(threads !== undefined && { threads }),
    });
    const folder = madeC(files);
    fs.writeFileSync(path.join(folder, 'x'), new Uint8Array(Float32Array.of(1).buffer));
    own.forEach((title, i) => {
      expect(numbersOf(expectRun('./demo', [title, 'x'], folder)).get('y')).toEqual([[i + 2]]);
    });
    expect(new Set(model.functions.map((one) => one.name)).size).toBe(own.length);
    expectCpp(folder, name);
    if (spawnSync('rustc', ['--version']).status === 0)
      expectRun('rustc', ['--crate-type=lib', '--emit=metadata', '-A', 'warnings', `${name}.rs`], folder);
  });
});
