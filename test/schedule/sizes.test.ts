// Tensors that no kernel can count, or no device bind, are refused when a program is compiled or loaded, for every target, with the size
// and what to do; what never reaches memory may be as large as it likes.

import { describe, expect, test } from 'vitest';
import { compileGraph } from '../../src/compile.ts';
import { SinterError } from '../../src/errors.ts';
import * as sn from '../../src/index.ts';
import { add, binary, broadcast, reduce, unary } from '../../src/ir/build.ts';
import type { Graph } from '../../src/ir/graph.ts';
import { checkLimits } from '../../src/runtime/limits.ts';
import { mostElements } from '../../src/runtime/program.ts';
import {
  cudaTarget,
  gpuTarget,
  interpreterTarget,
  softwareTarget,
  wasmTarget,
  type Target,
} from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';

const targets: readonly Target[] = [gpuTarget, softwareTarget, cudaTarget, wasmTarget, interpreterTarget];

/** The error that work ends in. */
function rejection(work: () => unknown): SinterError {
  try {
    work();
  } catch (error) {
    if (error instanceof SinterError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe.each(targets)('for $name', (target) => {
  const refuses = (make: (s: Sketch) => Graph): string => {
    const error = rejection(() => compileGraph(make(new Sketch()), target));
    expect(error.code).toBe('E_LIMIT');
    expect(error.message).toContain('\n  try: compute it in parts');
    return error.message;
  };

  test('an input of 2³¹ + 64 elements is refused, whose last index would wrap to a negative one', () => {
    const message = refuses((s) => s.graph([binary(s.b, 'mul', s.input([2 ** 31 + 64]), 2)]));
    expect(message).toMatch(/: input x0, f32\[2147483712\], has 2147483712 elements: .* at most 2147418112/);
  });

  test('a result is, and a value between kernels', () => {
    refuses((s) => s.graph([broadcast(s.b, s.input([2 ** 16, 1]), [2 ** 16, 2 ** 16])]));
    refuses((s) => {
      const row = s.scan(broadcast(s.b, s.input([2 ** 12, 1]), [2 ** 12, 2 ** 20]), 1, 'sum');
      const turned = s.scan(s.b.add('permute', [row], { order: [1, 0] }) as never, 1, 'sum');
      return s.graph([reduce(s.b, 'sum', turned, [0, 1])]);
    });
  });

  test('as many as there may be compile', () => {
    const s = new Sketch();
    const graph = s.graph([unary(s.b, 'not', s.input([mostElements], 'bool'))]);
    expect(() => compileGraph(graph, target)).not.toThrow();
  });
});

test('a step over parameters that have more elements in all than can be counted has several kernels', () => {
  const s = new Sketch();
  const count = 6;
  const updated = Array.from({ length: count }, () => {
    const p = s.input([2 ** 29]);
    return add(s.b, p, binary(s.b, 'mul', s.input([2 ** 29]), -0.1));
  });
  const { program } = compileGraph(s.graph(updated), cudaTarget);
  for (const { shape } of program.buffers)
    expect(shape.reduce((product, size) => product * size, 1)).toBeLessThanOrEqual(mostElements);
});

describe('a device that binds less than a program needs', () => {
  const s = new Sketch();
  const head = s.graph([s.matmul(s.input([4, 768]), s.input([768, 50_257]))]);
  const { program } = compileGraph(head, gpuTarget);

  test('refuses it when it is loaded, naming the tensor, its size, the limit and what to do', () => {
    const device = { name: 'webgpu', limits: gpuTarget.limits };
    const error = rejection(() => checkLimits(program, device));
    expect(error.code).toBe('E_LIMIT');
    expect(error.message).toMatch(
      /^webgpu in kernel \w+: the size of x1, f32\[768,50257\], in bytes, 154389\d+ exceeds the limit 134217728\n {2}try: compute it in parts.*f16 or bf16.*wasm/,
    );
  });

  test('refuses buffers and intermediates that are larger than its largest buffer', () => {
    const limits = { ...gpuTarget.limits, bindingBytes: 2 ** 28, bufferBytes: 2 ** 27 };
    expect(rejection(() => checkLimits(program, { name: 'webgpu', limits })).message).toMatch(
      /^webgpu: the size of x1, f32\[768,50257\], in bytes, \d+ exceeds the limit 134217728/,
    );
    const small = { ...program, buffers: [], steps: [], arenas: [2 ** 28] };
    expect(rejection(() => checkLimits(small, { name: 'webgpu', limits })).message).toMatch(
      /room for intermediates/,
    );
  });

  test('takes it where it binds enough', () => {
    const limits = { ...gpuTarget.limits, bindingBytes: 2 ** 28 };
    expect(() => checkLimits(program, { name: 'webgpu', limits })).not.toThrow();
  });
});

test.each(['interpreter', 'wasm:1'])(
  'on %s reading what is too large rejects, and the next value is computed',
  async (device) => {
    sn.setDevice(device);
    try {
      const huge = sn
        .ones([2 ** 16, 1])
        .expand([2 ** 16, 2 ** 16])
        .add(1);
      await expect(huge.data()).rejects.toMatchObject({ code: 'E_LIMIT' });
      expect([...(await sn.tensor([1, 2]).add(1).data())]).toEqual([2, 3]);
    } finally {
      sn.setDevice(undefined);
    }
  },
);
