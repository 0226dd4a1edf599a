// What every device owes its callers, with programs written by hand: bytes come back as they were written, work is done in the order in
// which it was asked for, memory is nobody else's while it is needed, and wrong calls are refused where they are made.
//
// Runs alone: it measures the memory of the process.

import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { DeviceError } from '../../src/errors.ts';
import type { Device, DeviceAllocation } from '../../src/runtime/device.ts';
import type { Program } from '../../src/runtime/program.ts';
import { openNativeDevice } from '../../src/runtime/native/node.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { openWebGpu } from '../../src/runtime/webgpu/open.ts';
import { Machine, reasonWithout } from '../cuda/machine.ts';
import { collect, nativeBytes } from '../support/collector.ts';
import { failure } from './failure.ts';
import { c, cuda, wasm, wgsl, type Language } from './languages.ts';
import { lawsUnless } from './law.ts';
import { compilerEnv, withoutCompiler } from './native/machine.ts';
import { bytesOf, f32, floatsOf, program, ramp } from './programs.ts';

const N = 300;

interface Subject {
  readonly name: string;
  readonly language: Language;
  /** Why it is not here. */
  readonly missing?: string | undefined;
  readonly open: () => Promise<Device>;
}

let machine: Machine | undefined;
const subjects: readonly Subject[] = [
  { name: 'webgpu:software', language: wgsl, open: () => openWebGpu('webgpu:software') },
  { name: 'wasm', language: wasm, open: () => WasmDevice.open('wasm', { threads: 1 }) },
  { name: 'wasm with two threads', language: wasm, open: () => WasmDevice.open('wasm', { threads: 2 }) },
  ...[1, 2].map((threads) => ({
    name: threads === 1 ? 'native' : 'native with two threads',
    language: c,
    missing: withoutCompiler,
    open: () => openNativeDevice('native', { threads, env: compilerEnv }),
  })),
  {
    name: 'the stand-in for CUDA',
    language: cuda,
    missing: reasonWithout(),
    open: () => (machine ??= new Machine()).open({ cubins: false }),
  },
];
afterAll(() => machine?.close());

describe.each(subjects)('on $name', ({ language, missing, open }) => {
  let device: Device;
  beforeAll(async () => {
    if (missing === undefined) device = await open();
  });
  afterAll(() => {
    if (missing === undefined) device.destroy();
  });

  const law = lawsUnless(missing);

  const upload = (values: ArrayLike<number>, to: Device = device): DeviceAllocation => {
    const buffer = to.allocate(4 * values.length);
    to.write(buffer, bytesOf(values));
    return buffer;
  };
  const values = async (buffer: DeviceAllocation, from: Device = device): Promise<number[]> =>
    floatsOf(await from.read(buffer, buffer.bytes));

  const programOf = (parts: Partial<Program> & Pick<Program, 'buffers' | 'steps'>): Program =>
    program({ target: language.target, ...parts });
  /** `y = x · scale + shift`, one kernel, one dispatch. */
  const affine = (name: string, count: number, scale: number, shift: number): Program =>
    programOf({
      kernels: [language.affine(name, count, scale, shift)],
      buffers: [f32('x', 'input', count), f32('y', 'output', count)],
      steps: [language.dispatch(0, [0, 1], count)],
    });
  /** `y = x + 2` through scratch. */
  const chain = (name: string, count: number): Program =>
    programOf({
      kernels: [language.affine(name, count, 1, 1)],
      buffers: [
        f32('x', 'input', count),
        f32('t', 'scratch', count, { arena: 0, offset: 0 }),
        f32('y', 'output', count),
      ],
      arenas: [4 * count],
      steps: [language.dispatch(0, [0, 1], count), language.dispatch(0, [1, 2], count)],
    });

  const expectUsable = async (): Promise<void> => {
    const [x, y] = [upload(ramp(N)), device.allocate(4 * N)];
    device.load(affine('sound', N, 1, 1)).run([x], [y], []);
    expect(await values(y)).toEqual(ramp(N, 1));
  };

  law('what is written is read back, at every length', async () => {
    for (const bytes of [1, 3, 4, 5, 1023, 65_537]) {
      const expected = Uint8Array.from(ramp(bytes), (i) => i % 251);
      const data = expected.slice();
      const buffer = device.allocate(Math.ceil(bytes / 4) * 4);
      device.write(buffer, data);
      const back = device.read(buffer, bytes);
      data.fill(0); // The bytes were taken before `write` returned.
      expect(await back).toEqual(expected);
      buffer.destroy();
    }
    expect(await device.read(device.allocate(4), 0)).toEqual(new Uint8Array(0));
  });

  law('a view into a larger array, and one of shared memory, write their own bytes', async () => {
    const buffer = device.allocate(32);
    device.write(buffer, bytesOf(ramp(20)).subarray(16, 48));
    expect(await values(buffer)).toEqual(ramp(8, 4));
    const shared = new Uint8Array(new SharedArrayBuffer(64), 16, 32);
    shared.set(bytesOf(ramp(8, 1)));
    device.write(buffer, shared);
    expect(await values(buffer)).toEqual(ramp(8, 1));
  });

  law('a kernel maps its input to its output', async () => {
    const y = device.allocate(4 * N);
    device.load(affine('double_it', N, 2, 0)).run([upload(ramp(N))], [y], []);
    expect(await values(y)).toEqual(ramp(N).map((v) => 2 * v));
  });

  law('scalars belong to their run, however many runs are queued', async () => {
    const loaded = device.load(
      programOf({
        kernels: [language.scaled('scaled', N)],
        buffers: [f32('x', 'input', N), f32('y', 'output', N)],
        steps: [language.dispatch(0, [0, 1], N)],
        scalars: [
          { name: 'f', dtype: 'f32' },
          { name: 'n', dtype: 'i32' },
          { name: 'u', dtype: 'u32' },
          { name: 'on', dtype: 'bool' },
        ],
      }),
    );
    const x = upload(ramp(N));
    const given = ramp(60).map((k) => [k / 2, -k, 3_000_000 + k, k % 2] as const);
    for (const same of [true, false]) {
      // Over the same buffers each time, and over fresh ones.
      const one = device.allocate(4 * N);
      const seen = given.map((scalars) => {
        const y = same ? one : device.allocate(4 * N);
        loaded.run([x], [y], scalars);
        return values(y);
      });
      const expected = given.map(([f, n, u, on]) => ramp(N).map((v) => v * f + n + u + on / 2));
      expect(await Promise.all(seen)).toEqual(expected);
    }
  });

  law('steps see what earlier steps wrote, through arenas, copies and clears, run after run', async () => {
    const step = (kernel: number, buffers: readonly number[]): Program['steps'][number] =>
      language.dispatch(kernel, buffers, N);
    const loaded = device.load(
      programOf({
        kernels: [language.affine('add_one', N, 1, 1), language.sum('sum_of', N)],
        buffers: [
          f32('x', 'input', N),
          f32('t0', 'scratch', N, { arena: 0, offset: 0 }),
          f32('t1', 'scratch', N, { arena: 1, offset: 512 }),
          f32('t2', 'scratch', N, { arena: 0, offset: 2048 }),
          f32('y', 'output', N),
          f32('z', 'output', N),
        ],
        arenas: [2048 + 4 * N, 512 + 4 * N],
        steps: [
          step(0, [0, 1]), // t0 = x + 1
          step(0, [1, 2]), // t1 = x + 2
          { kind: 'copy', from: 1, to: 3 }, // t2 = t0, within one arena
          { kind: 'dispatch', kernel: 0, buffers: [2, 1], grid: [0, 1, 1] }, // nothing
          step(0, [2, 1]), // t0 = x + 3
          step(1, [1, 3, 4]), // y = t0 + t2 = 2x + 4
          { kind: 'clear', buffer: 3 },
          step(1, [4, 3, 5]), // z = y + 0
        ],
      }),
    );
    for (let run = 0; run < 9; run++) {
      const [x, y, z] = [upload(ramp(N, run)), device.allocate(4 * N), device.allocate(4 * N)];
      for (let again = 0; again <= run % 3; again++) loaded.run([x], [y, z], []);
      const expected = ramp(N, run).map((v) => 2 * v + 4);
      expect([await values(y), await values(z)]).toEqual([expected, expected]);
    }
  });

  law('runs, writes and reads keep program order while kernels still compile', async () => {
    const [x, y] = [upload([1]), device.allocate(4)];
    const seen: Promise<number[]>[] = [];
    const all: number[] = [];
    let expected = 1;
    for (let k = 0; k < 8; k++) {
      // A new source each time, so that runs wait for a compiler while later writes and reads arrive.
      const step = device.load(affine(`step_${k}`, 1, 2, k));
      step.run([x], [y], []);
      seen.push(values(y));
      expected = expected * 2 + k;
      all.push(expected);
      if (k % 3 === 0) {
        device.write(x, bytesOf([k]));
        expected = k;
      } else {
        step.run([y], [x], []);
        expected = expected * 2 + k;
      }
      seen.push(values(x));
      all.push(expected);
    }
    expect((await Promise.all(seen)).flat()).toEqual(all);
  });

  law('memory freed while work waits is not overwritten early', async () => {
    const slow = device.load(affine('freed', N, 1, 4));
    for (let round = 0; round < 4; round++) {
      const [x, y] = [upload(ramp(N, round)), device.allocate(4 * N)];
      slow.run([x], [y], []);
      x.destroy();
      const z = upload(ramp(N, 1000)); // Takes the freed memory while the run still waits to read it.
      expect(await values(y)).toEqual(ramp(N, round + 4));
      expect(await values(z)).toEqual(ramp(N, 1000));
    }
  });

  law('a donated input is overwritten in place', async () => {
    const loaded = device.load(
      programOf({
        kernels: [language.affineInPlace('decay', N, 0.5, 0), language.affineInPlace('lift', N, 1, 8)],
        buffers: [f32('p', 'input', N), f32('p_next', 'output', N)],
        steps: [language.dispatch(0, [1], N), language.dispatch(1, [1], N)],
        donated: [{ input: 0, output: 0 }],
      }),
    );
    const p = upload(ramp(N));
    for (let k = 0; k < 3; k++) loaded.run([p], [p], []);
    expect(await values(p)).toEqual(ramp(N).map((v) => v / 8 + 14));
  });

  law('an output that repeats an input or another output is filled', async () => {
    const loaded = device.load({ ...affine('triple', N, 3, 0), outputs: [1, 0, 1] });
    const outs = [0, 1, 2].map(() => device.allocate(4 * N));
    const x = upload(ramp(N));
    const triple = ramp(N).map((v) => 3 * v);
    for (let run = 0; run < 3; run++) {
      loaded.run([x], outs, []);
      expect(await Promise.all(outs.map((out) => values(out)))).toEqual([triple, ramp(N), triple]);
    }
    loaded.run([x], [outs[0]!, x, outs[0]!], []); // The same buffers again: nothing to copy.
    expect(await values(x)).toEqual(ramp(N));
  });

  law('programs share scratch and leave none behind', async () => {
    const own = await open();
    const before = own.memory();
    const small = own.load(chain('small', 64));
    const [x, y] = [upload(ramp(64), own), own.allocate(256)];
    small.run([x], [y], []);
    const large = own.load(chain('large', 65_536)); // The shared arena grows under the first program.
    small.run([y], [x], []);
    expect(await values(x, own)).toEqual(ramp(64, 4));
    const [largeIn, largeOut] = [upload(ramp(65_536), own), own.allocate(4 * 65_536)];
    large.run([largeIn], [largeOut], []);
    expect((await values(largeOut, own)).at(-1)).toBe(65_537);
    expect(own.memory().live).toBeLessThan(before.live + 3 * 4 * 65_536 + 4096);
    large.destroy();
    small.run([x], [y], []); // It shrinks again.
    expect(await values(y, own)).toEqual(ramp(64, 6));
    small.destroy();
    for (const buffer of [x, y, largeIn, largeOut]) buffer.destroy();
    expect(own.memory().live).toBe(before.live);
    own.destroy();
  });

  law('5,000 runs over fresh buffers keep memory flat', async () => {
    const own = await open();
    const loaded = own.load(affine('flat', 4096, 1, 1));
    const step = async (rounds: number): Promise<void> => {
      let x = upload(ramp(4096), own);
      for (let k = 0; k < rounds; k++) {
        const y = own.allocate(4 * 4096);
        loaded.run([x], [y], []);
        x.destroy();
        x = y;
        if (k % 100 === 99) await own.finish();
      }
      expect((await values(x, own))[0]).toBe(rounds);
      x.destroy();
    };
    await step(1000);
    collect();
    const before = { ...own.memory(), native: nativeBytes() };
    await step(5000);
    const after = own.memory();
    expect([after.live, after.pooled]).toEqual([before.live, before.pooled]);
    // 5,000 buffers of 16 KiB would be 80 MiB by themselves.
    collect();
    expect(nativeBytes() - before.native).toBeLessThan(60 * 2 ** 20);
    own.destroy();
  });

  law('a wrong call is refused where it is made', async () => {
    const loaded = device.load(affine('sound', N, 1, 1));
    const [x, y] = [upload(ramp(N)), device.allocate(4 * N)];
    const foreign = await open();
    const theirs = foreign.allocate(4 * N);
    const gone = device.allocate(4 * N);
    gone.destroy();
    gone.destroy(); // A second time is harmless.
    const cases: readonly (readonly [() => unknown, DeviceError['code'], string])[] = [
      [() => loaded.run([], [y], []), 'E_VALIDATION', '0 input buffers given: expected 1'],
      [() => loaded.run([x], [y], [1]), 'E_VALIDATION', '1 scalars given: expected 0'],
      [() => loaded.run([device.allocate(4)], [y], []), 'E_VALIDATION', 'needs 1200 bytes and was given 4'],
      [() => loaded.run([gone], [y], []), 'E_STATE', 'a destroyed buffer'],
      [() => loaded.run([theirs], [y], []), 'E_VALIDATION', 'another device'],
      [() => device.write(theirs, new Uint8Array(4)), 'E_VALIDATION', 'another device'],
      [
        () => device.write(y, new Uint8Array(4 * N + 1)),
        'E_VALIDATION',
        '1201 bytes were written to a buffer of 1200',
      ],
      [() => device.read(y, 4 * N + 1), 'E_VALIDATION', '1201 bytes were read from a buffer of 1200'],
      [() => device.read(gone, 4), 'E_STATE', 'a destroyed buffer'],
      [() => device.allocate(6), 'E_VALIDATION', 'not a multiple of 4'],
    ];
    for (const [call, code, words] of cases) {
      const error = await failure(call);
      expect([error.code, error.message]).toEqual([code, expect.stringContaining(words)]);
    }
    loaded.destroy();
    expect((await failure(() => loaded.run([x], [y], []))).code).toBe('E_STATE');
    foreign.destroy();
    await expectUsable();
  });

  law('a program for another target, or beyond the limits, is refused when it is loaded', async () => {
    const sound = affine('sound', N, 1, 1);
    const other = await failure(() => device.load({ ...sound, target: 'interpreter' }));
    expect([other.code, other.message]).toEqual([
      'E_VALIDATION',
      expect.stringContaining(`expected ${language.target}`),
    ]);
    const { workgroupInvocations, bufferBytes } = device.facts.limits;
    const workgroup = [workgroupInvocations + 1, 1, 1] as const;
    const wide = { ...sound, kernels: [{ ...sound.kernels[0]!, workgroup }] };
    expect((await failure(() => device.load(wide))).code).toBe('E_LIMIT');
    expect((await failure(() => device.allocate(4 * Math.floor(bufferBytes / 4) + 4))).code).toBe('E_LIMIT');
    const hosted = programOf({ buffers: [], steps: [{ kind: 'host', run: 'f', reads: [], writes: [] }] });
    expect((await failure(() => device.load(hosted))).code).toBe('E_UNSUPPORTED');
    await expectUsable();
  });

  law('after destroy every call fails with E_DEVICE_LOST, and what waited does too', async () => {
    const gone = await open();
    const [a, b] = [upload(ramp(N), gone), gone.allocate(4 * N)];
    await gone.finish();
    const loaded = gone.load(affine('late', N, 1, 7));
    loaded.run([a], [b], []); // Still compiling when the device goes, where that takes time.
    const waiting = [gone.read(b, 4), gone.read(a, 4), gone.finish()];
    gone.destroy();
    expect(gone.lost).toBe(true);
    for (const result of await Promise.allSettled(waiting)) {
      expect(result.status === 'rejected' && (result.reason as DeviceError).code).toBe('E_DEVICE_LOST');
    }
    const calls = [
      () => gone.allocate(4),
      () => gone.write(a, new Uint8Array(4)),
      () => gone.read(a, 4),
      () => gone.load(affine('later', N, 1, 8)),
      () => loaded.run([a], [b], []),
      () => gone.finish(),
    ];
    for (const call of calls) expect((await failure(call)).code).toBe('E_DEVICE_LOST');
    loaded.destroy();
    a.destroy();
    gone.destroy();
  });
});
