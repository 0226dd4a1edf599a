// Horizontal fusion: what is computed alike of different tensors is one kernel over packs, whatever the tensors' sizes and dtypes,
// and computes what separate kernels would; what depends on each other, or does not pay, stays apart.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { add, binary, broadcast, mul, reduce, sub, unary } from '../../src/ir/build.ts';
import type { DType } from '../../src/ir/dtype.ts';
import type { Graph, Node } from '../../src/ir/graph.ts';
import { dims } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../src/ir/value.ts';
import type { Device } from '../../src/runtime/device.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { gpuTarget, softwareTarget, targetOf } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';
import { runLoops, runOnDevice } from '../support/execute.ts';
import { checkLaw, seed } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';

/** Parameters of several shapes that take the same step; gradients and state of other dtypes than theirs. */
interface Group {
  readonly shapes: readonly (readonly number[])[];
  readonly dtype: DType;
  readonly slot: DType;
  /** How many slots each parameter has. */
  readonly slots: number;
  /** Whether gradients are computed by kernels of the same program. */
  readonly inner: boolean;
  readonly donated: boolean;
}

const shape = fc.oneof(
  fc.constantFrom([1], [], [3], [257], [4], [64], [65], [128, 2]),
  fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 }),
);
const groups: fc.Arbitrary<Group> = fc.record({
  shapes: fc.array(shape, { minLength: 2, maxLength: 9 }),
  dtype: fc.constantFrom<DType>('f32', 'f32', 'i32', 'f16', 'bf16'),
  slot: fc.constantFrom<DType>('f32', 'i32'),
  slots: fc.integer({ min: 0, max: 2 }),
  inner: fc.boolean(),
  donated: fc.boolean(),
});

/** p − rate·g, with running sums of g beside it; a count that every step raises and that all of them use. */
function step({ shapes, dtype, slot, slots, inner, donated }: Group): {
  graph: Graph;
  inputs: HostArray[];
  donate: ReadonlyMap<number, number>;
} {
  const s = new Sketch();
  const { b } = s;
  const cast = (x: Node, to: DType): Node =>
    x.dtype === to ? x : (b.add('cast', [x], { dtype: to }) as Node);
  const next = add(b, s.input([], 'i32'), 1);
  const outputs: Node[] = [next];
  const donate = new Map<number, number>();
  const give = (input: Node, output: Node): void => {
    if (donated && input.op === 'parameter') donate.set(input.attrs.index, outputs.length);
    outputs.push(output);
  };
  for (const at of shapes) {
    const p = s.input(at, dtype);
    const g = inner ? reduce(b, 'sum', s.input([3, ...at], slot), [0]) : s.input(at, slot);
    const rate = broadcast(b, cast(next, slot), at);
    let move = mul(b, g, rate);
    for (let k = 0; k < slots; k++) {
      const state = s.input(at, slot);
      move = add(b, state, mul(b, move, k + 2));
      give(state, move);
    }
    give(p, sub(b, p, cast(move, dtype)));
  }
  const graph = s.graph(outputs);
  const inputs = graph.parameters.map((parameter, i) =>
    randomArray(parameter.dtype, parameter.shape as number[], i + 1, 'tame'),
  );
  return { graph, inputs, donate };
}

const tolerance: Partial<Record<DType, number>> = { bf16: 2e-2, f16: 4e-3 };

function expectAll(actual: readonly HostArray[], expected: readonly HostArray[]): void {
  actual.forEach((got, i) => expectClose(got, expected[i]!, tolerance[got.dtype] ?? 1e-3));
}

describe('a random group', () => {
  let device: Device;
  beforeAll(async () => {
    device = await openDevice('webgpu:software');
  });

  test('runs without races, in bounds, and equals the interpreter', () => {
    checkLaw(120, groups, (group) => {
      const { graph, inputs, donate } = step(group);
      for (const target of [gpuTarget, softwareTarget])
        expectAll(runLoops(target, graph, inputs, undefined, donate), interpret(graph, inputs));
    });
  });

  test('equals the interpreter on the device', async () => {
    const limits = targetOf(device.facts).limits;
    await fc.assert(
      fc.asyncProperty(groups, fc.constantFrom(gpuTarget, softwareTarget), async (group, target) => {
        const { graph, inputs, donate } = step(group);
        const actual = await runOnDevice(device, { ...target, limits }, graph, inputs, donate);
        expectAll(actual, interpret(graph, inputs));
      }),
      { numRuns: 40, seed },
    );
    expect(await device.finish()).toBeUndefined();
  });

  test('of different sizes is one kernel', () => {
    const sizes = fc.uniqueArray(fc.integer({ min: 1, max: 300 }), { minLength: 3, maxLength: 9 });
    checkLaw(60, fc.tuple(groups, sizes), ([group, list]) => {
      const { graph, donate } = step({ ...group, shapes: list.map((size) => [size]), inner: false });
      expect(compileGraph(graph, gpuTarget, { donate }).kernels.length).toBe(1);
    });
  });
});

/** `count` vectors of different sizes from `size` on, and what `fn` makes of each. */
function vectors(count: number, size: number, fn: (s: Sketch, x: Node) => readonly Node[]): Graph {
  const s = new Sketch();
  return s.graph(Array.from({ length: count }, (_, i) => fn(s, s.input([size + i]))).flat());
}

const double = (s: Sketch, x: Node): Node => mul(s.b, x, 2);

test('a step over a hundred tensors is one kernel', () => {
  const { program } = compileGraph(
    vectors(100, 5, (s, x) => [double(s, x)]),
    gpuTarget,
  );
  expect(program.steps.length).toBe(1);
  expect(program.packs.map(({ members }) => members.length)).toEqual([100, 100]);
});

test('members of a pack lie at offsets that a binding may start at, without overlap', () => {
  const { program } = compileGraph(
    vectors(9, 50, (s, x) => [double(s, x)]),
    gpuTarget,
  );
  for (const { buffer, members } of program.packs) {
    let end = 0;
    for (const member of members) {
      expect(member.offset % 256).toBe(0);
      expect(member.offset).toBeGreaterThanOrEqual(end);
      end = member.offset + program.buffers[member.buffer]!.bytes;
    }
    expect(end).toBeLessThanOrEqual(program.buffers[buffer]!.bytes);
  }
});

test('donated tensors are overwritten as a pack', () => {
  const s = new Sketch();
  const parts = [3, 70, 1].map((size) => [s.input([size]), s.input([size])] as const);
  const graph = s.graph(parts.map(([p, g]) => sub(s.b, p, mul(s.b, g, 0.1))));
  const donate = new Map([
    [0, 0],
    [2, 1],
    [4, 2],
  ]);
  const { program } = compileGraph(graph, gpuTarget, { donate });
  expect(program.steps.length).toBe(1);
  expect(program.donated).toEqual([0, 1, 2].map((i) => ({ output: i, input: 2 * i })));
  expect(program.packs.length).toBe(2);
});

test('a result and what is computed from it are never one kernel', () => {
  const graph = vectors(6, 30, (s, x) => {
    const y = double(s, x);
    const rest = broadcast(s.b, reduce(s.b, 'sum', y, [0]), dims(x));
    return [y, mul(s.b, add(s.b, rest, 1), 2)];
  });
  const { kernels } = compileGraph(graph, gpuTarget, { check: true });
  const inputs = graph.parameters.map(({ dtype, shape }, i) =>
    randomArray(dtype, shape as number[], i + 1, 'tame'),
  );
  expect(kernels.length).toBeGreaterThan(1);
  expectAll(runLoops(gpuTarget, graph, inputs), interpret(graph, inputs));
});

test('different functions are no pack, but run together', () => {
  const s = new Sketch();
  const [x, y] = [s.input([30]), s.input([40])];
  const graph = s.graph([mul(s.b, x, 2), mul(s.b, y, 3)]);
  const { program, kernels } = compileGraph(graph, gpuTarget);
  expect(program.packs).toEqual([]);
  expect(kernels.map(({ kind }) => kind)).toEqual(['batched-dispatch']);
});

test('operands of commutative operations may stand in any order', () => {
  const s = new Sketch();
  const c = s.b.add('cast', [s.input([], 'i32')], { dtype: 'f32' }) as Node;
  const [x, y] = [s.input([30]), s.input([40])];
  const one = binary(s.b, 'mul', unary(s.b, 'exp', x), broadcast(s.b, c, [30]));
  const other = binary(s.b, 'mul', broadcast(s.b, c, [40]), unary(s.b, 'exp', y));
  expect(compileGraph(s.graph([one, other]), gpuTarget).kernels.length).toBe(1);
});

test('what would have to be moved at every run stays apart, unless that is little next to the launches saved', () => {
  const pair = (size: number): Graph =>
    vectors(8, size, (s, x) => [add(s.b, x, mul(s.b, s.input(dims(x)), 2))]);
  expect(compileGraph(pair(1000), gpuTarget).kernels.length).toBe(1);
  expect(compileGraph(pair(1_000_000), gpuTarget).kernels.length).toBe(8);
  // Nothing to return: every input is a stray.
  const sums = vectors(2, 100, (s, x) => [
    reduce(s.b, 'sum', s.b.add('concat', [double(s, x), x], { axis: 0 }) as Node, [0]),
  ]);
  expect(compileGraph(sums, gpuTarget).program.packs).toEqual([]);
});

test('no pack grows beyond what a binding may span', () => {
  const bindingBytes = 4096;
  const target = { ...gpuTarget, limits: { ...gpuTarget.limits, bindingBytes } };
  const { program } = compileGraph(
    vectors(40, 100, (s, x) => [double(s, x)]),
    target,
  );
  expect(program.packs.length).toBeGreaterThan(4);
  for (const { buffer } of program.packs)
    expect(program.buffers[buffer]!.bytes).toBeLessThanOrEqual(bindingBytes);
  // All but one that was left over, perhaps.
  expect(program.packs.flatMap(({ members }) => members).length).toBeGreaterThanOrEqual(78);
});

test('a tensor that two members would read is in one pack, once', () => {
  const s = new Sketch();
  const x = s.input([50]);
  const outputs = [1, 2, 3].map(() => add(s.b, x, s.input([50])));
  const graph = s.graph([...outputs, add(s.b, s.input([60]), s.input([60]))]);
  const { program } = compileGraph(graph, gpuTarget);
  const members = program.packs.flatMap((pack) => pack.members.map(({ buffer }) => buffer));
  expect(new Set(members).size).toBe(members.length);
  const inputs = graph.parameters.map(({ dtype, shape }, i) =>
    randomArray(dtype, shape as number[], i + 1, 'tame'),
  );
  expectAll(runLoops(gpuTarget, graph, inputs), interpret(graph, inputs));
});
