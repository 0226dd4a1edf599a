// Pipelines of programs that are gone are kept but for the oldest, and made again when they are wanted.

import { expect, test, vi } from 'vitest';
import { mostIdle } from '../../../src/runtime/shared.ts';
import { openWithGpu } from '../devices.ts';
import { bytesOf, floatsOf, mapProgram, ramp } from '../programs.ts';

const N = 64;

test('pipelines of programs that are gone are let go but for the last', async () => {
  const { device, gpu } = await openWithGpu();
  const compile = vi.spyOn(gpu, 'createComputePipelineAsync');
  const [x, y] = [device.allocate(4 * N), device.allocate(4 * N)];
  device.write(x, bytesOf(ramp(N)));
  /** Runs `x + term` once and destroys the program; gives how many pipelines that made. */
  const visit = async (term: number): Promise<number> => {
    const before = compile.mock.calls.length;
    const loaded = device.load(mapProgram('plus', N, `v + ${term.toFixed(1)}`));
    loaded.run([x], [y], []);
    loaded.destroy();
    expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N, term));
    return compile.mock.calls.length - before;
  };
  const held = device.load(mapProgram('held', N, 'v * 2.0'));
  for (let term = 0; term < mostIdle; term++) expect(await visit(term)).toBe(1);
  // As many as are kept: all of them are still there, and what is used again goes last.
  for (const term of [0, 1, mostIdle - 1]) expect(await visit(term)).toBe(0);
  expect(await visit(mostIdle)).toBe(1);
  expect(await visit(2)).toBe(1);
  expect(await visit(0)).toBe(0);
  // Programs that are there keep theirs, however many others come and go.
  held.run([x], [y], []);
  expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N).map((value) => 2 * value));
  const before = compile.mock.calls.length;
  device.load(mapProgram('as-held', N, 'v * 2.0'));
  expect(compile.mock.calls.length).toBe(before);
  await device.finish();
  device.destroy();
});
