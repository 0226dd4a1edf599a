// Bodies of the kernels of rare operations, and their iteration domains.

import { CompilerBug } from '../../errors.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import {
  andGuards,
  constantIndex,
  delinearize,
  linearize,
  offsetIndex,
  within,
  type Guard,
} from '../../ir/index-algebra/expr.ts';
import { sizeOf } from '../../ir/shape.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import { dynamicAxis } from '../expression/select.ts';
import {
  makeAxis,
  spreadAlong,
  type IterationDomain,
  type OwnLoops,
  type RareRoot,
} from '../fusion/domain.ts';
import type { FusionGroup } from '../fusion/place.ts';
import type { Axis, Body, FftResult, Write } from '../kernel.ts';

/** The body of the kernel of a rare operation. */
export function rareRootBody(fusionGroup: FusionGroup, evaluator: Evaluator): Body {
  const axis = (name: string): Axis => fusionGroup.axes[name]!;
  const fusionRoot = fusionGroup.fusionRoots[0]!;
  switch (fusionGroup.kind) {
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
    case 'permute-scatter':
      return { kind: 'map', axis: axis('axis') };
    case 'collective':
    case 'iterate':
      throw new CompilerBug('schedule', `${fusionGroup.kind} has a kernel without expressions`);
    case 'row-reduction':
    case 'dot':
    case 'conv':
    case 'attention':
      throw new CompilerBug('schedule', `${fusionGroup.kind} is no rare operation`);
    default:
      return fusionGroup.kind satisfies never;
  }
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

/** The loops that a rare operation opens. */
export function rareOwnLoops(root: RareRoot): OwnLoops {
  const node: Node = root;
  switch (root.op) {
    case 'scan':
      return { kind: 'scan', domain: lineDomain(node, root.attrs.axis, 'pos') };
    case 'fftPart':
      return { kind: 'fft', domain: fftDomain(node) };
    case 'argSort':
      return { kind: 'sort', domain: lineDomain(node, root.attrs.axis, 'pos') };
    case 'radixRank':
      return { kind: 'radix-rank', domain: radixRankDomain(node) };
    case 'scatter':
      return { kind: 'scatter', domain: scatterDomain(root) };
    case 'scatterAddAtomic':
      return { kind: 'scatter-add-atomic', domain: scatterAddAtomicDomain(node) };
    case 'jacobiRows':
      return { kind: 'jacobi-rows', domain: rowsDomain(node) };
    case 'completeRows':
      return { kind: 'complete-rows', domain: rowsDomain(node) };
    case 'searchSorted':
      return { kind: 'search-sorted', domain: searchSortedDomain(node) };
    case 'segmentReduce':
      return { kind: 'segment-reduce', domain: segmentReduceDomain(root) };
    case 'factor':
      return { kind: 'factor', domain: factorDomain(node) };
    default:
      return root satisfies never;
  }
}

/** One axis walked in order (`name`), and lines over all others. */
function lineDomain(node: Node, along: number, name: string): IterationDomain {
  const shape = dims(node);
  const rest = shape.filter((_, axis) => axis !== along);
  const line = makeAxis('line', sizeOf(rest));
  const position = makeAxis(name, shape[along]!);
  const outer = delinearize(line.atom, rest);
  let o = 0;
  const at = shape.map((_, axis) => (axis === along ? position.atom : outer[o++]!));
  return { axes: { line, position }, at };
}

/** Points of lines, and elements of the table of constants. */
function fftDomain(node: Node): IterationDomain {
  const { axes, at } = lineDomain(node, node.shape.length - 1, 'pos');
  return { axes: { ...axes, entry: makeAxis('entry', dims(node.inputs[2]!)[0]!) }, at };
}

/**
 * The keys of a `radixRank`: positions along lines. Its result has other axes, so no point of it
 * has an index here.
 */
function radixRankDomain(node: Node): IterationDomain {
  return { axes: lineDomain(node.inputs[0]!, 1, 'pos').axes, at: [] };
}

/**
 * The matrices of a matrix algorithm, and rows and columns of each operand. Elements of the result
 * are done in an order of their own, so no point has an index here.
 */
function factorDomain(node: Node): IterationDomain {
  const batch = makeAxis('batch', dims(node)[0]!);
  const operands = node.inputs.flatMap((input, i) => {
    const [, rows, columns] = dims(input) as [number, number, number];
    return [
      [`row${i}`, makeAxis(`row${i}`, rows)],
      [`column${i}`, makeAxis(`col${i}`, columns)],
    ] as const;
  });
  return { axes: { batch, ...Object.fromEntries(operands) }, at: [] };
}

/** All updates of an atomic scatter-add, by flat index; `at` is their index in the updates. */
function scatterAddAtomicDomain(node: Node): IterationDomain {
  const shape = dims(node.inputs[1]!);
  const axis = makeAxis('i', sizeOf(shape));
  return { axes: { axis }, at: delinearize(axis.atom, shape) };
}

/** All values that are searched for, by flat index, and the boundaries of a line. */
function searchSortedDomain(node: Node): IterationDomain {
  const axis = makeAxis('i', sizeOf(dims(node)));
  const element = makeAxis('el', dims(node.inputs[0]!).at(-1)!);
  return { axes: { axis, element }, at: delinearize(axis.atom, dims(node)) };
}

/**
 * The slots of a scatter by outer and inner axes, and the entries of their segments. Inner axes
 * (`column`) are those after the slots along which segments and order do not differ: neighbours
 * there share a walk.
 */
function segmentReduceDomain(node: NodeOf<'segmentReduce'>): IterationDomain {
  const shape = dims(node as Node);
  const { axis } = node.attrs;
  const [, starts, order] = node.inputs as readonly [Node, Node, Node, Node];
  const isShared = (_: number, i: number): boolean =>
    [starts, order].every((each) => spreadAlong(each, axis + 1 + i));
  const inner = shape.slice(axis + 1).every(isShared) ? shape.slice(axis + 1) : [];
  const outer = shape.slice(0, shape.length - inner.length);
  const rows = makeAxis('outer', sizeOf(outer));
  const column = makeAxis('col', sizeOf(inner));
  const entry = makeAxis('entry', dims(order)[axis]!);
  return {
    axes: { outer: rows, column, entry },
    at: [...delinearize(rows.atom, outer), ...delinearize(column.atom, inner)],
  };
}

/** The elements of rows that are rotated or completed; no point of the result has an index here. */
function rowsDomain(node: Node): IterationDomain {
  const [matrix, row, column] = dims(node) as [number, number, number];
  const axes = {
    matrix: makeAxis('matrix', matrix),
    row: makeAxis('row', row),
    column: makeAxis('col', column),
  };
  return { axes, at: [] };
}

/** Lines with slots that updates go to, and the updates of a line. */
function scatterDomain(node: NodeOf<'scatter'>): IterationDomain {
  const { axis } = node.attrs;
  const { axes, at } = lineDomain(node as Node, axis, 'slot');
  const update = makeAxis('upd', dims(node.inputs[1]!)[axis]!);
  return { axes: { line: axes['line']!, slot: axes['position']!, update }, at };
}
