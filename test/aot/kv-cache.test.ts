// A transformer that keeps keys and values between calls gives, token by token, what it gives for the whole text at once.

import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decode, inputs, longest, start, state, write } from '../../examples/kv-cache.ts';
import type { Bundle } from '../../src/aot/bundle.ts';
import { setDevice, stats, tensor } from '../../src/index.ts';
import type { Inputs, LoadOptions, Outputs } from '../../src/bundle-runtime/runtime.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { built, removeFolders, written } from './bundles.ts';

interface Loaded {
  decode(inputs: Inputs): Promise<Outputs>;
  weight(name: string): Promise<Float32Array>;
  dispose(): void;
}

let bundle: Bundle;
let load: (options: LoadOptions) => Promise<Loaded>;
let gpu: GPUDevice;
beforeAll(async () => {
  setDevice('wasm');
  bundle = await built([{ name: 'decode', fn: decode as never, inputs }], { state });
  ({ load } = (await import(path.join(written(bundle), 'index.js'))) as { load: typeof load });
  gpu = await (await softwareAdapter()).requestDevice();
});
afterAll(() => {
  gpu.destroy();
  removeFolders();
  setDevice(undefined);
});

const text = [5, 90, 17, 17, 3, 64, 41, 0];

test.each<[string, () => LoadOptions]>([
  ['wasm', () => ({ target: 'wasm', threads: 2 })],
  ['webgpu', () => ({ target: 'webgpu', device: gpu })],
])('on %s', async (_, options) => {
  const model = await load(options());
  // The second text finds the first one's keys behind its position, and must not see them.
  for (const tokens of [text, [...text].reverse().slice(2)]) {
    const whole = (await state.model.forward(tensor(Int32Array.from(tokens))).data()) as Float32Array;
    const size = whole.length / tokens.length;
    for (const [position, token] of tokens.entries()) {
      const { scores } = await model.decode({ token: [token], position: [position] });
      const expected = whole.subarray(size * position, size * (position + 1));
      expected.forEach((score, i) => expect((scores as Float32Array)[i]).toBeCloseTo(score, 4));
    }
  }
  const keys = await model.weight('cache.0.keys');
  const used = (keys.length / longest) * text.length;
  expect(keys.subarray(0, used).every((value) => value !== 0)).toBe(true);
  expect(keys.subarray(used).every((value) => value === 0)).toBe(true);
  model.dispose();
});

test('a step writes one row of each cache, in place', () => {
  const row = 4 * 64;
  for (const [program] of Object.values(bundle.manifest.entries['decode']!.programs)) {
    const { kernels, steps, ports } = program!;
    expect(steps.every(({ kind }) => kind === 'dispatch')).toBe(true);
    const homes = new Map(ports.weights.map(({ weight, buffer }) => [weight, buffer]));
    expect(ports.updates).toHaveLength(4);
    for (const { weight, buffer } of ports.updates) expect(homes.get(weight)).toBe(buffer);
    // The row that comes and the row that is written, and where.
    for (const { bytes } of kernels.filter(({ kind }) => kind === 'scatter')) expect(bytes).toBe(2 * row);
  }
});

test('one program writes a text of any length, and attention ends at the keys that there are', async () => {
  const capacity = 48;
  const few = await write(start(capacity), 3, 5);
  const before = stats();
  const tokens = await write(start(capacity), 20, 5);
  const after = stats();
  expect(after.traces - before.traces).toBe(1);
  // The weights of another model may be drawn by another program; no token has one of its own.
  expect(after.programs - before.programs).toBeLessThan(3);
  expect(tokens.slice(0, 3)).toEqual(few);
  const given = tensor(Int32Array.from([5, ...tokens.slice(0, -1)]));
  const scores = start(capacity).model.forward(given);
  expect(Array.from((await scores.argmax(-1).data()) as Int32Array)).toEqual(tokens);
});
