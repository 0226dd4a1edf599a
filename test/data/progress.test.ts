// Progress: the loop is what it was, and what is told of it is right, on a terminal, in a log and to a function.

import { afterEach, expect, test, vi } from 'vitest';
import { progress, type ProgressReport } from '../../src/data/index.ts';

const { isTTY } = process.stderr;
const terminal = process.stderr as { isTTY: boolean | undefined };
afterEach(() => {
  vi.restoreAllMocks();
  terminal.isTTY = isTTY;
});

function written(): string[] {
  const texts: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => (texts.push(String(text)), true));
  return texts;
}

async function run<T>(loop: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of loop) items.push(item);
  return items;
}

test('hands on every item and reports each turn to a function', async () => {
  const reports: ProgressReport[] = [];
  let loss = 1;
  const options = {
    label: 'train',
    every: 0,
    note: () => `loss ${(loss /= 2)}`,
    onReport: (at: ProgressReport) => reports.push(at),
  };
  expect(
    await run(progress(['a', 'b', 'c'], { ...options, onReport: (at) => void options.onReport(at) })),
  ).toEqual(['a', 'b', 'c']);
  expect(reports.map(({ done, total, note, isOver }) => [done, total, note, isOver])).toEqual([
    [0, 3, 'loss 0.5', false],
    [1, 3, 'loss 0.25', false],
    [2, 3, 'loss 0.125', false],
    [3, 3, 'loss 0.0625', false],
    [3, 3, 'loss 0.03125', true],
  ]);
  expect(reports.at(-1)).toMatchObject({ label: 'train', left: 0 });
});

test('reports the end of a loop that is left, and leaves what it runs through', async () => {
  let isEnded = false;
  async function* endless(): AsyncGenerator<number> {
    try {
      for (let i = 0; ; i++) yield i;
    } finally {
      isEnded = true;
    }
  }
  const reports: ProgressReport[] = [];
  for await (const i of progress(endless(), { onReport: (at) => void reports.push(at) })) if (i === 4) break;
  expect(isEnded).toBe(true);
  expect(reports.at(-1)).toMatchObject({ done: 4, total: undefined, left: undefined, isOver: true });
});

test('writes lines where there is no terminal: few, and the last one', async () => {
  const texts = written();
  terminal.isTTY = false;
  await run(progress(Array.from({ length: 50 }), { label: 'epoch 1' }));
  expect(texts.length).toBe(1);
  expect(texts[0]).toMatch(/^epoch 1 {2}50\/50 {2}100% {2}0:00 {2}\d+\.\d\/s\n$/);
});

test('draws a bar on a terminal, on one line', async () => {
  const texts = written();
  terminal.isTTY = true;
  await run(progress([1, 2, 3, 4], { every: 0, note: () => 'ok' }));
  expect(texts[0]).toMatch(/^\r\[\.+\] 0\/4 {2}0% .*ok/);
  expect(texts[2]).toMatch(/^\r\[#+\.+\] 2\/4 {2}50% /);
  for (const text of texts) expect(text.indexOf('\r', 1)).toBe(-1);
  expect(texts.at(-1)).toMatch(/^\r\[#+\] 4\/4 {2}100% .*\n$/);
  expect(texts.filter((text) => text.endsWith('\n')).length).toBe(1);
});
