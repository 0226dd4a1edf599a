// Every class of mistake that the stand-in claims to find is planted in a kernel that is right without it, and found.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Driver, type Dimensions, type Parameter } from './driver.ts';
import { onStandIn } from './on-standin.ts';
import { orders, type Order } from './standin.ts';
import { attentive, matmulBf16, matmulTiles, product, reduceRows, tileProduct } from './kernels.ts';

let driver: Driver;

interface Run extends Dimensions {
  /** Floats of each buffer, in the order of the parameters; the last is the result. */
  readonly buffers: readonly Float32Array[];
  readonly rest?: readonly Parameter[];
}

interface Plan {
  readonly order?: Order;
  readonly check?: boolean;
}

/** The result, or what the launch failed with. */
function run(
  source: string,
  { buffers, rest = [], ...dimensions }: Run,
  plan: Plan = {},
): Float32Array | string {
  driver.open();
  driver.set('check', plan.check === true ? 1 : 0);
  driver.set('order', orders[plan.order ?? 'forward']);
  driver.set('seed', 7);
  try {
    const { k } = driver.kernels(source, 'k');
    if ((dimensions.dynamic ?? 0) > 49152)
      driver.call('cuFuncSetAttribute', ['uintptr_t', 'int', 'int'], k, 8, dimensions.dynamic);
    const addresses = buffers.map((buffer) => driver.upload(buffer));
    driver.launch(k, dimensions, ...addresses, ...rest);
    return driver.download(addresses.at(-1)!, new Float32Array(buffers.at(-1)!.length));
  } catch (error) {
    return (error as Error).message;
  }
}

/** The source with one piece of its text replaced, which must be there. */
function plant(source: string, piece: string, by = ''): string {
  expect(source).toContain(piece);
  return source.replace(piece, by);
}

const rows = {
  grid: [3],
  block: [128],
  buffers: [ramp(300), new Float32Array(3)],
  rest: [{ i32: 100 }],
} as const;
const rowSums = [0, 1, 2].map((row) =>
  ramp(300)
    .subarray(row * 100, row * 100 + 100)
    .reduce((a, b) => a + b),
);

function ramp(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, i) => (i % 17) - 3);
}

onStandIn('planted mistakes', () => {
  beforeAll(() => {
    driver = new Driver();
  });
  afterAll(() => driver.set('check', 0));

  describe('a sum over rows', () => {
    test.each(['forward', 'reverse', 'random', 'warpPriority'] as const)(
      'is right in the %s order',
      (order) => {
        for (const check of [false, true])
          expect(run(reduceRows, rows, { order, check })).toEqual(Float32Array.from(rowSums));
      },
    );

    test('without the barrier after the store to shared memory', () => {
      const source = plant(reduceRows, '__syncthreads(); // stored');
      expect(run(source, rows, { check: true })).toMatch(
        /race on parts .*a read after a write|nothing wrote/,
      );
      expect(run(source, rows, { order: 'warpPriority' })).not.toEqual(Float32Array.from(rowSums));
    });

    test('without the barrier before shared memory is used again', () => {
      const source = plant(reduceRows, '__syncthreads(); // read');
      expect(run(source, rows, { check: true })).toMatch(/race on parts .*a write after a read/);
      expect(run(source, rows, { order: 'warpPriority' })).not.toEqual(Float32Array.from(rowSums));
    });

    test('with a barrier that some threads do not reach', () => {
      const source = plant(
        reduceRows,
        '__syncthreads(); // stored',
        'if (threadIdx.x < 64) __syncthreads();',
      );
      expect(run(source, rows)).toMatch(/702: .*different barriers|719: .*different barriers|deadlock/);
    });

    test('with a barrier that nobody else reaches, as a thread left early', () => {
      const source = plant(
        reduceRows,
        'float sum = 0.0f;',
        'if (threadIdx.x > 100) return; float sum = 0.0f;',
      );
      expect(run(source, rows)).toMatch(/deadlock|leaves it out/);
    });

    test('with a shuffle that one lane leaves out', () => {
      const source = plant(reduceRows, 'for (int by = 16;', 'if (threadIdx.x % 32 < 31) for (int by = 16;');
      expect(run(source, rows)).toMatch(/deadlock|different lines/);
    });

    test('with an index past the end of an input', () => {
      const source = plant(reduceRows, 'i < n', 'i <= n + 100');
      expect(run(source, rows, { check: true })).toMatch(
        /700: .*global read of 4 bytes .*behind a buffer of 1200 bytes at line \d+/,
      );
    });

    test('with a write far outside, found without the checker too', () => {
      const source = plant(reduceRows, 'out[blockIdx.x] = sum', 'out[blockIdx.x + 4000] = sum');
      expect(run(source, rows)).toMatch(/700: .*behind a buffer of 12 bytes/);
    });

    test('with an index past the end of shared memory', () => {
      const source = plant(reduceRows, 'parts[threadIdx.x / 32] = sum', 'parts[threadIdx.x] = sum');
      expect(run(source, rows, { check: true })).toMatch(/race|past the end of parts|outside/);
    });

    test('with shared memory that is read before it is written', () => {
      const source = plant(reduceRows, 'if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;', '');
      expect(run(source, rows, { check: true })).toMatch(/nothing wrote in this block: parts/);
      expect(run(source, rows)).toEqual(new Float32Array(3).fill(NaN));
    });
  });

  describe('a kernel of one thread', () => {
    const kernel = (body: string): string =>
      `extern "C" __global__ void k(const float *x, float *y) { ${body} }`;
    const one = { block: [1], buffers: [ramp(64), new Float32Array(4)] } as const;

    test('with a misaligned vector', () => {
      const source = kernel('float4 v = *reinterpret_cast<const float4 *>(x + 1); y[0] = v.x + v.w;');
      expect(run(source, one, { check: true })).toMatch(/misaligned/);
      const aligned = plant(source, 'x + 1', 'x + 4');
      expect(run(aligned, one, { check: true })).toEqual(Float32Array.of(5, 0, 0, 0));
    });

    test('with an index outside a local array', () => {
      const source = kernel('float v[4] = {1, 2, 3, 4}; y[0] = v[(int)x[8]];');
      expect(run(source, one, { check: true })).toMatch(/index outside a local array/);
    });

    test('with a division by zero', () => {
      const source = kernel('int zero = (int)x[3]; y[0] = (float)(7 / zero);');
      expect(run(source, one)).toMatch(/division by zero/);
      expect(run(source, one, { check: true })).toMatch(/division by zero/);
    });

    test('with an addition of signed integers that overflows', () => {
      const source = kernel('int big = 2147483647; y[0] = (float)(big + (int)x[4]);');
      expect(run(source, one, { check: true })).toMatch(/signed overflow/);
    });

    test('with memory that was freed', () => {
      driver.open();
      driver.set('check', 1);
      const { k } = driver.kernels(kernel('y[0] = x[0];'), 'k');
      const [x, y] = [driver.upload(ramp(4)), driver.upload(ramp(4))];
      driver.call('cuMemFree_v2', ['uintptr_t'], x);
      expect(() => driver.launch(k, { block: [1] }, x, y)).toThrow(/700: .*in a freed buffer of 16 bytes/);
    });
  });

  describe('a product on tensor cores', () => {
    const { launch, expected } = product();

    const close = (result: Float32Array | string): boolean =>
      typeof result !== 'string' && result.every((value, i) => Math.abs(value - expected[i]!) < 1e-3);

    test.each(['forward', 'reverse', 'random', 'warpPriority'] as const)(
      'is right in the %s order',
      (order) => {
        for (const check of [false, true])
          expect(close(run(matmulBf16, launch, { order, check }))).toBe(true);
      },
    );

    test('with a wait that lets one copy too many be under way', () => {
      const source = plant(matmulBf16, 'cp_async_wait<STAGES - 2>()', 'cp_async_wait<STAGES - 1>()');
      expect(close(run(source, launch))).toBe(false);
      expect(run(source, launch, { check: true })).toMatch(/was not waited for|race/);
    });

    test('without the barrier between stages', () => {
      const source = plant(matmulBf16, '__syncthreads(); // stage');
      expect(run(source, launch, { check: true })).toMatch(/race|nothing wrote/);
      expect(close(run(source, launch, { order: 'warpPriority' }))).toBe(false);
    });

    test('with rows that are not aligned', () => {
      const source = plant(matmulBf16, '#define PAD 8', '#define PAD 4');
      expect(run(source, launch)).toMatch(/misaligned/);
    });

    test('with a transpose forgotten', () => {
      const source = plant(matmulBf16, 'ldmatrix_x4_trans(', 'ldmatrix_x4(');
      expect(close(run(source, launch))).toBe(false);
    });
  });

  describe('a product of warp groups', () => {
    const [m, n, depth] = [256, 64, 160];
    const { a, b, expected } = tileProduct(m, n, depth);

    const multiply = (
      source: string,
      { order = 'forward', check = false }: Plan = {},
    ): Float32Array | string => {
      driver.open();
      driver.set('check', check ? 1 : 0);
      driver.set('order', orders[order]);
      try {
        const { k } = driver.kernels(source, 'k');
        const dynamic = 2 * (128 + 64) * 64 * 2;
        driver.call('cuFuncSetAttribute', ['uintptr_t', 'int', 'int'], k, 8, dynamic);
        const map = (data: Uint16Array, rows: number, box: number): Parameter =>
          driver.map({
            dtype: 'bf16',
            start: driver.upload(data),
            sizes: [depth, rows],
            strides: [2 * depth],
            box: [64, box],
          });
        const c = driver.upload(new Float32Array(m * n));
        const maps = [map(a, m, 128), map(b, n, 64)];
        driver.launch(
          k,
          { block: [384], dynamic },
          ...maps,
          c,
          { i32: m / 128 },
          { i32: Math.ceil(depth / 64) },
        );
        return driver.download(c, new Float32Array(m * n));
      } catch (error) {
        return (error as Error).message;
      }
    };
    const close = (result: Float32Array | string): boolean =>
      typeof result !== 'string' && result.every((value, i) => Math.abs(value - expected[i]!) < 1e-3);

    test.each(['forward', 'reverse', 'random', 'warpPriority'] as const)(
      'is right in the %s order',
      (order) => {
        for (const check of [false, true]) expect(close(multiply(matmulTiles, { order, check }))).toBe(true);
      },
    );

    test('that announces too few bytes, or too many', () => {
      for (const by of ['(128 + 64) * 64 * 2 - 256', '(128 + 64) * 64 * 2 + 256'])
        expect(multiply(plant(matmulTiles, '(128 + 64) * 64 * 2', by))).toMatch(/deadlock/);
    });

    test('that expects the wrong number of arrivals', () => {
      expect(multiply(plant(matmulTiles, 'empty + i, 8', 'empty + i, 9'))).toMatch(/deadlock/);
      expect(
        close(multiply(plant(matmulTiles, 'empty + i, 8', 'empty + i, 4'), { order: 'warpPriority' })),
      ).toBe(false);
    });

    test('that waits for the wrong phase', () => {
      const source = plant(
        matmulTiles,
        'mbarrier_wait(full + slot, parity)',
        'mbarrier_wait(full + slot, parity ^ 1)',
      );
      expect(close(multiply(source))).toBe(false);
    });

    test('that gives a slot back before its products are done', () => {
      const source = plant(matmulTiles, 'wgmma_wait<0>();', 'wgmma_wait<1>();');
      expect(close(multiply(source))).toBe(false);
    });

    test('without a fence', () => {
      expect(multiply(plant(matmulTiles, 'wgmma_fence();'))).toMatch(/before a fence/);
    });

    test('whose steps along k are too long', () => {
      expect(close(multiply(plant(matmulTiles, 'k += 16)', 'k += 32)')))).toBe(false);
    });

    test('without the barrier behind what makes mbarriers', () => {
      const source = plant(matmulTiles, '__syncthreads();');
      expect(multiply(source, { order: 'reverse' })).toMatch(/an mbarrier is used that was not made/);
    });
  });

  describe('blocks that know nothing of each other', () => {
    const shift = `extern "C" __global__ void k(float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float next = i + 1 < n ? y[i + 1] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = next;
}`;
    const start = ramp(128);
    const shifted = Float32Array.from(start, (_, i) => start[i + 1] ?? 0);

    test('may change memory in place in one block', () => {
      const one = { block: [128], buffers: [start], rest: [{ i32: 128 }] } as const;
      for (const order of ['forward', 'reverse', 'random'] as const)
        expect(run(shift, one, { order, check: true })).toEqual(shifted);
    });

    test('without the barrier there', () => {
      const one = { block: [128], buffers: [start], rest: [{ i32: 128 }] } as const;
      const source = plant(shift, '__syncthreads();');
      expect(run(source, one, { check: true })).toMatch(
        /race in device memory: .* by thread \d+ with no barrier/,
      );
    });

    test('but not in two', () => {
      const two = { grid: [2], block: [64], buffers: [start], rest: [{ i32: 128 }] } as const;
      expect(run(shift, two)).toEqual(shifted);
      expect(run(shift, two, { order: 'reverse' })).not.toEqual(shifted);
      expect(run(shift, two, { check: true })).toMatch(/race in device memory: .* by another block/);
    });

    test('nor add up without atomics', () => {
      const add = `extern "C" __global__ void k(const float *x, float *y) { atomicAdd(y, x[blockIdx.x * 32 + threadIdx.x]); }`;
      const sum = { grid: [4], block: [32], buffers: [start, new Float32Array(1)] } as const;
      expect(run(add, sum, { check: true })).toEqual(Float32Array.of(start.reduce((a, b) => a + b)));
      const plain = plant(
        add,
        'atomicAdd(y, x[blockIdx.x * 32 + threadIdx.x])',
        '*y += x[blockIdx.x * 32 + threadIdx.x]',
      );
      expect(run(plain, sum, { check: true })).toMatch(/race in device memory/);
    });
  });

  test('warps that meet at a named barrier of the wrong count', () => {
    const launch = { block: [64], buffers: [new Float32Array(64)] } as const;
    expect(run(attentive, launch, { check: true })).toEqual(
      Float32Array.from({ length: 64 }, (_, i) => 63 - i),
    );
    expect(run(plant(attentive, 'bar_sync(1, 64)', 'bar_sync(1, 96)'), launch)).toMatch(/deadlock/);
    expect(run(plant(attentive, 'bar_sync(1, 64)', '__syncwarp()'), launch, { check: true })).toMatch(
      /race|nothing wrote/,
    );
  });
});
