// Compiled functions over tensors that several processes hold together: for each way in which a call's inputs are laid
// out, the program of this process. `sinter/distributed` brings it by a slot, so that other pages do not load it.

import { topological, type Graph, type Node } from '../../ir/graph.ts';
import type { Mesh } from '../../ir/mesh/mesh.ts';
import { TensorError } from '../../errors.ts';
import { parseMesh } from '../../ir/mesh/mesh.ts';
import { whole, type Split } from '../../ir/mesh/split.ts';
import { partIn, partKey, type ShardPart } from '../../sharding/part.ts';
import { partition } from '../../sharding/partition.ts';
import type { PartitionedCall } from '../../sharding/report.ts';
import { Executable, type FindSchedules } from '../evaluate/executable.ts';
import { currentHandle } from '../handle/recording.ts';
import type { About } from '../report/compiles.ts';
import { handleOf, type Tensor } from '../tensor.ts';
import type { Origin } from '../trace/trace.ts';
import type { Input, Traced } from '../tracing.ts';

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

/** What processes have of what a call reads, and of what it assigns to before it does. */
export interface CallValues {
  /** By input. */
  readonly inputs: readonly (ShardPart | undefined)[];
  /** By effect; undefined where there is no value yet. */
  readonly targets: readonly (ShardPart | 'whole' | undefined)[];
}

/** The same for a value of a call, or for its gradient. */
export type PartAt = (origin: Origin, part: Input['part']) => ShardPart | 'whole' | undefined;

/** What a call reads and assigns to, of which processes have what `partAt` says. */
export function valuesBy({ inputs, effects }: Traced, partAt: PartAt): CallValues {
  const read = inputs.map(({ origin, part }) => partAt(origin, part));
  // A call computes what it reads before it assigns: a pending value that it also reads is there by then.
  const isRead = (origin: Origin, part: Input['part']): boolean =>
    inputs.some((input) => input.part === part && isSameOrigin(input.origin, origin));
  return {
    inputs: read.map((part) => (part === 'whole' ? undefined : part)),
    targets: effects.map(
      ({ origin, part }) => partAt(origin, part) ?? (isRead(origin, part) ? 'whole' : undefined),
    ),
  };
}

function isSameOrigin(a: Origin, b: Origin): boolean {
  if (a.kind === 'argument') return b.kind === 'argument' && a.leaf === b.leaf;
  return b.kind === 'captured' && a.handle === b.handle;
}

/** What this process has of the values of a call with these arguments, of which nothing is computed. */
export function partsNow(leaves: readonly unknown[]): PartAt {
  return (origin, part) => {
    const handle =
      origin.kind === 'captured'
        ? currentHandle(origin.handle, 'explain')
        : handleOf(leaves[origin.leaf] as Tensor);
    const storage = part === 'value' ? handle.storage : handle.grad?.storage;
    return storage && (storage.part ?? 'whole');
  };
}

/** What processes would have of a call whose arguments, by leaf, they split so; captured values are as they are. */
export function partsPlanned(
  mesh: Mesh,
  splits: readonly (Split | undefined)[],
  leaves: readonly unknown[],
): PartAt {
  const now = partsNow(leaves);
  return (origin, part) => {
    if (origin.kind === 'captured') return now(origin, part);
    const split = splits[origin.leaf];
    const own = (split && partIn(mesh, split)) ?? 'whole';
    return part === 'value' || now(origin, part) !== undefined ? own : undefined;
  };
}

/**
 * How a call is laid out whose inputs may be overwritten as `donate` says; undefined where nothing of it is split and no mesh is `named`, as
 * a graph does by its annotations. Throws E_VALUE where two meshes meet.
 */
export function callParts(
  { graph, effects, scalarIndices }: Traced,
  donate: ReadonlyMap<number, number>,
  { inputs, targets }: CallValues,
  named: readonly (Mesh | undefined)[],
): CallParts | undefined {
  const meshes = [...inputs.map((part) => part?.mesh), ...named].flatMap((one) => (one ? [one.text] : []));
  const mesh = theMesh(meshes);
  if (mesh === undefined) return undefined;
  const read = inputs.slice(0, graph.parameters.length - scalarIndices.size);
  const outputs: (ShardPart | 'whole' | undefined)[] = graph.outputs.map(() => undefined);
  // What takes the memory of an input, or the place of a value, is laid out as that is.
  for (const [parameter, output] of donate)
    outputs[output] = read[placeAmongTensors(parameter, scalarIndices)] ?? 'whole';
  for (const [i, { source }] of effects.entries())
    if (source?.kind === 'output' && targets[i] !== undefined) outputs[source.index] = targets[i];
  return { mesh, inputs: read, outputs };
}

/** The place of a parameter among those that are tensors. */
function placeAmongTensors(parameter: number, scalars: ReadonlySet<number>): number {
  let place = parameter;
  for (const scalar of scalars) if (scalar < parameter) place -= 1;
  return place;
}

/** Throws E_UNSUPPORTED: a program for many sizes cannot be one over several processes. */
export function noVaryingSizes(): never {
  const problem =
    'its program is one for many sizes, and tensors that are split over processes have fixed ones';
  throw new TensorError('E_UNSUPPORTED', 'compile', problem, 'a compiled function of its own, without dims');
}

/** The graph of one process in such a call of a graph. */
export function partitionCall(graph: Graph, scalars: ReadonlySet<number>, call: CallParts): PartitionedCall {
  let tensor = 0;
  const inputs = graph.parameters.map((_, i) => (scalars.has(i) ? undefined : call.inputs[tensor++]?.split));
  const outputs = call.outputs.map((part, i): Split | undefined =>
    part === 'whole' ? whole(graph.outputs[i]!.shape.length) : part?.split,
  );
  const { mesh } = call;
  return { mesh, whole: graph, inputs, scalars, ...partition(graph, mesh, { inputs, outputs }) };
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
    const made = partitionCall(this.#graph, options.scalars ?? new Set(), call);
    const program = {
      executable: new Executable(made.graph, options, find, about),
      kept: [],
      outputs: made.outputs.map((split) => partIn(made.mesh, split)),
    };
    this.#known.set(key, program);
    return program;
  }
}
