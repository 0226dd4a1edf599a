// Few rows by rows of blocks on a GPU, whose invocations read sixteen bytes of codes at a time: at random shapes, in every format and
// by every schedule that shares k, one product and several of different formats compute what the interpreter does.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { compileGraph } from '../../../src/compile.ts';
import { legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import { contractProblem } from '../../../src/codegen/template/contract/problem.ts';
import { blockFacts, blockFormats } from '../../../src/ir/blocks/format.ts';
import { rowsToWords, rowWords } from '../../../src/ir/blocks/layout.ts';
import { binary, permute, unary } from '../../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import { cudaTarget, gpuTarget, targetOf } from '../../../src/schedule/target.ts';
import { everyDevice } from '../../support/devices.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';
import { Sketch } from '../cases.ts';
import { blocksOf } from './blocks.ts';

const sizes = fc.record({
  formats: fc.array(fc.constantFrom(...blockFormats), { minLength: 1, maxLength: 3 }),
  m: fc.integer({ min: 1, max: 9 }),
  n: fc.oneof(fc.constant(16), fc.integer({ min: 4, max: 21 })),
  blocks: fc.integer({ min: 1, max: 4 }),
  pick: fc.nat(),
});
/** Several products of more rows than this have a kernel each. */
const fewRows = 4;
type Sizes = typeof sizes extends fc.Arbitrary<infer T> ? T : never;

/** Products of one left side with matrices of these formats, which meet. */
function caseOf({ formats, m, n, blocks }: Sizes): { graph: Graph; inputs: readonly HostArray[] } {
  const s = new Sketch();
  const columns = blocks * Math.max(...formats.map((format) => blockFacts[format].values));
  const x = s.input([m, columns]);
  const products = formats.map((format) => {
    const words = s.input([n, rowWords(format, columns)], 'u32');
    const w = s.b.add('dequantize', [words], { format, columns }) as Node;
    return binary(s.b, 'mul', s.matmul(x, permute(s.b, w, [1, 0])), 1e-3);
  });
  const met = products.reduce((all, next) => binary(s.b, 'mul', unary(s.b, 'tanh', all), next));
  const graph = s.graph([met]);
  const inputs = graph.parameters.map((node, i): HostArray => {
    const format = formats[i - 1];
    if (format === undefined) return randomArray('f32', dims(node as Node), i + 1, 'tame');
    const raw = blocksOf(format, (n * columns) / blockFacts[format].values, i);
    return hostArray('u32', dims(node as Node), rowsToWords(format, columns, raw));
  });
  return { graph, inputs };
}

test.each([gpuTarget, cudaTarget])('every schedule that shares k computes it, on $name', (target) => {
  checkLaw(12, sizes, (any) => {
    const given = any.formats.length > 1 ? { ...any, m: Math.min(any.m, fewRows) } : any;
    const { graph, inputs } = caseOf(given);
    const [kernel] = scheduleGraph(graph, target, new Map()).kernels;
    if (kernel?.body.kind !== 'contract') throw new Error('no contraction');
    expect(kernel.body.siblings?.length ?? 0).toBe(given.formats.length - 1);
    const legal = legalTilings(contractProblem(kernel, kernel.body), target).filter(
      ({ kind, flip }) => kind === 'split-k' && !flip,
    );
    const [found] = runLoops(target, graph, inputs, () => legal[given.pick % legal.length]);
    expectClose(found!, interpret(graph, inputs)[0]!, 2e-4);
  });
});

for (const name of everyDevice.filter((one) => one !== 'interpreter')) {
  test(`kernels compute products of several formats: ${name}`, async () => {
    const device = await openDevice(name);
    const given = caseOf({ formats: ['q4_0', 'q6_k'], m: 2, n: 12, blocks: 3, pick: 0 });
    const [found] = await runOnDevice(device, targetOf(device.facts), given.graph, given.inputs);
    // Cores round values to a 32,767th of the greatest beside them.
    expectClose(found!, interpret(given.graph, given.inputs)[0]!, 1e-3);
  });
}

test.each(blockFormats)('codes of %s are read sixteen bytes at a time', (format) => {
  const { graph } = caseOf({ formats: [format], m: 1, n: 64, blocks: 16, pick: 0 });
  const { kernels } = compileGraph(graph, cudaTarget, { inspect: true });
  expect(kernels).toHaveLength(1);
  expect(kernels[0]!.source).toMatch(/const uint4 words = load_u32x4/);
});
