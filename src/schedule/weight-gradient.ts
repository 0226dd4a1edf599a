// Gradients of convolutions by their weights are convolutions themselves, with few results and as many taps
// as there are positions. Those by 3 × 3 weights at every position are computed by Winograd's transforms on
// cores of a CPU (codegen/template/contract/cpu/winograd-weights.ts); others become matrix products
// (passes/conv/as-dot.ts).

import { dims, type Node, type NodeOf } from '../ir/graph.ts';
import { packsOperands } from './machine.ts';
import type { Target } from './target.ts';

/** Channels on either side, at least: with fewer, transforms take longer than the products they save. */
const leastChannels = 8;
/** Taps along a line that a workgroup has room for, and those of a tile. */
const mostTaps = 512;
const leastTaps = 4;
/** Bytes of workgroup memory that the smallest block takes. */
const room = 2 ** 20;

/** Whether a convolution is such a gradient: of f32, one group, 3 × 3 results and many taps, without gaps. */
export function isWeightGradient({ dtype, shape, attrs, inputs }: NodeOf<'conv'>): boolean {
  const { groups, strides, lhsDilation, rhsDilation } = attrs;
  const [channels, filters, ...places] = shape as readonly number[];
  const taps = dims(inputs[1] as Node).slice(2);
  return (
    dtype === 'f32' &&
    groups === 1 &&
    [strides, lhsDilation, rhsDilation].every((each) => each.every((one) => one === 1)) &&
    places.length === 2 &&
    places.every((size) => size === 3) &&
    taps.every((size) => size >= leastTaps) &&
    taps[1]! <= mostTaps &&
    Math.min(channels!, filters!) >= leastChannels
  );
}

/** Whether it is computed as one. */
export function staysWeightGradient(node: NodeOf<'conv'>, target: Target): boolean {
  return packsOperands(target) && target.limits.workgroupBytes >= room && isWeightGradient(node);
}
