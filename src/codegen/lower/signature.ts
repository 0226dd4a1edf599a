// What a kernel computes, as a text: kernels with equal signatures lower to equal Loops. The layers of a model mostly repeat,
// so most kernels need to be lowered and spelled only once.

import { CompilerBug } from '../../errors.ts';
import type { Node } from '../../ir/graph.ts';
import { printGuard } from '../../ir/index-algebra/expr.ts';
import { showType } from '../../ir/infer.ts';
import type { Axis, Body, Kernel, RowStage } from '../../schedule/kernel.ts';
import type { Bound } from '../template/shared/frame.ts';

/** Equal for kernels that differ at most in their names and in the nodes behind their bindings. */
export function signatureOf(kernel: Kernel, bound: readonly Bound[]): string {
  const names = new Map<Node, string>();
  for (const { name, nodes } of bound) nodes.forEach((node, i) => names.set(node, `${name}.${i}`));
  // Anchors that are not stored are numbered as they come.
  const nameOf = (node: Node): string => {
    const known = names.get(node);
    if (known !== undefined) return known;
    const name = `n${names.size}`;
    names.set(node, name);
    return name;
  };
  const buffers = bound.map(
    ({ access, nodes }) => `${access} ${nodes.map((node) => showType(node)).join(' ')}`,
  );
  const writes = kernel.writes.map(
    ({ node, index, value, isPart = false }) => `${nameOf(node)}[${index.id}]=${value.id} ${isPart}`,
  );
  const body = bodyKey(kernel.body, nameOf);
  return [kernel.kind, ...body, ...buffers, ...writes, kernel.flops, kernel.pool.signature(nameOf)].join('|');
}

function axisKey({ atom, extent }: Axis): string {
  return `${atom.id}/${extent}`;
}

function stageKey(stage: RowStage, nameOf: (node: Node) => string): string {
  const { node, monoid, arg, value, pass, dtype } = stage;
  return `${nameOf(node as Node)} ${monoid} ${arg} ${value.id} ${pass} ${dtype}`;
}

function bodyKey(body: Body, nameOf: (node: Node) => string): readonly (string | number | boolean)[] {
  switch (body.kind) {
    case 'batched-dispatch':
      throw new CompilerBug('signature', 'kernels in one dispatch are told apart by their parts');
    case 'map':
      return [axisKey(body.axis)];
    case 'row-reduction': {
      const stages = body.stages.map((stage) => stageKey(stage, nameOf));
      return [axisKey(body.row), axisKey(body.column), ...stages];
    }
    case 'contract': {
      const axes = [body.batch, body.m, body.n, body.k].map(axisKey);
      return [
        nameOf(body.node),
        body.node.dtype,
        ...axes,
        body.lhs.id,
        body.rhs.id,
        body.image?.value.id ?? '',
      ];
    }
    case 'attention': {
      const axes = [body.batch, body.row, body.key].map(axisKey);
      const inners = body.inners.map(
        ({ node, depth, ofRow, ofKey }) =>
          `${nameOf(node as Node)} ${node.dtype} ${axisKey(depth)} ${ofRow.id} ${ofKey.id}`,
      );
      const outers = body.outers.map(
        ({ node, column, weight, value, pass }) =>
          `${nameOf(node as Node)} ${node.dtype} ${axisKey(column)} ${weight.id} ${value.id} ${pass}`,
      );
      return [...axes, ...inners, ...body.stages.map((stage) => stageKey(stage, nameOf)), ...outers];
    }
    case 'scan': {
      const { node, line, position, value, monoid, reverse, exclusive } = body;
      return [
        nameOf(node as Node),
        node.dtype,
        axisKey(line),
        axisKey(position),
        value.id,
        monoid,
        reverse,
        exclusive,
      ];
    }
    case 'scatter': {
      const { node, line, slot, update, operand, index, target, value, active, mode } = body;
      const axes = [line, slot, update].map(axisKey);
      return [
        nameOf(node as Node),
        ...axes,
        operand.id,
        index.id,
        target.id,
        value.id,
        printGuard(active),
        mode,
      ];
    }
    case 'sort':
    case 'radix-rank': {
      const { node, line, position, key } = body;
      const radix = node.op === 'radixRank' ? [node.attrs.shift, node.attrs.digits, node.attrs.block] : [];
      return [nameOf(node as Node), axisKey(line), axisKey(position), key.id, ...radix];
    }
    case 'search-sorted': {
      const { node, axis, element, boundary, value } = body;
      const keys = [axisKey(axis), axisKey(element), boundary.id, value.id];
      return [nameOf(node as Node), ...keys, node.attrs.right];
    }
    case 'scatter-add-atomic': {
      const { node, axis, inside, index, value } = body;
      return [nameOf(node as Node), axisKey(axis), inside.id, index.id, value.id];
    }
    case 'segment-reduce': {
      const { node, outer, column, entry, operand, first, last, update } = body;
      const parts = [operand, first, last, update].map(({ id }) => id);
      return [nameOf(node as Node), ...[outer, column, entry].map(axisKey), ...parts, node.attrs.mode];
    }
    default:
      return body satisfies never;
  }
}
