// Blocks inside of kernels: what kernels of every target decode is what the reference decodes, in
// every format, where values are read as they lie, across rows, from places that data decides, and
// as operands of products of one row and of many.

import { describe, expect, test } from 'vitest';

import { blockFacts, blockFormats, type BlockFormat } from '../../../src/ir/blocks/format.ts';
import { decodeBlocks } from '../../../src/ir/blocks/decode.ts';
import { rowsToWords, rowWords, wordsToRows } from '../../../src/ir/blocks/layout.ts';
import { broadcast, mul, permute, slice } from '../../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { gpuTarget, softwareTarget, targetOf, wasmTarget } from '../../../src/schedule/target.ts';
import { everyDevice } from '../../support/devices.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { randomArray } from '../../support/random/values.ts';
import { Sketch } from '../cases.ts';
import { blocksOf } from './blocks.ts';

interface Case {
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
}

const rows = 6;
/** GPUs take floats below 2⁻¹²⁶ for 0, scales as well, of which there are up to twelve in a value. */
const leastNormal = 2 ** -122;

/** Everything that a weight is used for. */
function caseOf(format: BlockFormat, columns: number): Case {
  const s = new Sketch();
  const words = s.input([rows, rowWords(format, columns)], 'u32');
  const at = s.input([3], 'i32');
  const [one, many] = [s.input([1, columns]), s.input([19, columns])];
  const across = s.input([2, rows]);
  const w = s.b.add('dequantize', [words], { format, columns }) as Node;
  const turned = permute(s.b, w, [1, 0]);
  const places = broadcast(s.b, s.b.add('reshape', [at], { shape: [3, 1] }) as Node, [3, columns]);
  const graph = s.graph([
    w,
    permute(s.b, mul(s.b, w, 2), [1, 0]),
    slice(s.b, w, [1, 3], [4, columns - 5], [1, 1]),
    s.b.add('gather', [w, places], { axis: 0 }) as Node,
    s.matmul(one, turned),
    s.matmul(many, turned),
    s.matmul(across, w),
  ]);
  const inputs = graph.parameters.map((node, i): HostArray => {
    if (i === 0)
      return hostArray(
        'u32',
        dims(node as Node),
        rowsToWords(format, columns, blocksOf(format, (rows * columns) / blockFacts[format].values)),
      );
    if (i === 1) return hostArray('i32', [3], [4, 0, 4]);
    return randomArray('f32', dims(node as Node), i, 'tame');
  });
  return { graph, inputs };
}

function expectAlike(found: readonly HostArray[], expected: readonly HostArray[]): void {
  found.forEach(({ data, shape }, i) => {
    const wanted = expected[i]!;
    expect(shape).toEqual(wanted.shape);
    const scale = Math.max(...Array.from(wanted.data as Float32Array, Math.abs));
    const off = Math.max(...Array.from(data as Float32Array, (x, j) => Math.abs(x - Number(wanted.data[j]))));
    // What is only decoded is the same to the bit; sums are in another order, and of values that cores
    // round to a 32,767th of the greatest beside them.
    expect(off, `output ${i}`).toBeLessThanOrEqual(i < 4 ? leastNormal : 5e-5 * scale);
  });
}

test.each(blockFormats)('rows of %s come back from words as they were', (format) => {
  const { values, bytes } = blockFacts[format];
  const raw = blocksOf(format, 15);
  const words = rowsToWords(format, 3 * values, raw);
  expect(words.length).toBe(5 * rowWords(format, 3 * values));
  expect(wordsToRows(format, 3 * values, words)).toEqual(raw);
  expect(raw.length).toBe(15 * bytes);
});

describe.each(blockFormats)('%s', (format) => {
  const columns = blockFacts[format].values === 256 ? 512 : 96;
  const { graph, inputs } = caseOf(format, columns);
  const expected = interpret(graph, inputs);

  test('means what its blocks do', () => {
    const raw = wordsToRows(format, columns, inputs[0]!.data as Uint32Array);
    expect(expected[0]!.data).toEqual(decodeBlocks(format, raw));
  });

  test.each([gpuTarget, softwareTarget, wasmTarget])('Loops for $name compute it', (target) => {
    expectAlike(runLoops(target, graph, inputs), expected);
  });

  test.each(everyDevice.filter((name) => name !== 'interpreter'))('kernels compute it: %s', async (name) => {
    const device = await openDevice(name);
    expectAlike(await runOnDevice(device, targetOf(device.facts), graph, inputs), expected);
  });
});
