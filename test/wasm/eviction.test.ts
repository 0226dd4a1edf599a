// Programs come and go: what a device keeps for programs that are destroyed is bounded, and made again when it is wanted again.

import { afterAll, describe, expect, test } from 'vitest';
import { compileGraph } from '../../src/compile.ts';
import { GraphBuilder, type NodeOf } from '../../src/ir/graph.ts';
import { compile, ones, setDevice, tensor, zeros, type Tensor } from '../../src/index.ts';
import type { LoadedProgram } from '../../src/runtime/device.ts';
import type { ProgramKernel } from '../../src/runtime/program.ts';
import { Heap } from '../../src/runtime/wasm/heap.ts';
import { WasmModules } from '../../src/runtime/wasm/modules.ts';
import { wasmTarget } from '../../src/schedule/target.ts';
import { device } from '../../src/tensor/device.ts';
import { clearCache } from '../../src/tensor/evaluate/cache.ts';

afterAll(() => setDevice(undefined));

/** x·factor over so many elements. */
function scaled(size: number, factor: number): ReturnType<typeof compileGraph>['program'] {
  const b = new GraphBuilder();
  const attrs = { index: 0, name: 'x', dtype: 'f32', shape: [size] } as const;
  const x = b.add('parameter', [], attrs) as NodeOf<'parameter'>;
  const one = b.add('constant', [], { value: factor, dtype: 'f32' });
  const spread = b.add('broadcast', [one], { shape: [size] });
  return compileGraph({ parameters: [x], outputs: [b.add('mul', [x, spread], {})] }, wasmTarget).program;
}

describe('modules', () => {
  const kernelOf = (factor: number): ProgramKernel => scaled(8, factor).kernels[0]!;

  test('of programs that are gone are let go but for the last', () => {
    const heap = new Heap('wasm', false);
    const modules = new WasmModules(heap, 'wasm', false);
    const kept = modules.get(kernelOf(2));
    const first = modules.get(kernelOf(3));
    modules.codeOf(first);
    modules.release(first);
    for (let i = 4; i < 300; i++) modules.release(modules.get(kernelOf(i)));
    expect(modules.count).toBeLessThan(140);
    expect(modules.get(kernelOf(2))).toBe(kept);
    const again = modules.get(kernelOf(3));
    expect(again).not.toBe(first);
    // Numbers are never used twice: threads know kernels by them.
    expect(again.id).toBeGreaterThan(first.id);
    expect(modules.get(kernelOf(299)).id).toBeLessThan(again.id);
  });

  test('that some program still runs stay', () => {
    const modules = new WasmModules(new Heap('wasm', false), 'wasm', false);
    const held = Array.from({ length: 200 }, (_, i) => modules.get(kernelOf(i + 2)));
    for (let i = 300; i < 500; i++) modules.release(modules.get(kernelOf(i)));
    for (const [i, kernel] of held.entries()) expect(modules.get(kernelOf(i + 2))).toBe(kernel);
  });
});

describe.for(['wasm:1', 'wasm:2'])('on %s', (name) => {
  test('programs run after others have come and gone', async () => {
    setDevice(name);
    const on = await device();
    const size = 300_000;
    const run = async (loaded: LoadedProgram, value: number): Promise<number> => {
      const input = on.allocate(4 * size + 16);
      on.write(input, new Uint8Array(new Float32Array(size).fill(value).buffer));
      const [output] = loaded.allocateOutputs();
      loaded.run([input], [output!], []);
      const bytes = await on.read(output!, 4 * size);
      input.destroy();
      output!.destroy();
      return new Float32Array(bytes.slice().buffer)[size - 1]!;
    };
    const first = on.load(scaled(size, 3));
    expect(await run(first, 2)).toBe(6);
    for (let i = 0; i < 300; i++) {
      const other = on.load(scaled(size, 10 + i));
      if (i % 50 === 0) expect(await run(other, 2)).toBe(2 * (10 + i));
      other.destroy();
    }
    expect(await run(first, 4)).toBe(12);
    first.destroy();
    const again = on.load(scaled(size, 3));
    expect(await run(again, 5)).toBe(15);
    again.destroy();
  });
});

test('shapes without end are computed, lazily and compiled', async () => {
  setDevice('wasm:1');
  clearCache();
  const twice = compile((x: Tensor) => x.mul(2).sum());
  for (let i = 1; i <= 300; i++) {
    expect(
      await ones([i])
        .add(tensor([1]))
        .sum()
        .item(),
    ).toBe(2 * i);
    expect(await twice(zeros([i]).add(1)).item()).toBe(2 * i);
  }
  expect(await twice(ones([1])).item()).toBe(2);
});
