// Products by warp groups: every schedule of random products whose operands can be copied by tiles,
// whichever way they lie, computes what the reference does, by mbarriers that leave nothing to
// chance; and each fault of such a protocol is found.

import { describe, expect, test } from 'vitest';

import { addInts, constant, operation } from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import { lowerKernel } from '../../../src/codegen/lower/kernel.ts';
import type { Loop, Stmt, Value, WarpgroupStmt } from '../../../src/codegen/loop/loop.ts';
import type { ContractProblem } from '../../../src/codegen/template/contract/problem.ts';
import { chosenTiling, legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import type { ContractTiling } from '../../../src/codegen/template/contract/strategies.ts';
import { verifyLoop } from '../../../src/codegen/loop/verify.ts';
import { binary, slice } from '../../../src/ir/build.ts';
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
import { inputsOf } from './mma-cases.ts';
import { graphOf, problemOf } from './product-graph.ts';
import { product, warpgroupSchedules } from './wgmma-cases.ts';

/** Few multiprocessors, so that each has several tiles. */
const target: Target = {
  ...gpuTarget,
  subgroups: { min: 32, max: 32 },
  matrixUnits: ['f16', 'bf16'],
  warpgroups: true,
  cores: { count: 3, invocations: 2048 },
  limits: { ...gpuTarget.limits, workgroupBytes: 227 * 1024, workgroupInvocations: 1024 },
};
const hopper: Target = { ...target, warpgroups: true, cores: { count: 132, invocations: 2048 } };

test('every schedule of a product by warp groups computes it', () => {
  checkLaw(40, product, (sizes) => {
    const graph = graphOf(sizes);
    const inputs = inputsOf(graph);
    const schedules = warpgroupSchedules(graph, target);
    const isTiled = problemOf(graph, target).tiled === true && sizes.n > 1;
    expect(schedules.length > 5).toBe(isTiled);
    if (!isTiled) return;
    const schedule = schedules[sizes.pick % schedules.length]!;
    const results = runLoops(target, graph, inputs, () => schedule);
    interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, 1e-2));
  });
});

describe('operands that are copied by tiles', () => {
  const tiled = (make: (s: Sketch) => Graph): boolean => problemOf(make(new Sketch()), target).tiled === true;

  test('lie along k or along the free axis, at strides of 16 bytes', () => {
    const shapes = (m: number, k: number, n: number) => (s: Sketch) =>
      s.graph([s.matmul(s.input([m, k], 'bf16'), s.input([k, n], 'bf16'))]);
    expect(tiled(shapes(64, 64, 64))).toBe(true);
    expect(tiled(shapes(61, 64, 64))).toBe(true);
    expect(tiled(shapes(64, 60, 64))).toBe(false);
    expect(tiled(shapes(64, 64, 60))).toBe(false);
  });

  test('may be a part of something larger that begins at 16 bytes', () => {
    const part = (start: number) => (s: Sketch) => {
      const x = slice(s.b, s.input([64, 80], 'bf16'), [0, start], [64, 64]);
      return s.graph([s.matmul(x, s.input([64, 64], 'bf16'))]);
    };
    expect(tiled(part(8))).toBe(true);
    expect(tiled(part(4))).toBe(false);
  });

  test('may be heads: their maps have lines further apart than batches last', () => {
    const heads = {
      batch: 8,
      m: 128,
      n: 64,
      k: 64,
      lhs: 'heads',
      sharedRhs: false,
      epilogue: false,
    } as const;
    const graph = graphOf({ ...heads, dtype: 'bf16', turnLhs: false, turnRhs: false });
    const [schedule] = warpgroupSchedules(graph, target);
    const [kernel] = scheduleGraph(graph, target, new Map()).kernels;
    const { loop } = lowerKernel(kernel!, target, unsharedMemory, new Map(), () => schedule);
    const [map] = loop.tileMaps!;
    expect([map!.sizes, map!.strides]).toEqual([
      [64, 8, 128],
      [1, 64, 512],
    ]);
  });

  test('are none that are repeated lines: no map has a stride of 0', () => {
    const row = { batch: 1, n: 64, k: 64, lhs: 'repeated', sharedRhs: false, epilogue: false } as const;
    for (const turnLhs of [false, true]) {
      const repeated = (m: number): Graph => graphOf({ ...row, m, dtype: 'bf16', turnLhs, turnRhs: false });
      expect(problemOf(repeated(64), target).tiled).toBe(undefined);
    }
    // One line is not repeated.
    const one = graphOf({ ...row, m: 1, dtype: 'bf16', turnLhs: false, turnRhs: false });
    expect(problemOf(one, target).tiled).toBe(true);
  });

  test('are none whose strides are no multiples of each other', () => {
    // Every other one of `lines` lines: 2·64 elements apart, batches lines·64.
    const everyOther = (lines: number) => (s: Sketch) => {
      const all = s.input([3, lines, 64], 'bf16');
      const x = slice(s.b, all, [0, 0, 0], [3, 32, 64], [1, 2, 1]);
      return s.graph([s.dot(x, s.input([3, 64, 64], 'bf16'), [0], [0], [2], [1])]);
    };
    expect(tiled(everyOther(80))).toBe(true);
    expect(tiled(everyOther(81))).toBe(false);
  });

  test('are none that are computed', () => {
    expect(
      tiled((s) => {
        const x = binary(s.b, 'mul', s.input([64, 64], 'bf16'), 0.5);
        return s.graph([s.matmul(x, s.input([64, 64], 'bf16'))]);
      }),
    ).toBe(false);
    expect(
      tiled((s) => s.graph([s.conv(s.input([2, 8, 9, 7], 'bf16'), s.input([24, 8, 3, 3], 'bf16'))])),
    ).toBe(false);
  });
});

test('a result may take the place of what the epilogue reads, not of an operand', () => {
  const s = new Sketch();
  const [x, y] = [s.input([192, 192], 'bf16'), s.input([192, 192], 'bf16')];
  const old = s.input([192, 192], 'bf16');
  const graph = s.graph([binary(s.b, 'add', s.matmul(x, y), old)]);
  const inputs = inputsOf(graph);
  const [want] = interpret(graph, inputs);
  const kinds: string[] = [];
  const pinned = (problem: ContractProblem): ContractTiling | undefined => {
    kinds.push(problem.tiled === true ? 'tiled' : 'staged');
    return legalTilings(problem, target)[0];
  };
  for (const parameter of [0, 2]) {
    const [found] = runLoops(target, graph, inputs, pinned, new Map([[parameter, 0]]));
    expectClose(found!, want!, 1e-2);
  }
  expect(kinds.at(-1)).toBe('tiled');
});

describe('the model', () => {
  const chosen = (m: number, k: number, n: number, by: Target): ContractTiling => {
    const s = new Sketch();
    const graph = s.graph([s.matmul(s.input([m, k], 'bf16'), s.input([k, n], 'bf16'))]);
    return chosenTiling(problemOf(graph, by), by);
  };

  test('takes warp groups for large products, in tiles that fill the machine', () => {
    expect(chosen(8192, 8192, 8192, hopper)).toMatchObject({ kind: 'wgmma', tileM: 128, tileN: 256 });
    expect(chosen(1024, 1024, 1024, hopper)).toMatchObject({ kind: 'wgmma' });
    const { warpgroups: _, ...without } = hopper;
    expect(chosen(8192, 8192, 8192, without).kind).toBe('mma');
  });

  test('shares k where there are few results', () => {
    expect(chosen(1, 4096, 4096, hopper).kind).toBe('split-k');
  });
});

describe('the Loop interpreter finds', () => {
  const s = new Sketch();
  const graph = s.graph([s.matmul(s.input([192, 320], 'bf16'), s.input([320, 128], 'bf16'))]);
  const schedule: ContractTiling = {
    kind: 'wgmma',
    flip: false,
    rows: 64,
    columns: 64,
    tileM: 128,
    tileN: 64,
    tileK: 64,
    stages: 3,
  };
  const inputs = inputsOf(graph);
  const [want] = interpret(graph, inputs);
  const [kernel] = scheduleGraph(graph, target, new Map()).kernels;
  const { loop } = lowerKernel(kernel!, target, unsharedMemory, new Map(), () => schedule);

  type Change = (stmt: Stmt) => Stmt | undefined;
  const changed = (change: Change): Loop => {
    const all = (body: readonly Stmt[]): Stmt[] =>
      body.flatMap((stmt): Stmt[] => {
        const now = change(stmt);
        if (now === undefined) return [];
        if (now.kind === 'for') return [{ ...now, body: all(now.body) }];
        if (now.kind !== 'if') return [now];
        return [{ ...now, then: all(now.then), ...(now.else !== undefined && { else: all(now.else) }) }];
      });
    return { ...loop, body: all(loop.body) };
  };
  /** Runs the kernel with its statements replaced. */
  const check = (change: Change): void => {
    const out = emptyData('bf16', 192 * 128 + 4);
    const padded = inputs.map(({ data }) => {
      const whole = emptyData('bf16', data.length + 4);
      whole.set(data as never);
      return whole;
    });
    const names = loop.buffers.filter(({ space }) => space === 'global').map(({ name }) => name);
    interpretLoop(changed(change), new Map(names.map((name, i) => [name, [...padded, out][i]!])), [], 32);
    const result = { dtype: 'bf16', shape: [192, 128], data: out.slice(0, 192 * 128) } as const;
    expectClose(result as HostArray, want!, 1e-2);
  };
  const only =
    <Kind extends WarpgroupStmt['kind']>(
      kind: Kind,
      change: (stmt: Extract<Stmt, { kind: Kind }>) => Stmt | undefined,
    ): Change =>
    (stmt) =>
      stmt.kind === kind ? change(stmt as Extract<Stmt, { kind: Kind }>) : stmt;
  const of = (barrier: string, stmt: { readonly barrier: string }): boolean => stmt.barrier === barrier;
  const turned = (parity: Value): Value => operation('sub', [constant(1), parity], 'i32');

  test('nothing wrong with the kernel as it is', () => {
    check((stmt) => stmt);
    verifyLoop(loop, target.limits);
  });

  test('mbarriers that others use before a barrier', () => {
    expect(() => check((stmt) => (stmt.kind === 'barrier' ? undefined : stmt))).toThrow(
      /no barrier lies between that and its making/,
    );
  });

  test('copies that nobody waited for', () => {
    const change = only('awaitBarrier', (stmt) => (of('full', stmt) ? undefined : stmt));
    expect(() => check(change)).toThrow(/is read (before its copy has come|but nobody wrote it)/);
  });

  test('a wait for the wrong phase', () => {
    const change = (barrier: string): Change =>
      only('awaitBarrier', (stmt) => (of(barrier, stmt) ? { ...stmt, parity: turned(stmt.parity) } : stmt));
    expect(() => check(change('full'))).toThrow(/is read (before its copy has come|but nobody wrote it)/);
    expect(() => check(change('empty'))).toThrow(/deadlock/);
  });

  test('slots that are filled before they are empty', () => {
    const change = only('awaitBarrier', (stmt) => (of('empty', stmt) ? undefined : stmt));
    expect(() => check(change)).toThrow(/1 arrive at full\[0\], and one more/);
  });

  test('slots that are given back while they are multiplied', () => {
    expect(() => check(only('wgmmaWait', (stmt) => ({ ...stmt, pending: stmt.pending + 1 })))).toThrow(
      /is overwritten while warp \d+ multiplies it/,
    );
  });

  test('a slot that one warp gives back for all', () => {
    const early = (count: number): Change =>
      only('initBarrier', (stmt) => (of('empty', stmt) ? { ...stmt, count } : stmt));
    expect(() => check(early(7))).toThrow(/no mbarrier orders|is overwritten while/);
    expect(() => check(early(9))).toThrow(/deadlock/);
  });

  test('bytes that were not announced, or never come', () => {
    const expecting = (more: number): Change =>
      only('arrive', (stmt) => (stmt.bytes === 0 ? stmt : { ...stmt, bytes: stmt.bytes + more }));
    expect(() => check(expecting(-64 * 64 * 2))).toThrow(/ends before all that is copied for it has come/);
    expect(() => check(expecting(2))).toThrow(/deadlock/);
  });

  test('sums that are used before they are there, or added to before a fence', () => {
    expect(() => check(only('wgmmaWait', () => undefined))).toThrow();
    expect(() => check(only('wgmmaFence', () => undefined))).toThrow(/before a fence/);
  });

  test('operands that lie the other way, or begin elsewhere', () => {
    expect(() =>
      check(only('wgmma', (stmt) => ({ ...stmt, lhs: { ...stmt.lhs!, alongK: !stmt.lhs!.alongK } }))),
    ).toThrow();
    expect(() =>
      check(
        only('wgmma', (stmt) => ({
          ...stmt,
          rhs: { ...stmt.rhs, index: addInts(stmt.rhs.index, constant(64)) },
        })),
      ),
    ).toThrow(/is where no operand can begin/);
  });

  test('statements that part a warp group', () => {
    const lane: Value = { kind: 'builtin', of: 'local', axis: 0, type: 'i32', width: 1 };
    const parted: Stmt = {
      kind: 'if',
      condition: operation('lt', [lane, constant(32)], 'bool'),
      then: [{ kind: 'wgmmaFence', sums: [] }],
    };
    expect(() => verifyLoop({ ...loop, body: [parted] })).toThrow(/parts a warp group/);
  });

  test('tiles that other statements touch', () => {
    const store: Stmt = {
      kind: 'store',
      buffer: 'tile_lhs',
      index: constant(0),
      value: constant(0, 'f32'),
      owned: true,
    };
    expect(() => verifyLoop({ ...loop, body: [store] })).toThrow(/knows nothing of how tile_lhs lies/);
  });

  test('maps that no device takes', () => {
    const [map] = loop.tileMaps!;
    const refuses = (change: object, message: RegExp): void =>
      expect(() => verifyLoop({ ...loop, tileMaps: [{ ...map!, ...change }, loop.tileMaps![1]!] })).toThrow(
        message,
      );
    refuses({ offset: 4 }, /multiple of 8 elements/);
    refuses({ strides: [1, 324] }, /multiples of 8 elements/);
    refuses({ strides: [1, 0] }, /multiples of 8 elements/);
    refuses({ sizes: [320, 8, 2], strides: [1, 320, 480], box: [64, 1, 1] }, /each of the one before/);
    refuses({ sizes: [320, 193] }, /ends at element/);
    refuses({ box: [64, 512] }, /boxes are 1 to 256 elements/);
  });
});
