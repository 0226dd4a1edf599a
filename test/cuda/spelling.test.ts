// Every operation on every register type at every width as CUDA C, against the interpreter's meaning of it: one program a width, of
// a kernel for each operation. The stand-in's functions are the host's: on a GPU the same test judges CUDA's own.

import { describe, expect, test } from 'vitest';
import { emitCuda } from '../../src/codegen/cuda/emit.ts';
import type { Loop, LoopBuffer, Width } from '../../src/codegen/loop.ts';
import { dtypeBytes } from '../../src/ir/dtype.ts';
import { packBytes, unpackBytes, type HostData } from '../../src/ir/value.ts';
import {
  deviceBytes,
  type Program,
  type ProgramBuffer,
  type ProgramStep,
} from '../../src/runtime/program.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { mapLoop } from '../codegen/run-loop.ts';
import { argumentsOf, disagreements, longCases, nameOf, spellingCases } from '../codegen/spelling-cases.ts';
import { titled, useStandIn } from './standin.ts';

interface Trial {
  readonly loop: Loop;
  readonly inputs: readonly HostData[];
}

const bytesOf = ({ dtype, size }: LoopBuffer): number => deviceBytes(dtypeBytes(dtype), size);

/** All of the Loops, one after another, each on buffers of its own. */
function programOf(trials: readonly Trial[]): Program {
  const buffers: ProgramBuffer[] = [];
  const steps = trials.map(({ loop }, kernel): ProgramStep => {
    const places = loop.buffers.map((buffer) => {
      const { access, dtype, size } = buffer;
      const role = access === 'read' ? 'input' : 'output';
      return buffers.push({ name: buffer.name, role, bytes: bytesOf(buffer), dtype, shape: [size] }) - 1;
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
      bindings: loop.buffers.map(({ access }) => access),
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

/** What each Loop writes. */
async function run(trials: readonly Trial[]): Promise<HostData[]> {
  const device = await openDevice('cuda');
  const program = programOf(trials);
  const loaded = device.load(program);
  const memory = program.buffers.map(({ bytes }) => device.allocate(bytes));
  const given = trials.flatMap(({ inputs, loop }) =>
    inputs.map((data, i) => ({ data, of: loop.buffers[i]! })),
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

const cases = [...spellingCases, ...longCases];

describe.skipIf(!useStandIn())(titled('operations as CUDA C'), () => {
  test.each([1, 2, 4] as const)(
    'at width %i equal the interpreter',
    { timeout: 120_000 },
    async (width: Width) => {
      const trials = cases.map((row, i): Trial => {
        const inputs = argumentsOf(row);
        return { inputs, loop: { ...mapLoop(row, width, inputs[0]!.length), name: `apply_${i}` } };
      });
      const results = await run(trials);
      const wrong = cases.flatMap((row, i) => {
        const found = disagreements(row, width, trials[i]!.inputs, results[i]!);
        return found.length === 0
          ? []
          : [`${nameOf(row)}, ${found.length} wrong: ${found.slice(0, 3).join('; ')}`];
      });
      expect(wrong).toEqual([]);
    },
  );
});
