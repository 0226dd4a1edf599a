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
import { convolution, convolutionIn } from './convolutions.ts';

const size = fc.integer({ min: 1, max: 13 });
const product = fc.record({ batch: fc.integer({ min: 1, max: 3 }), m: size, n: size, k: size });

/** Forms that ran, and of those the ones in which the operand was overwritten. */
const forms = { seen: new Set<string>(), inPlace: new Set<string>() };

/** Runs `z · r`, which may overwrite `r`, in every form that is legal for the contraction `z`. */
function checkForms(s: Sketch, z: Node): void {
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
        if (global.length === graph.parameters.length) forms.inPlace.add(form);
        return loop;
      };
      const [actual] = runLoops(target, graph, inputs, () => tiling, donated, see);
      expectClose(actual!, expected!, 1e-4);
      forms.seen.add(form);
    }
  }
}

test('products that overwrite an operand of their epilogue run without races', () => {
  checkLaw(40, product, ({ batch, m, n, k }) => {
    const s = new Sketch();
    checkForms(s, s.dot(s.input([batch, m, k]), s.input([batch, k, n]), [0], [0], [2], [1]));
  });
});

test('and so do convolutions', () => {
  checkLaw(40, convolution, (one) => {
    const s = new Sketch();
    checkForms(s, convolutionIn(s, one));
  });
  for (const [images, channels, size] of [
    [1, 4, 7],
    [2, 8, 8],
  ] as const) {
    const s = new Sketch();
    const [x, w] = [s.input([images, channels, size, size]), s.input([8, channels, 3, 3])];
    checkForms(s, s.conv(x, w));
  }
});

test('every form of the CPU and most of the GPU ran, all of them in place', () => {
  const cpu = ['packed', 'gemv', 'registers', 'window', 'direct', 'image', 'winograd'];
  const gpu = ['registers', 'staged', 'split-k', 'window'];
  expect([...forms.inPlace]).toEqual(
    expect.arrayContaining([
      ...cpu.map((kind) => `${kind} for wasm`),
      ...gpu.map((kind) => `${kind} for wgsl`),
    ]),
  );
});
