// Contractions on matrix units: every schedule of random products and convolutions, whichever way
// they lie, computes what the reference does, without a race between copies and readers.

import { describe, expect, test } from 'vitest';

import { interpretLoop } from '../../support/interpret/run.ts';
import { lowerKernel } from '../../../src/codegen/lower/kernel.ts';
import { addInts, constant } from '../../../src/codegen/loop/builder.ts';
import type { Loop, Stmt, Value } from '../../../src/codegen/loop/loop.ts';
import { chosenTiling } from '../../../src/codegen/template/contract/choose.ts';
import type { ContractTiling } from '../../../src/codegen/template/contract/strategies.ts';
import type { Graph } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { emptyData, type HostArray } from '../../../src/ir/value.ts';
import { unsharedMemory } from '../../../src/schedule/memory/plan.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import { gpuTarget, type Target } from '../../../src/schedule/target.ts';
import '../../../src/compile/all.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { Sketch } from '../cases.ts';
import { graphOf, inputsOf, problemOf, product, tensorSchedules } from './mma-cases.ts';

const target: Target = {
  ...gpuTarget,
  subgroups: { min: 32, max: 32 },
  matrixUnits: ['f16', 'bf16', 'tf32'],
  limits: { ...gpuTarget.limits, workgroupBytes: 160 * 1024, workgroupInvocations: 1024 },
};

test('every schedule of a product on matrix units computes it', () => {
  checkLaw(60, product, (sizes) => {
    const graph = graphOf(sizes);
    const inputs = inputsOf(graph);
    const schedules = tensorSchedules(graph, target);
    const schedule = schedules[sizes.pick % schedules.length]!;
    const results = runLoops(target, graph, inputs, () => schedule);
    interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, 1e-2));
  });
});

test('so does every schedule of a convolution', () => {
  const s = new Sketch();
  const [x, w] = [s.input([2, 8, 9, 7], 'bf16'), s.input([24, 8, 3, 3], 'bf16')];
  const graph = s.graph([s.conv(x, w)]);
  const inputs = inputsOf(graph);
  const [want] = interpret(graph, inputs);
  const schedules = tensorSchedules(graph, target);
  expect(schedules.length).toBeGreaterThan(5);
  for (const schedule of schedules)
    expectClose(runLoops(target, graph, inputs, () => schedule)[0]!, want!, 1e-2);
});

describe('the model', () => {
  const squares = (dtype: 'f32' | 'bf16'): Graph => {
    const s = new Sketch();
    return s.graph([s.matmul(s.input([4096, 4096], dtype), s.input([4096, 4096], dtype))]);
  };
  const chosen = (m: number, k: number, n: number, dtype: 'f32' | 'bf16'): ContractTiling => {
    const s = new Sketch();
    const graph = s.graph([s.matmul(s.input([m, k], dtype), s.input([k, n], dtype))]);
    return chosenTiling(problemOf(graph, target), target);
  };

  test('takes matrix units for products of operands that they have, in tiles that fill the machine', () => {
    expect(chosen(4096, 4096, 4096, 'bf16')).toMatchObject({ kind: 'mma', rows: 64, columns: 64 });
    expect(chosen(256, 256, 256, 'bf16')).toMatchObject({ kind: 'mma' });
    expect(chosen(4096, 4096, 4096, 'f32')).toMatchObject({ kind: 'mma' });
    const { kind } = chosenTiling(problemOf(squares('f32'), gpuTarget), gpuTarget);
    expect(kind).toBe('staged');
  });

  test('shares k where there are few results', () => {
    expect(chosen(1, 4096, 4096, 'bf16').kind).toBe('split-k');
  });
});

describe('the Loop interpreter finds', () => {
  const s = new Sketch();
  const graph = s.graph([s.matmul(s.input([48, 160], 'bf16'), s.input([160, 64], 'bf16'))]);
  const schedule: ContractTiling = {
    kind: 'mma',
    flip: false,
    rows: 32,
    columns: 32,
    tileM: 64,
    tileN: 64,
    tileK: 32,
    stages: 3,
  };
  const inputs = inputsOf(graph);
  const [want] = interpret(graph, inputs);
  const [kernel] = scheduleGraph(graph, target, new Map()).kernels;
  const { loop } = lowerKernel(kernel!, target, unsharedMemory, new Map(), () => schedule);

  /** Runs the kernel with its statements replaced. */
  const check = (change: (stmt: Stmt) => Stmt | undefined): void => {
    const all = (body: readonly Stmt[]): Stmt[] =>
      body.flatMap((stmt): Stmt[] => {
        const changed = change(stmt);
        if (changed === undefined) return [];
        return changed.kind === 'for' ? [{ ...changed, body: all(changed.body) }] : [changed];
      });
    const changed: Loop = { ...loop, body: all(loop.body) };
    const out = emptyData('bf16', 48 * 64 + 4);
    const padded = inputs.map(({ data }) => {
      const whole = emptyData('bf16', data.length + 4);
      whole.set(data as never);
      return whole;
    });
    const names = changed.buffers.filter(({ space }) => space === 'global').map(({ name }) => name);
    interpretLoop(changed, new Map(names.map((name, i) => [name, [...padded, out][i]!])), [], 32);
    const result = { dtype: 'bf16', shape: [48, 64], data: out.slice(0, 48 * 64) } as const;
    expectClose(result as HostArray, want!, 1e-2);
  };

  test('nothing wrong with the kernel as it is', () => {
    check((stmt) => stmt);
  });

  test('a missing barrier between copies and their readers', () => {
    expect(() => check((stmt) => (stmt.kind === 'barrier' ? undefined : stmt))).toThrow(/race on tile_/);
  });

  test('a wait that leaves too many copies under way', () => {
    expect(() =>
      check((stmt) => (stmt.kind === 'asyncWait' ? { ...stmt, pending: stmt.pending + 1 } : stmt)),
    ).toThrow();
  });

  test('a matrix that was not transposed', () => {
    expect(() =>
      check((stmt) => (stmt.kind === 'loadMatrix' ? { ...stmt, transposed: false } : stmt)),
    ).toThrow();
  });

  test('rows of a matrix that are not aligned', () => {
    const off = (index: Value): Value => addInts(index, constant(4));
    expect(() =>
      check((stmt) => (stmt.kind === 'loadMatrix' ? { ...stmt, index: off(stmt.index) } : stmt)),
    ).toThrow(/not aligned to 8/);
  });
});
