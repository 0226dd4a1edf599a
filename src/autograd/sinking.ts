// Moves sums over the iterations of a loop behind the loop. What an iteration adds to the cotangent of an
// invariant is mostly a product (of a weight) or a sum (of a bias). The loop stacks the operands instead of
// adding in every iteration, and one product then sums over all iterations at once.

import { reduce } from '../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import { sizeOf } from '../ir/shape.ts';

/** A term of a sum over iterations: `chain` of the sum of `source` over all iterations. */
export interface Sunk {
  readonly source: NodeOf<'dot'> | NodeOf<'reduce'>;
  /** Views that lead from the source to the term, the last first. */
  readonly chain: readonly Node[];
}

/** The terms of what an iteration adds: those that are summed behind the loop, and the rest. */
export function termsOf(
  added: Node,
  isTurning: (node: Node) => boolean,
): { readonly sunk: readonly Sunk[]; readonly rest: readonly Node[] } {
  const sunk: Sunk[] = [];
  const rest: Node[] = [];
  const visit = (term: Node): void => {
    if (term.op === 'add') {
      term.inputs.forEach(visit);
      return;
    }
    const found = sourceOf(term, isTurning);
    if (found === undefined) rest.push(term);
    else sunk.push(found);
  };
  visit(added);
  return { sunk, rest };
}

function sourceOf(term: Node, isTurning: (node: Node) => boolean): Sunk | undefined {
  const chain: Node[] = [];
  let at = term;
  while (at.op === 'reshape' || at.op === 'permute') {
    chain.push(at);
    at = at.inputs[0]!;
  }
  const isSum = at.op === 'dot' || (at.op === 'reduce' && at.attrs.monoid === 'sum');
  if (!isSum || !at.inputs.every(isTurning)) return undefined;
  // Operands that are larger than what they give twice over are better summed iteration by iteration.
  const taken = at.inputs.reduce((sum, input) => sum + sizeOf(dims(input)), 0);
  if (at.op === 'dot' && taken > 2 * sizeOf(dims(at))) return undefined;
  return { source: at as Sunk['source'], chain };
}

/** The sum over all iterations, from the stacks of the source's operands. */
export function sumOfTurns(b: GraphBuilder, { source, chain }: Sunk, stacks: readonly Node[]): Node {
  const moved = (axes: readonly number[]): number[] => axes.map((axis) => axis + 1);
  let sum: Node;
  if (source.op === 'dot') {
    const { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype } = source.attrs as NodeOf<'dot'>['attrs'];
    sum = b.add('dot', stacks, {
      lhsBatch: moved(lhsBatch),
      rhsBatch: moved(rhsBatch),
      lhsContract: [0, ...moved(lhsContract)],
      rhsContract: [0, ...moved(rhsContract)],
      dtype,
    }) as Node;
  } else {
    const { axes } = source.attrs as NodeOf<'reduce'>['attrs'];
    sum = reduce(b, 'sum', stacks[0]!, [0, ...moved(axes)]);
  }
  return chain.toReversed().reduce((value, view) => b.copy(view, [value]), sum);
}
