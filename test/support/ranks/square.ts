// Programs over the four processes of a square, and how one of them runs its own on a device.

import {
  allGather,
  allReduce,
  allToAll,
  broadcastRank,
  permuteRanks,
  rankIndex,
  reduceScatter,
} from '../../../src/ir/collectives.ts';
import { add, broadcast, cast, mul, unary } from '../../../src/ir/build.ts';
import { iterate } from '../../../src/ir/control/iterate.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { dims, GraphBuilder, type Graph, type Node } from '../../../src/ir/graph.ts';
import { parseMesh, type Mesh } from '../../../src/ir/mesh/mesh.ts';
import { regionOf } from '../../../src/ir/text/region.ts';
import { packBytes, unpackBytes, type HostArray } from '../../../src/ir/value.ts';
import type { CompiledGraph } from '../../../src/compile.ts';
import type { Communicator } from '../../../src/runtime/communicator.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { randomArray } from '../random/values.ts';
import type { LocalProgram } from './program.ts';

/** What a rank computes on a device. */
export async function onDevice(
  device: Device,
  { program, host }: CompiledGraph,
  graph: Graph,
  inputs: readonly HostArray[],
  communicator: Communicator,
  /** How often it runs over the same buffers; inputs must not be overwritten where that is more than once. */
  times = 1,
): Promise<HostArray[]> {
  device.join!(communicator);
  const loaded = device.load(program, host);
  const given = program.inputs.map((index, i) => {
    const buffer = device.allocate(program.buffers[index]!.bytes);
    device.write(buffer, packBytes(inputs[i]!));
    return buffer;
  });
  const fresh = loaded.allocateOutputs();
  const distinct = [...new Set(program.outputs)].filter((index) => program.buffers[index]!.role === 'output');
  const outputs = program.outputs.map((index) => {
    const at = distinct.indexOf(index);
    return at >= 0 ? fresh[at]! : given[program.inputs.indexOf(index)]!;
  });
  try {
    for (let time = 0; time < times; time++) loaded.run(given, outputs, []);
    return await Promise.all(
      graph.outputs.map(async (node, i) => {
        const bytes = program.buffers[program.outputs[i]!]!.bytes;
        return unpackBytes(await device.read(outputs[i]!, bytes), node.dtype, dims(node));
      }),
    );
  } finally {
    loaded.destroy();
    for (const buffer of new Set([...given, ...outputs])) buffer.destroy();
  }
}

/** Four processes in a square. */
export const mesh: Mesh = parseMesh('a=2,b=2')!;
/** One program of random inputs of these types. */
export function given(
  types: readonly (readonly [DType, readonly number[]])[],
  build: (b: GraphBuilder, ...nodes: Node[]) => Node[],
): LocalProgram {
  const inputs = Array.from({ length: mesh.size }, (_, rank) =>
    types.map(([dtype, shape], i) => randomArray(dtype, shape, 7 * rank + i, 'tame')),
  );
  const b = new GraphBuilder();
  const parameters = types.map(([dtype, shape], index) =>
    b.add('parameter', [], { index, name: `p${index}`, dtype, shape }),
  );
  return { mesh, graph: { parameters, outputs: build(b, ...(parameters as Node[])) }, inputs };
}

/** A program with all collectives, of values of this type. */
export function ofType(dtype: DType): LocalProgram {
  const fold = dtype === 'bool' ? 'or' : 'sum';
  return given([[dtype, [8, 3]]], (b, x) => [
    allReduce(b, x, mesh, ['a', 'b'], fold),
    allGather(b, x, mesh, ['b', 'a']),
    reduceScatter(b, x, mesh, ['a'], fold),
    allToAll(b, x, mesh, ['b']),
    permuteRanks(
      b,
      x,
      mesh,
      ['a', 'b'],
      [
        [0, 3],
        [3, 1],
      ],
    ),
    broadcastRank(b, x, mesh, ['a'], 1),
  ]);
}

/** A loop that meets in its iterations, between other collectives. */
export function ofLoops(trips: number): LocalProgram {
  return given(
    [
      ['f32', [2]],
      ['f32', [trips, 2]],
    ],
    (b, first, rows) => {
      const inside = new GraphBuilder();
      const parameter = (index: number, dtype: DType, shape: readonly number[]) =>
        inside.add('parameter', [], { index, name: `p${index}`, dtype, shape });
      const parameters = [parameter(0, 'i32', []), parameter(1, 'f32', [2]), parameter(2, 'f32', [2])];
      const [, x, row] = parameters as unknown as readonly [Node, Node, Node];
      const place = broadcast(inside, cast(inside, rankIndex(inside, mesh, ['b']), 'f32'), [2]);
      const sum = allReduce(inside, mul(inside, x, place), mesh, ['a'], 'sum');
      const next = unary(inside, 'sin', add(inside, sum, row));
      const body = regionOf({
        parameters,
        outputs: [next, permuteRanks(inside, next, mesh, ['b'], [[1, 0]])],
      });
      const before = allReduce(b, first, mesh, ['b'], 'sum');
      const attrs = { body, carries: 1, stacked: 1, trips, reverse: false, recompute: false, guard: -1 };
      const [last, stack] = iterate(b, [first, rows], attrs);
      return [last!, allReduce(b, stack!, mesh, ['a'], 'max'), before];
    },
  );
}

/** How far results of a device may be from the interpreter's. */
export const tolerances: Partial<Record<DType, number>> = {
  f16: 4e-3,
  bf16: 3e-2,
  f32: 1e-4,
  f64: 1e-12,
  c64: 1e-4,
};
