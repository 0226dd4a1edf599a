// `check`: every kernel that a piece of work has a device run, beside the interpreter. Right kernels are found to be
// right on every device, wrong ones are named, and the table that comes with them has programs avoid them.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { checkKernels } from '../../../src/check/kernels.ts';
import { storedBytes } from '../../../src/codegen/lower/assemble.ts';
import { compileGraph } from '../../../src/compile.ts';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray, packBytes, unpackBytes } from '../../../src/ir/value.ts';
import type { DeviceAllocation } from '../../../src/runtime/device.ts';
import { targetOf } from '../../../src/schedule/target.ts';
import { device as deviceOfSession } from '../../../src/tensor/device.ts';
import { everyDevice } from '../../support/devices.ts';
import { expectClose } from '../../support/random/graph.ts';
import { recorded } from '../../support/recorded.ts';
import { offByOne, plantedDevice } from './planted.ts';

const n = 48;
const data = (seed: number): Float32Array =>
  Float32Array.from({ length: n * n }, (_, i) => Math.sin(seed + 7 * i) / 8);
const square = (seed: number): Tensor => sn.tensor(data(seed), { shape: [n, n] });

afterEach(() => sn.useWorkarounds(undefined));
afterAll(() => sn.setDevice(undefined));

describe.each(everyDevice.filter((device) => device !== 'interpreter'))('%s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('finds a train step right, and runs it as ever', async () => {
    const losses = async (looked: boolean): Promise<number[]> => {
      const [w, v] = [square(1), square(2)];
      const moments = sn.zeros([n, n]);
      const step = sn.compile((x: Tensor, rate: Tensor): Tensor => {
        const loss = (w1: Tensor): Tensor => x.matmul(w1).gelu().matmul(v).logSoftmax(-1).square().mean();
        const slope = sn.grad(loss)(w);
        moments.assign(moments.mul(0.9).add(slope));
        w.assign(w.sub(moments.mul(rate)));
        return loss(w);
      });
      const x = square(3);
      const found: number[] = [];
      for (let i = 0; i < 3; i++) {
        const call = async (): Promise<void> => void found.push(Number(await step(x, 0.5).item()));
        if (!looked) await call();
        else {
          const { kernels, wrong, workarounds } = await sn.check(call);
          expect(wrong).toEqual([]);
          expect(workarounds).toBeUndefined();
          // Every check looks at what it meets first.
          expect(kernels.length).toBeGreaterThan(2);
        }
      }
      return found;
    };
    expect(await losses(true)).toEqual(await losses(false));
  });

  test('finds kernels of every kind right', async () => {
    const x = square(4);
    const half = square(5).to('f16');
    const indices = sn.tensor([3, 1, 4, 1, 5, 40], { dtype: 'i32' });
    const q = square(6).reshape([1, 2, 24, n]);
    const work = (): Tensor[] => [
      sn.sort(x, 1)[0],
      x.cumsum(0).argmax(1),
      x.indexSelect(0, indices).exp(),
      sn.scatterAdd(x, 0, sn.broadcastTo(indices.reshape([6, 1]), [6, n]), sn.ones([6, n])),
      half.matmul(half).softmax(-1),
      sn.scaledDotProductAttention(q, q, q, { isCausal: true }),
      sn.conv2d(x.reshape([1, 1, n, n]), square(7).narrow(0, 0, 9).narrow(1, 0, 9).reshape([1, 1, 9, 9])),
      sn.foriLoop(0, 5, (_: Tensor, h: Tensor) => h.matmul(x).tanh(), x),
    ];
    const found = await sn.check(() => Promise.all(work().map((each) => each.data())));
    expect(found.wrong, String(found)).toEqual([]);
    expect(found.device).toBe(device);
    const kinds = new Set(found.kernels.map(({ kind }) => kind));
    for (const kind of ['scan', 'attention']) expect([...kinds].join()).toContain(kind);
  });

  test('takes a number as it was, where an earlier kernel writes over it', async () => {
    const [count, sums] = [sn.tensor(3), sn.zeros([n, n])];
    const step = sn.compile((x: Tensor) => {
      const product = x.matmul(x).cumsum(0).softmax(-1).cumsum(1).mul(count);
      count.assign(count.add(1));
      sums.assign(sums.add(product));
      return sums.cumsum(0);
    });
    const found = await sn.check(() => step(square(1)).data());
    expect(found.wrong, String(found)).toEqual([]);
    expect(await count.item()).toBe(4);
  });

  test('follows values past what they wait for', async () => {
    const block = sn.checkpoint((h: Tensor, w: Tensor) => h.matmul(w).gelu().matmul(w).softmax(-1));
    const slope = sn.compile((x: Tensor, w: Tensor) =>
      sn.grad((v: Tensor) => block(block(x, v), v).square().sum())(w),
    );
    const found = await sn.check(() => slope(square(1), square(2)).data());
    expect(found.wrong, String(found)).toEqual([]);
    expect(found.kernels.length).toBeGreaterThan(4);
  });

  test('compares what one kernel writes of several values, some of which others complete', async () => {
    const model = sn.compile((x: Tensor, w: Tensor) => {
      const [first, second, third] = [8, 16, 24].map((size) =>
        x.narrow(1, 0, size).matmul(w.narrow(0, 0, size)),
      ) as [Tensor, Tensor, Tensor];
      return [sn.cat([first, second.sin()], 1), sn.cat([first.exp(), third], 1)];
    });
    const found = await sn.check(() => Promise.all(model(square(1), square(2)).map((each) => each.data())));
    expect(found.wrong, String(found)).toEqual([]);
    expect(found.kernels.length).toBeGreaterThan(1);
  });

  test('keeps what kernels leave for each other while other programs of the device run, come and go', async () => {
    const open = await deviceOfSession();
    const busy = recorded(
      (x: Tensor) => x.exp().cumsum(0).softmax(-1).matmul(x).cumsum(1).softmax(-1),
      [square(9).tile([3, 3])],
    );
    const { program } = compileGraph(busy.graph, targetOf(open.facts));
    expect(program.arenas.some((bytes) => bytes > 0)).toBe(true);
    const others = (): void => {
      const loaded = open.load(program);
      const [inputs, outputs] = [program.inputs, program.outputs].map((list) =>
        list.map((at) => open.allocate(program.buffers[at]!.bytes)),
      ) as [DeviceAllocation[], DeviceAllocation[]];
      for (const input of inputs) open.write(input, new Uint8Array(input.bytes).fill(0x40));
      loaded.run(inputs, outputs, []);
      for (const buffer of [...inputs, ...outputs]) buffer.destroy();
      loaded.destroy();
    };
    // The result takes the place of the argument, so that the last kernel leaves it where it can be read.
    const work = recorded((x: Tensor) => x.cumsum(0).softmax(-1).matmul(x).cumsum(1).tanh(), [square(4)]);
    const compiled = compileGraph(work.graph, targetOf(open.facts), {
      inspect: true,
      donate: new Map([[0, 0]]),
    });
    expect(compiled.program.arenas.some((bytes) => bytes > 0)).toBe(true);
    const given = hostArray('f32', [n, n], data(4));
    const buffer = open.allocate(storedBytes(work.graph.outputs[0]!));
    open.write(buffer, packBytes(given));
    const run = { device: open, compiled, inputs: [buffer], scalars: [], precision: 'f32' } as const;
    const found = await checkKernels({ ...run, onProgress: others });
    expect(found.length).toBeGreaterThan(2);
    const result = unpackBytes(await open.read(buffer, 4 * n * n), 'f32', [n, n]);
    expectClose(result, interpret(work.graph, [given])[0]!, 1e-4);
    buffer.destroy();
  });

  test('looks at the part of a varying size that counts', async () => {
    const grown = sn.compile((x: Tensor) => x.mul(2).softmax(-1).matmul(x.transpose(0, 1)).sum(0), {
      dims: { x: [sn.dim('rows', { max: 64 }), 16] },
    });
    for (const rows of [3, 17, 64]) {
      const found = await sn.check(() => grown(square(8).reshape([-1, 16]).narrow(0, 0, rows)).data());
      expect(found.wrong, String(found)).toEqual([]);
      expect(found.kernels.length).toBeGreaterThan(0);
    }
  });
});

describe('a device that is wrong', () => {
  test('a fold over subgroups: it is named, and a run avoids it', async () => {
    const device = plantedDevice(({ source }) => source.replace('subgroupAdd(', 'subgroupMax('));
    sn.setDevice(device);
    const rows = sn.compile((x: Tensor) => x.softmax(-1).matmul(x.transpose(0, 1)));
    const x = sn.tensor(
      Float32Array.from({ length: 8192 }, (_, i) => Math.sin(i)),
      { shape: [16, 512] },
    );
    const found = await sn.check(() => rows(x).data());
    expect(found.wrong.map(({ kind }) => kind)).toEqual(['row-reduction']);
    // The product behind it was given the right rows, and is right.
    expect(found.kernels.find(({ kind }) => kind === 'dot')).toMatchObject({ verdict: 'right' });
    expect(String(found)).toContain(`${device}, driver 1`);
    expect(String(found)).toMatch(/right where the device is used without subgroups/);
    const [entry] = found.workarounds!.entries;
    expect(entry).toMatchObject({ device, avoid: ['subgroups'], schedules: {} });
    const wrong = await rows(x).data();
    // The table is plain JSON.
    sn.useWorkarounds(JSON.parse(JSON.stringify(found.workarounds)) as sn.Workarounds);
    const right = await rows(x).data();
    expect((await sn.check(() => rows(x).data())).wrong).toEqual([]);
    sn.setDevice('interpreter');
    const expected = await rows(x).data();
    expect(distance(wrong, expected)).toBeGreaterThan(0.1);
    expect(distance(right, expected)).toBeLessThan(1e-4);
  });

  test('equal wrong kernels are put right each, so that what follows is judged by right numbers', async () => {
    const device = plantedDevice(({ source }) => source.replace('subgroupAdd(', 'subgroupMax('));
    sn.setDevice(device);
    const shape = { shape: [16, 512] };
    const x = sn.tensor(
      Float32Array.from({ length: 8192 }, (_, i) => Math.sin(i)),
      shape,
    );
    const w = sn.tensor(
      Float32Array.from({ length: 512 * 512 }, (_, i) => Math.cos(i) / 8),
      { shape: [512, 512] },
    );
    const layers = sn.compile((h: Tensor) => {
      for (let layer = 0; layer < 3; layer++) h = h.softmax(-1).matmul(w);
      // Where a row does not sum to 1 this is far away.
      return sn.cumsum(h.mul(1e30), 1);
    });
    const found = await sn.check(() => layers(x).data());
    expect(found.wrong).toMatchObject([{ kind: 'row-reduction', count: 3 }]);
    const judged = found.kernels.filter(({ verdict }) => verdict === 'right');
    expect(judged.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['dot', 'scan']));
  });

  test('one schedule of a product: another is found', async () => {
    let refused: string | undefined;
    const device = plantedDevice((kernel) => {
      if (kernel.kind !== 'dot') return kernel.source;
      const schedule = kernel.source.split('\n')[0]!;
      refused ??= schedule;
      return schedule === refused ? offByOne(kernel) : kernel.source;
    });
    sn.setDevice(device);
    const product = sn.compile((x: Tensor, y: Tensor) => x.matmul(y));
    const [x, y] = [square(1), square(2)];
    const found = await sn.check(() => product(x, y).data());
    expect(found.wrong.map(({ kind }) => kind)).toEqual(['dot']);
    const [entry] = found.workarounds!.entries;
    expect(entry).toMatchObject({ avoid: [] });
    expect(Object.keys(entry!.schedules)).toHaveLength(1);
    expect(entry!.instead).toBeUndefined();
    sn.useWorkarounds(found.workarounds);
    const right = await product(x, y).data();
    sn.setDevice('interpreter');
    expect(distance(right, await product(x, y).data())).toBeLessThan(1e-5);
  });

  test('everything: another device computes instead', async () => {
    const device = plantedDevice((kernel) => (kernel.kind === 'map' ? offByOne(kernel) : kernel.source));
    sn.setDevice(device);
    const found = await sn.check(() => square(1).mul(3).data());
    const [{ difference }] = found.wrong as readonly [sn.CheckedKernel];
    expect(difference).toMatchObject({ wrong: n * n, count: n * n });
    expect(difference!.got).toBeCloseTo(difference!.expected + 1, 5);
    expect(found.workarounds!.entries).toMatchObject([{ device, avoid: [], instead: 'wasm' }]);
    sn.useWorkarounds(found.workarounds);
    const warnings: unknown[] = [];
    const { warn } = console;
    console.warn = (text: unknown): void => void warnings.push(text);
    try {
      sn.setDevice(device);
      const values = await square(1).mul(3).data();
      expect(values[1]).toBeCloseTo(3 * data(1)[1]!, 5);
    } finally {
      console.warn = warn;
    }
    expect(warnings).toEqual([expect.stringContaining(`wasm computes instead of ${device}`)]);
  });

  test('a kernel that the device refuses is one that failed', async () => {
    const device = plantedDevice(({ kind, source }) => (kind === 'dot' ? `${source}\nnonsense` : source));
    sn.setDevice(device);
    let found: sn.DeviceCheck<unknown> | undefined;
    // The run itself fails as it would without a check.
    await expect(
      (async () => {
        found = await sn.check(() =>
          square(1)
            .matmul(square(2))
            .data()
            .catch(() => undefined),
        );
        expect(found.wrong).toMatchObject([{ kind: 'dot', verdict: 'failed' }]);
        expect(found.wrong[0]!.problem).toContain('nonsense');
        return square(1).matmul(square(2)).data();
      })(),
    ).rejects.toMatchObject({ code: 'E_VALIDATION' });
  });
});

describe('what is refused', () => {
  test('the interpreter is compared with nothing', async () => {
    sn.setDevice('interpreter');
    await expect(sn.check(() => undefined)).rejects.toMatchObject({
      code: 'E_VALUE',
      message: expect.stringContaining('the interpreter, which others are compared with') as string,
    });
  });

  test('two checks at once', async () => {
    sn.setDevice('wasm');
    const found = sn.check(async () => {
      await expect(sn.check(() => undefined)).rejects.toMatchObject({ code: 'E_STATE' });
      return 7;
    });
    expect((await found).value).toBe(7);
    // One that has failed is over.
    await expect(sn.check(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
    expect(String(await sn.check(() => undefined))).toContain('no kernel ran on wasm');
  });

  test('tables that are none', () => {
    const refused = [undefined, [], 7, {}, { version: 2, entries: [] }, { version: 1, entries: [{}] }].slice(
      1,
    );
    for (const table of refused)
      expect(() => sn.useWorkarounds(table as sn.Workarounds)).toThrow(
        expect.objectContaining({ code: 'E_FORMAT' }) as Error,
      );
    const entry = {
      device: 'x',
      description: 'y',
      avoid: [],
      wrong: [],
      schedules: { key: { kind: 'none' } },
    };
    expect(() => sn.useWorkarounds({ version: 1, entries: [entry] } as unknown as sn.Workarounds)).toThrow(
      /the entry 'key' is no schedule/,
    );
  });
});

function distance(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number {
  return Math.max(...Array.from(a, (value, i) => Math.abs(Number(value) - Number(b[i]))));
}

test.each<readonly [fn: unknown, options: unknown, problem: RegExp]>([
  [1, undefined, /check: expects a function/],
  [() => 1, 2, /check: expects options as an object, got 2/],
  [() => 1, { progress: () => {} }, /there is no option 'progress'/],
  [() => 1, { onProgress: 1 }, /check: expects a function, got 1/],
])('refuses %s with the options %s', async (fn, options, problem) => {
  const asked = sn.check(fn as () => number, options as object);
  await expect(asked).rejects.toThrow(problem);
  await expect(asked).rejects.toMatchObject({ code: 'E_VALUE' });
});
