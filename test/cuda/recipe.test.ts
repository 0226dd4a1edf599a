// What a CUDA graph may run side by side: steps that use the same bytes keep their order, others wait for nothing.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { dependenciesOf, runStepsOf } from '../../src/runtime/cuda/run-steps.ts';
import type { Program, ProgramKernel } from '../../src/runtime/program.ts';
import { f32, program } from '../runtime/programs.ts';

function kernel(name: string, writes: readonly boolean[], usesScalars = false): ProgramKernel {
  const bindings = writes.map((write) => (write ? 'read_write' : 'read'));
  return {
    name,
    kind: 'map',
    source: '',
    workgroup: [64, 1, 1],
    bindings,
    usesScalars,
    flops: 0,
    bytes: 0,
  } as const;
}

/** Kernels that read and write given buffers. */
function steps(
  buffers: Program['buffers'],
  uses: readonly (readonly [read: number, write: number])[],
): Program {
  return program({
    target: 'cuda',
    kernels: [kernel('step', [false, true])],
    buffers,
    arenas: [1 << 20],
    steps: uses.map(([read, write]) => ({
      kind: 'dispatch',
      kernel: 0,
      buffers: [read, write],
      grid: [1, 1, 1],
    })),
  });
}

function graphOf(source: Program): readonly (readonly number[])[] {
  const runSteps = runStepsOf(
    source,
    source.outputs.map(() => false),
  );
  return dependenciesOf(source, runSteps);
}

const abc = [f32('a', 'input', 64), f32('b', 'output', 64), f32('c', 'output', 64), f32('d', 'output', 64)];

test('readers of one buffer do not wait for each other; its next writer waits for them', () => {
  expect(
    graphOf(
      steps(abc, [
        [0, 1],
        [0, 2],
        [1, 3],
        [2, 0],
      ]),
    ),
  ).toEqual([[], [], [0], [1, 0]]);
});

test('what follows from another dependency is left out', () => {
  const chain = steps(abc, [
    [0, 1],
    [1, 2],
    [2, 1],
    [1, 3],
  ]);
  expect(graphOf(chain)).toEqual([[], [0], [1], [2]]);
});

test('donated inputs and packs are the bytes of what lies in them', () => {
  const donated = {
    ...steps(abc, [
      [1, 2],
      [0, 3],
    ]),
    donated: [{ input: 0, output: 0 }],
  };
  expect(graphOf(donated)).toEqual([[], []]);
  const rewritten = {
    ...steps(abc, [
      [2, 1],
      [0, 3],
    ]),
    donated: [{ input: 0, output: 0 }],
  };
  expect(graphOf(rewritten)).toEqual([[], [0]]);
  const buffers = [...abc, f32('bc', 'output', 128)];
  const pack = {
    buffer: 4,
    members: [
      { buffer: 1, offset: 0 },
      { buffer: 2, offset: 256 },
    ],
  };
  const packed = {
    ...steps(buffers, [
      [0, 1],
      [0, 2],
      [4, 3],
    ]),
    outputs: [1, 2, 3],
    packs: [pack],
  };
  expect(graphOf(packed)).toEqual([[], [], [1, 0]]);
});

test('scalars are there before the kernels that use them', () => {
  const source = {
    ...steps(abc, [
      [0, 1],
      [0, 2],
    ]),
    kernels: [kernel('step', [false, true], true)],
    scalars: [
      { name: 'rate', dtype: 'f32' as const },
      { name: 'count', dtype: 'f32' as const, input: 0 },
    ],
  };
  const runSteps = runStepsOf(source, [false, false]);
  expect(runSteps.map(({ kind }) => kind)).toEqual(['upload', 'scalar', 'launch', 'launch']);
  expect(dependenciesOf(source, runSteps)).toEqual([[], [0], [1], [1]]);
});

test('steps that share bytes, one of them writing, are ordered; all others are not', () => {
  const places = fc.array(fc.record({ start: fc.nat({ max: 7 }), count: fc.integer({ min: 1, max: 4 }) }), {
    minLength: 2,
    maxLength: 6,
  });
  const uses = fc.array(fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 5 })), { maxLength: 40 });
  fc.assert(
    fc.property(places, uses, (regions, pairs) => {
      const buffers = regions.map(({ start, count }, i) =>
        f32(`t${i}`, 'scratch', 64 * count, { arena: 0, offset: 256 * start }),
      );
      const chosen = pairs.map(([read, write]) => [read % regions.length, write % regions.length] as const);
      const graph = graphOf(steps(buffers, chosen));
      const meet = (a: number, b: number): boolean => {
        const [one, other] = [regions[a]!, regions[b]!];
        return one.start < other.start + other.count && other.start < one.start + one.count;
      };
      const before = graph.map(() => new Set<number>());
      const needed = graph.map(() => new Set<number>());
      graph.forEach((after, i) => {
        for (const step of after) for (const earlier of [step, ...before[step]!]) before[i]!.add(earlier);
        const [read, write] = chosen[i]!;
        for (let k = 0; k < i; k++) {
          const [r, w] = chosen[k]!;
          if (!meet(w, read) && !meet(w, write) && !meet(r, write)) continue;
          for (const earlier of [k, ...needed[k]!]) needed[i]!.add(earlier);
        }
      });
      expect(before.map((set) => [...set].sort())).toEqual(needed.map((set) => [...set].sort()));
    }),
  );
});
