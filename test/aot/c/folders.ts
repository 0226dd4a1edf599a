// Folders of models in C for tests: written, made with the compiler that is here, and called by small programs.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { cBundleOf, type CBundle, type CBundleOptions } from '../../../src/aot/c/bundle.ts';
import type { EntryPoint } from '../../../src/aot/entry.ts';
import type { OpenPoint } from '../../../src/aot/sizes.ts';
import { temporary } from '../bundles.ts';

export { removeFolders } from '../bundles.ts';

/** What is missing to build C here; undefined where nothing is. */
export const missing: string | undefined = ['cc', 'make'].find(
  (name) => spawnSync(name, ['--version']).status !== 0,
);

/** Why tests that build C are skipped. */
export const reason: string = `there is no ${missing}`;

export const strict: readonly string[] = ['-std=c11', '-Wall', '-Wextra', '-Wconversion', '-Werror'];

/** Functions as C. */
export function builtC(
  points: readonly (EntryPoint | OpenPoint)[],
  options: Partial<CBundleOptions> = {},
): Promise<CBundle> {
  return cBundleOf(points, { producer: 'sinter', title: 'test', ...options });
}

/** A folder with these files, and what `make` makes of them; every warning is an error. */
export function madeC(
  files: ReadonlyMap<string, string | Uint8Array>,
  target: 'all' | 'libmodel.a' = 'all',
  level: '-O0' | '-O2' = '-O0',
): string {
  const folder = temporary();
  for (const [name, content] of files) fs.writeFileSync(path.join(folder, name), content);
  expectRun('make', ['-s', '-C', folder, `CFLAGS=${level} -march=native -Werror`, target]);
  return folder;
}

/** What a program prints that has this `main`, beside a library of the folder. */
export function ranC(
  folder: string,
  main: string,
  prefix = 'model',
  libraries: readonly string[] = [],
): string {
  const [source, program] = ['program.c', 'program'].map((name) => path.join(folder, name)) as [
    string,
    string,
  ];
  fs.writeFileSync(source, main);
  const library = path.join(folder, `lib${prefix}.a`);
  expectRun('cc', [...strict, '-O0', '-I', folder, '-o', program, source, library, '-lm', ...libraries]);
  return expectRun(program, [], folder);
}

/** Runs a program, which must succeed, and gives what it prints. */
export function expectRun(program: string, args: readonly string[], cwd?: string): string {
  const { status, signal, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    cwd,
    maxBuffer: 1e8,
  });
  if (status === 0) return stdout;
  const text = [error?.message ?? '', stdout, stderr].join('').slice(0, 4000);
  throw new Error(`${program} ${args.join(' ')} gave ${status ?? signal}:\n${text}`);
}

/** Compiles the class of the folder for C++, where there is a compiler for it: callers.test.ts says as a skip where there is none. */
export function expectCpp(folder: string, prefix = 'model'): void {
  if (spawnSync('g++', ['--version']).status !== 0) return;
  const header = ['-include', `${prefix}.hpp`, '-x', 'c++', '/dev/null'];
  expectRun('g++', ['-std=c++17', '-Wall', '-Werror', '-fsyntax-only', ...header], folder);
}

/**
 * What `main.swift` prints that uses the class of the folder, compiled without a warning; undefined where there is no compiler
 * for Swift.
 */
export function ranSwift(folder: string, main: string, prefix = 'model'): string | undefined {
  fs.writeFileSync(path.join(folder, 'main.swift'), main);
  if (spawnSync('swiftc', ['--version']).status !== 0) return undefined;
  const linked = ['-warnings-as-errors', '-I', '.', '-L', '.', '-lm', '-lpthread'];
  expectRun('swiftc', [...linked, '-o', 'use-swift', 'main.swift', `${prefix}.swift`], folder);
  return expectRun('./use-swift', [], folder);
}

/** The numbers of each line that a program prints, by the word before them. */
export function numbersOf(text: string): Map<string, number[][]> {
  const found = new Map<string, number[][]>();
  for (const line of text.trim().split('\n')) {
    const [name = '', ...values] = line.split(/[\s:]+/);
    found.set(name, [...(found.get(name) ?? []), values.map(Number)]);
  }
  return found;
}

/** Elements as an array of C. */
export function arrayOf(type: string, name: string, values: Iterable<number | bigint>): string {
  const text = Array.from(values, (value) =>
    type === 'float' ? `${Number(value).toExponential(9)}f` : `${value}`,
  );
  return `static const ${type} ${name}[${text.length}] = { ${text.join(', ')} };\n`;
}

/** A function of C that begins with the weights in a file, and a context. */
export function beginning(prefix = 'model'): string {
  const macros = prefix.toUpperCase();
  return `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "${prefix}.h"

static unsigned char weights[${macros}_WEIGHTS_BYTES] __attribute__((aligned(64)));
static ${prefix} context;

static inline void expect_ok(int code)
{
  if (code == 0) return;
  fprintf(stderr, "%s: %s\\n", ${prefix}_error(code), context.what == NULL ? "" : context.what);
  exit(1);
}

static inline void begin(void)
{
  FILE *file = fopen("${prefix}.bin", "rb");
  if (file == NULL || fread(weights, 1, sizeof weights, file) != sizeof weights) exit(2);
  fclose(file);
  expect_ok(${prefix}_init(&context, weights, sizeof weights));
}

static inline void show(const char *name, const float *values, int count)
{
  printf("%s", name);
  for (int i = 0; i < count; i++) printf(" %.9g", (double)values[i]);
  printf("\\n");
}
`;
}
