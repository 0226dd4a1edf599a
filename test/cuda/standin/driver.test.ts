// The stand-in keeps the contracts of NVRTC and the driver: results of wrong calls, work that waits to be waited for, errors that
// stick, graphs and their updates.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import koffi from 'koffi';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Driver, parameterBlock, type Address } from './driver.ts';
import { onStandIn } from './on-standin.ts';

let driver: Driver;

const P = 'uintptr_t';
const scale = `extern "C" __global__ void __launch_bounds__(64) scale(const float *x, float *y, float by) {
  y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x] * by;
}
`;
const codes = {
  invalidValue: 1,
  outOfMemory: 2,
  invalidImage: 200,
  invalidContext: 201,
  noBinary: 209,
  invalidHandle: 400,
  notFound: 500,
  notReady: 600,
  illegalAddress: 700,
  captureUnsupported: 900,
  captureInvalidated: 901,
} as const;

function floats(count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => i);
}

function stream(flags = 1): Address {
  return driver.out('cuStreamCreate', ['uint32_t'], flags);
}

/** Queues y = x * by on a stream, and gives the driver's result. */
function launchScale(
  kernel: Address,
  on: Address,
  x: Address,
  y: Address,
  by: number,
  block = 64,
  grid = 1,
): number {
  const types = [P, ...Array.from({ length: 7 }, () => 'uint32_t'), P, P, P];
  const { address } = parameterBlock([x, y, { f32: by }]);
  return driver.result('cuLaunchKernel', types, kernel, grid, 1, 1, block, 1, 1, 0, on, address, 0);
}

/** Page-locked memory, as floats. */
function pinned(count: number): { readonly address: Address; readonly data: Float32Array } {
  const address = driver.out('cuMemHostAlloc', ['size_t', 'uint32_t'], 4 * count, 0);
  return { address, data: new Float32Array(koffi.view(BigInt(address), 4 * count)) };
}

onStandIn('the stand-in', () => {
  beforeAll(() => {
    driver = new Driver();
  });
  beforeEach(() => {
    driver.open();
    driver.heal();
    for (const [name, value] of Object.entries({ check: 0, order: 0, capability: 90 }))
      driver.set(name, value);
  });

  describe('for NVRTC', () => {
    test('gives the log with lines of the source', () => {
      const { code, log, image } = driver.compile('__global__ void k() {\n  int x = y;\n}\n');
      expect(code).toBe(6);
      expect(log).toMatch(
        /test\.cu:2:\d+: error: 'y' was not declared|test\.cu:2:\d+: error: .y. was not declared/,
      );
      expect(image).toBeUndefined();
    });

    test('refuses options that there are not', () => {
      expect(driver.compile(scale, ['--gpu-architecture=sm_999']).code).toBe(5);
      const { code, log } = driver.compile(scale, ['--fastest']);
      expect([code, log]).toEqual([5, expect.stringContaining('--fastest')]);
    });

    test('knows no header of the host, and no name that comes from one', () => {
      for (const text of [
        '#include <math.h>',
        'float x = INFINITY;',
        'uint32_t x = 0;',
        'float x = std::exp(1.0f);',
      ])
        expect(driver.compile(text).code, text).toBe(6);
    });

    test('gives a cubin for a real architecture only', () => {
      expect(driver.compile(scale, ['--gpu-architecture=sm_80']).image!.length).toBeGreaterThan(0);
      expect(driver.compile(scale, ['--gpu-architecture=compute_80']).image!.length).toBe(0);
    });

    test('builds a program once', () => {
      driver.compile(scale);
      const built = driver.get('built');
      driver.compile(scale);
      expect(driver.get('built')).toBe(built);
    });
  });

  describe('for modules', () => {
    const load = (image: Uint8Array): number =>
      driver.result('cuModuleLoadData', ['void *', 'void *'], new BigUint64Array(1), image);

    test('loads only what suits the device', () => {
      driver.set('capability', 89);
      expect(load(driver.compile(scale, ['--gpu-architecture=sm_90a']).image!)).toBe(codes.noBinary);
      expect(load(driver.compile(scale, ['--gpu-architecture=sm_80']).image!)).toBe(0);
      expect(load(Buffer.from('not an image\0'))).toBe(codes.invalidImage);
    });

    test('knows the functions of a module, as long as it is loaded', () => {
      const module = driver.out('cuModuleLoadData', ['void *'], driver.compile(scale).image!);
      const cell = new BigUint64Array(1);
      const get = (name: string): number =>
        driver.result('cuModuleGetFunction', ['void *', P, 'str'], cell, module, name);
      expect(get('other')).toBe(codes.notFound);
      expect(get('scale')).toBe(0);
      const kernel = Number(cell[0]);
      expect(launchScale(kernel, 0, 0, 0, 1, 65)).toBe(codes.invalidValue);
      driver.call('cuModuleUnload', [P], module);
      expect(launchScale(kernel, 0, 0, 0, 1)).toBe(codes.invalidHandle);
      expect(get('scale')).toBe(codes.invalidHandle);
    });

    test('says how much shared memory a kernel has, and holds launches to what was asked for', () => {
      const source = `extern "C" __global__ void k(float *y) {
        __shared__ float own[96];
        extern __shared__ float more[];
        own[threadIdx.x] = 1.0f; __syncthreads(); more[threadIdx.x] = own[threadIdx.x ^ 1]; y[threadIdx.x] = more[threadIdx.x];
      }`;
      const { k } = driver.kernels(source, 'k');
      expect(driver.out('cuFuncGetAttribute', ['int', P], 1, k)).toBe(384);
      const y = driver.upload(new Float32Array(32));
      expect(() => driver.launch(k, { block: [32], dynamic: 65536 }, y)).toThrow(/: 1: /);
      driver.call('cuFuncSetAttribute', [P, 'int', 'int'], k, 8, 65536);
      driver.launch(k, { block: [32], dynamic: 65536 }, y);
      expect(driver.download(y, new Float32Array(32))).toEqual(new Float32Array(32).fill(1));
    });
  });

  describe('for memory', () => {
    test('poisons what is fresh, and refuses ranges outside a buffer', () => {
      const address = driver.out('cuMemAlloc_v2', ['size_t'], 16);
      expect(driver.download(address, new Float32Array(4))).toEqual(new Float32Array(4).fill(NaN));
      const read = ['void *', P, 'size_t'];
      expect(driver.result('cuMemcpyDtoH_v2', read, new Float32Array(8), address, 32)).toBe(
        codes.invalidValue,
      );
      driver.call('cuMemFree_v2', [P], address);
      expect(driver.result('cuMemFree_v2', [P], address)).toBe(codes.invalidValue);
      expect(driver.result('cuMemcpyDtoH_v2', read, new Float32Array(4), address, 16)).toBe(
        codes.invalidValue,
      );
    });

    test('runs out', () => {
      driver.set('device_bytes', 1 << 20);
      const take = (bytes: number): number =>
        driver.result('cuMemAlloc_v2', ['void *', 'size_t'], new BigUint64Array(1), bytes);
      expect([take(1 << 19), take((1 << 19) + 1), take(0)]).toEqual([
        0,
        codes.outOfMemory,
        codes.invalidValue,
      ]);
      driver.set('device_bytes', 2 ** 31);
    });

    test('is freed in the order of its stream', () => {
      const [on, bytes] = [stream(), 256];
      const address = driver.out('cuMemAllocAsync', ['size_t', P], bytes, on);
      driver.call('cuMemsetD32Async', [P, 'uint32_t', 'size_t', P], address, 7, 64, on);
      driver.call('cuMemFreeAsync', [P, P], address, on);
      expect(driver.get('live_buffers')).toBe(1);
      driver.call('cuStreamSynchronize', [P], on);
      expect(driver.get('live_buffers')).toBe(0);
    });
  });

  describe('for streams', () => {
    test('does nothing before somebody waits', () => {
      const { scale: kernel } = driver.kernels(scale, 'scale');
      const [x, y, on] = [driver.upload(floats(64)), driver.upload(new Float32Array(64)), stream()];
      expect(launchScale(kernel, on, x, y, 2)).toBe(0);
      expect(driver.download(y, new Float32Array(64))[3]).toBe(0);
      driver.call('cuStreamSynchronize', [P], on);
      expect(driver.download(y, new Float32Array(64))[3]).toBe(6);
    });

    test('reads page-locked memory when the copy happens, other memory when it is queued', () => {
      const [on, address] = [stream(), driver.out('cuMemAlloc_v2', ['size_t'], 16)];
      const copy = ['uintptr_t', 'void *', 'size_t', P];
      const plain = Float32Array.of(1, 2, 3, 4);
      driver.call('cuMemcpyHtoDAsync_v2', copy, address, plain, 16, on);
      plain.fill(0);
      driver.call('cuStreamSynchronize', [P], on);
      expect(driver.download(address, new Float32Array(4))).toEqual(Float32Array.of(1, 2, 3, 4));
      const locked = pinned(4);
      locked.data.set([5, 6, 7, 8]);
      driver.call('cuMemcpyHtoDAsync_v2', [P, P, 'size_t', P], address, locked.address, 16, on);
      locked.data.fill(9);
      driver.call('cuStreamSynchronize', [P], on);
      expect(driver.download(address, new Float32Array(4))).toEqual(Float32Array.of(9, 9, 9, 9));
    });

    test('lets one wait for another by an event', () => {
      const [first, second] = [stream(), stream()];
      const [a, b] = [driver.upload(floats(4)), driver.upload(new Float32Array(4))];
      const event = driver.out('cuEventCreate', ['uint32_t'], 0);
      driver.call('cuMemsetD32Async', [P, 'uint32_t', 'size_t', P], a, 0x40000000, 4, first);
      driver.call('cuEventRecord', [P, P], event, first);
      expect(driver.result('cuEventQuery', [P], event)).toBe(codes.notReady);
      driver.call('cuStreamWaitEvent', [P, P, 'uint32_t'], second, event, 0);
      driver.call('cuMemcpyDtoDAsync_v2', [P, P, 'size_t', P], b, a, 16, second);
      driver.call('cuStreamSynchronize', [P], second);
      expect(driver.download(b, new Float32Array(4))).toEqual(new Float32Array(4).fill(2));
    });

    test('a wait is for what was recorded before it, also where the event is recorded again', () => {
      const [first, second] = [stream(), stream()];
      const [a, b] = [driver.upload(floats(4)), driver.upload(new Float32Array(4))];
      const event = driver.out('cuEventCreate', ['uint32_t'], 0);
      driver.call('cuMemsetD32Async', [P, 'uint32_t', 'size_t', P], a, 0x40000000, 4, first);
      driver.call('cuEventRecord', [P, P], event, first);
      driver.call('cuStreamWaitEvent', [P, P, 'uint32_t'], second, event, 0);
      driver.call('cuMemcpyDtoDAsync_v2', [P, P, 'size_t', P], b, a, 16, second);
      driver.call('cuMemsetD32Async', [P, 'uint32_t', 'size_t', P], a, 0x40400000, 4, first);
      driver.call('cuEventRecord', [P, P], event, first);
      driver.call('cuStreamSynchronize', [P], second);
      expect(driver.download(b, new Float32Array(4))).toEqual(new Float32Array(4).fill(2));
    });

    test('times what lies between events', () => {
      const { scale: kernel } = driver.kernels(scale, 'scale');
      const [x, y, on] = [driver.upload(floats(64)), driver.upload(floats(64)), stream()];
      const [start, end] = [0, 0].map(() => driver.out('cuEventCreate', ['uint32_t'], 0)) as [
        Address,
        Address,
      ];
      driver.call('cuEventRecord', [P, P], start, on);
      launchScale(kernel, on, x, y, 2);
      driver.call('cuEventRecord', [P, P], end, on);
      const time = new Float32Array(1);
      const elapsed = (): number =>
        driver.result('cuEventElapsedTime_v2', ['void *', P, P], time, start, end);
      expect(elapsed()).toBe(codes.notReady);
      driver.call('cuEventSynchronize', [P], end);
      expect(elapsed()).toBe(0);
      expect(time[0]).toBeGreaterThan(0);
    });
  });

  describe('for failures', () => {
    test('keeps an error of a kernel until the context is made afresh', () => {
      const { scale: kernel } = driver.kernels(scale, 'scale');
      const [x, y, on] = [driver.upload(floats(64)), driver.upload(floats(64)), stream()];
      expect(launchScale(kernel, on, x, y, 2, 64, 9000)).toBe(0);
      expect(driver.result('cuStreamSynchronize', [P], on)).toBe(codes.illegalAddress);
      expect(driver.story).toMatch(/kernel scale: access \d+ bytes behind a buffer of 256 bytes/);
      expect(driver.result('cuMemAlloc_v2', ['void *', 'size_t'], new BigUint64Array(1), 4)).toBe(
        codes.illegalAddress,
      );
      driver.open();
      driver.call('cuMemFree_v2', [P], driver.upload(floats(4)));
    });

    test('gives the results that a test asks for', () => {
      driver.inject('cuMemAlloc_v2', codes.outOfMemory, 1, 2);
      const take = (): number =>
        driver.result('cuMemAlloc_v2', ['void *', 'size_t'], new BigUint64Array(1), 4);
      expect([take(), take(), take(), take()]).toEqual([0, codes.outOfMemory, codes.outOfMemory, 0]);
    });

    test('needs a context, and says the names of errors', () => {
      driver.call('cuCtxSetCurrent', [P], 0);
      expect(driver.result('cuMemAlloc_v2', ['void *', 'size_t'], new BigUint64Array(1), 4)).toBe(
        codes.invalidContext,
      );
      const name: (string | null)[] = [null];
      driver.call('cuGetErrorName', ['int', '_Out_ str *'], 719, name);
      expect(name[0]).toBe('CUDA_ERROR_LAUNCH_FAILED');
    });
  });

  describe('for graphs', () => {
    test('replays what was captured, with parameters as they were', () => {
      const { scale: kernel } = driver.kernels(scale, 'scale');
      const [x, y, on] = [driver.upload(floats(64)), driver.upload(new Float32Array(64)), stream()];
      driver.call('cuStreamBeginCapture_v2', [P, 'int'], on, 1);
      launchScale(kernel, on, x, y, 3);
      driver.call('cuMemcpyDtoDAsync_v2', [P, P, 'size_t', P], x, y, 256, on);
      const cell = new BigUint64Array(1);
      driver.call('cuStreamEndCapture', [P, 'void *'], on, cell);
      const graph = Number(cell[0]);
      const exec = driver.out('cuGraphInstantiateWithFlags', [P, 'uint64_t'], graph, 0);
      for (let i = 0; i < 2; i++) driver.call('cuGraphLaunch', [P, P], exec, on);
      driver.call('cuStreamSynchronize', [P], on);
      expect(driver.download(y, new Float32Array(64))[2]).toBe(18);

      const nodes = new BigUint64Array(2);
      driver.call('cuGraphGetNodes', [P, 'void *', 'void *'], graph, nodes, BigUint64Array.of(2n));
      const block = parameterBlock([x, y, { f32: 10 }]);
      const parameters = new DataView(new ArrayBuffer(72));
      parameters.setBigUint64(0, BigInt(kernel), true);
      [1, 1, 1, 64, 1, 1, 0].forEach((size, i) => parameters.setUint32(8 + 4 * i, size, true));
      parameters.setBigUint64(40, BigInt(block.address), true);
      const update = [P, P, 'void *'];
      driver.call('cuGraphExecKernelNodeSetParams_v2', update, exec, Number(nodes[0]), parameters);
      expect(
        driver.result('cuGraphExecKernelNodeSetParams_v2', update, exec, Number(nodes[1]), parameters),
      ).toBe(codes.invalidValue);
      driver.call('cuGraphLaunch', [P, P], exec, on);
      driver.call('cuStreamSynchronize', [P], on);
      expect(driver.download(y, new Float32Array(64))[2]).toBe(180);
    });

    test('refuses to wait or allocate while a stream captures', () => {
      const on = stream();
      driver.call('cuStreamBeginCapture_v2', [P, 'int'], on, 1);
      expect(driver.result('cuStreamSynchronize', [P], on)).toBe(codes.captureUnsupported);
      expect(driver.result('cuStreamEndCapture', [P, 'void *'], on, new BigUint64Array(1))).toBe(
        codes.captureInvalidated,
      );
    });

    test('runs nodes that do not depend on each other in any order', () => {
      const a = driver.upload(floats(4));
      const graph = driver.out('cuGraphCreate', ['uint32_t'], 0);
      const fill = (value: number): DataView => {
        const parameters = new DataView(new ArrayBuffer(40));
        parameters.setBigUint64(0, BigInt(a), true);
        parameters.setUint32(16, value, true);
        parameters.setUint32(20, 4, true);
        parameters.setBigUint64(24, 4n, true);
        parameters.setBigUint64(32, 1n, true);
        return parameters;
      };
      const add = [P, 'void *', 'size_t', 'void *', P];
      driver.out('cuGraphAddMemsetNode', add, graph, null, 0, fill(0x3f800000), 0);
      driver.out('cuGraphAddMemsetNode', add, graph, null, 0, fill(0x40000000), 0);
      const exec = driver.out('cuGraphInstantiateWithFlags', [P, 'uint64_t'], graph, 0);
      const run = (): number => {
        driver.call('cuGraphLaunch', [P, P], exec, 0);
        driver.call('cuCtxSynchronize', []);
        return driver.download(a, new Float32Array(4))[0]!;
      };
      expect(run()).toBe(2);
      driver.set('order', 1);
      expect(run()).toBe(1);
    });
  });
});
