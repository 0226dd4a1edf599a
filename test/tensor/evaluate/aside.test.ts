// Pending values that an evaluation passes over: they are computed when they are read, whatever was recorded, assigned and read in between;
// they go away when the program drops them; and they cost other evaluations nothing.
//
// Runs in a process of its own: it counts what the collector leaves in memory.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ones, setDevice, tensor, type Tensor } from '../../../src/index.ts';
import { asideCount } from '../../../src/tensor/handle/aside.ts';
import { pendingHandles } from '../../../src/tensor/handle/recording.ts';
import { checkLawAsync } from '../../support/property.ts';
import { collect, settledAt } from '../../support/collector.ts';
import { spyDevice, turn } from '../support.ts';

beforeAll(() => setDevice('interpreter'));
afterAll(() => setDevice(undefined));

const settled = (): Promise<number> => settledAt(asideCount);

/** A training step whose loss shares only the weights with their new value. */
function step(w: Tensor): Tensor {
  const loss = w.mul(w).sum();
  loss.backward();
  w.assign(w.sub(w.grad!.mul(0.001))).zeroGrad();
  return loss;
}

describe('values that nobody reads', () => {
  test('go away with their inputs when they are dropped', async () => {
    const spy = spyDevice();
    const device = await spy.device;
    const w = ones([32]).requiresGrad_();
    await settled();
    const before = asideCount();
    for (let i = 0; i < 400; i++) {
      step(w);
      await w.data();
      if (i % 50 === 0) await turn();
    }
    expect(pendingHandles().size).toBe(0);
    expect(await settled()).toBeLessThan(before + 5);
    step(w);
    await w.data();
    expect(await settledAt(() => device.memory().buffers)).toBeLessThan(20);
  });

  test('are computed from what their inputs were when they are read after all', async () => {
    const w = tensor([1, 2]).requiresGrad_();
    const losses: Tensor[] = [];
    const expected: number[] = [];
    let [a, b] = [1, 2];
    for (let i = 0; i < 30; i++) {
      losses.push(step(w));
      expected.push(a * a + b * b);
      await w.data();
      collect();
      [a, b] = [a - 0.002 * a, b - 0.002 * b];
    }
    for (const [i, loss] of losses.entries()) expect(await loss.item()).toBeCloseTo(expected[i]!, 4);
  });

  test('cost other evaluations nothing', async () => {
    const kept = Array.from({ length: 500 }, (_, i) => tensor([i]).add(1));
    const other = tensor([1]);
    await other.mul(2).data();
    expect(asideCount()).toBeGreaterThanOrEqual(500);
    const deref = vi.spyOn(WeakRef.prototype, 'deref');
    for (let i = 0; i < 20; i++) await other.mul(i).data();
    const calls = deref.mock.calls.length;
    deref.mockRestore();
    // The interpreter's device may hold some weakly; those 500 values are not among them.
    expect(calls).toBeLessThan(400);
    expect(await kept[499]!.array()).toEqual([500]);
    expect(await kept[0]!.array()).toEqual([1]);
  });

  test('are bounded all the same', async () => {
    const kept: Tensor[] = [];
    const x = tensor([1]);
    for (let i = 0; i < 21_000; i++) {
      kept.push(tensor([i]).add(1));
      if (i % 3000 === 0) await x.add(i).data();
    }
    expect(asideCount() + pendingHandles().size).toBeLessThan(20_002);
    expect(await kept[20_999]!.array()).toEqual([21_000]);
    expect(await kept[7]!.array()).toEqual([8]);
  });
});

test('whatever is recorded, assigned, read and dropped in any order, values are what they are', () => {
  const command = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.constantFrom('add', 'mul', 'sub'), fc.nat(20), fc.nat(20)) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('read'), fc.nat(20), fc.nat(0)) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('assign'), fc.nat(2), fc.nat(20)) },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom('drop', 'collect', 'keep'), fc.nat(20), fc.nat(0)) },
  );
  return checkLawAsync(60, fc.array(command, { minLength: 5, maxLength: 40 }), async (commands) => {
    const cells: { tensor: Tensor; value: number }[] = [1, 2, 3].map((value) => ({
      tensor: tensor([value]),
      value,
    }));
    // Small values, so that floats are exact: everything is taken modulo 64.
    const small = (value: Tensor): Tensor => value.sub(value.div(64).floor().mul(64));
    const model = (value: number): number => value - Math.floor(value / 64) * 64;
    for (const [kind, first, second] of commands) {
      const a = cells[first % cells.length]!;
      const b = cells[second % cells.length]!;
      switch (kind) {
        case 'add':
          cells.push({ tensor: small(a.tensor.add(b.tensor)), value: model(a.value + b.value) });
          break;
        case 'sub':
          cells.push({ tensor: small(a.tensor.sub(b.tensor)), value: model(a.value - b.value) });
          break;
        case 'mul':
          cells.push({ tensor: small(a.tensor.mul(b.tensor)), value: model(a.value * b.value) });
          break;
        case 'read':
          expect(await a.tensor.item()).toBe(a.value);
          break;
        case 'assign': {
          const target = cells[first % 3]!;
          target.tensor.assign(b.tensor);
          target.value = b.value;
          break;
        }
        case 'drop':
          if (first % cells.length > 2) cells.splice(first % cells.length, 1);
          break;
        case 'keep':
          // A gradient leaf has a node of its own.
          a.tensor.requiresGrad_();
          break;
        default:
          collect();
          await turn();
      }
    }
    for (const cell of cells) expect(await cell.tensor.item()).toBe(cell.value);
  });
});
