// Loops in bundles, and what programs with loops are made of.

import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { traceFunction } from '../../src/tensor/derivative/transform.ts';
import { compileGraph } from '../../src/compile.ts';
import * as sn from '../../src/index.ts';
import type { LoadOptions, Outputs } from '../../src/bundle-runtime/runtime.ts';
import { everyStep } from '../../src/runtime/program.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { gpuTarget, wasmTarget } from '../../src/schedule/target.ts';
import { built, removeFolders, written } from '../aot/bundles.ts';
import { useStandIn } from '../cuda/standin/standin.ts';

/** Powers of a matrix that a sequence drives, and its gradient. */
function driven(xs: sn.Tensor, weight: sn.Tensor): Record<string, sn.Tensor> {
  const run = (w: sn.Tensor): [sn.Tensor, sn.Tensor] =>
    sn.scan((h: sn.Tensor, x: sn.Tensor) => [h.matmul(w).add(x).tanh(), h.mul(x)], sn.ones([2]), xs);
  const [last, given] = run(weight);
  const slope = sn.grad((w: sn.Tensor) => run(w)[0].sum())(weight);
  return { last, given, slope };
}

const steps = 9;
const xs = Float32Array.from({ length: 2 * steps }, (_, i) => Math.sin(i));
const weight = Float32Array.of(0.5, -0.25, 0.75, 0.125);
let gpu: GPUDevice;
beforeAll(async () => {
  sn.setDevice('interpreter');
  gpu = await (await softwareAdapter()).requestDevice();
});
afterAll(() => {
  gpu.destroy();
  removeFolders();
  sn.setDevice(undefined);
});

test('a bundle runs loops on every target', async () => {
  const shaped = (data: Float32Array, shape: number[]): sn.Tensor => sn.tensor(data, { shape });
  const expected = driven(shaped(xs, [steps, 2]), shaped(weight, [2, 2]));
  const targets = useStandIn() ? (['cuda', 'webgpu', 'wasm'] as const) : (['webgpu', 'wasm'] as const);
  const bundle = await built(
    [{ name: 'driven', fn: driven as never, inputs: [sn.zeros([steps, 2]), sn.zeros([2, 2])] }],
    { targets },
  );
  const { load } = (await import(path.join(written(bundle), 'index.js'))) as {
    load: (options: LoadOptions) => Promise<{ driven(inputs: object): Promise<Outputs>; dispose(): void }>;
  };
  for (const target of targets) {
    const model = await load(target === 'webgpu' ? { target, device: gpu } : { target });
    for (let call = 0; call < 2; call++) {
      const found = await model.driven({ xs, weight });
      for (const [name, value] of Object.entries(expected)) {
        const right = Array.from(await value.data(), Number);
        const got = Array.from(found[name] as Float32Array);
        expect(got.length).toBe(right.length);
        got.forEach((x, i) => expect(x).toBeCloseTo(right[i]!, 5));
      }
    }
    model.dispose();
  }
});

/** Iterations until a sum is large, of two kinds that data choose. */
function decided(x: sn.Tensor): Record<string, sn.Tensor> {
  const { h, turns } = sn.whileLoop(
    ({ h: at }) => at.sum().lt(20),
    ({ h: at, turns: n }) => ({
      h: sn.cond(
        sn.remainder(n, 3).eq(0),
        (v) => v.matmul(sn.full([2, 2], 0.75)),
        (v) => v.add(1),
        at,
      ),
      turns: n.add(1),
    }),
    { h: x, turns: sn.tensor(0, { dtype: 'i32' }) },
  );
  return { h, turns };
}

test('a bundle is steered by data on every target, calls at the same time too', async () => {
  const targets = useStandIn() ? (['cuda', 'webgpu', 'wasm'] as const) : (['webgpu', 'wasm'] as const);
  const bundle = await built([{ name: 'decided', fn: decided as never, inputs: [sn.zeros([2])] }], {
    targets,
  });
  const { load } = (await import(path.join(written(bundle), 'index.js'))) as {
    load: (options: LoadOptions) => Promise<{ decided(inputs: object): Promise<Outputs>; dispose(): void }>;
  };
  const starts = [
    [1, 2],
    [30, 1],
    [-4, 0.5],
  ];
  const expected = await Promise.all(
    starts.map(async (start) => {
      const { h, turns } = decided(sn.tensor(start));
      return [...Array.from(await h!.data(), Number), await turns!.item()];
    }),
  );
  for (const target of targets) {
    const model = await load(target === 'webgpu' ? { target, device: gpu } : { target });
    const calls = starts.map((start) => model.decided({ x: Float32Array.from(start) }));
    (await Promise.all(calls)).forEach((found, i) => {
      const { h, turns } = found as unknown as { h: Float32Array; turns: Int32Array };
      expect([...h, ...turns], target).toEqual(expected[i]);
    });
    model.dispose();
  }
});

test.each([gpuTarget, wasmTarget])('kernels do not depend on the number of iterations', (target) => {
  const kernelsOf = (count: number): { kernels: number; kinds: Set<string> } => {
    const { graph } = traceFunction(driven as never, [sn.zeros([count, 2]), sn.zeros([2, 2])]);
    const { program } = compileGraph(graph, target, { check: true });
    return {
      kernels: program.kernels.length,
      kinds: new Set([...everyStep(program.steps)].map(({ kind }) => kind)),
    };
  };
  const [few, many] = [kernelsOf(600), kernelsOf(1000)];
  expect(many.kernels).toBe(few.kernels);
  // Nothing among the steps asks the host: a run is queued as a whole, however long the loop is.
  expect([...many.kinds].filter((kind) => !['dispatch', 'copy', 'clear', 'repeat'].includes(kind))).toEqual(
    [],
  );
  expect(many.kinds.has('repeat')).toBe(true);
});
