// What a CUDA graph may run side by side: steps that use the same bytes keep their order, others wait for nothing.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { dependenciesOf, runStepsOf, withWaits } from '../../src/runtime/cuda/run-steps.ts';
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

/** A sum over two ranks of what a buffer has, into another one. */
function sumOf(from: number, to: number): Program['steps'][number] {
  const action = { kind: 'allReduce', monoid: 'sum' } as const;
  const axes = [{ size: 2, stride: 1 }];
  return { kind: 'collective', action, dtype: 'f32', ranks: 2, axes, from, sends: 256, to, takes: 256 };
}

/** Launches as `read>write`, collectives in brackets, waits as `|` and how many may go on. */
function told(source: Program, isAtOnce = false): string {
  const copied = source.outputs.map(() => false);
  return withWaits(source, runStepsOf(source, copied), isAtOnce)
    .map((step) => {
      if (step.kind === 'launch') return step.slots.join('>');
      if (step.kind === 'collective') return `[${step.from}>${step.to}]`;
      return step.kind === 'await' ? `|${step.but}` : step.kind;
    })
    .join(' ');
}

test('kernels go on beside a collective until one needs what comes, or overwrites what is sent', () => {
  const [first, second] = [steps(abc, [[0, 1]]).steps, steps(abc, [[0, 3]]).steps];
  const reads = steps(abc, [[2, 0]]).steps;
  const overwrites = steps(abc, [[3, 1]]).steps;
  const of = (...parts: readonly (readonly Program['steps'][number][])[]): Program => ({
    ...steps(abc, []),
    steps: parts.flat(),
  });
  expect(told(of(first, [sumOf(1, 2)], second, reads))).toBe('0>1 [1>2] 0>3 |0 2>0');
  expect(told(of(first, [sumOf(1, 2)], second, overwrites))).toBe('0>1 [1>2] 0>3 |0 3>1');
  // The end of a run is behind its collectives.
  expect(told(of(first, [sumOf(1, 2)], second))).toBe('0>1 [1>2] 0>3 |0');
  expect(told(of(first, [sumOf(1, 2)], second), true)).toBe('0>1 [1>2] |0 0>3');
  // The first of two is waited for, and the second goes on.
  expect(told(of(first, [sumOf(1, 2), sumOf(0, 3)], reads))).toBe('0>1 [1>2] [0>3] |0 2>0');
  const five = [...abc, f32('e', 'output', 64)];
  const two = { ...steps(five, []), steps: [sumOf(0, 1), sumOf(2, 3), ...steps(five, [[1, 4]]).steps] };
  expect(told(two)).toBe('[0>1] [2>3] |1 1>4 |0');
});

test('loops begin and end with no collective that goes on', () => {
  const body = [...steps(abc, [[0, 1]]).steps, sumOf(1, 2)];
  const source = {
    ...steps(abc, []),
    steps: [sumOf(0, 3), { kind: 'while', guard: 0, times: 3, steps: body }] as const,
  };
  const made = withWaits(source, runStepsOf(source, [false, false, false]), false);
  expect(made.map(({ kind }) => kind)).toEqual(['collective', 'await', 'while']);
  const [, , loop] = made;
  const inner = loop?.kind === 'while' ? loop.runSteps : [];
  expect(inner.map(({ kind }) => kind)).toEqual(['launch', 'collective', 'await']);
});

interface ArenaRegion {
  readonly start: number;
  readonly count: number;
}

const places: fc.Arbitrary<ArenaRegion[]> = fc.array(
  fc.record({ start: fc.nat({ max: 7 }), count: fc.integer({ min: 1, max: 4 }) }),
  { minLength: 2, maxLength: 6 },
);

/** Buffers at places of an arena, and whether two of them share bytes. */
function inArena(regions: readonly ArenaRegion[]): {
  readonly buffers: Program['buffers'];
  readonly meet: (a: number, b: number) => boolean;
} {
  const buffers = regions.map(({ start, count }, i) =>
    f32(`t${i}`, 'scratch', 64 * count, { arena: 0, offset: 256 * start }),
  );
  const meet = (a: number, b: number): boolean => {
    const [one, other] = [regions[a]!, regions[b]!];
    return one.start < other.start + other.count && other.start < one.start + one.count;
  };
  return { buffers, meet };
}

test('no step uses the bytes of a collective that goes on, unless both only read them', () => {
  const uses = fc.array(fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 5 }), fc.boolean()), { maxLength: 40 });
  fc.assert(
    fc.property(places, uses, (regions, all) => {
      const { buffers, meet } = inArena(regions);
      const source = {
        ...steps(buffers, []),
        steps: all.flatMap(([from, to, isCollective]) => {
          const [read, write] = [from % regions.length, to % regions.length];
          return isCollective ? [sumOf(read, write)] : steps(buffers, [[read, write]]).steps;
        }),
      };
      let open: (readonly [from: number, to: number])[] = [];
      for (const step of withWaits(source, runStepsOf(source, []), false)) {
        if (step.kind === 'collective') open.push([step.from, step.to]);
        else if (step.kind === 'await') {
          expect(step.but).toBeLessThan(open.length);
          open = open.slice(open.length - step.but);
        } else if (step.kind === 'launch') {
          const [read, write] = step.slots as [number, number];
          for (const [from, to] of open)
            expect(meet(read, to) || meet(write, to) || meet(write, from)).toBe(false);
        }
      }
      expect(open).toEqual([]);
    }),
  );
});

test('steps that share bytes, one of them writing, are ordered; all others are not', () => {
  const uses = fc.array(fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 5 })), { maxLength: 40 });
  fc.assert(
    fc.property(places, uses, (regions, pairs) => {
      const { buffers, meet } = inArena(regions);
      const chosen = pairs.map(([read, write]) => [read % regions.length, write % regions.length] as const);
      const graph = graphOf(steps(buffers, chosen));
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
