// The order of a device, whatever has to be waited for.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Timeline, type Gate } from '../../src/runtime/timeline.ts';

function latch(): Gate & { unlock: () => void } {
  let unlock = (): void => {};
  const gate = {
    open: false,
    opened: new Promise<void>((resolve) => {
      unlock = () => {
        gate.open = true;
        resolve();
      };
    }),
    unlock: () => unlock(),
  };
  return gate;
}

test('work runs at once when nothing waits', () => {
  const timeline = new Timeline();
  const seen: number[] = [];
  timeline.push(() => seen.push(1));
  timeline.push(() => seen.push(2), { open: true, opened: Promise.resolve() });
  expect(seen).toEqual([1, 2]);
  expect(timeline.idle).toBe(true);
});

test('work runs in the order it was pushed, whatever order the gates open in', async () => {
  const shape = fc.array(fc.option(fc.nat({ max: 5 })), { maxLength: 40 });
  const openings = fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 });
  await fc.assert(
    fc.asyncProperty(shape, openings, fc.boolean(), async (tasks, order, early) => {
      const timeline = new Timeline();
      const gates = Array.from({ length: 6 }, latch);
      const seen: number[] = [];
      if (early) gates[order[0]!]!.unlock();
      tasks.forEach((gate, i) => timeline.push(() => seen.push(i), gate === null ? undefined : gates[gate]));
      for (const gate of order) {
        gates[gate]!.unlock();
        await Promise.resolve();
      }
      await timeline.drained();
      expect(seen).toEqual(tasks.map((_, i) => i));
      expect(timeline.idle).toBe(true);
    }),
  );
});

test('work pushed by work comes after what already waits', async () => {
  const timeline = new Timeline();
  const gate = latch();
  const seen: string[] = [];
  timeline.push(() => {
    seen.push('first');
    timeline.push(() => seen.push('pushed by first'));
  }, gate);
  timeline.push(() => seen.push('second'));
  gate.unlock();
  await timeline.drained();
  expect(seen).toEqual(['first', 'second', 'pushed by first']);
});
