// Programs of the device `interpreter`, which runs graphs as they are, and collectives of host arrays over the ranks that the device
// has joined.

import { storedBytes } from '../codegen/lower/assemble.ts';
import { dtypeBytes } from '../ir/dtype.ts';
import { dims, topological, type Graph, type Node } from '../ir/graph.ts';
import { interpret, type Meet } from '../ir/interpret/interpret.ts';
import { sizeOf } from '../ir/shape.ts';
import { storedType } from '../ir/stored.ts';
import { hostArray, packBytes, unpackBytes } from '../ir/value.ts';
import type { Ranks } from '../runtime/communicator.ts';
import type { HostFunctions } from '../runtime/device.ts';
import type { BufferRole, Program, ProgramBuffer, ProgramScalar } from '../runtime/program.ts';
import { groupsOf, meetingOf } from '../schedule/collective.ts';
import { checkElements } from '../schedule/sizes.ts';

/** What of `compileGraph`'s options the program depends on. */
interface InterpretedOptions {
  readonly scalars?: ReadonlySet<number>;
  readonly donate?: ReadonlyMap<number, number>;
}

/** A program without kernels. */
interface InterpretedGraph {
  readonly program: Program;
  readonly host: HostFunctions;
  readonly kernels: readonly [];
  readonly live: 0;
}

/** The whole graph as one host function. */
export function interpreted(graph: Graph, options: InterpretedOptions): InterpretedGraph {
  // Every value is computed whole.
  checkElements([...(graph.parameters as readonly Node[]), ...topological(graph.outputs)], 'interpreter');
  const scalarIndices = options.scalars ?? new Set<number>();
  const tensors = graph.parameters.filter((_, i) => !scalarIndices.has(i));
  const scalars = graph.parameters.filter((_, i) => scalarIndices.has(i));
  const buffers: ProgramBuffer[] = [];
  const buffer = (node: Node, role: BufferRole, name: string): number => {
    return buffers.push({ name, role, bytes: storedBytes(node), ...storedType(node) }) - 1;
  };
  const inputs = tensors.map((node) => buffer(node as Node, 'input', node.attrs.name));
  const donors = new Map([...(options.donate ?? [])].map(([parameter, output]) => [output, parameter]));
  const donated: { output: number; input: number }[] = [];
  const outputs = graph.outputs.map((node, output) => {
    const parameter = graph.parameters[donors.get(output) ?? -1];
    const input = parameter === undefined ? -1 : tensors.indexOf(parameter);
    if (input < 0) return buffer(node, 'output', `out${output}`);
    donated.push({ output, input });
    return inputs[input]!;
  });
  const program: Program = {
    version: 1,
    target: 'interpreter',
    kernels: [],
    buffers,
    packs: [],
    arenas: [],
    steps: [{ kind: 'host', run: 'interpret', reads: inputs, writes: outputs }],
    inputs,
    outputs,
    donated,
    scalars: scalars.map(({ attrs, dtype }) => ({
      name: attrs.name,
      dtype: dtype as ProgramScalar['dtype'],
    })),
  };
  const host: HostFunctions = {
    interpret: (bytes, numbers, ranks) => {
      let [tensor, scalar] = [0, 0];
      const values = graph.parameters.map(({ dtype, shape }, i) =>
        scalarIndices.has(i)
          ? hostArray(dtype, [], [numbers[scalar++]!])
          : unpackBytes(bytes[tensor++]!, dtype, shape as readonly number[]),
      );
      return interpret(graph, values, meetOn(ranks)).map((value, i) => {
        const memory = new Uint8Array(buffers[outputs[i]!]!.bytes);
        memory.set(packBytes(value));
        return memory;
      });
    },
  };
  return { program, host, kernels: [], live: 0 };
}

/** The meeting of a process whose device has these ranks beside it. */
export function meetOn(ranks: Ranks): Meet {
  return (node, inputs) => {
    if (node.op === 'rankIndex') return hostArray('i32', [], [ranks.place(groupsOf(node.attrs))]);
    const to = new Uint8Array(sizeOf(dims(node as Node)) * dtypeBytes(node.dtype));
    ranks.run(meetingOf(node), packBytes(inputs[0]!), to);
    return unpackBytes(to, node.dtype, dims(node as Node));
  };
}
