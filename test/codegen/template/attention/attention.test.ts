// Attention as one kernel: found from plain operations, equal to the reference interpreter with and without gradients, for any
// mask, shape and head size, on both kinds of schedule.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';

import { compileGraph } from '../../../../src/compile.ts';
import { explain } from '../../../../src/explain/explain.ts';
import * as sn from '../../../../src/index.ts';
import type { Tensor } from '../../../../src/index.ts';
import type { Graph } from '../../../../src/ir/graph.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import { parse } from '../../../../src/ir/text/parse.ts';
import { sizeOf } from '../../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../../src/ir/value.ts';
import type { Device } from '../../../../src/runtime/device.ts';
import { openDevice } from '../../../../src/runtime/registry.ts';
import {
  cTarget,
  cudaTarget,
  gpuTarget,
  softwareTarget,
  targetOf,
  wasmTarget,
  withVectors,
  type Target,
} from '../../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../../support/execute.ts';
import { checkLaw, seed } from '../../../support/property.ts';
import { expectClose } from '../../../support/random/graph.ts';

type Triple = readonly [Tensor, Tensor, Tensor];

/** A GPU as most adapters are: ten storage buffers, so that a masked backward pass fits. */
const roomyTarget: Target = { ...gpuTarget, limits: { ...gpuTarget.limits, storageBuffers: 10 } };

function graphOf(fn: (...args: never[]) => unknown, ...args: readonly unknown[]): Graph {
  return parse(explain(fn, ...args).graph);
}

function kindsOf(graph: Graph, target: Target = gpuTarget): readonly string[] {
  return compileGraph(graph, target, { check: true }).kernels.map(({ kind }) => kind);
}

/** Values for a graph's parameters: numbers in [-2, 2), bools mostly true. */
function valuesFor(graph: Graph, random: () => number): HostArray[] {
  return graph.parameters.map(({ dtype, shape }) => {
    const draw = (): number => (dtype === 'bool' ? Number(random() < 0.7) : random() * 4 - 2);
    return hostArray(
      dtype,
      shape as readonly number[],
      Array.from({ length: sizeOf(shape as number[]) }, draw),
    );
  });
}

function randomOf(from: number): () => number {
  let state = from;
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state / 0x80000000;
  };
}

describe('recognition', () => {
  const heads = [2, 4, 32, 16];
  const qkv = (): Triple => [sn.zeros(heads), sn.zeros(heads), sn.zeros(heads)];

  test('attention is one kernel, causal, masked or neither', () => {
    expect(kindsOf(graphOf(sn.scaledDotProductAttention, ...qkv()))).toEqual(['attention']);
    const causal = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
      sn.scaledDotProductAttention(q, k, v, { isCausal: true });
    expect(kindsOf(graphOf(causal, ...qkv()))).toEqual(['attention']);
    const masked = (q: Tensor, k: Tensor, v: Tensor, mask: Tensor): Tensor =>
      sn.scaledDotProductAttention(q, k, v, { mask });
    const mask = sn.zeros([2, 1, 32, 32], { dtype: 'bool' });
    expect(kindsOf(graphOf(masked, ...qkv(), mask))).toEqual(['attention']);
  });

  test('so are the plain operations, in another layout and with another score', () => {
    const plain = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
      q.matmul(k.transpose(-1, -2)).mul(0.3).tanh().mul(20).softmax().matmul(v);
    expect(kindsOf(graphOf(plain, ...qkv()))).toEqual(['attention']);
    const grouped = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
      sn.scaledDotProductAttention(q, sn.repeatInterleave(k, 2, 1), sn.repeatInterleave(v, 2, 1));
    const [k, v] = [sn.zeros([2, 2, 32, 16]), sn.zeros([2, 2, 32, 16])];
    expect(kindsOf(graphOf(grouped, sn.zeros(heads), k, v))).toEqual(['attention']);
  });

  test('the backward pass is two kernels, or three where fewer buffers can be bound', () => {
    const loss = (p: Triple): Tensor =>
      sn
        .scaledDotProductAttention(...p, { isCausal: true })
        .square()
        .sum();
    const graph = graphOf(sn.grad(loss), qkv());
    expect(kindsOf(graph, roomyTarget)).toEqual(['attention', 'attention', 'attention']);
    expect(kindsOf(graph)).toEqual(['attention', 'attention', 'attention', 'attention']);
  });

  test('weights that are asked for are stored: nothing is computed twice', () => {
    const both = (q: Tensor, k: Tensor, v: Tensor): Tensor[] => {
      const weights = q.matmul(k.transpose(-1, -2)).softmax();
      return [weights, weights.matmul(v)];
    };
    expect(kindsOf(graphOf(both, ...qkv()))).toEqual(['dot', 'row-reduction', 'dot']);
  });

  test('of a chain, each product is in one kernel only', () => {
    const chain = (x: Tensor, w: Tensor): Tensor =>
      x.matmul(w).softmax().matmul(w).softmax().matmul(w).softmax().matmul(w);
    const graph = graphOf(chain, sn.zeros([16, 16]), sn.zeros([16, 16]));
    const inputs = valuesFor(graph, randomOf(3));
    expect(kindsOf(graph)[0]).toBe('attention');
    const [expected] = interpret(graph, inputs);
    for (const target of [gpuTarget, softwareTarget, wasmTarget])
      expectClose(runLoops(target, graph, inputs)[0]!, expected!, 1e-5);
  });

  test('a perceptron is no attention', () => {
    const net = (x: Tensor, w: Tensor, u: Tensor): Tensor => x.matmul(w).gelu().matmul(u);
    const graph = graphOf(net, sn.zeros([64, 64]), sn.zeros([64, 128]), sn.zeros([128, 64]));
    expect(kindsOf(graph)).toEqual(['dot', 'dot']);
  });

  test('keys beyond the diagonal are not visited', () => {
    const causal = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
      sn.scaledDotProductAttention(q, k, v, { isCausal: true });
    const [kernel] = compileGraph(graphOf(causal, ...qkv()), softwareTarget).kernels;
    expect(kernel!.source).toContain('end_quad');
  });
});

/** Sizes around the edges of quads, parts and workgroups. */
const cases = fc.record({
  batch: fc.integer({ min: 1, max: 3 }),
  queries: fc.integer({ min: 1, max: 40 }),
  keys: fc.integer({ min: 1, max: 45 }),
  depth: fc.constantFrom<number[]>(1, 4, 5, 8, 12),
  width: fc.constantFrom<number[]>(1, 3, 4, 8, 20),
  mask: fc.constantFrom('none', 'causal', 'bool', 'float', 'both'),
  turned: fc.boolean(),
  gradient: fc.boolean(),
  draw: fc.integer({ min: 1, max: 1e6 }),
});

type Case = typeof cases extends fc.Arbitrary<infer C> ? C : never;

function caseGraph({ batch, queries, keys, depth, width, mask, turned, gradient }: Case): Graph {
  const lay = (rows: number, columns: number): Tensor =>
    turned ? sn.zeros([batch, columns, rows]) : sn.zeros([batch, rows, columns]);
  const lie = (x: Tensor): Tensor => (turned ? x.transpose(-1, -2) : x);
  const seen =
    mask === 'bool' || mask === 'both'
      ? sn.zeros([queries, keys], { dtype: 'bool' })
      : mask === 'float'
        ? sn.zeros([batch, queries, keys])
        : undefined;
  const attend = ([q, k, v]: Triple, bias: Tensor | undefined): Tensor =>
    sn.scaledDotProductAttention(lie(q), lie(k), lie(v), {
      isCausal: mask === 'causal' || mask === 'both',
      ...(bias !== undefined && { mask: bias }),
    });
  const args: Triple = [lay(queries, depth), lay(keys, depth), lay(keys, width)];
  const run = (p: Triple, ...bias: Tensor[]): unknown => {
    if (!gradient) return attend(p, bias[0]);
    return sn.valueAndGrad((inner: Triple) => attend(inner, bias[0]).square().sum())(p);
  };
  return graphOf(run, args, ...(seen === undefined ? [] : [seen]));
}

/** Cores with registers of 8 and 16 lanes. */
const wideTargets: readonly Target[] = [
  withVectors(cTarget, { lanes: 8, registers: 16 }),
  withVectors(cTarget, { lanes: 16, registers: 32 }),
];

test('random attention equals the interpreter, without races', () => {
  checkLaw(40, cases, (drawn) => {
    const graph = caseGraph(drawn);
    const inputs = valuesFor(graph, randomOf(drawn.draw));
    const expected = interpret(graph, inputs);
    for (const target of [roomyTarget, softwareTarget, wasmTarget, ...wideTargets]) {
      runLoops(target, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-4));
    }
  });
});

/** Few rows over many keys, as when a text is continued: a workgroup a row. */
const continued = fc.record({
  batch: fc.integer({ min: 1, max: 2 }),
  queries: fc.integer({ min: 1, max: 2 }),
  keys: fc.integer({ min: 256, max: 700 }),
  depth: fc.constantFrom<number[]>(8, 16, 20, 32),
  width: fc.constantFrom<number[]>(3, 4, 40, 64),
  mask: fc.constantFrom('none', 'causal', 'bool', 'float', 'both'),
  turned: fc.boolean(),
  gradient: fc.constant(false),
  draw: fc.integer({ min: 1, max: 1e6 }),
});

describe('few rows over many keys', () => {
  const bySubgroups: Target = { ...cudaTarget, limits: roomyTarget.limits };

  test('equal the interpreter, without races', () => {
    checkLaw(6, continued, (drawn) => {
      const graph = caseGraph(drawn);
      const inputs = valuesFor(graph, randomOf(drawn.draw));
      const [expected] = interpret(graph, inputs);
      for (const target of [roomyTarget, bySubgroups])
        expectClose(runLoops(target, graph, inputs)[0]!, expected!, 1e-4);
    });
  });

  test('have a workgroup each, whose invocations read what lies side by side', () => {
    const sides = [[1, 32, 1, 128] as const, [1, 32, 4096, 128] as const, [1, 32, 4096, 128] as const];
    const graph = graphOf(sn.scaledDotProductAttention, ...sides.map((shape) => sn.zeros(shape)));
    const [kernel] = compileGraph(graph, gpuTarget).kernels;
    expect(kernel!.source).toContain('@workgroup_size(256');
    expect(kernel!.source).toContain('depth_quad');
  });
});

describe('on the device', () => {
  let device: Device;
  beforeAll(async () => {
    device = await openDevice('webgpu:software');
  });

  test('few rows over many keys equal the interpreter, gpu schedules', async () => {
    const target = { ...gpuTarget, limits: targetOf(device.facts).limits };
    await fc.assert(
      fc.asyncProperty(continued, async (drawn) => {
        const graph = caseGraph(drawn);
        const inputs = valuesFor(graph, randomOf(drawn.draw));
        const [expected] = interpret(graph, inputs);
        const [actual] = await runOnDevice(device, target, graph, inputs);
        expectClose(actual!, expected!, 1e-4);
      }),
      { numRuns: 5, seed },
    );
  });

  test.each(['software', 'gpu'] as const)(
    'random attention equals the interpreter, %s schedules',
    async (profile) => {
      const { limits } = targetOf(device.facts);
      const target = { ...(profile === 'gpu' ? gpuTarget : softwareTarget), limits };
      await fc.assert(
        fc.asyncProperty(cases, async (drawn) => {
          const graph = caseGraph(drawn);
          const inputs = valuesFor(graph, randomOf(drawn.draw));
          const expected = interpret(graph, inputs);
          const actual = await runOnDevice(device, target, graph, inputs);
          actual.forEach((got, i) => expectClose(got, expected[i]!, 1e-4));
        }),
        { numRuns: profile === 'gpu' ? 6 : 15, seed },
      );
    },
  );
});
