// Random programs of special values (NaN, infinities, signed zeros, denormal numbers, the ends of the integers) and of sizes 0, 1 and 2³ ± 1
// give on every device what the reference interpreter gives. `npm run differential` searches further by the same programs.

import { describe, expect, test } from 'vitest';
import { openDevice } from '../../../src/runtime/registry.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { WasmDevice } from '../../../src/runtime/wasm/device.ts';
import { onStandIn } from '../../cuda/standin/on-standin.ts';
import { differencesOf } from '../../support/random/differential.ts';
import { seed } from '../../support/property.ts';

/** Work is cut as finely as it can be, so that small programs are shared too. */
const finest = { program: 0, dispatch: 0, share: 0, piece: 0 };

async function check(device: Device, batches: number): Promise<void> {
  console.log(`random inputs from SINTER_SEED=${seed}`);
  for (let batch = 0; batch < batches; batch++)
    expect(await differencesOf(device, seed + batch, 20)).toEqual([]);
}

describe('random programs of special values', () => {
  test.each([
    ['wasm on one thread', () => WasmDevice.open('wasm:1', { threads: 1 })],
    ['wasm on two threads', () => WasmDevice.open('wasm:2', { threads: 2, grain: finest })],
    ['webgpu:software', () => openDevice('webgpu:software')],
  ])('%s', async (_, open) => check(await open(), 8));
});

onStandIn('random programs of special values as CUDA C', () => {
  test('cuda', async () => check(await openDevice('cuda'), 4));
});
