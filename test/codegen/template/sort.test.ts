// Sorts of random lines: every length of line has kernels of its own, and all of them put special values where the reference
// interpreter puts them, bit for bit.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DType } from '../../../src/ir/dtype.ts';
import type { Graph, Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { gpuTarget, targetOf } from '../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { checkLaw, seed } from '../../support/property.ts';
import { randomArray } from '../../support/random/values.ts';
import { casesOf } from '../../support/sample.ts';
import { Sketch } from '../cases.ts';

interface Case {
  readonly dtype: DType;
  readonly length: number;
  readonly lines: number;
  readonly axis: number;
  readonly descending: boolean;
  readonly values: number;
}

const cases: fc.Arbitrary<Case> = fc.record({
  dtype: fc.constantFrom<DType>('f32', 'f16', 'bf16', 'i32', 'u32', 'bool'),
  // Short lines, lines that a workgroup just holds or just does not, and lines of several blocks.
  length: fc.oneof(
    fc.integer({ min: 1, max: 140 }),
    fc.constantFrom(255, 256, 257, 2047, 2048, 2049),
    fc.integer({ min: 141, max: 9000 }),
  ),
  lines: fc.integer({ min: 1, max: 5 }),
  axis: fc.nat(1),
  descending: fc.boolean(),
  values: fc.integer({ min: 1, max: 2 ** 20 }),
});

interface Sorted {
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
}

function sortOf({ dtype, length, lines, axis, descending, values }: Case): Sorted {
  const s = new Sketch();
  const shape = axis === 0 ? [length, lines] : [lines, length];
  const x = s.input(shape, dtype);
  const order = s.argSort(x, axis, descending);
  const graph = s.graph([order, s.b.add('gather', [x, order], { axis }) as Node]);
  return { graph, inputs: [randomArray(dtype, shape, values, 'special')] };
}

function expectReference(found: readonly HostArray[], { graph, inputs }: Sorted): void {
  interpret(graph, inputs).forEach((wanted, i) => expect(found[i]!.data).toEqual(wanted.data));
}

test.each(['webgpu:software', 'wasm'])(
  'sorted values and their places equal the reference on %s',
  async (name) => {
    const device = await openDevice(name);
    const target = targetOf(device.facts);
    await fc.assert(
      fc.asyncProperty(cases, async (one) => {
        const sorted = sortOf(one);
        expectReference(await runOnDevice(device, target, sorted.graph, sorted.inputs), sorted);
      }),
      { numRuns: casesOf(40, 8), seed },
    );
  },
);

// On this device workgroup memory takes long to compile: what GPUs run is checked by its Loops.
test('Loops for GPUs sort as the reference does', () => {
  checkLaw(casesOf(30, 6), cases, (one) => {
    const sorted = sortOf(one);
    expectReference(runLoops(gpuTarget, sorted.graph, sorted.inputs), sorted);
  });
});
