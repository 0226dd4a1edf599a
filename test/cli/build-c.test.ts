// `sinter build --target c` as someone at a command line meets it.
//
// Runs on the sources: it builds programs of TypeScript, which import them.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { removeFolders, temporary } from '../aot/bundles.ts';
import { sinter } from '../support/cli.ts';

afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

const module = path.resolve(import.meta.dirname, '../aot/perceptron.ts');
const pooled = path.resolve(import.meta.dirname, '../aot/pooled.ts');

test('writes a folder of C, replaces it, and replaces nothing that it did not write', async () => {
  const folder = temporary();
  const build = (...more: readonly string[]): ReturnType<typeof sinter> =>
    sinter('build', module, '--out', folder, '--target', 'c', '--name', 'net', ...more);
  const makefile = path.join(folder, 'Makefile');
  fs.writeFileSync(makefile, 'all:\n');
  const refused = await build();
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('Makefile of ')]);
  expect(fs.readdirSync(folder)).toEqual(['Makefile']);
  fs.rmSync(makefile);
  const said = await build('--bindings', 'cpp,rust,swift', '--json');
  expect([said.code, said.err]).toEqual([0, '']);
  const result = JSON.parse(said.out) as { readonly entries: string[] };
  expect(result).toMatchObject({ out: folder, targets: ['c'] });
  expect(result.entries.toSorted()).toEqual(['noise', 'predict', 'train']);
  const files = ['Makefile', 'README.md', 'main.c', 'net.bin', 'net.c', 'net.h', 'net.hpp', 'net.rs'];
  const forSwift = ['module.modulemap', 'net.swift', 'net_swift.h'];
  expect(fs.readdirSync(folder).toSorted()).toEqual([...files, ...forSwift].toSorted());
  expect(fs.readFileSync(path.join(folder, 'net.h'), 'utf8')).toContain(
    'int net_train(net *ctx, const float',
  );
  expect((await build()).out).toContain('main.c');
});

test('says which options do not fit', async () => {
  const folder = temporary();
  const build = (...more: readonly string[]): ReturnType<typeof sinter> =>
    sinter('build', module, '--out', folder, ...more);
  const wrong = [
    [['--target', 'c,wasm'], '--target: a folder of C is for C alone'],
    [['--target', 'c', '--tune'], '--tune: not for --target c'],
    [['--target', 'c', '--shard-size', '3'], '--shard-size: not for --target c'],
    [['--target', 'c', '--name', 'int'], "and no keyword, got 'int'"],
    [['--target', 'c', '--bindings', 'cobol'], "--bindings: expected of cpp, rust, swift, got 'cobol'"],
    [['--target', 'c', '--isa', 'avx'], "--isa: expected of avx512, avx2, got 'avx'"],
    [['--target', 'c', '--threads', '1'], "--threads: expected a number from 2 to 256, got '1'"],
    [['--target', 'c', '--threads', '2', '--freestanding'], '--threads: threads need a library'],
    [['--target', 'wasm', '--threads', '2'], '--threads: expects --target c'],
    [['--target', 'c', '--isa', 'avx2', '--freestanding'], '--isa: asking the processor what it has needs'],
    [['--embed'], '--embed: expects --target c'],
  ] as const;
  for (const [options, message] of wrong) {
    const { code, err } = await build(...options);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  }
  expect(fs.readdirSync(folder)).toEqual([]);
  const ranged = ['--out', folder, '--target', 'c', '--dim', 'batch=1..2'];
  expect((await sinter('build', pooled, ...ranged)).code).toBe(0);
  expect(fs.readFileSync(path.join(folder, 'model.h'), 'utf8')).toMatch(
    /takes batch: a size, 1 to 2\n[^]*int model_\w+\(model \*ctx, int64_t batch, /,
  );
});
