// Random loops: of a few carries, stacks and invariants of small shapes.

import { loopCotangents } from '../../../src/autograd/rules-loop.ts';
import { loopDerivative } from '../../../src/autograd/slots.ts';
import { add, broadcast, cast, constant, mul, reduce, reshape, unary, where } from '../../../src/ir/build.ts';
import { iterate } from '../../../src/ir/control/iterate.ts';
import { regionOf } from '../../../src/ir/text/region.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { dims, GraphBuilder, type Graph, type Node, type NodeOf } from '../../../src/ir/graph.ts';
import { sameShape, sizeOf, type FixedShape } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';

// What records a loop brings its derivative; here nothing records.
loopDerivative.fill(loopCotangents);

/** Numbers in [0, 1) from a seed (mulberry32). */
export function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const shapes: readonly FixedShape[] = [[2, 3], [3], [], [2], [4, 2, 3]];

/** The value brought to a shape: spread where that is possible, else summed and spread. */
function brought(b: GraphBuilder, x: Node, shape: FixedShape): Node {
  const from = dims(x);
  if (sameShape(from, shape)) return x;
  const rest = shape.slice(shape.length - from.length);
  const fits = from.length <= shape.length && from.every((dim, axis) => dim === rest[axis]);
  if (fits) return broadcast(b, x, shape);
  const all = reduce(b, 'sum', x, [...from.keys()]);
  return broadcast(b, mul(b, all, 0.5), shape);
}

function parametersOf(b: GraphBuilder): { list: NodeOf<'parameter'>[]; add(t: Node | Type): Node } {
  const list: NodeOf<'parameter'>[] = [];
  return {
    list,
    add: ({ dtype, shape }) => {
      const attrs = { index: list.length, name: `p${list.length}`, dtype, shape };
      const node = b.add('parameter', [], attrs);
      list.push(node);
      return node as Node;
    },
  };
}

interface Type {
  readonly dtype: DType;
  readonly shape: FixedShape;
}

export interface LoopTrial {
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
}

/** A loop in a graph, with something before it and after it; `depth` more loops may be inside. */
export function randomLoop(seed: number, depth = 1): LoopTrial {
  const random = numbers(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const b = new GraphBuilder();
  const outer = parametersOf(b);
  const makeLoop = (
    into: GraphBuilder,
    source: (type: Type, zeros: boolean) => Node,
    level: number,
  ): { results: Node[] } => {
    const trips = pick([0, 1, 2, 3, 4, 5]);
    const carries = Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(shapes));
    const slices = Array.from({ length: Math.floor(random() * 3) }, () => pick(shapes));
    const invariants = Array.from({ length: Math.floor(random() * 3) }, () => pick(shapes));
    const inner = new GraphBuilder();
    const own = parametersOf(inner);
    const count = own.add({ dtype: 'i32', shape: [] });
    const known = [...carries, ...slices, ...invariants].map((shape) => own.add({ dtype: 'f32', shape }));
    const pool = [...known, cast(inner, count, 'f32')];
    const step = (): Node => {
      const x = pick(pool);
      const y = brought(inner, pick(pool), dims(x));
      const z = brought(inner, pick(pool), dims(x));
      switch (Math.floor(random() * 8)) {
        case 0:
          return add(inner, x, mul(inner, y, 0.25));
        case 1:
          return mul(inner, unary(inner, 'tanh', x), y);
        case 2:
          return unary(inner, 'sin', add(inner, x, y));
        case 3:
          return where(inner, inner.add('lt', [x, y], {}) as Node, x, z);
        case 4:
          // The greatest of nothing is −∞.
          return reduce(inner, sizeOf(dims(x)) > 0 && random() < 0.5 ? 'max' : 'sum', x, [...dims(x).keys()]);
        case 5: {
          const square = brought(inner, y, [3, 3]);
          const dot = {
            lhsBatch: [],
            rhsBatch: [],
            lhsContract: [1],
            rhsContract: [0],
            dtype: 'f32',
          } as const;
          return inner.add('dot', [brought(inner, x, [2, 3]), square], dot) as Node;
        }
        case 6:
          return reshape(
            inner,
            inner.add('permute', [brought(inner, x, [2, 3])], { order: [1, 0] }) as Node,
            [6],
          );
        default: {
          if (level === 0 || random() < 0.5) return unary(inner, 'cos', x);
          const { results } = makeLoop(inner, (type) => brought(inner, pick(pool), type.shape), level - 1);
          pool.push(...results);
          return pick(results);
        }
      }
    };
    for (let i = 0; i < 5; i++) pool.push(step());
    const next = carries.map((shape, i) => {
      const draw = random();
      if (draw < 0.1) return known[i]!;
      if (draw < 0.25) {
        const same = known.filter((node) => sameShape(node.shape, shape));
        return pick(same);
      }
      return brought(inner, unary(inner, 'tanh', pick(pool)), shape);
    });
    const given = Array.from({ length: Math.floor(random() * 3) }, () => pick(pool));
    const body = regionOf({ parameters: own.list, outputs: [...next, ...given] });
    const inputs = [
      ...carries.map((shape) => source({ dtype: 'f32', shape }, random() < 0.2)),
      ...slices.map((shape) => source({ dtype: 'f32', shape: [trips, ...shape] }, false)),
      ...invariants.map((shape) => source({ dtype: 'f32', shape }, false)),
    ];
    const attrs = {
      body,
      carries: carries.length,
      stacked: slices.length,
      trips,
      reverse: random() < 0.4,
      recompute: random() < 0.4,
      guard: -1,
    };
    return { results: iterate(into, inputs, attrs) };
  };
  const { results } = makeLoop(
    b,
    (type, zeros) => {
      if (zeros) return broadcast(b, constant(b, 0, 'f32'), type.shape);
      const parameter = outer.add(type);
      return random() < 0.4 ? unary(b, 'sin', parameter) : parameter;
    },
    depth,
  );
  const kept = results.filter(() => random() < 0.8);
  const outputs = (kept.length === 0 ? results : kept).map((node) =>
    random() < 0.3 ? add(b, node, 1) : node,
  );
  const inputs = outer.list.map(({ shape }) => {
    const size = sizeOf(shape as FixedShape);
    return hostArray(
      'f32',
      shape as FixedShape,
      Array.from({ length: size }, () => Math.fround(2 * random() - 1)),
    );
  });
  return { graph: { parameters: outer.list, outputs }, inputs };
}

/** The largest difference, as a part of the largest number. */
export function distance(found: readonly HostArray[], expected: readonly HostArray[]): number {
  let worst = 0;
  expected.forEach(({ data }, i) => {
    const other = found[i]!.data;
    if (other.length !== data.length) throw new Error(`${other.length} elements for ${data.length}`);
    const finite = Array.from(data, Number).filter(Number.isFinite);
    const scale = finite.reduce((top, x) => Math.max(top, Math.abs(x)), 1);
    Array.from(data, Number).forEach((x, k) => {
      if (Object.is(x, Number(other[k]))) return;
      const difference = Math.abs(x - Number(other[k])) / scale;
      worst = Number.isNaN(difference) ? Infinity : Math.max(worst, difference);
    });
  });
  return worst;
}
