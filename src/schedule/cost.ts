// Arithmetic and bytes of nodes, which do not depend on a machine, and the time a target would take
// for them.

import { dtypeBytes } from '../ir/dtype.ts';
import { factorRow, type Size } from '../ir/factor.ts';
import { graphOf } from '../ir/text/region.ts';
import { dims, nodeBytes, topological, type Node } from '../ir/graph.ts';
import { facts, isElementwise } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';
import type { Body, Kernel } from './kernel.ts';
import type { Target } from './target.ts';

/** Arithmetic of one node. */
export function nodeFlops(node: Node): number {
  const size = sizeOf(dims(node));
  switch (node.op) {
    case 'dot': {
      const { lhsContract } = node.attrs;
      return 2 * size * sizeOf(lhsContract.map((axis) => dims(node.inputs[0]!)[axis]!));
    }
    case 'fftPart':
      // Half of the 5·n·log₂ n that both parts take (Cooley and Tukey's count).
      return Math.ceil(2.5 * size * Math.log2(dims(node).at(-1)! + 1));
    case 'conv':
      return 2 * size * sizeOf(dims(node.inputs[1]!).slice(1));
    case 'reduce':
    case 'argReduce':
      return facts(node.op).flops * sizeOf(dims(node.inputs[0]!));
    case 'factor': {
      const sizes = node.inputs.map((input) => dims(input).slice(1) as unknown as Size);
      return dims(node)[0]! * factorRow(node.attrs.kind).flops(...sizes);
    }
    case 'iterate': {
      const { trips, body, guard } = node.attrs;
      // How many iterations a guard lets through is not known: one is counted.
      return (
        (guard < 0 ? trips : Math.min(1, trips)) *
        topological(graphOf(body).outputs).reduce((sum, inside) => sum + nodeFlops(inside), 0)
      );
    }
    case 'scatter':
    case 'segmentReduce':
    case 'scatterAddAtomic':
      return facts(node.op).flops * sizeOf(dims(node.inputs.at(-1)!));
    default:
      return facts(node.op).flops * size;
  }
}

/** Arithmetic of the nodes of a kernel. What a gather looks up is computed for its results alone. */
export function kernelFlops(nodes: readonly Node[]): number {
  const inside = new Set(nodes);
  /** Elements that the readers of a node look at. */
  const asked = new Map<Node, number>();
  let flops = 0;
  for (const node of [...nodes].sort((a, b) => b.id - a.id)) {
    const size = sizeOf(dims(node));
    const count = Math.min(size, asked.get(node) ?? size);
    if (size > 0) flops += nodeFlops(node) * (count / size);
    node.inputs.forEach((input, i) => {
      if (!inside.has(input)) return;
      const before = asked.get(input) ?? 0;
      if (node.op === 'gather' && i === 0) asked.set(input, before + count);
      else asked.set(input, Math.max(before, looksThrough(node) ? count : sizeOf(dims(input))));
    });
  }
  return Math.round(flops);
}

/** Whether each element is made of one element of every input, or of none. */
function looksThrough({ op }: Node): boolean {
  return isElementwise(op) || op === 'reshape' || op === 'permute' || op === 'broadcast';
}

/**
 * The stored tensor that a scatter copies, if there is one: if the result is written over it, only
 * the updates are moved.
 */
export function scatteredInto(body: Body & { readonly kind: 'scatter' }): Node | undefined {
  const { operand, index } = body;
  return operand.kind === 'read' && operand.index === index ? operand.node : undefined;
}

/** The kernel with the bytes that it moves where results are written over what they are made of. */
export function withMovedBytes(kernel: Kernel, overwrites: ReadonlyMap<Node, Node>): Kernel {
  const { body, bytes } = kernel;
  if (body.kind !== 'scatter') return kernel;
  const over = overwrites.get(body.node as Node);
  if (over === undefined || over !== scatteredInto(body)) return kernel;
  const updates = body.line.extent * body.update.extent * dtypeBytes(body.node.dtype);
  const moved = body.mode === 'set' ? updates : 2 * updates;
  return { ...kernel, bytes: bytes - 2 * nodeBytes(over) + Math.min(moved, 2 * nodeBytes(over)) };
}

/** The resource that bounds a kernel's time, by the roofline model. */
export type RooflineBound = 'launch' | 'bandwidth' | 'arithmetic';

/**
 * µs that a dispatch takes at least (Williams et al., roofline): the launch, and then whichever of
 * traffic and arithmetic is longer.
 */
export function modelledTime(
  { flops, bytes }: { readonly flops: number; readonly bytes: number },
  target: Target,
): { readonly time: number; readonly bound: RooflineBound } {
  const traffic = bytes / target.bandwidth;
  const arithmetic = flops / target.arithmetic;
  const longer = Math.max(traffic, arithmetic);
  const bound = longer < target.launch ? 'launch' : traffic >= arithmetic ? 'bandwidth' : 'arithmetic';
  return { time: target.launch + longer, bound };
}
