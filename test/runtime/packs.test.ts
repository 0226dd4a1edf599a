// Packs at run time: buffers that lie as a program asks are bound where they are, others are moved once, and whoever holds them
// notices nothing. On the interpreter, on software WebGPU, and on the stand-in for CUDA alike.

import { afterAll, beforeAll, describe, expect, test as vitest } from 'vitest';
import type { Device, DeviceAllocation, HostFunctions, LoadedProgram } from '../../src/runtime/device.ts';
import { interpreterBackend } from '../../src/runtime/interpreter/device.ts';
import type { Program, ProgramBuffer, ProgramPack } from '../../src/runtime/program.ts';
import { Machine, reasonWithout } from '../cuda/machine.ts';
import { inCuda } from '../cuda/programs.ts';
import { openWithGpu } from './devices.ts';
import { bytesOf, dispatch, f32, floatsOf, kernel, program, ramp } from './programs.ts';

/** Floats in the slot of a member, of which it has `count`. */
const [slot, count] = [64, 60];

/** `members` inputs and as many outputs, each in a pack; `y = 2x + 1` over whole packs. With `donate`, y is where x was. */
function twice(members: number, donate: boolean): Program {
  const parts = ramp(members);
  const size = members * slot;
  const inputs = parts.map((i) => f32(`x${i}`, 'input', count));
  const outputs = donate ? [] : parts.map((i) => f32(`y${i}`, 'output', count));
  const wholes = [f32('xs', 'input', size), ...(donate ? [] : [f32('ys', 'output', size)])];
  const buffers: ProgramBuffer[] = [...inputs, ...outputs, ...wholes];
  const pack = (whole: number, first: number): ProgramPack => {
    return { buffer: whole, members: parts.map((i) => ({ buffer: first + i, offset: 4 * slot * i })) };
  };
  const [xs, ys] = [inputs.length + outputs.length, inputs.length + outputs.length + 1];
  const common = {
    buffers,
    inputs: parts,
    outputs: donate ? parts : parts.map((i) => members + i),
    donated: donate ? parts.map((i) => ({ output: i, input: i })) : [],
    packs: donate ? [pack(xs, 0)] : [pack(xs, 0), pack(ys, members)],
  };
  const body = 'b1[i] = 2.0 * b0[i] + 1.0;';
  return donate
    ? program({
        ...common,
        kernels: [kernel('twice_there', size, ['read_write'], body.replace('b1', 'b0'))],
        steps: [dispatch(0, [xs], size)],
      })
    : program({
        ...common,
        kernels: [kernel('twice', size, ['read', 'read_write'], body)],
        steps: [dispatch(0, [xs, ys], size)],
      });
}

/** `z = x + y` of two inputs that lie anywhere; with `donate` it is written over x, through one binding. */
function sum(donate: boolean): Program {
  const buffers = [f32('x', 'input', count), f32('y', 'input', count)];
  return donate
    ? program({
        buffers,
        outputs: [0],
        donated: [{ output: 0, input: 0 }],
        kernels: [kernel('sum_there', count, ['read_write', 'read'], 'b0[i] = b0[i] + b1[i];')],
        steps: [dispatch(0, [0, 1], count)],
      })
    : program({
        buffers: [...buffers, f32('z', 'output', count)],
        kernels: [kernel('sum', count, ['read', 'read', 'read_write'], 'b2[i] = b0[i] + b1[i];')],
        steps: [dispatch(0, [0, 1, 2], count)],
      });
}

/** The same program with its dispatch as a host function, for the interpreter. */
function onHost(source: Program): { program: Program; host: HostFunctions } {
  const [step] = source.steps;
  if (step?.kind !== 'dispatch') throw new Error('expected one dispatch');
  const { bindings, name } = source.kernels[step.kernel]!;
  const written = step.buffers.filter((_, i) => bindings[i] === 'read_write');
  const host: HostFunctions = {
    run: (memory) => {
      const [a, b] = memory.map((bytes) => floatsOf(bytes));
      return [bytesOf(name.startsWith('sum') ? a!.map((v, i) => v + b![i]!) : a!.map((v) => 2 * v + 1))];
    },
  };
  const run = { kind: 'host', run: 'run', reads: step.buffers, writes: written } as const;
  return { program: { ...source, target: 'interpreter', kernels: [], steps: [run] }, host };
}

interface Place {
  readonly device: Device;
  /** GPUBuffers made so far, or buffers that the driver holds; 0 on the interpreter. */
  readonly made: () => number;
}

async function software(): Promise<Place> {
  const { device, gpu } = await openWithGpu();
  let made = 0;
  const create = gpu.createBuffer.bind(gpu);
  gpu.createBuffer = (descriptor) => ((made += 1), create(descriptor));
  return { device, made: () => made };
}

async function cuda(): Promise<Place> {
  const machine = new Machine();
  const device = await machine.open({ cubins: false });
  return { device, made: () => machine.get('live_buffers') };
}

const places: Readonly<Record<string, () => Promise<Place>>> = {
  interpreter: async () => ({ device: await interpreterBackend.open(), made: () => 0 }),
  'webgpu:software': software,
  cuda,
};

describe.each(Object.keys(places))('on %s', (name) => {
  const missing = name === 'cuda' ? reasonWithout() : undefined;
  let place: Place;
  beforeAll(async () => {
    if (missing === undefined) place = await places[name]!();
  });
  afterAll(() => {
    if (missing === undefined) place.device.destroy();
  });
  const test = (law: string, work: () => Promise<void>): void => {
    vitest(law, async (context) => {
      if (missing !== undefined) context.skip(missing);
      await work();
    });
  };

  const load = (source: Program): LoadedProgram => {
    if (name === 'cuda') return place.device.load(inCuda(source));
    if (name !== 'interpreter') return place.device.load(source);
    const { program: hosted, host } = onHost(source);
    return place.device.load(hosted, host);
  };
  const upload = (start: number): DeviceAllocation => {
    const buffer = place.device.allocate(4 * count);
    place.device.write(buffer, bytesOf(ramp(count, start)));
    return buffer;
  };
  const read = async (buffer: DeviceAllocation): Promise<number[]> =>
    floatsOf(await place.device.read(buffer, 4 * count));
  /** Runs with fresh outputs. */
  const call = (loaded: LoadedProgram, inputs: readonly DeviceAllocation[]): DeviceAllocation[] => {
    const fresh = loaded.allocateOutputs();
    const { donated, outputs } = loaded.program;
    const made = donated.length > 0 ? outputs.map((index) => inputs[index]!) : fresh;
    loaded.run(inputs, made, []);
    return made;
  };
  const values = (start: number, times = 1): number[] =>
    ramp(count, start).map((v) => {
      let value = v;
      for (let i = 0; i < times; i++) value = 2 * value + 1;
      return value;
    });

  test('inputs that lie anywhere are moved, and hold what they held', async () => {
    const xs = [upload(0), upload(100), upload(200)];
    const ys = call(load(twice(3, false)), xs);
    for (const i of [0, 1, 2]) {
      expect(await read(ys[i]!)).toEqual(values(100 * i, 1));
      expect(await read(xs[i]!)).toEqual(values(100 * i, 0));
    }
  });

  test('results of a run are inputs of the next without a move', async () => {
    const loaded = load(twice(3, false));
    let xs = [upload(0), upload(100), upload(200)];
    for (let i = 0; i < 3; i++) {
      const ys = call(loaded, xs);
      xs.forEach((x) => x.destroy());
      xs = ys;
    }
    const before = place.made();
    for (let i = 0; i < 4; i++) {
      const ys = call(loaded, xs);
      xs.forEach((x) => x.destroy());
      xs = ys;
    }
    expect(place.made()).toBe(before);
    expect(await read(xs[2]!)).toEqual(values(200, 7));
  });

  test('donated inputs are overwritten where they have been moved to', async () => {
    const loaded = load(twice(3, true));
    const xs = [upload(0), upload(100), upload(200)];
    for (let i = 0; i < 3; i++) call(loaded, xs);
    for (const i of [0, 1, 2]) expect(await read(xs[i]!)).toEqual(values(100 * i, 3));
  });

  test('a part of a pack can be written, and then it is what the next run sees', async () => {
    const loaded = load(twice(2, false));
    const xs = [upload(0), upload(100)];
    call(loaded, xs);
    place.device.write(xs[1]!, bytesOf(ramp(count, 500)));
    const ys = call(loaded, xs);
    expect(await read(ys[0]!)).toEqual(values(0, 1));
    expect(await read(ys[1]!)).toEqual(values(500, 1));
  });

  test('parts live on when others are destroyed, and the memory goes back with the last', async () => {
    const { device } = place;
    const before = device.memory();
    const xs = [upload(0), upload(100), upload(200)];
    const ys = call(load(twice(3, false)), xs);
    for (const buffer of [xs[0]!, xs[2]!, ys[0]!, ys[1]!]) buffer.destroy();
    expect(await read(xs[1]!)).toEqual(values(100, 0));
    expect(await read(ys[2]!)).toEqual(values(200, 1));
    await expect(device.read(xs[0]!, 4).catch((error: unknown) => String(error))).resolves.toContain(
      'destroyed',
    );
    xs[1]!.destroy();
    ys[2]!.destroy();
    expect(device.memory().buffers).toBe(before.buffers);
    expect(device.memory().live).toBe(before.live);
  });

  test('what is queued before a move still finds its bytes', async () => {
    const [x, y] = [upload(0), upload(100)];
    const early = read(x);
    const [z] = call(load(sum(false)), [x, y]);
    call(load(twice(2, false)), [y, x]);
    expect(await early).toEqual(values(0, 0));
    expect(await read(z!)).toEqual(ramp(count).map((v) => 2 * v + 100));
  });

  test('programs may want the same buffers in other orders', async () => {
    const [pair, triple] = [load(twice(2, true)), load(twice(3, true))];
    const [a, b, c] = [upload(0), upload(100), upload(200)];
    for (let i = 0; i < 3; i++) {
      call(pair, [a, b]);
      call(triple, [c, b, a]);
    }
    expect(await read(a)).toEqual(values(0, 6));
    expect(await read(b)).toEqual(values(100, 6));
    expect(await read(c)).toEqual(values(200, 3));
  });

  test('one buffer at two places of a pack is read at both', async () => {
    const loaded = load(twice(3, false));
    const [a, b] = [upload(0), upload(100)];
    // The same results each time: nothing but the bytes of a buffer tells one run from the next.
    const ys = loaded.allocateOutputs();
    for (const start of [0, 300, 500]) {
      place.device.write(a, bytesOf(ramp(count, start)));
      loaded.run([a, b, a], ys, []);
      expect(await Promise.all(ys.map(read))).toEqual([start, 100, start].map((from) => values(from, 1)));
    }
  });

  test('parts that a kernel reads and writes are parted', async () => {
    const [x, y] = [upload(0), upload(100)];
    call(load(twice(2, true)), [x, y]);
    call(load(sum(true)), [x, y]);
    expect(await read(x)).toEqual(values(0, 1).map((v, i) => v + values(100, 1)[i]!));
    expect(await read(y)).toEqual(values(100, 1));
    const [z] = call(load(sum(false)), [x, y]);
    expect((await read(z!))[0]).toBe(1 + 201 + 201);
  });

  test('a part may be smaller than its slot in another layout, and nothing between two parts is overwritten', async () => {
    const [a, b, c] = [upload(0), upload(100), upload(200)];
    call(load(twice(4, true)), [a, b, c, upload(300)]);
    // The first and the third, where the second lies between them.
    const wide = twice(2, true);
    const packs = wide.packs.map((pack) => ({
      ...pack,
      members: pack.members.map((member, i) => ({ ...member, offset: 8 * slot * i })),
    }));
    const buffers = wide.buffers.map((buffer) =>
      buffer.name === 'xs' ? { ...buffer, ...f32('xs', 'input', 4 * slot) } : buffer,
    );
    const steps = [dispatch(0, [2], 4 * slot)];
    const kernels = [kernel('twice_wide', 4 * slot, ['read_write'], 'b0[i] = 2.0 * b0[i] + 1.0;')];
    call(load({ ...wide, packs, buffers, steps, kernels }), [a, c]);
    expect(await read(a)).toEqual(values(0, 2));
    expect(await read(b)).toEqual(values(100, 1));
    expect(await read(c)).toEqual(values(200, 2));
  });
});

vitest('a buffer of another size than its slot is refused', async () => {
  const { device } = await software();
  const loaded = device.load(twice(2, false));
  const xs = [device.allocate(4 * count), device.allocate(8 * count)];
  const problem = `needs exactly ${4 * count} bytes and was given ${8 * count}`;
  expect(() => loaded.run(xs, loaded.allocateOutputs(), [])).toThrow(problem);
  device.destroy();
});

vitest('a lost device is reported by a run that would have to move', async () => {
  const { device } = await software();
  const loaded = device.load(twice(2, false));
  const xs = [device.allocate(4 * count), device.allocate(4 * count)];
  const ys = loaded.allocateOutputs();
  device.destroy();
  expect(() => loaded.run(xs, ys, [])).toThrow('destroyed');
});
