// Weights in fewer bits: what kernels expand is what the format says, and the bundle computes with it.

import * as fc from 'fast-check';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isPacked, pack, partsOf, unpack, type WeightFormat } from '../../src/aot/formats.ts';
import { manualSeed, randn, setDevice, type Tensor } from '../../src/index.ts';
import { GraphBuilder, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { f16FromBits, f16ToBits, unpackBytes } from '../../src/ir/value.ts';
import type { BundleTarget } from '../../src/bundle-runtime/manifest.ts';
import type { Outputs } from '../../src/bundle-runtime/runtime.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { checkLaw } from '../support/property.ts';
import { useStandIn } from '../cuda/standin/standin.ts';
import { built, removeFolders, written } from './bundles.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

const formats: readonly WeightFormat[] = ['f16', 'q8_0', 'q4_0'];

/** Values as a graph expands them. */
function expanded(
  format: WeightFormat,
  values: Float32Array<ArrayBuffer>,
  shape: readonly number[],
): Float32Array {
  const parts = pack(format, { dtype: 'f32', shape, data: new Uint8Array(values.buffer) });
  const b = new GraphBuilder();
  const parameters = partsOf(format, shape).map(({ suffix, dtype, shape: own }, index) => {
    return b.add('parameter', [], { index, name: `w${suffix}`, dtype, shape: own }) as NodeOf<'parameter'>;
  });
  const outputs = [unpack(b, format, parameters as readonly Node[], shape)];
  const inputs = parts.map((part) => unpackBytes(part.data, part.dtype, part.shape));
  return interpret({ parameters, outputs }, inputs)[0]!.data as Float32Array;
}

const values = fc
  .tuple(
    fc.integer({ min: 1, max: 4 }),
    fc.float({ min: 1, max: 1000, noNaN: true }),
    fc.infiniteStream(fc.float({ min: -1, max: 1, noNaN: true })),
  )
  .map(([blocks, scale, stream]) =>
    Float32Array.from({ length: 32 * blocks }, () => scale * (stream.next().value ?? 0)),
  );

describe.each(formats)('%s', (format) => {
  test('comes as near as its bits allow', () => {
    checkLaw(200, values, (given) => {
      const found = expanded(format, given, [given.length / 32, 32]);
      given.forEach((value, i) => {
        const block = given.subarray(i - (i % 32), i - (i % 32) + 32);
        const most = Math.max(...block.map(Math.abs));
        // Half a step, and the rounding of the scale; q4_0 ends one step short on one side.
        const step = {
          f16: Math.abs(value) / 1024,
          q8_0: (most / 127) * 1.1,
          q4_0: (most / 8) * 2.05,
          f32: 0,
        }[format];
        expect(Math.abs(found[i]! - value)).toBeLessThanOrEqual(step / 2 + 1e-5);
      });
    });
  });

  test('gives back what it can hold', () => {
    const given = Float32Array.from({ length: 64 }, (_, i) => {
      if (format === 'f16') return f16FromBits(f16ToBits((i - 20) / 7));
      return format === 'q8_0' ? (i < 32 ? 127 : -127 + (i % 32)) : (i % 16) - 8;
    });
    expect([...expanded(format, given, [2, 32])]).toEqual([...given]);
  });
});

test('only matrices of some size are stored in fewer bits', () => {
  const weight = (
    shape: readonly number[],
    dtype: 'f32' | 'i32' = 'f32',
  ): { dtype: 'f32' | 'i32'; shape: readonly number[] } => ({ dtype, shape });
  expect(isPacked('q8_0', weight([16, 32]))).toBe(true);
  expect(isPacked('q8_0', weight([32, 33]))).toBe(true);
  expect(isPacked('q8_0', weight([15, 33]))).toBe(false);
  expect(isPacked('f16', weight([15, 33]))).toBe(true);
  expect(isPacked('f16', weight([512]))).toBe(false);
  expect(isPacked('f16', weight([2, 2]))).toBe(false);
  expect(isPacked('f16', weight([16, 32], 'i32'))).toBe(false);
  expect(isPacked('f32', weight([16, 32]))).toBe(false);
});

test.each(formats)(
  'a bundle whose weights are %s computes nearly the same, from fewer bytes',
  async (format) => {
    manualSeed(5);
    const [first, second] = [randn([64, 96]).mul(0.1), randn([96, 32]).mul(0.1)];
    const x = randn([4, 64]);
    const run = (input: Tensor): Tensor => input.matmul(first).relu().matmul(second);
    const point = { name: 'run', fn: run as never, inputs: [x] };
    const targets: BundleTarget[] = ['cuda', 'webgpu', 'wasm'];
    const bundle = await built([point], { format, targets });
    const plain = await built([point], { targets });
    const bytes = (one: typeof bundle): number => one.manifest.files[0]!.bytes;
    expect(bytes(bundle) / bytes(plain)).toBeLessThan({ f16: 0.52, q8_0: 0.29, q4_0: 0.17, f32: 1 }[format]);
    const { load } = (await import(path.join(written(bundle), 'index.js'))) as {
      load: (options: object) => Promise<{ run(inputs: object): Promise<Outputs>; dispose(): void }>;
    };
    const expected = (await run(x).data()) as Float32Array;
    const scale = Math.max(...expected.map(Math.abs));
    const tolerance = { f16: 2e-3, q8_0: 2e-2, q4_0: 0.25, f32: 0 }[format];
    const device = await (await softwareAdapter()).requestDevice();
    const results: Float32Array[] = [];
    const cuda = useStandIn() ? [{ target: 'cuda' }] : [];
    for (const options of [{ target: 'wasm' }, { target: 'webgpu', device }, ...cuda]) {
      const model = await load(options);
      const output = (await model.run({ input: Float32Array.from((await x.data()) as Float32Array) }))[
        'output'
      ];
      results.push(output as Float32Array);
      model.dispose();
    }
    device.destroy();
    expected.forEach((value, i) => expect(Math.abs(results[0]![i]! - value) / scale).toBeLessThan(tolerance));
    for (const result of results.slice(1))
      expected.forEach((_, i) => expect(result[i]).toBeCloseTo(results[0]![i]!, 4));
  },
);
