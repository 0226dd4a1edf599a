// The compiler's front door: Graph in, Program out.

import { SinterError } from './errors.ts';
import { dtypeBytes } from './ir/dtype.ts';
import { dims, type Graph, type Node } from './ir/graph.ts';
import { interpret } from './ir/interpret.ts';
import { sizeOf } from './ir/shape.ts';
import { hostArray, packBytes, unpackBytes } from './ir/value.ts';
import type { HostFunctions } from './runtime/device.ts';
import {
  deviceBytes,
  type BufferRole,
  type Program,
  type ProgramBuffer,
  type ProgramScalar,
} from './runtime/program.ts';
import type { Target } from './schedule/target.ts';

export interface CompileOptions {
  /** Indices of rank-0 parameters that are supplied as numbers at each run. */
  readonly scalars?: ReadonlySet<number>;
  /** Inputs that may be overwritten: parameter index → the output (of its dtype and shape) that may take its place. */
  readonly donate?: ReadonlyMap<number, number>;
}

/** What a kernel does, for reports. */
export interface KernelSummary {
  readonly name: string;
  readonly kind: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly flops: number;
  readonly bytes: number;
  readonly source: string;
}

export interface Compiled {
  readonly program: Program;
  /** Functions of the program's `host` steps. */
  readonly host?: HostFunctions;
  readonly kernels: readonly KernelSummary[];
}

/** Compiles a graph for a target. Parameters named by `scalars` become the program's scalars, in index order. */
export function compileGraph(graph: Graph, target: Target, options: CompileOptions = {}): Compiled {
  if (target.id === 'interpreter') return interpreted(graph, options);
  throw new SinterError('E_UNSUPPORTED', `compile: the target ${target.name} is not supported`);
}

/** The whole graph as one host function. */
function interpreted(graph: Graph, options: CompileOptions): Compiled {
  const scalarIndices = options.scalars ?? new Set<number>();
  const tensors = graph.parameters.filter((_, i) => !scalarIndices.has(i));
  const scalars = graph.parameters.filter((_, i) => scalarIndices.has(i));
  const buffers: ProgramBuffer[] = [];
  const buffer = (node: Node, role: BufferRole, name: string): number => {
    const bytes = deviceBytes(dtypeBytes(node.dtype), sizeOf(dims(node)));
    return buffers.push({ name, role, bytes, dtype: node.dtype, shape: dims(node) }) - 1;
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
    interpret: (bytes, numbers) => {
      let [tensor, scalar] = [0, 0];
      const values = graph.parameters.map(({ dtype, shape }, i) =>
        scalarIndices.has(i)
          ? hostArray(dtype, [], [numbers[scalar++]!])
          : unpackBytes(bytes[tensor++]!, dtype, shape as readonly number[]),
      );
      return interpret(graph, values).map(packBytes);
    },
  };
  return { program, host, kernels: [] };
}
