// Optional packages: a missing one is asked for by name, any other failure passes.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { expect, test } from 'vitest';
import { fromPackage } from '../src/packages/missing.ts';
import { stagePackage } from './support/browser/package.ts';

const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });

test('gives what is imported', async () => {
  expect(await fromPackage('one', 'this', () => Promise.resolve({ value: 3 }))).toEqual({ value: 3 });
});

test('a package that is missing is asked for', async () => {
  const load = (): Promise<never> =>
    Promise.reject(failure('ERR_MODULE_NOT_FOUND', "Cannot find package 'fast-png' imported from here"));
  await expect(fromPackage('fast-png', 'a.png: reading PNG images', load)).rejects.toMatchObject({
    code: 'E_UNSUPPORTED',
    message:
      'a.png: reading PNG images needs the package fast-png, which is not installed\n  try: npm install fast-png',
  });
});

test('other failures are told as they are', async () => {
  for (const error of [
    failure('ERR_MODULE_NOT_FOUND', "Cannot find package 'other'"),
    failure('ERR_MODULE_NOT_FOUND', "Cannot find module '/node_modules/fast-png/lost.js'"),
    new Error('fast-png'),
  ])
    await expect(fromPackage('fast-png', 'this', () => Promise.reject(error))).rejects.toBe(error);
});

test('where none is installed, each feature asks for its own', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'sinter-bare-'));
  try {
    stagePackage(folder);
    const program = `
import * as sn from 'sinter';
import { readCsv, readParquet } from 'sinter/data';
import { explanationPage } from 'sinter/explain';
import { parse } from 'sinter/ir';
import { kernel } from 'sinter/notation';
import { exportOnnx, loadOnnx } from 'sinter/onnx';
import 'sinter/nn'; import 'sinter/optim'; import 'sinter/io'; import 'sinter/train';
import 'sinter/pixels'; import 'sinter/llm'; import 'sinter/quant';
const said = {};
const ask = async (name, run) => {
  try { await run(); said[name] = 'nothing'; } catch (error) { said[name] = [error.name, error.code, error.message]; }
};
await ask('loadOnnx', () => loadOnnx(new Uint8Array([8, 7])));
await ask('exportOnnx', () => exportOnnx((x) => x.add(1), [sn.ones([2])]));
await ask('readCsv', () => readCsv(new TextEncoder().encode('a,b')));
await ask('readParquet', () => readParquet(new TextEncoder().encode('PAR1')));
await ask('parse', () => parse('graph f() {}'));
await ask('kernel', () => kernel('y[i] = x[i]'));
await ask('explanationPage', () => explanationPage(sn.explain((x) => x.sum(), sn.ones([2]))));
console.log(JSON.stringify(said));
`;
    writeFileSync(path.join(folder, 'bare.mjs'), program);
    const printed = execFileSync(process.execPath, ['bare.mjs'], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, SINTER_DEVICE: 'interpreter' },
    });
    const missing = (feature: string, name: string): readonly string[] => [
      'SinterError',
      'E_UNSUPPORTED',
      `${feature} needs the package ${name}, which is not installed\n  try: npm install ${name}`,
    ];
    const said = JSON.parse(printed) as Record<string, readonly string[]>;
    expect(said).toMatchObject({
      loadOnnx: missing('loadOnnx', '@bufbuild/protobuf'),
      exportOnnx: missing('exportOnnx', '@bufbuild/protobuf'),
      readCsv: missing('readCsv', 'csv-parse'),
      readParquet: missing('readParquet', 'hyparquet'),
      parse: missing('reading text', 'ohm-js'),
      kernel: missing('reading text', 'ohm-js'),
      explanationPage: missing('drawing a page', '@dagrejs/dagre'),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
