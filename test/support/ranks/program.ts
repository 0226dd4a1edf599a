// Random programs of one process of a mesh, for tests of collectives: what all processes run, and what each of them is given.

import * as fc from 'fast-check';
import {
  allGather,
  allReduce,
  allToAll,
  broadcastRank,
  permuteRanks,
  rankIndex,
  reduceScatter,
} from '../../../src/ir/collectives.ts';
import { add, broadcast, cast, mul, permute, reduce, reshape, slice, unary } from '../../../src/ir/build.ts';
import { dims, GraphBuilder, type Graph, type Node } from '../../../src/ir/graph.ts';
import { parseMesh, type Mesh } from '../../../src/ir/mesh/mesh.ts';
import { print } from '../../../src/ir/text/print.ts';
import type { Monoid } from '../../../src/ir/ops.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { randomNumbers } from '../../autograd/differences.ts';

export interface LocalProgram {
  readonly mesh: Mesh;
  readonly graph: Graph;
  /** By rank, by parameter. */
  readonly inputs: readonly (readonly HostArray[])[];
}

export interface LocalOptions {
  readonly steps?: number;
  readonly dtype?: 'f64' | 'f32' | 'i32';
  readonly meshes?: readonly string[];
}

const allMeshes = ['a=2', 'a=3', 'a=2,b=2', 'a=2,b=3', 'a=3,b=1,c=2'];

/** A random program, with at least one collective. */
export function localProgram(options: LocalOptions = {}): fc.Arbitrary<LocalProgram> {
  return fc.integer({ min: 0 }).map((seed) => {
    const program = drawn(randomNumbers(seed), options);
    const text = (): string => `\n${program.mesh.text}\n${print(program.graph)}`;
    return Object.assign(program, { [fc.toStringMethod]: text });
  });
}

function drawn(
  random: () => number,
  { steps = 6, dtype = 'f64', meshes = allMeshes }: LocalOptions,
): LocalProgram {
  const whole = (sides: number): number => Math.floor(random() * sides);
  const pick = <T>(list: readonly T[]): T => list[whole(list.length)]!;
  const mesh = parseMesh(pick(meshes))!;
  const b = new GraphBuilder();
  const parameters = Array.from({ length: 1 + whole(2) }, (_, index) => {
    // Divisible by the size of every group.
    const shape = [mesh.size * (1 + whole(2)), ...(random() < 0.6 ? [1 + whole(3)] : [])];
    return b.add('parameter', [], { index, name: `x${index}`, dtype, shape });
  });
  const values: Node[] = [...(parameters as Node[])];
  const over = (): string[] => {
    const names = mesh.axes.map(({ name }) => name).filter(() => random() < 0.7);
    return names.length === 0 ? [mesh.axes[0]!.name] : random() < 0.3 ? names.reverse() : names;
  };
  const monoids: readonly Monoid[] = ['sum', 'sum', 'min', 'max', 'prod'];
  const isSmall = (node: Node): boolean => sizeOf(dims(node)) <= 150;
  for (let step = 0; step < steps || !values.some((node) => collectives.has(node.op)); step++) {
    const x = pick(values.slice(-4));
    const [first = 1, ...rest] = dims(x);
    const group = over();
    const count = group.reduce((n, name) => n * mesh.axes.find((axis) => axis.name === name)!.size, 1);
    const hasParts = x.shape.length > 0 && first % count === 0;
    const made: (() => Node)[] = [
      () => allReduce(b, x, mesh, group, pick(monoids)),
      () => broadcastRank(b, x, mesh, group, whole(count)),
      () => {
        const from = shuffled(random, count).slice(0, whole(count + 1));
        const to = shuffled(random, count);
        return permuteRanks(
          b,
          x,
          mesh,
          group,
          from.map((place, i) => [place, to[i]!]),
        );
      },
      () => mul(b, x, pick(values.filter((y) => y.shape.join() === x.shape.join()))),
      () => (dtype === 'i32' ? add(b, x, 3) : unary(b, 'sin', x)),
      () => add(b, x, broadcast(b, cast(b, rankIndex(b, mesh, group), dtype), dims(x))),
      // Nothing that is given goes in.
      () =>
        allReduce(b, broadcast(b, cast(b, rankIndex(b, mesh, group), dtype), dims(x)), mesh, group, 'sum'),
      () =>
        permuteRanks(b, broadcast(b, cast(b, rankIndex(b, mesh, []), dtype), dims(x)), mesh, group, [[0, 0]]),
    ];
    if (x.shape.length > 0) {
      if (isSmall(x)) made.push(() => allGather(b, x, mesh, group));
      made.push(
        () => reduce(b, 'sum', x, [x.shape.length - 1]),
        () =>
          slice(
            b,
            x,
            dims(x).map(() => 0),
            [Math.ceil(first / 2), ...rest],
          ),
        () => reshape(b, x, [sizeOf(dims(x))]),
        () => permute(b, x, [...x.shape.keys()].reverse()),
        () => ownPart(b, x, rankIndex(b, mesh, group)),
      );
    }
    if (hasParts)
      made.push(
        () => reduceScatter(b, x, mesh, group, pick(monoids)),
        () => allToAll(b, x, mesh, group),
        () => allToAll(b, x, mesh, group),
      );
    values.push(pick(made)());
  }
  const outputs = [values.at(-1)!, ...values.slice(parameters.length, -1).filter(() => random() < 0.3)];
  const made = ({ shape }: { readonly shape: readonly number[] }): HostArray => {
    const numbers = Array.from({ length: sizeOf(shape) }, () =>
      dtype === 'i32' ? whole(2 ** 20) - 2 ** 19 : 3 * random() - 1.5,
    );
    return hostArray(dtype, shape, numbers);
  };
  const inputs = Array.from({ length: mesh.size }, () =>
    parameters.map(({ attrs }) => made({ shape: attrs.shape as readonly number[] })),
  );
  return { mesh, graph: { parameters, outputs }, inputs };
}

/** One row, that of this process's place. */
function ownPart(b: GraphBuilder, x: Node, place: Node): Node {
  const shape = dims(x).with(0, 1);
  return b.add('gather', [x, broadcast(b, place, shape)], { axis: 0 }) as Node;
}

const collectives: ReadonlySet<string> = new Set([
  'allReduce',
  'allGather',
  'reduceScatter',
  'allToAll',
  'permuteRanks',
  'broadcastRank',
]);

function shuffled(random: () => number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => ({ i, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ i }) => i);
}

/** The values of all ranks, one behind the other along a new leading axis. */
export function stackedRanks(ranks: readonly HostArray[]): HostArray {
  const { dtype, shape } = ranks[0]!;
  return hostArray(
    dtype,
    [ranks.length, ...shape],
    ranks.flatMap(({ data }) => Array.from(data as Float64Array)),
  );
}
