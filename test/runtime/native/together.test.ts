// Programs that were rehearsed are one object, and compute what they would compute alone.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openNativeDevice } from '../../../src/runtime/native/node.ts';
import type { Program } from '../../../src/runtime/program.ts';
import { c } from '../languages.ts';
import { lawsUnless } from '../law.ts';
import { bytesOf, f32, floatsOf, program } from '../programs.ts';
import { compilerEnv, withoutCompiler } from './machine.ts';
import { compilesTogether } from './together.ts';

const law = lawsUnless(withoutCompiler);

/** `y = ((x · scale + 1) · 2 - 1) · 2 - 1`, in two kernels of which the second one runs twice. */
function twoKernels(scale: number): Program {
  return program({
    target: 'c',
    kernels: [c.affine('map_0', 4, scale, 1), c.affineInPlace('map_0_1', 4, 2, -1)],
    buffers: [f32('x', 'input', 4), f32('y', 'output', 4)],
    steps: [c.dispatch(0, [0, 1], 4), { kind: 'repeat', times: 2, steps: [c.dispatch(1, [1], 4)] }],
  });
}

law('programs that were rehearsed are one object, and compute the same', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sinter-together-'));
  const device = await openNativeDevice('native', { threads: 1, wait: true, folder, env: compilerEnv });
  const objects = (): number => readdirSync(folder).filter((file) => file.endsWith('.key')).length;
  const run = async (scale: number): Promise<number[]> => {
    const loaded = device.load(twoKernels(scale));
    const x = device.allocate(16);
    device.write(x, bytesOf([1, 2, 3, 4]));
    const [y] = loaded.allocateOutputs();
    loaded.run([x], [y!], []);
    const result = floatsOf(await device.read(y!, 16));
    loaded.destroy();
    return result;
  };
  const right = (scale: number): number[] => [1, 2, 3, 4].map((x) => 4 * (x * scale + 1) - 3);
  try {
    const rehearse = compilesTogether(device);
    const before = objects();
    await rehearse(async () => {
      for (const scale of [1, 2, 3]) await run(scale);
    });
    expect(objects()).toBe(before);
    for (const scale of [1, 2, 3]) expect(await run(scale)).toEqual(right(scale));
    expect(objects()).toBe(before + 1);
    // What was not rehearsed is an object of its own.
    expect(await run(4)).toEqual(right(4));
    expect(objects()).toBe(before + 2);
  } finally {
    await device.destroy();
    rmSync(folder, { recursive: true });
  }
});
