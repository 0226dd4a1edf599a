// Compiled functions over tensors that several processes hold together: for each way in which a call's inputs are laid
// out, the program of this process. `sinter/distributed` brings it by a slot, so that other pages do not load it.

import { topological, type Graph, type Node } from '../../ir/graph.ts';
import type { Mesh } from '../../ir/mesh/mesh.ts';
import { TensorError } from '../../errors.ts';
import { parseMesh } from '../../ir/mesh/mesh.ts';
import { whole, type Split } from '../../ir/mesh/split.ts';
import { partIn, partKey, type ShardPart } from '../../sharding/part.ts';
import { partition } from '../../sharding/partition.ts';
import { Executable, type FindSchedules } from '../evaluate/executable.ts';
import type { About } from '../report/compiles.ts';

/** The program of this process. */
export interface PartProgram {
  readonly executable: Executable;
  /** Nothing is kept for gradients: they are taken inside. */
  readonly kept: readonly Node[];
  /** What this process has of each output. */
  readonly outputs: readonly (ShardPart | undefined)[];
}

/** How a call lays out what goes in and out. */
export interface CallParts {
  readonly mesh: Mesh;
  /** By input, those that the program does not read left out. */
  readonly inputs: readonly (ShardPart | undefined)[];
  /** By output of the graph; left out where the program may choose. */
  readonly outputs: readonly (ShardPart | 'whole' | undefined)[];
}

/** The mesh that a graph's own annotations name; undefined where it has none. Throws E_VALUE where they name two. */
export function meshWithin(graph: Graph): Mesh | undefined {
  return theMesh(
    topological(graph.outputs).flatMap((node) =>
      node.op === 'shard' || node.op === 'toPart' || node.op === 'toWhole' ? [node.attrs.mesh] : [],
    ),
  );
}

/** The one mesh that these texts name. */
export function theMesh(texts: readonly string[]): Mesh | undefined {
  const [first, ...others] = new Set(texts);
  const [other] = others;
  if (other !== undefined) {
    const problem = `tensors of two meshes meet: ${first} and ${other}`;
    throw new TensorError(
      'E_VALUE',
      'compile',
      problem,
      'one mesh with all axes, of which each tensor names some',
    );
  }
  return first === undefined ? undefined : parseMesh(first);
}

/** What a result of a program of parts tells who asks for its history. */
export function noHistory(): never {
  const problem = 'gradients of a compiled function over several processes are taken inside it';
  throw new TensorError(
    'E_UNSUPPORTED',
    'compile',
    problem,
    'compile((x) => grad(fn)(x)), or noGrad around the call',
  );
}

/** The programs of one compiled graph, by how calls lay out their inputs. */
export class PartPrograms {
  readonly #graph: Graph;
  readonly #known = new Map<string, PartProgram>();

  constructor(graph: Graph) {
    this.#graph = graph;
  }

  executables(): Executable[] {
    return Array.from(this.#known.values(), ({ executable }) => executable);
  }

  /** The program for a call that is laid out so; `options` are those of the whole graph. */
  for(
    call: CallParts,
    options: Executable['options'],
    find: FindSchedules | undefined,
    about: About | undefined,
  ): PartProgram {
    const outputKeys = call.outputs.map((part) => (typeof part === 'string' ? part : partKey(part)));
    const key = [call.mesh.text, ...call.inputs.map(partKey), '>', ...outputKeys].join(' ');
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    let tensor = 0;
    const inputs = this.#graph.parameters.map((_, i) =>
      options.scalars?.has(i) === true ? undefined : call.inputs[tensor++]?.split,
    );
    const outputs = call.outputs.map((part, i): Split | undefined =>
      part === 'whole' ? whole(this.#graph.outputs[i]!.shape.length) : part?.split,
    );
    const made = partition(this.#graph, call.mesh, { inputs, outputs });
    const program = {
      executable: new Executable(made.graph, options, find, about),
      kept: [],
      outputs: made.outputs.map((split) => partIn(call.mesh, split)),
    };
    this.#known.set(key, program);
    return program;
  }
}
