// Folds over an axis of which a run says how much counts: every template's Loop gives what the interpreter gives, whatever the
// bound is and whatever lies beyond it.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileGraph } from '../../../src/compile.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { cudaTarget, gpuTarget, softwareTarget, wasmTarget } from '../../../src/schedule/target.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { rowTargets, smallBlocks } from '../../support/targets.ts';
import { folds, grids, inputsOf, specified } from './programs.ts';
import '../../../src/compile/all.ts';

const targets = [
  wasmTarget,
  softwareTarget,
  gpuTarget,
  cudaTarget,
  smallBlocks,
  ...Object.values(rowTargets),
];

/** Nothing, one, all but one, all, more than there is, and less than nothing. */
const boundOf = (capacity: number): fc.Arbitrary<number> =>
  fc.oneof(
    fc.constantFrom(0, 1, capacity - 1, capacity, capacity + 1, -1, 2147483647, -2147483648),
    fc.integer({ min: 0, max: capacity }),
  );

const drawn = fc
  .record({
    rows: fc.integer({ min: 1, max: 9 }),
    capacity: fc.integer({ min: 2, max: 90 }),
    columns: fc.integer({ min: 1, max: 20 }),
  })
  .chain((sizes) =>
    fc.record({ sizes: fc.constant(sizes), n: boundOf(sizes.capacity), at: fc.nat(targets.length - 1) }),
  );

for (const [name, program] of Object.entries({ ...folds, ...grids }))
  test(`${name}: what is beyond the bound changes nothing`, () => {
    checkLaw(16, drawn, ({ sizes, n, at }) => {
      const made = program(sizes);
      const inputs = inputsOf(made, n);
      const expected = interpret(made.graph, inputs);
      const scalar = inputs.length - 1;
      const results = runLoops(targets[at]!, made.graph, inputs, undefined, new Map(), (loop) => loop, [
        scalar,
      ]);
      results.forEach((got, i) =>
        expectClose(specified(got, made.open, n), specified(expected[i]!, made.open, n), 1e-4),
      );
    });
  });

test.each(Object.keys(folds))('%s: every kernel that folds over the axis has the bound', (name) => {
  for (const target of [wasmTarget, softwareTarget, gpuTarget]) {
    const { graph } = folds[name]!({ rows: 8, capacity: 600, columns: 16 });
    const { inside } = compileGraph(graph, target, { check: true, inspect: true });
    const bounds = inside!.schedule.kernels.flatMap(({ body }) => {
      if (body.kind === 'map') return [];
      return [body.kind === 'attention' ? body.range.end : 'bound' in body ? body.bound : undefined];
    });
    expect(bounds).not.toContain(undefined);
  }
});

test.each(Object.keys(grids))('%s: kernels leave out what is not needed', (name) => {
  for (const target of [wasmTarget, softwareTarget, gpuTarget]) {
    const { graph } = grids[name]!({ rows: 8, capacity: 600, columns: 16 });
    const { inside } = compileGraph(graph, target, { check: true, inspect: true });
    const needs = inside!.schedule.kernels.map(({ body }) => 'needed' in body && body.needed !== undefined);
    expect(needs).toContain(true);
  }
});
