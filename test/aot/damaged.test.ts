// Bundles whose program.json was changed: they load or are refused by a typed error, whatever was changed, and loading ends.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LoadOptions } from '../../src/bundle-runtime/runtime.ts';
import { ones, type Tensor } from '../../src/index.ts';
import { casesOf } from '../support/sample.ts';
import { built, removeFolders, written } from './bundles.ts';

interface Loaded {
  readonly [entry: string]: unknown;
  dispose(): void;
}

let folder: string;
let text: string;
let load: (options: LoadOptions) => Promise<Loaded>;
beforeAll(async () => {
  const fn = (x: Tensor): Tensor => x.matmul(x).add(1);
  folder = written(
    await built([{ name: 'run', fn: fn as never, inputs: [ones([4, 4])] }], { targets: ['wasm'] }),
  );
  text = fs.readFileSync(path.join(folder, 'program.json'), 'utf8');
  ({ load } = (await import(path.join(folder, 'index.js'))) as { load: typeof load });
});
afterAll(removeFolders);

/** Loads a manifest and calls what it has; the code of the error, if there is one. */
async function codeOf(manifest: string): Promise<string | undefined> {
  fs.writeFileSync(path.join(folder, 'program.json'), manifest);
  try {
    const model = await load({ target: 'wasm', threads: 1, base: pathToFileURL(`${folder}/`) });
    try {
      const run = model['run'] as ((inputs: object) => Promise<unknown>) | undefined;
      await run?.({ x: new Float32Array(16).fill(1) });
    } finally {
      model.dispose();
    }
  } catch (error) {
    const { name, code } = error as { name: string; code: string };
    if (/^(?:Sinter|Parse|Device|Tensor)Error$/.test(name) && code.startsWith('E_')) return code;
    throw error;
  }
  return undefined;
}

const renamed = (name: string): string => text.replace('"run":', `${JSON.stringify(name)}:`);

test('what is unchanged loads', async () => {
  expect(await codeOf(text)).toBe(undefined);
});

test('what the caller throws while loading is the caller’s', async () => {
  fs.writeFileSync(path.join(folder, 'program.json'), text);
  const own = new TypeError('own');
  const onProgress = (): void => {
    throw own;
  };
  const loading = load({ target: 'wasm', threads: 1, base: pathToFileURL(`${folder}/`), onProgress });
  await expect(loading).rejects.toBe(own);
});

test.each(['then', '__proto__', 'constructor', 'dispose', 'weight', 'toString'])(
  'an entry called %s is refused',
  async (name) => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    expect(await codeOf(renamed(name))).toBe('E_FORMAT');
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
  },
);

test('a step that is repeated longer than anyone waits is refused', async () => {
  const repeated = (times: unknown): string => {
    const manifest = JSON.parse(text) as { entries: { run: { programs: { wasm: { steps: unknown }[] } } } };
    const [program] = manifest.entries.run.programs.wasm;
    program!.steps = [{ kind: 'repeat', times, steps: program!.steps }];
    return JSON.stringify(manifest);
  };
  expect(await codeOf(repeated(2))).toBe(undefined);
  expect(await codeOf(repeated(1e15))).toBe('E_FORMAT');
  expect(await codeOf(repeated('often'))).toBe('E_FORMAT');
});

test('any value may be another one', async () => {
  const values = ['null', '-1', '0', '1.5', '1e400', '"x"', '[]', '{}', 'true', '4294967296'];
  const places = [...text.matchAll(/(?<=[:[,])(?:-?\d+|"[^"]*"(?!:)|true|false|null)(?=[,\]}])/g)].slice(2);
  const count = casesOf(places.length * values.length, 300);
  let refused = 0;
  for (let i = 0; i < count; i++) {
    const at = Math.floor((i * places.length * values.length) / count);
    const { index, 0: found } = places[Math.floor(at / values.length)]!;
    const changed = text.slice(0, index) + values[at % values.length]! + text.slice(index + found.length);
    if ((await codeOf(changed)) !== undefined) refused++;
  }
  expect(refused).toBeGreaterThan(count / 10);
});
