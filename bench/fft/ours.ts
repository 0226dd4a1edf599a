// Sinter's transforms for the comparison: the kernels of a compiled program, on one thread or more,
// and whole calls of a compiled function.

import { compileGraph } from '../../src/compile.ts';
import * as sn from '../../src/index.ts';
import { fftTable } from '../../src/ir/fft/table.ts';
import { GraphBuilder, type Graph, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { targetOf, wasmTarget } from '../../src/schedule/target.ts';
import type { Device } from '../../src/runtime/device.ts';
import type { Contender } from './peers.ts';

/** Devices of so many threads, to be opened once. */
export async function devicesOf(threads: readonly number[]): Promise<ReadonlyMap<number, Device>> {
  const open = threads.map(async (count) => [count, await openDevice(`wasm:${count}`)] as const);
  return new Map(await Promise.all(open));
}

function graphOf(n: number, lines: number): Graph {
  const b = new GraphBuilder();
  const parameters: NodeOf<'parameter'>[] = [];
  const input = (shape: readonly number[]): Node => {
    const index = parameters.length;
    const node = b.add('parameter', [], { index, name: `x${index}`, dtype: 'f32', shape });
    parameters.push(node);
    return node as Node;
  };
  const [x, table] = [input([lines, n, 2]), input([fftTable(n).length])];
  const y = b.add('fft', [x, table], { axis: 1, inverse: false }) as Node;
  return { parameters, outputs: [y] };
}

/** The functions of the kernels alone, in memory of their own, as the peers' are called. */
export function functions(n: number, lines: number, x: Float32Array): Contender {
  const { program } = compileGraph(graphOf(n, lines), wasmTarget);
  let bytes = 0;
  const take = (size: number): number => {
    const at = bytes;
    bytes += 128 * Math.ceil(size / 128);
    return at;
  };
  const arenas = program.arenas.map(take);
  const places = program.buffers.map(({ role, bytes: size, arena, offset }) =>
    role === 'scratch' ? arenas[arena!]! + offset! : take(size),
  );
  const scratch = take(Math.max(0, ...program.kernels.map(({ sharedBytes = 0 }) => sharedBytes)));
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / 65536), maximum: 65536 });
  const run = program.kernels.map(({ source }) => {
    const module = new WebAssembly.Module(Buffer.from(source, 'base64'));
    return new WebAssembly.Instance(module, { env: { memory } }).exports['run'] as (
      ...args: number[]
    ) => void;
  });
  const steps = program.steps.flatMap((step) => {
    if (step.kind !== 'dispatch') return [];
    const own = program.kernels[step.kernel]!.sharedBytes === undefined ? [] : [scratch];
    const groups = step.grid[0] * step.grid[1] * step.grid[2];
    return [{ call: run[step.kernel]!, args: [0, groups, ...step.buffers.map((at) => places[at]!), ...own] }];
  });
  const numbers = new Float32Array(memory.buffer);
  numbers.set(x, places[program.inputs[0]!]! / 4);
  numbers.set(fftTable(n), places[program.inputs[1]!]! / 4);
  const result = places[program.outputs[0]!]! / 4;
  return {
    name: 'kernels',
    run: () => {
      for (const { call, args } of steps) call(...args);
    },
    output: () => numbers.slice(result, result + x.length),
    free: () => {},
  };
}

/** A program of the device over memory of the device. */
export function programs(
  device: Device,
  threads: number,
  n: number,
  lines: number,
  x: Float32Array<ArrayBuffer>,
): Contender {
  const { program } = compileGraph(graphOf(n, lines), targetOf(device.facts));
  const buffers = program.buffers.map(({ role, bytes }) =>
    role === 'scratch' ? undefined : device.allocate(bytes),
  );
  const [inputs, outputs] = [program.inputs, program.outputs].map((places) =>
    places.map((at) => buffers[at]!),
  ) as [NonNullable<(typeof buffers)[0]>[], NonNullable<(typeof buffers)[0]>[]];
  device.write(inputs[0]!, new Uint8Array(x.buffer));
  device.write(inputs[1]!, new Uint8Array(Float32Array.from(fftTable(n)).buffer));
  const loaded = device.load(program);
  return {
    name: threads === 1 ? 'program' : `program, ${threads} threads`,
    run: () => loaded.run(inputs, outputs, []),
    output: async () => {
      const bytes = await device.read(outputs[0]!, 4 * x.length);
      return new Float32Array(bytes.slice().buffer);
    },
    free: () => {
      loaded.destroy();
      buffers.forEach((buffer) => buffer?.destroy());
    },
  };
}

/** Calls of a compiled function on the current device: kernels, and what the host does for them. */
export async function calls(n: number, lines: number, x: Float32Array): Promise<Contender> {
  const given = sn.viewAsComplex(sn.tensor(x).reshape([lines, n, 2]));
  await given.data();
  const transform = sn.compile((z: sn.Tensor) => sn.fft.fft(z));
  const held = transform(given);
  await held.data();
  return {
    name: 'compiled call',
    run: () => transform(given).dispose(),
    output: async () => (await held.data()) as Float32Array,
    free: () => {
      held.dispose();
      given.dispose();
    },
  };
}
