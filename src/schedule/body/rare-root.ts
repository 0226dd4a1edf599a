// Bodies of the kernels of rare operations.

import { CompilerBug } from '../../errors.ts';
import { dims, type Node } from '../../ir/graph.ts';
import {
  andGuards,
  constantIndex,
  linearize,
  offsetIndex,
  within,
  type Guard,
} from '../../ir/index-algebra/expr.ts';
import { dynamicAxis, type Evaluator } from '../expression/evaluate.ts';
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
