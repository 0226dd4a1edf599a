// SINTER_DUMP: every stage of every compilation as numbered files, in texts that are read back; and
// nothing but a warning where they cannot be written.
//
// Runs on the sources: it builds programs of TypeScript, which import them.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';

import { parseLoop } from '../support/text/loop/parse.ts';
import { compileGraph } from '../../src/compile.ts';
import { filesOf } from '../../src/dump/files.ts';
import { stagesWritten } from '../../src/dump/stages.ts';
import type { CompileStage } from '../../src/dump/stage.ts';
import { compile, explain, ones, setDevice } from '../../src/index.ts';
import { parse } from '../../src/ir/text/parse.ts';
import { gpuTarget, interpreterTarget } from '../../src/schedule/target.ts';
import { parseKernels } from '../support/text/kernels/parse.ts';
import { sinter } from '../support/cli.ts';
import { attribute, graph, model, node, port } from '../support/onnx/file.ts';
import { loadOnnx } from '../../src/onnx/index.ts';

const root = fs.mkdtempSync(path.join(tmpdir(), 'sinter-dump-'));
let folder = '';
let count = 0;
beforeEach(() => {
  count += 1;
  folder = path.join(root, String(count));
  vi.stubEnv('SINTER_DUMP', folder);
});
afterEach(() => void vi.unstubAllEnvs());
afterAll(() => {
  fs.rmSync(root, { recursive: true });
  setDevice(undefined);
});

const list = (...below: readonly string[]): string[] => fs.readdirSync(path.join(folder, ...below)).sort();
const text = (...below: readonly string[]): string => fs.readFileSync(path.join(folder, ...below), 'utf8');

/** Every text of a compilation is read back. */
function readAll(own: string): void {
  const files = list(own);
  const graphs = files.filter((name) => name.endsWith('.graph.txt'));
  for (const name of graphs) parse(text(own, name));
  const { kernels } = parseKernels(text(own, '21-kernels.txt'), parse(text(own, graphs.at(-1)!)));
  expect(kernels.length).toBeGreaterThan(0);
  expect(text(own, '21-kernels.txt')).toContain(`// nodes are called as in ${graphs.at(-1)}\n`);
  const loops = files.filter((name) => name.endsWith('.loop.txt'));
  for (const name of loops) {
    const loop = parseLoop(text(own, name));
    expect(name).toMatch(new RegExp(`^30-k\\d+-${loop.name}\\.loop\\.txt$`));
  }
  const sources = files.filter((name) => /^30-.*\.(wgsl|cu|wat)$/.test(name));
  expect(sources.length).toBe(loops.length);
}

test('recorded operations and compiled functions, numbered as they are compiled', () => {
  const child = path.join(import.meta.dirname, 'children', 'steps.ts');
  const run = (how: string): string => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', child, how], {
      encoding: 'utf8',
      env: { ...process.env, SINTER_DUMP: folder },
    });
    expect(stderr).toBe('');
    return stdout;
  };
  expect(run('end')).toBe('12 36\n');
  const compiled = list();
  expect(compiled.map((name) => name.slice(0, 4))).toEqual(compiled.map((_, i) => `00${i + 1}-`));
  expect(compiled.filter((name) => name.endsWith('-step'))).toHaveLength(2);
  expect(compiled[0]).toMatch(/recorded-operation/);
  for (const own of compiled) readAll(own);
  const own = compiled.find((name) => name.endsWith('-step'))!;
  expect(list(own)).toEqual(expect.arrayContaining(['00-recorded.graph.txt', '10-simplify.graph.txt']));
  // mul(x, 1) went, and nothing else did.
  expect(text(own, '10-simplify.graph.txt')).toMatch(/^\/\/ after simplify: [^\n]+\n\/\/ mul-one: x·1 = x\n/);
  expect(list(own).filter((name) => name.includes('legalise'))).toEqual([]);

  // A second run counts on, and an early end loses nothing that was compiled.
  run('exit');
  expect(list().length).toBe(2 * compiled.length);
});

test('what the command line compiles: explain, lower and build', async () => {
  const program = path.resolve(import.meta.dirname, '../fixtures/programs/model.ts');
  expect((await sinter('explain', program)).code).toBe(0);
  expect((await sinter('lower', program, '--target', 'cuda')).code).toBe(0);
  const module = path.resolve(import.meta.dirname, '../aot/perceptron.ts');
  const out = path.join(root, 'bundle');
  const built = await sinter('build', module, '--out', out, '--export', 'predict', '--target', 'webgpu,wasm');
  expect(built.code).toBe(0);
  await stagesWritten();
  const compiled = list();
  for (const own of compiled) readAll(own);
  expect(compiled.map((name) => name.slice(4))).toEqual(
    expect.arrayContaining(['predict-wasm', 'predict-webgpu']),
  );
  const suffixes = compiled.map((own) => /\.(wgsl|cu|wat)$/m.exec(list(own).join('\n'))?.[1]);
  expect(new Set(suffixes)).toEqual(new Set(['wgsl', 'cu', 'wat']));
});

test('ONNX models', async () => {
  const bytes = model(
    graph({
      inputs: [port('x', 1, [2, 3])],
      outputs: [port('y', 1, [2, 3])],
      nodes: [node('Relu', ['x'], ['h']), node('Softmax', ['h'], ['y'], [attribute('axis', 1)])],
    }),
  );
  const file = path.join(root, 'model.onnx');
  fs.writeFileSync(file, bytes);
  expect((await sinter('explain', file)).code).toBe(0);
  setDevice('wasm');
  const loaded = await loadOnnx(file);
  await Object.values(await loaded.run({ x: ones([2, 3]) }))[0]!.data();
  await stagesWritten();
  const compiled = list();
  expect(compiled.length).toBeGreaterThan(1);
  for (const own of compiled) readAll(own);
});

test('explanations and the interpreter, whose program is the graph', async () => {
  explain((x) => x, ones([2]));
  setDevice('interpreter');
  await compile((x: ReturnType<typeof ones>) => x.add(1))(ones([2])).data();
  await stagesWritten();
  const last = list().at(-1)!;
  expect(list(last)).toEqual(['00-recorded.graph.txt']);
  expect(text(last, '00-recorded.graph.txt')).toMatch(/^\/\/ as recorded, for interpreter\n/);
});

test('a compilation that fails leaves the stages that it reached, and the error', async () => {
  const recorded = parse(`graph {
  %0 = parameter {index: 0, name: "x"} : f64[4]
  %1 = add(%0, %0) : f64[4]
  return %1
}`);
  expect(() => compileGraph(recorded, gpuTarget)).toThrow('f64[4] is not supported on wgsl');
  await stagesWritten();
  const [own] = list();
  expect(list(own!)).toEqual(['00-recorded.graph.txt', '99-error.txt']);
  expect(text(own!, '99-error.txt')).toContain('is not supported on wgsl');
});

test('a folder that cannot be written to is told of once, and costs nothing else', async () => {
  const file = path.join(root, 'file');
  fs.writeFileSync(file, '');
  vi.stubEnv('SINTER_DUMP', path.join(file, 'below'));
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  setDevice('interpreter');
  const twice = compile((x: ReturnType<typeof ones>) => x.mul(2));
  expect([...(await twice(ones([2])).data())]).toEqual([2, 2]);
  expect([...(await twice(ones([3])).data())]).toEqual([2, 2, 2]);
  await stagesWritten();
  expect(warn.mock.calls.map(([said]) => said as string)).toEqual([
    expect.stringMatching(/^sinter: SINTER_DUMP: stages are not written to .*below: E\w+/),
  ]);
  warn.mockRestore();
});

test('an observer of its own hears of each stage once, in order', () => {
  vi.stubEnv('SINTER_DUMP', '');
  const recorded = parse(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[4]
  %1 = exp(%0) : f32[4]
  return %1
}`);
  const stages: CompileStage[] = [];
  compileGraph(recorded, gpuTarget, { observe: (stage) => void stages.push(stage) });
  const kinds = stages.map(({ kind }) => kind).filter((kind) => kind !== 'pass');
  expect(kinds).toEqual(['recorded', 'schedule', 'loop', 'program']);
  compileGraph(recorded, interpreterTarget, { observe: (stage) => void stages.push(stage) });
  expect(stages.at(-1)!.kind).toBe('recorded');
});

test('Loops that are lowered again replace those of the attempt before', () => {
  vi.stubEnv('SINTER_DUMP', '');
  const stages: CompileStage[] = [];
  const observe = (stage: CompileStage): void => void stages.push(stage);
  const ofOp = (op: string): void => {
    const recorded = parse(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[4]
  %1 = ${op}(%0) : f32[4]
  return %1
}`);
    compileGraph(recorded, gpuTarget, { observe });
  };
  ofOp('exp');
  ofOp('neg');
  const texts = filesOf();
  const files = stages.filter(({ kind }) => kind === 'loop').flatMap((stage) => texts(stage));
  expect(files.map((file) => [file.name, file.text === undefined])).toEqual([
    ['30-k00-map_exp_0.loop.txt', false],
    ['30-k00-map_exp_0.loop.txt', true],
    ['30-k00-map_neg_0.loop.txt', false],
  ]);
});
