// Convolutions by warp groups: every schedule of random ones whose operands can be copied by tiles computes what
// the reference does, whatever stands at the ends of lines; others keep the kernels that they have.

import { describe, expect, test } from 'vitest';

import { lowerKernel } from '../../../../src/codegen/lower/kernel.ts';
import type { Loop, Stmt } from '../../../../src/codegen/loop/loop.ts';
import { chosenTiling } from '../../../../src/codegen/template/contract/choose.ts';
import { binary } from '../../../../src/ir/build.ts';
import type { Graph, Node, NodeOf } from '../../../../src/ir/graph.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import { emptyData, type HostArray } from '../../../../src/ir/value.ts';
import { unsharedMemory } from '../../../../src/schedule/memory/plan.ts';
import { scheduleGraph } from '../../../../src/schedule/schedule.ts';
import { cudaTarget, gpuTarget, type Target } from '../../../../src/schedule/target.ts';
import '../../../../src/compile/all.ts';
import { runLoops } from '../../../support/execute.ts';
import { interpretLoop } from '../../../support/interpret/run.ts';
import { checkLaw } from '../../../support/property.ts';
import { expectClose } from '../../../support/random/graph.ts';
import { Sketch } from '../../cases.ts';
import { inputsOf } from '../mma-cases.ts';
import { problemOf } from '../product-graph.ts';
import {
  convolution,
  convolutionGraph,
  laidInputs,
  prepared,
  warpgroupSchedules,
  type PickedConvolution,
} from '../wgmma-cases.ts';

const hopper: Target = { ...cudaTarget, warpgroups: true };
/** Few multiprocessors, so that each has several tiles; laying out a weight takes no time, so that small ones are. */
const target: Target = {
  ...hopper,
  launch: 0,
  bandwidth: Infinity,
  cores: { count: 3, invocations: 2048 },
};

test('every schedule of a convolution by warp groups computes it', () => {
  checkLaw(12, convolution, (picked) => {
    const graph = convolutionGraph(picked);
    const inputs = inputsOf(graph);
    const schedules = warpgroupSchedules(prepared(graph, target), target);
    expect(schedules.length).toBeGreaterThan(5);
    const schedule = schedules[picked.pick % schedules.length]!;
    const results = runLoops(target, graph, inputs, () => schedule);
    interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, 1e-2));
  });
});

/** 3 × 3 taps at every place of pictures of 7 × 8. */
const plain: PickedConvolution = {
  dtype: 'bf16',
  images: 2,
  channels: 64,
  outputs: 64,
  axes: [
    { size: 7, taps: 3, dilation: 1 },
    { size: 8, taps: 3, dilation: 1 },
  ],
  above: 1,
  left: 1,
  epilogue: false,
  pick: 0,
};

test.each([Number.NaN, Infinity])('%s at the ends of lines is seen by its neighbours alone', (special) => {
  const graph = convolutionGraph(plain);
  const inputs = inputsOf(graph);
  const data = inputs[0]!.data as unknown as { [index: number]: number };
  // The last place of the fourth line of one channel, and the first place of the first line of another image.
  for (const at of [3 * 56 + 3 * 8 + 7, (64 + 5) * 56]) data[at] = special;
  const schedules = warpgroupSchedules(prepared(graph, target), target);
  const [found] = runLoops(target, graph, inputs, () => schedules[0]!);
  const [want] = interpret(graph, inputs);
  expectClose(found!, want!, 1e-2);
  const odd = [...(found!.data as Iterable<number>)].filter((value) => !Number.isFinite(value)).length;
  // Six places of one line and its neighbours, and four in a corner, of 64 outputs.
  expect(odd).toBe((6 + 4) * 64);
});

test('pictures whose places are no multiple of 8 get lines of zeros', () => {
  const s = new Sketch();
  const graph = s.graph([s.conv(s.input([8, 512, 14, 14], 'bf16'), s.input([512, 512, 3, 3], 'bf16'))]);
  const { kernels } = scheduleGraph(prepared(graph, hopper), hopper, new Map());
  const stored = kernels.flatMap(({ writes }) => writes.map(({ node }) => node.shape));
  expect(stored).toContainEqual([8, 512, 16, 14]);
  expect(problemOf(prepared(graph, hopper), hopper)).toMatchObject({ tiled: true, n: 14 * 14 });
});

describe('a convolution keeps its kernel', () => {
  type Attrs = Partial<NodeOf<'conv'>['attrs']>;
  const graphOf = (
    shape: readonly number[],
    weight: readonly number[],
    attrs: Attrs = {},
    dtype: 'bf16' | 'f32' = 'bf16',
  ): Graph => {
    const s = new Sketch();
    return s.graph([s.conv(s.input(shape, dtype), s.input(weight, dtype), attrs)]);
  };
  const kindOf = (graph: Graph, on: Target): string =>
    chosenTiling(problemOf(prepared(graph, on), on), on).kind;
  const large = graphOf([8, 64, 56, 56], [64, 64, 3, 3]);

  test('unless it is large, of 16 bits, and taps move along whole lines', () => {
    expect(kindOf(large, hopper)).toBe('wgmma');
    const others: Record<string, Graph> = {
      'of few results': graphOf([1, 64, 8, 8], [64, 64, 3, 3]),
      'of f32': graphOf([8, 64, 56, 56], [64, 64, 3, 3], {}, 'f32'),
      'by strides': graphOf([8, 64, 56, 56], [64, 64, 3, 3], { strides: [2, 2] }),
      'with gaps': graphOf([8, 64, 56, 56], [64, 64, 3, 3], { lhsDilation: [2, 2] }),
      'of shorter lines': graphOf([8, 64, 56, 56], [64, 64, 3, 3], { padLow: [1, 0] }),
      'of groups': graphOf([8, 128, 56, 56], [128, 64, 3, 3], { groups: 2 }),
      'of few channels': graphOf([8, 8, 56, 56], [64, 8, 3, 3]),
      'of channels that no device can count': graphOf([8, 60, 56, 56], [64, 60, 3, 3]),
    };
    for (const [name, graph] of Object.entries(others)) {
      expect([name, problemOf(prepared(graph, hopper), hopper).tiled]).toEqual([name, undefined]);
      expect([name, scheduleGraph(prepared(graph, hopper), hopper, new Map()).kernels.length]).toEqual([
        name,
        1,
      ]);
    }
  });

  test('where there are no warp groups', () => {
    for (const on of [cudaTarget, gpuTarget])
      expect(scheduleGraph(prepared(large, on), on, new Map()).kernels.length).toBe(1);
  });

  test('if its input is a view of other elements', () => {
    const s = new Sketch();
    const last = s.b.add('permute', [s.input([8, 56, 56, 64], 'bf16')], { order: [0, 3, 1, 2] }) as Node;
    const graph = s.graph([s.conv(last, s.input([64, 64, 3, 3], 'bf16'))]);
    expect(problemOf(prepared(graph, hopper), hopper).tiled).toBe(undefined);
    expect(scheduleGraph(prepared(graph, hopper), hopper, new Map()).kernels.length).toBe(1);
  });
});

test('what a convolution reads is stored, if it is computed from what is there', () => {
  const s = new Sketch();
  const x = binary(s.b, 'max', s.input([8, 64, 56, 56], 'bf16'), 0);
  const graph = s.graph([s.conv(x, s.input([64, 64, 3, 3], 'bf16'))]);
  expect(problemOf(prepared(graph, hopper), hopper).tiled).toBe(true);
});

describe('the Loop interpreter finds', () => {
  const graph = convolutionGraph(plain);
  const inputs = inputsOf(graph);
  const [want] = interpret(graph, inputs);
  const { kernels } = scheduleGraph(prepared(graph, target), target, new Map());
  const kernel = kernels.find(({ body }) => body.kind === 'contract')!;
  const schedule = warpgroupSchedules(prepared(graph, target), target).at(-1)!;
  const { loop } = lowerKernel(kernel, target, unsharedMemory, new Map(), () => schedule);
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
  const check = (change: Change): void => {
    const out = emptyData('bf16', 2 * 64 * 56 + 4);
    const padded = new Map<string, HostArray['data']>();
    const names = loop.buffers.filter(({ space }) => space === 'global').map(({ name }) => name);
    for (const [i, data] of [...laidInputs(inputs).map((each) => each.data), out].entries()) {
      const whole = i === 2 ? out : emptyData('bf16', data.length + 4);
      if (i < 2) whole.set(data as never);
      padded.set(names[i]!, whole);
    }
    interpretLoop(changed(change), padded, [], 32);
    const result = { dtype: 'bf16', shape: [2, 64, 7, 8], data: out.slice(0, 2 * 64 * 56) } as const;
    expectClose(result as HostArray, want!, 1e-2);
  };

  test('nothing wrong with the kernel as it is', () => {
    check((stmt) => stmt);
  });

  test('what is cleared before its copy has come', () => {
    const isWait = (stmt: Stmt): boolean => stmt.kind === 'awaitBarrier' && stmt.barrier === 'full';
    expect(() => check((stmt) => (isWait(stmt) ? undefined : stmt))).toThrow(
      /nobody wrote it|before its copy has come/,
    );
  });

  test('what is cleared and not published', () => {
    expect(() => check((stmt) => (stmt.kind === 'publishTiles' ? undefined : stmt))).toThrow(
      /cleared a part, and did not publish that/,
    );
  });

  test('what is not cleared', () => {
    expect(() => check((stmt) => (stmt.kind === 'clearTile' ? undefined : stmt))).toThrow(/element \d+/);
  });

  test('products that do not wait for what is cleared', () => {
    const early: Change = (stmt) =>
      stmt.kind === 'awaitBarrier' && stmt.barrier === 'ready' ? { ...stmt, barrier: 'full' } : stmt;
    expect(() => check(early)).toThrow(/race on line|is cleared/);
  });

  test('arrivals that not all make', () => {
    const fewer: Change = (stmt) =>
      stmt.kind === 'initBarrier' && stmt.barrier === 'ready' ? { ...stmt, count: 65 } : stmt;
    expect(() => check(fewer)).toThrow(/deadlock/);
  });
});
