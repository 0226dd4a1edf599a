// Loops of tests as CUDA C: any number of them in one program, so that they are compiled together.

import { emitCuda } from '../../src/codegen/emit/cuda/emit.ts';
import type { Loop, LoopBuffer } from '../../src/codegen/loop/loop.ts';
import { dtypeBytes, lowered } from '../../src/ir/dtype.ts';
import { packBytes, unpackBytes, type HostData } from '../../src/ir/value.ts';
import {
  deviceBytes,
  type Program,
  type ProgramBuffer,
  type ProgramStep,
} from '../../src/runtime/program.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import '../../src/compile/all.ts';

/** A Loop of a name of its own, and the elements of the global buffers it reads, in order. */
export interface Trial {
  readonly loop: Loop;
  readonly inputs: readonly HostData[];
}

const globals = (loop: Loop): readonly LoopBuffer[] => loop.buffers.filter(({ space }) => space === 'global');
const bytesOf = ({ dtype, size }: LoopBuffer): number => deviceBytes(dtypeBytes(dtype), size);

/** All of the Loops, one after another, each on buffers of its own. */
function programOf(trials: readonly Trial[]): Program {
  const buffers: ProgramBuffer[] = [];
  const steps = trials.map(({ loop }, kernel): ProgramStep => {
    const places = globals(loop).map((buffer) => {
      const { access, dtype, size } = buffer;
      const role = access === 'read' ? 'input' : 'output';
      return (
        buffers.push({
          name: buffer.name,
          role,
          bytes: bytesOf(buffer),
          dtype: lowered(dtype),
          shape: [size],
        }) - 1
      );
    });
    return { kind: 'dispatch', kernel, buffers: places, grid: loop.grid };
  });
  const having = (role: ProgramBuffer['role']): number[] =>
    buffers.flatMap((buffer, i) => (buffer.role === role ? [i] : []));
  return {
    version: 1,
    target: 'cuda',
    kernels: trials.map(({ loop }) => ({
      name: loop.name,
      kind: loop.kind,
      ...emitCuda(loop),
      workgroup: loop.workgroup,
      bindings: globals(loop).map(({ access }) => access),
      usesScalars: false,
      flops: 0,
      bytes: 0,
    })),
    buffers,
    packs: [],
    arenas: [],
    steps,
    inputs: having('input'),
    outputs: having('output'),
    donated: [],
    scalars: [],
  };
}

/** What each Loop writes to its one global buffer that is not read-only, on the CUDA device. */
export async function runTrials(trials: readonly Trial[]): Promise<HostData[]> {
  const device = await openDevice('cuda');
  const program = programOf(trials);
  const loaded = device.load(program);
  const memory = program.buffers.map(({ bytes }) => device.allocate(bytes));
  const given = trials.flatMap(({ inputs, loop }) =>
    inputs.map((data, i) => ({ data, of: globals(loop)[i]! })),
  );
  program.inputs.forEach((at, i) => {
    const { data, of } = given[i]!;
    const bytes = new Uint8Array(bytesOf(of));
    bytes.set(packBytes({ dtype: of.dtype, shape: [data.length], data }));
    device.write(memory[at]!, bytes);
  });
  loaded.run(
    program.inputs.map((at) => memory[at]!),
    program.outputs.map((at) => memory[at]!),
    [],
  );
  const results = [];
  for (const at of program.outputs) {
    const { bytes, dtype, shape } = program.buffers[at]!;
    results.push(unpackBytes(await device.read(memory[at]!, bytes), dtype, shape).data);
  }
  for (const buffer of memory) buffer.destroy();
  loaded.destroy();
  return results;
}
