// From one layout of a value to another: the collectives and slices that do it, as data first, so that
// their bytes can be compared before any is recorded.

import { allGather, allReduce, allToAll, rankIndex, reduceScatter } from '../ir/collectives.ts';
import { broadcast, permute, reshape } from '../ir/build.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../ir/graph.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import type { Monoid } from '../ir/ops.ts';
import { sizeOf, type FixedShape } from '../ir/shape.ts';
import { localShape, partsOf, type Split } from '../ir/mesh/split.ts';
import { bytesSent } from './cost.ts';
import type { ShardLayout } from './layout.ts';

/** One step of a change of layout. `over` are mesh axes, `axis` is the axis of the value that they split. */
export type ShardMove =
  /** Everyone has the whole, and keeps a part. */
  | { readonly kind: 'slice'; readonly over: readonly string[]; readonly axis: number }
  | { readonly kind: 'allGather'; readonly over: readonly string[]; readonly axis: number }
  | { readonly kind: 'allReduce'; readonly over: readonly string[]; readonly monoid: Monoid }
  | {
      readonly kind: 'reduceScatter';
      readonly over: readonly string[];
      readonly axis: number;
      readonly monoid: Monoid;
    }
  /** Parts along `axis` become parts along `to`. */
  | {
      readonly kind: 'allToAll';
      readonly over: readonly string[];
      readonly axis: number;
      readonly to: number;
    };

/** A move with what it sends: bytes that each process sends, by the best known algorithm. */
export interface PlannedMove {
  readonly move: ShardMove;
  /** Processes that take part. */
  readonly ranks: number;
  /** Bytes of what is moved, as `bytesSent` takes them. */
  readonly whole: number;
  readonly bytes: number;
}

/** The moves from one layout to another; `to` has nothing pending, or what `from` has. */
export function movesBetween(
  mesh: Mesh,
  value: { readonly shape: FixedShape; readonly dtype: DType },
  from: ShardLayout,
  to: ShardLayout,
): readonly PlannedMove[] {
  const moves: PlannedMove[] = [];
  let { split } = from;
  const local = (): number => sizeOf(localShape(mesh, value.shape, split)) * dtypeBytes(value.dtype);
  const change = (move: ShardMove): void => {
    const before = local();
    split = splitAfter(split, move);
    moves.push(planned(mesh, move, Math.max(before, local())));
  };

  // Sums first, and to parts where parts are wanted: half the bytes of a sum that everyone has.
  const isKept = to.pending !== undefined;
  if (from.pending !== undefined && !isKept) {
    let left = from.pending.over;
    const { monoid } = from.pending;
    for (const [axis, wanted] of to.split.entries()) {
      const over = scattered(split[axis]!, wanted, left);
      if (over.length === 0) continue;
      change({ kind: 'reduceScatter', over, axis, monoid });
      left = left.filter((name) => !over.includes(name));
    }
    if (left.length > 0) change({ kind: 'allReduce', over: left, monoid });
  }

  // Parts along one axis that become parts along another.
  for (const axis of split.keys()) {
    const names = split[axis]!;
    const name = names.at(-1);
    if (name === undefined || isPrefix(names, to.split[axis]!)) continue;
    const goal = to.split.findIndex(
      (wanted, other) =>
        other !== axis && wanted[split[other]!.length] === name && isPrefix(split[other]!, wanted),
    );
    if (goal < 0) continue;
    change({ kind: 'allToAll', over: [name], axis, to: goal });
  }

  for (const [axis, wanted] of to.split.entries()) {
    const names = split[axis]!;
    const kept = commonLength(names, wanted);
    if (kept < names.length) change({ kind: 'allGather', over: names.slice(kept), axis });
  }
  for (const [axis, wanted] of to.split.entries()) {
    const over = wanted.slice(split[axis]!.length);
    if (over.length > 0) change({ kind: 'slice', over, axis });
  }
  return moves;
}

/** The split of a value after a move. */
function splitAfter(split: Split, move: ShardMove): Split {
  switch (move.kind) {
    case 'slice':
    case 'reduceScatter':
      return split.with(move.axis, [...split[move.axis]!, ...move.over]);
    case 'allGather':
      return split.with(move.axis, split[move.axis]!.slice(0, -move.over.length));
    case 'allToAll':
      return split
        .with(move.axis, split[move.axis]!.slice(0, -move.over.length))
        .with(move.to, [...split[move.to]!, ...move.over]);
    case 'allReduce':
      return split;
    default:
      return move satisfies never;
  }
}

/** The layout of a value after a move. */
export function layoutAfter({ split, pending }: ShardLayout, move: ShardMove): ShardLayout {
  const left = 'monoid' in move ? pending?.over.filter((name) => !move.over.includes(name)) : pending?.over;
  return {
    split: splitAfter(split, move),
    pending: pending === undefined || left!.length === 0 ? undefined : { ...pending, over: left! },
  };
}

/** One move of a value that is split so. */
export function plannedMove(mesh: Mesh, value: Node, split: Split, move: ShardMove): PlannedMove {
  return planned(mesh, move, sizeOf(localShape(mesh, dims(value), split)) * dtypeBytes(value.dtype));
}

/** The mesh axes by which a sum over `left` can be scattered along an axis that is split so, on the way to `wanted`. */
function scattered(
  names: readonly string[],
  wanted: readonly string[],
  left: readonly string[],
): readonly string[] {
  if (!isPrefix(names, wanted)) return [];
  const rest = wanted.slice(names.length);
  const end = rest.findIndex((name) => !left.includes(name));
  return end < 0 ? rest : rest.slice(0, end);
}

function commonLength(a: readonly string[], b: readonly string[]): number {
  const end = a.findIndex((name, i) => name !== b[i]);
  return end < 0 ? a.length : end;
}

function isPrefix(a: readonly string[], b: readonly string[]): boolean {
  return a.length <= b.length && commonLength(a, b) === a.length;
}

function planned(mesh: Mesh, move: ShardMove, whole: number): PlannedMove {
  const ranks = partsOf(mesh, move.over);
  return { move, ranks, whole, bytes: move.kind === 'slice' ? 0 : bytesSent(move.kind, ranks, whole) };
}

/** A value after a move. */
export function moved(b: GraphBuilder, mesh: Mesh, x: Node, move: ShardMove): Node {
  switch (move.kind) {
    case 'slice':
      return ownPart(b, mesh, x, move.over, move.axis);
    case 'allReduce':
      return allReduce(b, x, mesh, move.over, move.monoid);
    case 'allGather':
      return inFront(b, x, move.axis, (front) => allGather(b, front, mesh, move.over));
    case 'reduceScatter':
      return inFront(b, x, move.axis, (front) => reduceScatter(b, front, mesh, move.over, move.monoid));
    case 'allToAll':
      return exchanged(b, mesh, x, move);
    default:
      return move satisfies never;
  }
}

/** Does something to a value whose axis `axis` is in front, and puts the axis back. */
function inFront(b: GraphBuilder, x: Node, axis: number, change: (front: Node) => Node): Node {
  const order = withInFront(dims(x).length, axis);
  const back = order.map((_, i) => order.indexOf(i));
  return permute(b, change(permute(b, x, order)), back);
}

/** The axes of a value of this rank, one of them first. */
function withInFront(rank: number, axis: number): readonly number[] {
  return [axis, ...Array.from({ length: rank }, (_, i) => i).filter((one) => one !== axis)];
}

/** The layout of a value whose axis `axis` was put in front. */
export function inFrontLayout({ split, pending }: ShardLayout, axis: number): ShardLayout {
  return { split: withInFront(split.length, axis).map((one) => split[one]!), pending };
}

/** This process's part of a value that all of them have, along an axis. */
export function ownPart(b: GraphBuilder, mesh: Mesh, x: Node, over: readonly string[], axis: number): Node {
  const parts = partsOf(mesh, over);
  const shape = dims(x);
  const own = shape.with(axis, shape[axis]! / parts);
  const apart = reshape(b, x, own.toSpliced(axis, 0, parts));
  const index = broadcast(b, rankIndex(b, mesh, over), own.toSpliced(axis, 0, 1));
  return reshape(b, b.add('gather', [apart, index], { axis }) as Node, own);
}

/** Parts along one axis for parts along another. */
function exchanged(
  b: GraphBuilder,
  mesh: Mesh,
  x: Node,
  { over, axis, to }: Extract<ShardMove, { readonly kind: 'allToAll' }>,
): Node {
  const parts = partsOf(mesh, over);
  const shape = dims(x);
  // [.., parts, piece, ..] in place of `to`; the parts in front; exchanged; in front of `axis`.
  const apart = reshape(b, x, shape.toSpliced(to, 1, parts, shape[to]! / parts));
  const rest = [...dims(apart).keys()].filter((one) => one !== to);
  const front = permute(b, apart, [to, ...rest]);
  const [, ...piece] = dims(front) as [number, ...number[]];
  const [first = 1, ...others] = piece;
  const flat = allToAll(b, reshape(b, front, [parts * first, ...others]), mesh, over);
  const back = reshape(b, flat, [parts, ...piece]);
  const order = [...piece.keys()].map((one) => one + 1);
  const joined = permute(b, back, order.toSpliced(axis, 0, 0));
  return reshape(b, joined, piece.with(axis, parts * piece[axis]!));
}
