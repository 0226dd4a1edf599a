// Tuning on the software device: results stay, the best of a few candidates is kept and found
// again, what is pinned is used, and nothing that goes wrong with a candidate reaches the caller.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { contractProblem } from '../../src/codegen/template/contract/problem.ts';
import { candidateTilings } from '../../src/codegen/template/contract/choose.ts';
import type { ContractTiling } from '../../src/codegen/template/contract/strategies.ts';
import { compileGraph } from '../../src/compile.ts';
import { ParseError, TensorError } from '../../src/errors.ts';
import type { Graph } from '../../src/ir/graph.ts';
import * as sn from '../../src/index.ts';
import type { Device } from '../../src/runtime/device.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { targetOf } from '../../src/schedule/target.ts';
import { device as current } from '../../src/tensor/device.ts';
import { parseBook } from '../../src/tune/book.ts';
import { scheduleKey } from '../../src/tune/key.ts';
import { measurePrograms } from '../../src/tune/measure.ts';
import { fastest, schedulesFor } from '../../src/tune/tune.ts';
import { Sketch } from '../codegen/cases.ts';

let folder: string;
let device: Device;
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-tune-'));
  device = await openDevice('webgpu:software');
  sn.setDevice('webgpu:software');
});
afterAll(() => {
  sn.setDevice(undefined);
  device.destroy();
  fs.rmSync(folder, { recursive: true, force: true });
});

test.for<[string, readonly number[], number | undefined]>([
  ['noise', [10, 9.8, 12], 0],
  ['what is clearly faster', [10, 9, 12], 1],
  ['a choice that does not run', [Infinity, 12, 11], 2],
  ['nothing that runs', [Infinity, Infinity], undefined],
])("the model's choice gives way to others but for noise: %s", ([, times, expected]) => {
  expect(fastest(times)).toBe(expected);
});

function product(): Graph {
  const s = new Sketch();
  return s.graph([s.matmul(s.input([48, 40]), s.input([40, 36]))]);
}

function problemOf(graph: Graph): ReturnType<typeof contractProblem> {
  const { inside } = compileGraph(graph, targetOf(device.facts), { inspect: true });
  const [kernel] = inside!.schedule.kernels;
  if (kernel?.body.kind !== 'contract') throw new Error('no contraction');
  return contractProblem(kernel, kernel.body);
}

test('a tuned function computes what it did, and keeps one schedule a kernel', async () => {
  const store = path.join(folder, 'function.json');
  const model = (x: sn.Tensor, w: sn.Tensor, b: sn.Tensor): sn.Tensor => x.matmul(w).add(b).relu().matmul(w);
  const inputs = [sn.randn([48, 40]), sn.randn([40, 40]), sn.randn([40])] as const;
  const tuned = sn.compile(model, { tune: { store } });
  const want = await model(...inputs).data();
  const got = await tuned(...inputs).data();
  want.forEach((value, i) => expect(Number(got[i])).toBeCloseTo(Number(value), 3));
  const book = parseBook(store, fs.readFileSync(store, 'utf8'));
  expect(book.size).toBe(2);
  const { entries } = sn.measuredSchedules();
  for (const [key, schedule] of book) expect(entries[key]).toEqual(schedule);

  // The same kernels again: nothing is measured.
  const measure = vi.spyOn(await current(), 'measure');
  const again = sn.compile(model, { tune: { store } });
  await again(...inputs).data();
  expect(measure).not.toHaveBeenCalled();
  measure.mockRestore();
});

test('the choice is one of the candidates, and is measured once', async () => {
  const problem = problemOf(product());
  const measure = vi.spyOn(device, 'measure');
  const found = await schedulesFor(product(), device, {}, undefined, { store: false });
  expect(measure).toHaveBeenCalled();
  expect(candidateTilings(problem, targetOf(device.facts))).toContainEqual(found(problem));
  measure.mockClear();
  await schedulesFor(product(), device, {}, undefined, { store: false });
  expect(measure).not.toHaveBeenCalled();
  measure.mockRestore();
});

test('a device without a clock is measured by waiting', async () => {
  const clockless = new Proxy(device, {
    get: (target, name) => {
      if (name === 'measure') return undefined;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const [program] = [compileGraph(product(), targetOf(device.facts)).program];
  const [time] = await measurePrograms(clockless, [program]);
  expect(time).toBeGreaterThan(0);
  expect(time).toBeLessThan(Infinity);
});

test('a candidate that the device refuses takes forever', async () => {
  const { program } = compileGraph(product(), targetOf(device.facts));
  const broken = { ...program, kernels: program.kernels.map((one) => ({ ...one, source: 'no kernel' })) };
  const wide = {
    ...program,
    kernels: program.kernels.map((one) => ({ ...one, workgroup: [4096, 1, 1] as const })),
  };
  const times = await measurePrograms(device, [broken, program, wide]);
  expect(times[0]).toBe(Infinity);
  expect(times[1]).toBeLessThan(Infinity);
  expect(times[2]).toBe(Infinity);
  await device.finish();
});

describe('a pinned schedule', () => {
  const pin: ContractTiling = { kind: 'registers', flip: false, rows: 2, columns: 12 };

  test('is used for its problem, and measured for no other', async () => {
    const problem = problemOf(product());
    const pinned = new Map([[scheduleKey(problem, device.facts), pin]]);
    const measure = vi.spyOn(device, 'measure');
    const found = await schedulesFor(product(), device, {}, pinned, { store: false });
    expect(measure).not.toHaveBeenCalled();
    measure.mockRestore();
    expect(found(problem)).toEqual(pin);
    expect(found({ ...problem, m: 4096 })).toBeUndefined();
    const { kernels } = compileGraph(product(), targetOf(device.facts), { schedules: found });
    expect(kernels[0]!.schedule).toContain('2x12 a register tile');
  });

  test('reaches the kernels of a compiled function', async () => {
    const key = scheduleKey(problemOf(product()), device.facts);
    const multiply = sn.compile((x: sn.Tensor, y: sn.Tensor) => x.matmul(y), {
      schedules: JSON.parse(JSON.stringify({ version: 1, entries: { [key]: pin } })) as sn.Schedules,
    });
    const [x, y] = [sn.randn([48, 40]), sn.randn([40, 36])];
    const [got, want] = [await multiply(x, y).data(), await x.matmul(y).data()];
    want.forEach((value, i) => expect(Number(got[i])).toBeCloseTo(Number(value), 3));
  });
});

test('the interpreter has nothing to measure', async () => {
  const reference = await openDevice('interpreter');
  const found = await schedulesFor(product(), reference, {}, undefined, { store: false });
  expect(found(problemOf(product()))).toBeUndefined();
});

test('options that make no sense are refused when they are given', () => {
  const fn = (x: sn.Tensor): sn.Tensor => x;
  const given = (options: unknown) => () => sn.compile(fn, options as sn.CompileFunctionOptions);
  expect(given({ tune: 'yes' })).toThrow(TensorError);
  expect(given({ tune: 'yes' })).toThrow(/compile: .*'yes'/);
  expect(given({ tune: { store: 7 } })).toThrow(/got 7/);
  expect(given({ tune: null })).toThrow(TensorError);
  expect(given({ schedules: {} })).toThrow(ParseError);
  expect(given({ schedules: {} })).toThrow('compile: schedules: expects { version: 1');
});
