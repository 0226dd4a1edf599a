// WGSL leaves it to drivers whether float arithmetic is rearranged as if numbers were real, and some do. Here the functions that
// kernels call are read as C++ and compiled by the host's compiler with leave to reassociate, factor, contract, to take reciprocals,
// and to take it that arithmetic never meets NaN or infinity (Metal's fast math): they have to stay as accurate as they are. The same functions without their guards do not, so the compiler does
// what is asked of it.

import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import koffi from 'koffi';
import { afterAll, describe, expect, test } from 'vitest';
import { WgslPrelude } from '../../src/codegen/emit/wgsl/prelude.ts';
import { spell } from '../../src/codegen/emit/wgsl/spelling.ts';
import { primary } from '../../src/codegen/emit/shared/term.ts';
import '../../src/compile/all.ts';
import {
  argumentsOf,
  disagreements,
  nameOf,
  spellingCases,
  type Case,
} from '../codegen/emit/spelling-cases.ts';
import { findCompiler } from '../support/cpp.ts';

// -ffast-math in parts: as a whole it would also have the library turn denormal numbers off for this process.
const FLAGS = (
  '-std=c++17 -O3 -fPIC -shared -fwrapv -ffp-contract=fast -fassociative-math -fno-signed-zeros -fno-trapping-math ' +
  '-freciprocal-math -ffinite-math-only -fno-math-errno'
).split(' ');

/** Functions of floats: what is plain arithmetic in WGSL is for the driver. */
const ops = new Set(
  'exp exp2 expm1 log log2 log1p sin cos tan asin acos atan sinh cosh tanh erf mod pow atan2 min max roundF16'.split(
    ' ',
  ),
);
const cases = spellingCases.filter(
  ({ op, args, result, last }) =>
    ops.has(op) && result === 'f32' && args.every((type) => type === 'f32') && last === undefined,
);

const BUILTINS = `
#include <cmath>
#include <cstring>
namespace wgsl {
using f32 = float; using i32 = int; using u32 = unsigned;
template <class To, class From> To bitcast(From from) { To to; std::memcpy(&to, &from, 4); return to; }
template <class T> T select(T no, T yes, bool condition) { return condition ? yes : no; }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }
template <class T> T clamp(T x, T low, T high) { return min(max(x, low), high); }
inline bool any(bool x) { return x; }
inline f32 abs(f32 x) { return __builtin_fabsf(x); }
inline f32 sqrt(f32 x) { return __builtin_sqrtf(x); }
inline f32 floor(f32 x) { return __builtin_floorf(x); }
inline f32 exp2(f32 x) { return __builtin_exp2f(x); }
`;

/** WGSL of the prelude, one lane wide, as C++: declarations are turned round, and literals say that they are floats. */
function asCpp(wgsl: string): string {
  const types = '(?:f32|i32|u32|bool|angle_f32)';
  return wgsl
    .replaceAll(/(?<![\w.])(\d+\.\d+(?:e[+-]?\d+)?)(?![\w.])/g, '$1f')
    .replaceAll(new RegExp(`(\\w+): (${types})`, 'g'), '$2 $1')
    .replaceAll(
      new RegExp(`fn (\\w+)\\((.*?)\\) -> (${types})`, 'g'),
      (_, name: string, parameters: string, type: string) => `static ${type} ${name}(${parameters})`,
    )
    .replaceAll(/struct (\w+) \{ (.*?), (.*?) \}/g, 'struct $1 { $2; $3; };')
    .replaceAll(/angle_f32\(/g, 'make_angle(')
    .replaceAll(/(?:let|var) (\w+) =/g, 'auto $1 =');
}

/** The functions as a library; with the guards or without. */
function sourceOf(guarded: boolean): string {
  const prelude = new WgslPrelude();
  const calls = cases.map(({ op, args }) => {
    const constants = { first: undefined, second: undefined, last: undefined };
    const site = { type: 'f32', width: 1, from: 'f32', ...constants, prelude } as const;
    return spell(op, { ...site, args: args.map((_, k) => primary(`x${k}[i]`)) }).text;
  });
  let functions = asCpp(prelude.text);
  const angle = /struct angle_f32 .*\n/;
  functions = functions.replace(angle, '$&static angle_f32 make_angle(f32 r, i32 q) { return {r, q}; }\n');
  if (!guarded) functions = functions.replace('bitcast<f32>(bitcast<i32>(x) ^ none)', 'x');
  const entries = calls.map(
    (call, k) =>
      `extern "C" void run_${k}(const f32* x0, const f32* x1, f32* out, int n) { for (int i = 0; i < n; i++) out[i] = ${call}; }`,
  );
  return `${BUILTINS}\n${functions}\n${entries.join('\n')}\n}\n`;
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-fast-math-'));
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

type Run = (row: Case) => string[];

/** Compiles, and gives what compares a case's results with the interpreter's. */
function compiled(compiler: string, guarded: boolean): Run {
  const name = path.join(folder, guarded ? 'guarded' : 'bare');
  fs.writeFileSync(`${name}.cpp`, sourceOf(guarded));
  const native = process.arch === 'x64' ? ['-march=native'] : [];
  execFileSync(compiler, [...FLAGS, ...native, '-o', `${name}.so`, `${name}.cpp`], { stdio: 'pipe' });
  const library = koffi.load(`${name}.so`);
  return (row) => {
    const run = library.func(`void run_${cases.indexOf(row)}(void *, void *, void *, int)`) as (
      ...given: unknown[]
    ) => void;
    const inputs = argumentsOf(row);
    const out = new Float32Array(inputs[0]!.length);
    run(inputs[0], inputs[1] ?? inputs[0], out, out.length);
    return disagreements(row, 1, inputs, out);
  };
}

const compiler = findCompiler();
const none = 'no host C++ compiler: tried CXX, g++, c++, clang++';

describe('under a compiler that takes floats for real numbers', () => {
  const guarded = compiler === undefined ? undefined : compiled(compiler, true);

  test.for(cases.map((row) => [nameOf(row), row] as const))('%s is what it is', ([, row], { skip }) => {
    if (guarded === undefined) return skip(none);
    const wrong = guarded(row);
    expect(wrong.slice(0, 6), `${wrong.length} wrong`).toEqual([]);
  });

  test('the guards are needed: without them some functions lose digits', ({ skip }) => {
    if (compiler === undefined) return skip(none);
    const bare = compiled(compiler, false);
    const lost = cases.filter((row) => bare(row).length > 0).map(({ op }) => op);
    console.log(`without guards: ${lost.join(', ')}`);
    expect(lost).toEqual(expect.arrayContaining(['pow', 'sin', 'cos']));
  });
});
