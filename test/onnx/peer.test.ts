// Random models give what ONNX Runtime gives: element types, shapes and values. Most are one node: where ONNX Runtime differs from
// the definition of an operator, no such node is drawn, and the family says why. Others are networks whose shapes are computed.
//
// SINTER_PEER_RUNS=1000 npx vitest run test/onnx/peer.test.ts looks further; SINTER_SEED repeats a run.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { seed } from '../support/property.ts';
import { differenceOf, evaluate, modelOf, runOurs, runPeer, show } from './peer/compare.ts';
import { drawn, type NodeCase } from './peer/draw.ts';
import { families } from './peer/index.ts';
import { network, type Network } from './peer/models.ts';
import { narrowTrip } from './peer/narrow.ts';
import { waitLimit } from '../support/limits.ts';

const runs = Number(process.env['SINTER_PEER_RUNS'] ?? 8);

/** What a case is, to be read in a failure. */
function describeCase({ op, opset, inputs, attributes = [] }: NodeCase): string {
  const values = attributes.map(({ name, f, i, s, ints, floats, strings }) => {
    const text = (bytes: unknown): string => new TextDecoder().decode(bytes as Uint8Array);
    const shown = s === undefined ? (f ?? i ?? ints ?? floats) : text(s);
    return `${String(name)}=${String(strings === undefined ? shown : (strings as unknown[]).map(text))}`;
  });
  const given = inputs.map((x) => {
    if (x === undefined) return '-';
    return x.data.length > 8 ? show(x) : `${show(x)}{${x.data.join(' ')}}`;
  });
  return `${op}-${opset}(${given.join(', ')}) ${values.join(' ')}`;
}

/** Compares random cases that pass the filter; gives how many ONNX Runtime computes. */
async function compare(
  name: string,
  count: number,
  fits: (item: NodeCase) => boolean = () => true,
): Promise<number> {
  let compared = 0;
  const law = async (item: NodeCase): Promise<void> => {
    // Not a filter of the values: what is drawn late would be drawn the same again, for ever.
    if (!fits(item)) return;
    const { file, given } = modelOf(item);
    const expected = await runPeer(file, given);
    if (expected.kind === 'refused') return;
    compared += 1;
    const actual = await runOurs(file, given);
    if (actual.kind === 'refused') throw new Error(`${describeCase(item)}: ${actual.reason}`);
    expect(actual.results.length).toBe(expected.results.length);
    actual.results.forEach((result, i) => {
      const problem = differenceOf(result, expected.results[i]!, item.tolerance);
      if (problem !== undefined) throw new Error(`${describeCase(item)}: result ${i}: ${problem}`);
    });
  };
  const cases = drawn(families[name]!);
  await fc.assert(fc.asyncProperty(cases, law), { numRuns: count, seed, interruptAfterTimeLimit: waitLimit });
  return compared;
}

/** A network gives the same on inputs of every size. */
async function compareNetwork({ file, runs: inputs, made }: Network): Promise<void> {
  const loaded = await loadOnnx(file);
  for (const given of inputs) {
    const expected = await runPeer(file, given);
    const actual = await evaluate(loaded, given);
    const what = `${made.join(', ')} of ${Object.values(given).map(show).join(' ')}`;
    if (expected.kind === 'refused') throw new Error(`ONNX Runtime refuses ${what}: ${expected.reason}`);
    if (actual.kind === 'refused') throw new Error(`${what}: ${actual.reason}`);
    actual.results.forEach((result, i) => {
      const problem = differenceOf(result, expected.results[i]!, 2e-3);
      if (problem !== undefined) throw new Error(`${what}: result ${i}: ${problem}`);
    });
  }
}

afterAll(() => setDevice(undefined));

describe(`nodes as in ONNX Runtime, from SINTER_SEED=${seed}`, () => {
  describe('on wasm', () => {
    beforeAll(() => setDevice('wasm'));
    test.each(Object.keys(families))('%s', async (name) => {
      // A few draws may all be refused there.
      expect((await compare(name, runs)) || (await compare(name, 8 * runs))).toBeGreaterThan(0);
    });
    test.each([
      ['networks', network],
      ['types of few bits', narrowTrip],
    ] as const)('%s', async (_, make) => {
      const law = fc.asyncProperty(drawn(make), compareNetwork);
      await fc.assert(law, { numRuns: 2 * runs, seed, interruptAfterTimeLimit: waitLimit });
    });
  });

  describe('on software WebGPU, in its types', () => {
    beforeAll(() => setDevice('webgpu:software'));
    const types = new Set(['f32', 'i32', 'bool', 'i64', 'i8', 'u8', 'i16', 'u16']);
    const fits = ({ inputs }: NodeCase): boolean =>
      inputs.every((x) => x === undefined || types.has(x.dtype));
    test.each([
      'binary',
      'reduce',
      'pool',
      'transposed',
      'resize',
      'norm',
      'scatter',
      'recurrent',
      'attention',
      'quantize',
      'dynamicQuantize',
      'integerProducts',
      'integerConv',
    ])('%s', async (name) => {
      await compare(name, Math.ceil(runs / 5), fits);
    });
  });
});
