// A contraction whose epilogue overwrites what it reads: an operand that the caller donates. What
// one invocation reads there, no other may write, whatever the form, the sizes and the target.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import { contractProblem } from '../../../src/codegen/template/contract/problem.ts';
import type { Loop } from '../../../src/codegen/loop/loop.ts';
import type { ContractTiling } from '../../../src/codegen/template/contract/strategies.ts';
import { binary } from '../../../src/ir/build.ts';
import { dims, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import { gpuTarget, softwareTarget, wasmTarget } from '../../../src/schedule/target.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';
import { Sketch } from '../cases.ts';
import { convolution, convolutionIn } from '../template/convolutions.ts';

const size = fc.integer({ min: 1, max: 13 });
const product = fc.record({ batch: fc.integer({ min: 1, max: 3 }), m: size, n: size, k: size });

/** Runs `z · r`, which may overwrite `r`, in every form that is legal for `z`; gives those that did. */
function formsInPlace(s: Sketch, z: Node): ReadonlySet<string> {
  const inPlace = new Set<string>();
  const operand = s.input(dims(z));
  const graph = s.graph([binary(s.b, 'mul', z, operand)]);
  const inputs = graph.parameters.map(({ dtype, shape }, i) =>
    randomArray(dtype, shape as number[], i + 1, 'tame'),
  );
  const [expected] = interpret(graph, inputs);
  const donated = new Map([[graph.parameters.length - 1, 0]]);
  for (const target of [wasmTarget, softwareTarget, gpuTarget]) {
    const [kernel] = scheduleGraph(graph, target, new Map()).kernels;
    // A contraction of one step is a map, and one of sums alone a reduction.
    if (kernel?.body.kind !== 'contract') continue;
    const tilings = new Map<string, ContractTiling>();
    for (const tiling of legalTilings(contractProblem(kernel, kernel.body), target))
      tilings.set(`${tiling.kind} ${tiling.flip ? 'flipped ' : ''}for ${target.name}`, tiling);
    for (const [form, tiling] of tilings) {
      const see = (loop: Loop): Loop => {
        const global = loop.buffers.filter(({ space }) => space === 'global');
        if (global.length === graph.parameters.length) inPlace.add(form);
        return loop;
      };
      const [actual] = runLoops(target, graph, inputs, () => tiling, donated, see);
      expectClose(actual!, expected!, 1e-4);
    }
  }
  return inPlace;
}

test('products that overwrite an operand of their epilogue run without races', () => {
  const forms = new Set<string>();
  checkLaw(40, product, ({ batch, m, n, k }) => {
    const s = new Sketch();
    const z = s.dot(s.input([batch, m, k]), s.input([batch, k, n]), [0], [0], [2], [1]);
    for (const form of formsInPlace(s, z)) forms.add(form);
  });
  for (const form of ['packed for wasm', 'gemv for wasm', 'registers for wasm', 'staged for wgsl'])
    expect(forms).toContain(form);
});

test('and so do convolutions', () => {
  const forms = new Set<string>();
  checkLaw(40, convolution, (one) => {
    const s = new Sketch();
    for (const form of formsInPlace(s, convolutionIn(s, one))) forms.add(form);
  });
  for (const kind of ['window', 'direct', 'image']) expect(forms).toContain(`${kind} for wasm`);
});

test.each([1, 6, 7, 8])('and so do convolutions of lines of %i', (width) => {
  const s = new Sketch();
  const forms = formsInPlace(s, s.conv(s.input([1, 8, 8, width]), s.input([8, 8, 3, 3])));
  expect([...forms].filter((form) => form === 'winograd for wasm')).toHaveLength(width % 4 === 0 ? 1 : 0);
  const t = new Sketch();
  formsInPlace(t, t.conv(t.input([1, 4, 8, width]), t.input([4, 1, 3, 3]), { groups: 4 }));
});
