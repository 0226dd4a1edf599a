// Programs for Node that a bundler has made one file of: an ES module, or a script, in which no file has an address. The package
// is the build, as npm links it.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import * as esbuild from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const folder = mkdtempSync(path.join(tmpdir(), 'sinter-bundled-'));

beforeAll(() => {
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(root, path.join(folder, 'node_modules/sinter'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a program prints, as JSON, once it is one file of this name. */
async function printed(program: string, name: string): Promise<unknown> {
  const source = path.join(folder, `source-${name}.mjs`);
  writeFileSync(source, program);
  const outfile = path.join(folder, name);
  await esbuild.build({
    absWorkingDir: folder,
    entryPoints: [source],
    outfile,
    bundle: true,
    platform: 'node',
    format: name.endsWith('.cjs') ? 'cjs' : 'esm',
    minify: name.startsWith('small'),
    logLevel: 'silent',
  });
  const env = { PATH: process.env['PATH'], SINTER_DEVICE: 'wasm:1' };
  return JSON.parse(execFileSync(process.execPath, [outfile], { cwd: root, env, encoding: 'utf8' }));
}

const program = `
import * as sn from 'sinter';
import * as distributed from 'sinter/distributed';
const said = {};
try { sn.ones([2]).add(sn.ones([3])); } catch (error) { said.mistake = [error.name, error.code]; }
const explained = sn.explain((x) => x.add(1).sum(), sn.ones([4]));
said.kernels = explained.kernels.length;
said.distributed = typeof distributed.join;
sn.softmax(sn.tensor([2, 2]), 0).array().then((values) => {
  said.values = values;
  console.log(JSON.stringify(said));
});
`;

test.each(['program.mjs', 'program.cjs'])(
  '%s computes, and its mistakes are errors of the package',
  async (name) => {
    expect(await printed(program, name)).toEqual({
      mistake: ['TensorError', 'E_SHAPE'],
      kernels: 1,
      distributed: 'function',
      values: [0.5, 0.5],
    });
  },
);

test('serve.js, which has the name of a file of the package, is not run by the thread that compiles', async () => {
  const from = (file: string): string => JSON.stringify(path.join(root, 'dist', file));
  const compiling = `
import { writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { compileGraph } from ${from('compile.js')};
import { CompilerThread } from ${from('compile/thread/thread.js')};
import { parse } from ${from('ir/text/parse.js')};
import { cTarget } from ${from('schedule/target.js')};
if (!isMainThread) {
  writeSync(1, 'the program runs again');
  process.exit();
}
const graph = parse('graph {\\n  %0 = parameter {index: 0, name: "x"} : f32[4]\\n  %1 = exp(%0) : f32[4]\\n  return %1\\n}\\n');
const thread = new CompilerThread();
const program = await thread.compile(graph, cTarget, {});
const same = JSON.stringify(program) === JSON.stringify(compileGraph(graph, cTarget, {}).program);
console.log(JSON.stringify({ running: thread.isRunning, same }));
`;
  expect(await printed(compiling, 'serve.js')).toEqual({ running: false, same: true });
});

const naming = `
import * as sn from 'sinter';
import * as nn from 'sinter/nn';
import { Adam } from 'sinter/optim';
const said = [];
const ask = (run) => {
  try { run(); } catch (error) { said.push(error.message.replace(/\\n {2}(?:at|try).*/g, '')); }
};
const layer = new nn.Linear(2, 3);
ask(() => new Adam([], { lr: 0.1 }));
ask(() => layer.registerBuffer('weight', sn.ones([1])));
ask(() => new nn.ModuleList(3));
ask(() => sn.ones([2]).add(layer));
ask(() => new nn.Sequential(layer, new nn.ReLU(), new nn.Linear(7, 2)).forward(sn.ones([1, 2])));
said.push(nn.summary(new nn.ReLU()).toString().split('\\n')[2]);
console.log(JSON.stringify(said));
`;

test('small.mjs, whose classes a bundler has renamed, calls them by their names', async () => {
  expect(await printed(naming, 'small.mjs')).toEqual([
    'Adam: there are no parameters',
    'registerBuffer: a Linear has "weight" already, or it has a dot',
    'ModuleList: the items must be an array, got 3',
    'add: expects tensors or numbers, got a Linear',
    'linear: inner sizes differ: x f32[1,3], weight f32[2,7]\n  in layer 2 of Sequential, a Linear',
    'model  ReLU           0',
  ]);
});

const copies = `
import * as sn from 'sinter';
import * as nn from 'sinter/nn';
const other = ${JSON.stringify(path.join(root, 'dist/index.js'))};
const otherLayers = ${JSON.stringify(path.join(root, 'dist/nn/index.js'))};
const said = [];
Promise.all([import(other), import(otherLayers)]).then(([two, layers]) => {
  const x = two.ones([2, 2]);
  for (const run of [
    () => sn.ones([2, 2]).matmul(x),
    () => sn.add(1, x),
    () => new nn.Linear(2, 2).forward(x),
    () => sn.compile((y) => y.add(1))(x),
    () => sn.tensor(x),
    () => nn.parameters(new layers.Linear(2, 2)),
    () => two.softmax(sn.ones([2]), 0),
  ])
    try {
      run();
      said.push('nothing');
    } catch (error) {
      const { code, message } = error;
      said.push([code, message.includes('got an object of another copy of Sinter')]);
    }
  console.log(JSON.stringify(said));
});
`;

test('copies.mjs, which has loaded the package twice, is told so', async () => {
  expect(await printed(copies, 'copies.mjs')).toEqual(Array.from({ length: 7 }, () => ['E_VALUE', true]));
});
