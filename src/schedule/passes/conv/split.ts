// Convolutions become what one kernel, or a few, compute faster.

import { permute, reduce, reshape } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import type { Target } from '../../target.ts';
import { bestSplit, wide } from '../split-contraction.ts';
import { convAsDot } from './as-dot.ts';
import { convByPhases } from './phases.ts';
import { convPlanes } from './planes.ts';
import { convTapsFirst } from './taps-first.ts';

/** The convolution in another form; undefined where it is better left as it is. */
export function splitConv(
  node: NodeOf<'conv'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node | undefined {
  const planes = convPlanes(node, inputs, b, target);
  if (planes !== undefined) {
    const { conv, joined } = planes;
    return joined(splitConv(conv, conv.inputs, b, target) ?? (conv as Node));
  }
  return (
    convAsDot(node, inputs, b, target) ??
    convByPhases(node, inputs, b, target) ??
    splitChannels(node, inputs, b, target) ??
    convTapsFirst(node, inputs, b, target)
  );
}

/** The channels that a convolution sums over in parts, which become groups, and whose results are added. */
function splitChannels(
  node: NodeOf<'conv'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node | undefined {
  const [input, weight] = [inputs[0]!, inputs[1]!];
  const { groups } = node.attrs;
  const [outputs, channels, ...kernel] = dims(weight) as [number, number, ...number[]];
  // Partial sums in 16-bit floats would be rounded before they are added.
  if (node.dtype !== wide(node.dtype)) return undefined;
  const terms = channels * sizeOf(kernel);
  const split = bestSplit(node as Node, terms, [{ size: channels, isRow: false }], target);
  if (split === undefined) return undefined;
  const { parts } = split;
  const each = outputs / groups;
  const cut = reshape(b, weight, [groups, each, parts, channels / parts, ...kernel]);
  const order = [0, 2, 1, 3, ...kernel.map((_, i) => i + 4)];
  const grouped = reshape(b, permute(b, cut, order), [groups * parts * each, channels / parts, ...kernel]);
  const partial = b.add('conv', [input, grouped], { ...node.attrs, groups: groups * parts }) as Node;
  const [images, , ...places] = dims(partial) as [number, number, ...number[]];
  const sum = reduce(b, 'sum', reshape(b, partial, [images, groups, parts, each, ...places]), [2]);
  return reshape(b, sum, dims(node as Node));
}
