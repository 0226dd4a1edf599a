// What the CUDA driver and NVRTC ask of their callers, where a mistake shows on hardware alone:
// tensor maps, the start of shared memory, compilers that have given a GPU up, copies of more than
// 2 GiB, contexts that others change. The stand-in refuses each.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import * as fc from 'fast-check';
import koffi from 'koffi';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import type { ContractTiling, PinnedTilings } from '../../../src/codegen/template/contract/strategies.ts';
import { compileGraph } from '../../../src/compile.ts';
import { emitCuda } from '../../../src/codegen/emit/cuda/emit.ts';
import { lowerKernel } from '../../../src/codegen/lower/kernel.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { rowsOf } from '../../../src/runtime/cuda/api/marshal.ts';
import { openNvrtc, type Nvrtc } from '../../../src/runtime/cuda/api/nvrtc.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { deviceBytes } from '../../../src/runtime/program.ts';
import { unsharedMemory } from '../../../src/schedule/memory/plan.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import { cudaTarget, targetOf, type Target } from '../../../src/schedule/target.ts';
import { Sketch } from '../../codegen/cases.ts';
import { graphOf } from '../../codegen/template/product-graph.ts';
import { inputsOf } from '../../codegen/template/mma-cases.ts';
import { warpgroupSchedules } from '../../codegen/template/wgmma-cases.ts';
import { failure } from '../../runtime/failure.ts';
import { bytesOf, floatsOf, ramp } from '../../runtime/programs.ts';
import { runOnDevice } from '../../support/execute.ts';
import { expectClose } from '../../support/random/graph.ts';
import { checkLaw } from '../../support/property.ts';
import { Driver } from './driver.ts';
import { Machine } from '../machine.ts';
import { onStandIn } from './on-standin.ts';
import { cudaChain, cudaMap } from '../programs.ts';
import { standIn } from './standin.ts';

const invalidValue = 1;
const P = 'uintptr_t';

test('copies of any size are rows whose pitch a driver takes, and bytes are neither lost nor added', () => {
  const elements = fc.integer({ min: 1, max: 2 ** 31 - 1 });
  checkLaw(300, fc.tuple(elements, fc.constantFrom(1, 2, 4, 8)), ([count, bytes]) => {
    const whole = deviceBytes(bytes, count);
    const { width, height } = rowsOf(whole);
    expect(width * height).toBe(whole);
    expect(width).toBeLessThan(2 ** 31);
  });
  expect(rowsOf(256)).toEqual({ width: 256, height: 1 });
  expect(rowsOf(2 ** 31)).toEqual({ width: 2 ** 30, height: 2 });
});

onStandIn('contracts of the driver', () => {
  describe('the stand-in refuses', () => {
    let driver: Driver;
    beforeAll(() => {
      driver = new Driver();
    });
    beforeEach(() => driver.open());

    test('tensor maps that a GPU does not take', () => {
      const start = driver.upload(new Uint8Array(1 << 16));
      const sound = {
        dtype: 'bf16',
        start,
        sizes: [64, 16, 4],
        strides: [128, 2048],
        box: [64, 16, 1],
      } as const;
      expect(() => driver.map(sound)).not.toThrow();
      const refuses = (change: object): void =>
        expect(() => driver.map({ ...sound, ...change }), JSON.stringify(change)).toThrow(/: 1: /);
      refuses({ strides: [0, 2048] });
      refuses({ strides: [128, 0] });
      refuses({ strides: [136, 2176] });
      refuses({ strides: [256, 128] });
      refuses({ strides: [128, 192] });
      refuses({ strides: [128, 2 ** 40] });
      refuses({ sizes: [64, 0, 4] });
      refuses({ box: [128, 16, 1] });
      refuses({ box: [64, 512, 1] });
      refuses({ start: start + 8 });
      refuses({ sizes: [64], strides: [], box: [68] });
    });

    test('nodes that copy rows beyond the pitch, and copies rows that follow each other', () => {
      const values = Float32Array.from(ramp(64));
      const [from, to] = [driver.upload(values), driver.upload(new Float32Array(64))];
      const graph = driver.out('cuGraphCreate', ['uint32_t'], 0);
      const node = (width: number, height: number, pitch: number): DataView => {
        const struct = new DataView(new ArrayBuffer(200));
        const word = (at: number, value: number): void => struct.setBigUint64(at, BigInt(value), true);
        word(32, 2);
        word(48, from);
        word(120, 2);
        word(136, to);
        for (const side of [72, 160]) {
          word(side, pitch);
          word(side + 8, height);
        }
        word(176, width);
        word(184, height);
        word(192, 1);
        return struct;
      };
      const types = ['void *', P, 'void *', 'size_t', 'void *', P];
      const add = (struct: DataView): number =>
        driver.result('cuGraphAddMemcpyNode', types, new BigUint64Array(1), graph, null, 0, struct, 0);
      expect(add(node(256, 1, 0))).toBe(invalidValue);
      expect(add(node(256, 1, 2 ** 31))).toBe(invalidValue);
      expect(add(node(64, 4, 32))).toBe(invalidValue);
      expect(add(node(64, 4, 64))).toBe(0);
      const exec = driver.out('cuGraphInstantiateWithFlags', [P, 'uint64_t'], graph, 0);
      driver.call('cuGraphLaunch', [P, P], exec, 0);
      driver.call('cuCtxSynchronize', []);
      expect(driver.download(to, new Float32Array(64))).toEqual(values);
    });

    test('dynamic shared memory begins where its kernel says, and one name is one symbol with the first alignment', () => {
      const kernel = (name: string, alignment: number, memory: string): string =>
        `extern "C" __global__ void ${name}(unsigned *out) {
          extern __shared__ __align__(${alignment}) unsigned char ${memory}[];
          out[0] = shared_address(${memory}) & 1023u;
        }\n`;
      const start = (name: string, source: string): number => {
        const out = driver.upload(new Uint32Array(4));
        driver.launch(driver.kernels(source, name)[name]!, { block: [1], dynamic: 4096 }, out);
        return driver.download(out, new Uint32Array(4))[0]!;
      };
      const own = kernel('a', 16, 'a_memory') + kernel('b', 1024, 'b_memory');
      expect([start('a', own), start('b', own)]).toEqual([16, 0]);
      const shared = kernel('c', 16, 'memory') + kernel('d', 1024, 'memory');
      expect(start('d', shared)).toBe(16);
    });
  });

  describe('a kernel with tiles', () => {
    const product = { dtype: 'bf16', batch: 1, m: 128, n: 128, k: 128, epilogue: false } as const;
    const graph = graphOf({ ...product, turnLhs: false, turnRhs: false, sharedRhs: false });
    const target: Target = { ...cudaTarget, warpgroups: true, cores: { count: 3, invocations: 2048 } };
    const [scheduled] = scheduleGraph(graph, target, new Map()).kernels;
    const [schedule] = warpgroupSchedules(graph, target);
    const { loop } = lowerKernel(scheduled!, target, unsharedMemory, new Map(), () => schedule);
    const { source } = emitCuda(loop);

    test('has shared memory of its own name, and does not run where that begins inside 1024 bytes', () => {
      const declared = /extern __shared__ __align__\(1024\) unsigned char (\w+)\[\];/.exec(source);
      expect(declared?.[1]).toBe(`${loop.name}_memory`);
      expect(source).toContain(`if (!begins_at(${loop.name}_memory, 1024u)) __trap();`);
    });

    test('is right in one program with others whose memory needs less', async () => {
      const s = new Sketch();
      const [x, y, z] = [
        [256, 192],
        [192, 256],
        [256, 128],
      ].map((shape) => s.input(shape, 'bf16'));
      const chain = s.graph([s.matmul(s.matmul(x!, y!), z!)]);
      const inputs = inputsOf(chain);
      const [want] = interpret(chain, inputs);
      const machine = new Machine();
      const device = await machine.open();
      const own = targetOf(device.facts);
      const kinds: string[] = [];
      // One by tiles of warps that lie at multiples of 16 bytes, in more than 48 KiB; one by tiles
      // that are copied.
      const pinned: PinnedTilings = (problem) => {
        const kind = problem.k === 192 ? 'mma' : 'wgmma';
        kinds.push(kind);
        const size = (of: ContractTiling): number =>
          of.kind === 'mma' || of.kind === 'wgmma' ? (of.tileM + of.tileN) * of.tileK * of.stages : 0;
        return legalTilings(problem, own)
          .filter((candidate) => candidate.kind === kind)
          .toSorted((a, b) => size(b) - size(a))[0];
      };
      const compiled = compileGraph(chain, own, { schedules: pinned }).program.kernels.map(
        ({ sharedBytes = 0 }) => sharedBytes,
      );
      expect([...new Set(kinds)].toSorted()).toEqual(['mma', 'wgmma']);
      expect(compiled.every((bytes) => bytes > 49_152)).toBe(true);
      const [found] = await runOnDevice(device, own, chain, inputs, new Map(), pinned);
      expectClose(found!, want!, 2e-2);
      device.destroy();
      machine.close();
    });
  });

  describe('a product whose operand repeats a line', () => {
    let machine: Machine;
    let device: Device;
    beforeAll(async () => {
      machine = new Machine();
      device = await machine.open();
    });
    afterAll(() => {
      device.destroy();
      machine.close();
    });

    test.each([
      ['a row that was sliced and broadcast', 'repeated'],
      ['heads', 'heads'],
    ] as const)('%s', async (_, lhs) => {
      const shape = { dtype: 'bf16', batch: 2, m: 128, n: 64, k: 128, lhs, epilogue: false } as const;
      const graph = graphOf({ ...shape, turnLhs: false, turnRhs: false, sharedRhs: true });
      const inputs = inputsOf(graph);
      const [want] = interpret(graph, inputs);
      for (let turn = 0; turn < 2; turn++) {
        const [found] = await runOnDevice(device, targetOf(device.facts), graph, inputs, new Map());
        expectClose(found!, want!, 1e-2);
      }
    });
  });

  describe('NVRTC', () => {
    let folder: string;
    const copies = new Map<string, (name: string, value: number) => number>();
    /** Another NVRTC of this version, for GPUs from `oldest` on. */
    const nvrtc = (name: string, version: number, oldest: number): { readonly file: string } => {
      const file = path.join(folder, `libnvrtc-${name}.so`);
      const found = standIn();
      if (!found.available) throw new Error(found.reason);
      if (!fs.existsSync(file)) fs.copyFileSync(found.library, file);
      const set = copies.get(file) ?? koffi.load(file).func('standin_set', 'int', ['str', 'int64_t']);
      copies.set(file, set);
      set('nvrtc_version', version);
      set('oldest_architecture', oldest);
      return { file };
    };
    const open = (capability: number, ...places: readonly { readonly file: string }[]): Promise<Nvrtc> =>
      openNvrtc('cuda', 13, { places, capabilities: [capability] });
    beforeAll(() => {
      folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-nvrtc-'));
    });
    afterAll(() => fs.rmSync(folder, { recursive: true }));

    test('that has given up the GPU makes room for an older one', async () => {
      const [newer, older] = [nvrtc('newer', 13_000, 75), nvrtc('older', 12_080, 50)];
      expect((await open(80, newer, older)).version).toEqual([13, 0]);
      expect((await open(75, newer, older)).version).toEqual([13, 0]);
      for (const capability of [50, 61, 70])
        expect((await open(capability, newer, older)).version).toEqual([12, 8]);
    });

    test('that there is no other for is said to be why', async () => {
      const { file } = nvrtc('newer', 13_000, 75);
      const error = await failure(() => open(61, { file }));
      expect(error.code).toBe('E_DEVICE');
      expect(error.message).toContain(
        `${file} is version 13.0, which compiles for compute capability 7.5 and later, not 6.1`,
      );
    });

    test('compiles for a GPU of 6.1, and programs run there', async () => {
      const machine = new Machine();
      machine.set('capability', 61);
      try {
        const places = [nvrtc('newer', 13_000, 75), nvrtc('older', 12_080, 50)];
        const device = await machine.open({ places });
        expect(device.facts.description).toContain('sm_61, ');
        const [x, y] = [device.allocate(256), device.allocate(256)];
        device.write(x, bytesOf(ramp(64)));
        device.load(cudaMap('pascal', 64, 'v + 1.0f')).run([x], [y], []);
        expect(floatsOf(await device.read(y, 256))).toEqual(ramp(64, 1));
        device.destroy();
      } finally {
        machine.set('capability', 90);
        machine.close();
      }
    });
  });

  test('a current context that others of the process change is chosen again at every entrance', async () => {
    const machine = new Machine();
    const driver = new Driver();
    const elsewhere = (): void => driver.call('cuCtxSetCurrent', [P], 0);
    const device = await machine.open({ budget: 1 << 20 });
    let stopped = false;
    const meddle = (): void => {
      elsewhere();
      if (!stopped) setImmediate(meddle);
    };
    meddle();
    try {
      for (let turn = 1; turn < 4; turn++) {
        elsewhere();
        const [x, y] = [device.allocate(256), device.allocate(256)];
        elsewhere();
        const program = device.load(cudaChain('meddled', 64, [turn, 2]));
        elsewhere();
        device.write(x, bytesOf(ramp(64)));
        for (let run = 0; run < 3; run++) {
          elsewhere();
          program.run([x], [y], []);
        }
        elsewhere();
        expect(floatsOf(await device.read(y, 256))).toEqual(ramp(64, turn + 2));
        elsewhere();
        await device.measure?.(() => program.run([x], [y], []));
        elsewhere();
        await device.finish();
        elsewhere();
        program.destroy();
        x.destroy();
        y.destroy();
      }
      elsewhere();
    } finally {
      stopped = true;
      device.destroy();
      machine.close();
    }
  });
});
