// Bodies of kernels that are not maps: the operand expressions of each kind.

import { CompilerBug } from '../../errors.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import {
  addIndex,
  andGuards,
  constantIndex,
  delinearize,
  divIndex,
  dynamicIndex,
  interval,
  linearize,
  modIndex,
  offsetIndex,
  scaleIndex,
  within,
  type Guard,
  type IndexExpr,
} from '../../ir/index-algebra/expr.ts';
import type { attentionBody } from './attention.ts';
import { Slot } from '../../slot.ts';
import type { FusionGroup } from '../fusion/place.ts';
import { dynamicAxis, type Evaluator, type Indices } from '../expression/evaluate.ts';
import { hasFlatTaps, isLaidTapsFirst } from '../flat-taps.ts';
import { foldWidth } from '../fold-width.ts';
import { dotIndices, makeAxis, reducedIndices } from '../fusion/domain.ts';
import type { Repeated } from '../fusion/few-rows.ts';
import { sizeOf } from '../../ir/shape.ts';
import { BoundFinder } from './bound.ts';
import { argsOf, type Expr, type ExprPool } from '../expression/expr.ts';
import type {
  Axis,
  Body,
  ColumnFolds,
  FftResult,
  FlatTaps,
  Image,
  RepeatedStage,
  RowStage,
  Sibling,
  Write,
} from '../kernel.ts';

/** The bodies of attention kernels. */
export const attentionBuilder: Slot<typeof attentionBody> = new Slot('the body of attention');

/** The body of a fusion group's kernel; `asked` gets the reductions that its expressions repeat. */
export function fusionRootBody(fusionGroup: FusionGroup, evaluator: Evaluator, asked: Repeated): Body {
  const axis = (name: string): Axis => fusionGroup.axes[name]!;
  const fusionRoot = fusionGroup.fusionRoots[0]!;
  switch (fusionGroup.kind) {
    case 'row-reduction': {
      const [row, column] = [axis('row'), axis('column')];
      const stages = rowStages(fusionGroup, evaluator);
      const find = new BoundFinder(evaluator.pool, column, stages);
      const [first, ...others] = stages.map((stage) => find.ofStage(stage));
      const bound = others.reduce((a, b) => find.either(a, b), first);
      return { kind: 'row-reduction', row, column, stages, ...(bound && { bound }) };
    }
    case 'dot':
    case 'conv': {
      const operands =
        fusionRoot.op === 'dot'
          ? dotOperands(fusionRoot, fusionGroup, evaluator)
          : convOperands(fusionRoot, fusionGroup, evaluator);
      const [batch, m, n, k] = ['batch', 'm', 'n', 'k'].map(axis);
      const others = fusionGroup.fusionRoots.slice(1);
      const folded = others.filter(({ op }) => op === 'reduce');
      const siblings = others.flatMap((node): Sibling[] => {
        if (node.op === 'reduce') return [];
        if (node.op !== 'dot') throw new CompilerBug('schedule', `${node.op} is no sibling of a product`);
        return [{ node, rhs: dotOperands(node as Node, fusionGroup, evaluator).rhs }];
      });
      const folds = columnFolds(fusionRoot, folded, fusionGroup, evaluator);
      const find = new BoundFinder(evaluator.pool, k!);
      const bound = siblings.reduce(
        (end, { rhs }) => find.either(end, find.ofProduct(operands.lhs, rhs)),
        find.ofProduct(operands.lhs, operands.rhs),
      );
      const axes = { batch: batch!, m: m!, n: n!, k: k! };
      const stages = repeatedStages(asked, evaluator);
      return {
        kind: 'contract',
        node: fusionRoot,
        ...axes,
        ...operands,
        ...(stages.length > 0 && { stages }),
        ...(siblings.length > 0 && { siblings }),
        ...(folds && { folds }),
        ...(bound && { bound }),
      };
    }
    case 'attention': {
      if (fusionGroup.group === undefined) throw new CompilerBug('schedule', 'attention needs its group');
      return attentionBuilder.value(fusionGroup, fusionGroup.group, evaluator);
    }
    case 'scan': {
      if (fusionRoot.op !== 'scan') throw new CompilerBug('schedule', 'a scan fusion group needs a scan');
      const value = evaluator.value(fusionRoot.inputs[0]!, fusionGroup.members.get(fusionRoot)!);
      const { monoid, reverse, exclusive } = fusionRoot.attrs;
      return {
        kind: 'scan',
        node: fusionRoot,
        line: axis('line'),
        position: axis('position'),
        value,
        monoid,
        reverse,
        exclusive,
      };
    }
    case 'fft':
      return fftBody(fusionGroup, evaluator);
    case 'scatter':
      return scatterBody(fusionRoot, fusionGroup, evaluator);
    case 'sort':
    case 'radix-rank':
      return keysBody(fusionRoot, fusionGroup, evaluator);
    case 'jacobi-rows': {
      if (fusionRoot.op !== 'jacobiRows') throw new CompilerBug('schedule', 'rotations need their rows');
      const [matrix, row, column] = ['matrix', 'row', 'column'].map(axis);
      const value = evaluator.value(fusionRoot.inputs[0]!, [matrix!.atom, row!.atom, column!.atom]);
      return { kind: 'jacobi-rows', node: fusionRoot, matrix: matrix!, row: row!, column: column!, value };
    }
    case 'complete-rows': {
      if (fusionRoot.op !== 'completeRows') throw new CompilerBug('schedule', 'not a completion of rows');
      const [matrix, row, column] = ['matrix', 'row', 'column'].map(axis);
      const value = evaluator.value(fusionRoot.inputs[0]!, [matrix!.atom, row!.atom, column!.atom]);
      const missing = evaluator.value(fusionRoot.inputs[1]!, [matrix!.atom, row!.atom]);
      const axes = { matrix: matrix!, row: row!, column: column! };
      return { kind: 'complete-rows', node: fusionRoot, ...axes, value, missing };
    }
    case 'search-sorted':
      return searchSortedBody(fusionRoot, fusionGroup, evaluator);
    case 'scatter-add-atomic':
      return scatterAddAtomicBody(fusionRoot, fusionGroup, evaluator);
    case 'segment-reduce':
      return segmentReduceBody(fusionRoot, fusionGroup, evaluator);
    case 'factor':
      return factorBody(fusionRoot, fusionGroup, evaluator);
    case 'collective':
    case 'iterate':
      throw new CompilerBug('schedule', `${fusionGroup.kind} has a kernel without expressions`);
    case 'permute-scatter':
      return { kind: 'map', axis: axis('axis') };
    default:
      return fusionGroup.kind satisfies never;
  }
}

/** Reductions over neighbouring columns of a product, which stand at the points of its group. */
function columnFolds(
  product: Node,
  nodes: readonly Node[],
  fusionGroup: FusionGroup,
  evaluator: Evaluator,
): ColumnFolds | undefined {
  if (nodes.length === 0) return undefined;
  const passes = new Map<Node, number>([[product, -1]]);
  const stages = nodes.map((node) => {
    const input = node.inputs[0]!;
    return stageOf(node, evaluator.value(input, fusionGroup.members.get(input)!), passes);
  });
  return { width: foldWidth, stages };
}

function rowStages(fusionGroup: FusionGroup, evaluator: Evaluator): RowStage[] {
  const passes = new Map<Node, number>();
  return fusionGroup.fusionRoots.map((node) =>
    stageOf(node, evaluator.value(node.inputs[0]!, fullIndices(node, fusionGroup)), passes),
  );
}

/** A reduction of this value, in the pass behind those whose results it needs; `passes` has those before it. */
function stageOf(node: Node, value: Expr, passes: Map<Node, number>): RowStage {
  if (node.op !== 'reduce' && node.op !== 'argReduce')
    throw new CompilerBug('schedule', 'a row fusion group needs reductions');
  const seen = new Set<Expr>();
  const passOf = (expr: Expr): number => {
    if (expr.kind === 'result') return passes.get(expr.node)! + 1;
    let pass = 0;
    for (const arg of argsOf(expr)) {
      if (seen.has(arg)) continue;
      seen.add(arg);
      pass = Math.max(pass, passOf(arg));
    }
    return pass;
  };
  const pass = passOf(value);
  passes.set(node, pass);
  return {
    node,
    monoid: node.attrs.monoid,
    arg: node.op === 'argReduce',
    value,
    pass,
    dtype: node.inputs[0]!.dtype,
  };
}

/**
 * Where a reduction's input is evaluated: its own member indices, or the fusion group's point for a free
 * input.
 */
function fullIndices(node: Node, fusionGroup: FusionGroup): Indices {
  return fusionGroup.members.get(node.inputs[0]!) ?? fusionGroup.full!.at;
}

function dotOperands(node: Node, fusionGroup: FusionGroup, evaluator: Evaluator): { lhs: Expr; rhs: Expr } {
  if (node.op !== 'dot') throw new CompilerBug('schedule', 'not a dot');
  const [left, right] = dotIndices(node, fusionGroup.members.get(node as Node)!, fusionGroup.axes['k']!.atom);
  return { lhs: evaluator.value(node.inputs[0]!, left), rhs: evaluator.value(node.inputs[1]!, right) };
}

/** The reductions that the left operand asked for, each at the rows where it did. */
function repeatedStages(asked: Repeated, evaluator: Evaluator): RepeatedStage[] {
  const values = new Map<Node, { readonly column: Axis; readonly value: Expr }>();
  // Reductions that these ask for in turn are added on the way.
  for (const [node, at] of asked) {
    const extent = sizeOf(dims(node.inputs[0]!)) / sizeOf(dims(node));
    const column = makeAxis(`col${values.size}`, extent);
    const value = evaluator.value(node.inputs[0]!, reducedIndices(node, at, column.atom));
    values.set(node, { column, value });
  }
  const passes = new Map<Node, number>();
  return [...values]
    .toSorted(([x], [y]) => x.id - y.id)
    .map(([node, { column, value }]) => ({ ...stageOf(node, value, passes), column }));
}

/**
 * conv as an implicit matrix product: lhs is the kernel at (channel, k), rhs the padded input at
 * (k, position).
 */
function convOperands(
  node: Node,
  fusionGroup: FusionGroup,
  evaluator: Evaluator,
): { lhs: Expr; rhs: Expr; image: Image; flatTaps?: FlatTaps } {
  if (node.op !== 'conv') throw new CompilerBug('schedule', 'not a conv');
  const { strides, rhsDilation } = node.attrs;
  const weight = node.inputs[1]!;
  const w = dims(weight);
  const [batch, channel, ...position] = fusionGroup.members.get(node)!;
  const [inner, ...window] = delinearize(fusionGroup.axes['k']!.atom, w.slice(1));
  const lhs = evaluator.value(weight, [channel!, inner!, ...window]);
  const group = delinearize(fusionGroup.axes['batch']!.atom, [dims(node)[0]!, node.attrs.groups])[1]!;
  const from = (of: IndexExpr): IndexExpr => linearize([group, of], [node.attrs.groups, w[1]!]);
  const places = position.map((out, i) =>
    addIndex(scaleIndex(out, strides[i]!), scaleIndex(window[i]!, rhsDilation[i]!)),
  );
  const rhs = paddedInput(node, [batch!, from(inner!)], places, evaluator);
  const all = makeAxis('channel', w[1]!);
  const spatial = position.map((_, i) => {
    const [stride, reach] = [strides[i]!, (w[i + 2]! - 1) * rhsDilation[i]!];
    const size = dims(node)[i + 2]!;
    if (i < position.length - 1) return makeAxis(`place_${i}`, (size - 1) * stride + reach + 1);
    const fours = Math.ceil(size / 4) + Math.ceil(Math.floor(reach / stride) / 4);
    return makeAxis(`place_${i}`, 4 * fours * stride);
  });
  const atoms = spatial.map(({ atom }) => atom);
  const value = paddedInput(node, [batch!, from(all.atom)], atoms, evaluator);
  const image = { channel: all, spatial, value };
  if (!isLaidTapsFirst(weight) || !hasFlatTaps(node)) return { lhs, rhs, image };
  const tap = makeAxis('tap', sizeOf(w.slice(2)));
  const shape = dims(node.inputs[0]!).slice(2);
  const place = makeAxis('place', sizeOf(shape));
  return {
    lhs,
    rhs,
    image,
    flatTaps: {
      channel: all,
      tap,
      place,
      weight: evaluator.value(weight, [channel!, all.atom, ...delinearize(tap.atom, w.slice(2))]),
      input: evaluator.value(node.inputs[0]!, [batch!, all.atom, ...delinearize(place.atom, shape)]),
    },
  };
}

/**
 * A conv's input at an image, a channel and places in the padded, dilated input; only every
 * lhsDilation-th holds an element.
 */
function paddedInput(
  node: NodeOf<'conv'>,
  leading: readonly IndexExpr[],
  places: readonly IndexExpr[],
  evaluator: Evaluator,
): Expr {
  const { pool } = evaluator;
  const { padLow, lhsDilation } = node.attrs;
  const input = node.inputs[0]!;
  const x = dims(input);
  let guard: Guard | 'never' = [];
  const spatial: IndexExpr[] = [];
  for (const [i, place] of places.entries()) {
    const spread = lhsDilation[i]!;
    const index = offsetIndex(place, -padLow[i]!);
    guard = andGuards(guard, within(index, 0, (x[i + 2]! - 1) * spread));
    guard = andGuards(guard, within(modIndex(index, spread), 0, 0));
    // Line indices are clamped to the input, so that reads along a line need no further bounds.
    const isLine = i < places.length - 1;
    spatial.push(isLine ? insideAxis(pool, index, x[i + 2]!, spread) : divIndex(index, spread));
  }
  const zero = pool.constant(0, node.dtype);
  if (guard === 'never') return zero;
  const value = evaluator.value(input, [...leading, ...spatial]);
  if (guard.length === 0) return value;
  return pool.make({ kind: 'select', guard, yes: value, no: zero, dtype: node.dtype });
}

/** Both parts of a transform are made of the same operands. */
function fftBody(fusionGroup: FusionGroup, evaluator: Evaluator): Body {
  const parts = fusionGroup.fusionRoots
    .map((node): FftResult => {
      if (node.op !== 'fftPart') throw new CompilerBug('schedule', `${node.op} is no part of a transform`);
      return { node, part: node.attrs.part };
    })
    .toSorted((x, y) => x.part - y.part);
  const { node } = parts[0]!;
  const [re, im, table] = node.inputs as readonly [Node, Node, Node];
  const at = fusionGroup.members.get(node as Node)!;
  const [line, position, entry] = ['line', 'position', 'entry'].map((name) => fusionGroup.axes[name]!);
  return {
    kind: 'fft',
    node,
    line: line!,
    position: position!,
    entry: entry!,
    re: evaluator.value(re, at),
    im: evaluator.value(im, at),
    table: evaluator.value(table, [entry!.atom]),
    parts,
  };
}

function keysBody(node: Node, fusionGroup: FusionGroup, evaluator: Evaluator): Body {
  const [line, position] = [fusionGroup.axes['line']!, fusionGroup.axes['position']!];
  const key = evaluator.value(node.inputs[0]!, [line.atom, position.atom]);
  if (node.op === 'argSort') return { kind: 'sort', node, line, position, key };
  if (node.op === 'radixRank') return { kind: 'radix-rank', node, line, position, key };
  throw new CompilerBug('schedule', `${node.op} sorts no keys`);
}

function factorBody(node: Node, fusionGroup: FusionGroup, evaluator: Evaluator): Body {
  if (node.op !== 'factor') throw new CompilerBug('schedule', 'not a matrix algorithm');
  const batch = fusionGroup.axes['batch']!;
  const operands = node.inputs.map((input, i) => {
    const [row, column] = [fusionGroup.axes[`row${i}`]!, fusionGroup.axes[`column${i}`]!];
    return { row, column, value: evaluator.value(input, [batch.atom, row.atom, column.atom]) };
  });
  return { kind: 'factor', node, batch, operands };
}

function searchSortedBody(node: Node, fusionGroup: FusionGroup, evaluator: Evaluator): Body {
  if (node.op !== 'searchSorted') throw new CompilerBug('schedule', 'not a search');
  const [axis, element] = [fusionGroup.axes['axis']!, fusionGroup.axes['element']!];
  const at = fusionGroup.members.get(node)!;
  return {
    kind: 'search-sorted',
    node,
    axis,
    element,
    boundary: evaluator.value(node.inputs[0]!, [...at.slice(0, -1), element.atom]),
    value: evaluator.value(node.inputs[1]!, at),
  };
}

function scatterAddAtomicBody(node: Node, fusionGroup: FusionGroup, evaluator: Evaluator): Body {
  if (node.op !== 'scatterAddAtomic') throw new CompilerBug('schedule', 'not an accumulation');
  const { axis, size } = node.attrs;
  const from = fusionGroup.members.get(node)!;
  const { atom, inside } = dynamicAxis(evaluator.pool, evaluator.value(node.inputs[0]!, from), size);
  return {
    kind: 'scatter-add-atomic',
    node,
    axis: fusionGroup.axes['axis']!,
    inside,
    index: linearize(from.with(axis, atom), dims(node)),
    value: evaluator.value(node.inputs[1]!, from),
  };
}

function segmentReduceBody(node: Node, fusionGroup: FusionGroup, evaluator: Evaluator): Body {
  if (node.op !== 'segmentReduce') throw new CompilerBug('schedule', 'not a fold of segments');
  const [operand, starts, order, updates] = node.inputs as readonly [Node, Node, Node, Node];
  const [outer, column, entry] = ['outer', 'column', 'entry'].map((name) => fusionGroup.axes[name]!);
  const { axis } = node.attrs;
  const at = fusionGroup.members.get(node)!;
  const from = evaluator.value(order, at.with(axis, entry!.atom));
  const { atom } = dynamicAxis(evaluator.pool, from, entry!.extent);
  return {
    kind: 'segment-reduce',
    node,
    outer: outer!,
    column: column!,
    entry: entry!,
    operand: evaluator.value(operand, at),
    first: evaluator.value(starts, at),
    last: evaluator.value(starts, at.with(axis, offsetIndex(at[axis]!, 1))),
    update: evaluator.value(updates, at.with(axis, atom)),
  };
}

/** Values are written at indices read from data, which are clamped to the axis. */
export function permuteScatterWrites(
  nodes: Iterable<Node>,
  fusionGroup: FusionGroup,
  evaluator: Evaluator,
): Write[] {
  return Array.from(nodes, (node) => {
    if (node.op !== 'permuteScatter') throw new CompilerBug('schedule', `${node.op} disperses nothing`);
    const { axis } = node.attrs;
    const from = fusionGroup.members.get(node)!;
    const place = evaluator.value(node.inputs[1]!, from);
    const { atom } = dynamicAxis(evaluator.pool, place, dims(node)[axis]!);
    const index = linearize(from.with(axis, atom), dims(node));
    return { node, index, value: evaluator.value(node.inputs[0]!, from) };
  });
}

/** index / spread, kept within an axis; the index itself where its bounds show that it is. */
function insideAxis(pool: ExprPool, index: IndexExpr, size: number, spread: number): IndexExpr {
  const last = (size - 1) * spread;
  const { lo, hi } = interval(index);
  if ((lo >= 0 && hi <= last) || size === 1) return size === 1 ? constantIndex(0) : divIndex(index, spread);
  const i32 = (value: number): Expr => pool.constant(value, 'i32');
  const asked = pool.make({ kind: 'index', index, dtype: 'i32' });
  const clamped = pool.op('min', [pool.op('max', [asked, i32(0)], 'i32'), i32(last)], 'i32');
  const inside = spread === 1 ? clamped : pool.op('div', [clamped, i32(spread)], 'i32');
  for (const [atom, expr] of pool.dynamics) if (expr === inside) return atom;
  const atom = dynamicIndex(`at${pool.dynamics.size}`, 0, size - 1);
  pool.dynamics.set(atom, inside);
  return atom;
}

function scatterBody(node: Node, fusionGroup: FusionGroup, evaluator: Evaluator): Body {
  if (node.op !== 'scatter') throw new CompilerBug('schedule', 'not a scatter');
  const [operand, indices, updates] = node.inputs as readonly [Node, Node, Node];
  const at = fusionGroup.members.get(node)!;
  const { axis, mode } = node.attrs;
  const [line, slot, update] = ['line', 'slot', 'update'].map((name) => fusionGroup.axes[name]!);
  const updateAt = at.map((index, a) => (a === axis ? update!.atom : index));
  let active: Guard | 'never' = [];
  for (const [a, dim] of dims(indices).entries()) {
    if (a !== axis) active = andGuards(active, within(at[a]!, 0, dim - 1));
  }
  const asked = evaluator.value(indices, updateAt);
  const target = asked.dtype === 'i32' ? asked : evaluator.pool.op('cast', [asked], 'i32');
  return {
    kind: 'scatter',
    node,
    line: line!,
    slot: slot!,
    update: update!,
    operand: evaluator.value(operand, at),
    index: linearize(at, dims(node)),
    target,
    value: evaluator.value(updates, updateAt),
    active: active === 'never' ? [{ expr: constantIndex(0), lo: 1, hi: 1 }] : active,
    mode,
  };
}
