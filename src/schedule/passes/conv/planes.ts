// A convolution over three axes is one over the last two: what the kernel sees along the first axis are channels of a plane
// more, and its positions along that axis are images more. Cores have ways for two axes that read each element once, and
// transforms that save products.

import { permute, reshape } from '../../../ir/build.ts';
import { isWide } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { packsOperands } from '../../machine.ts';
import type { Target } from '../../target.ts';
import { covered, reachOf } from './as-dot.ts';

/** The convolution of planes, and its results as those of the node. */
export interface Planes {
  readonly conv: NodeOf<'conv'>;
  readonly joined: (results: Node) => Node;
}

/** The convolution of planes; undefined where it is none over three axes, or better left as it is. */
export function convPlanes(
  node: NodeOf<'conv'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Planes | undefined {
  const { strides, padLow, padHigh, lhsDilation, rhsDilation } = node.attrs;
  const [input, weight] = [inputs[0]!, inputs[1]!];
  const isMeant = packsOperands(target) && !isWide(node.dtype) && padLow.length === 3;
  const count = sizeOf(dims(node as Node)) * sizeOf(dims(weight));
  if (!isMeant || count === 0 || lhsDilation[0] !== 1) return undefined;
  const [images, outputs, depth, ...places] = dims(node as Node) as [number, number, number, ...number[]];
  const [, channels, taps, ...plane] = dims(weight) as [number, number, number, ...number[]];
  const [, all, , ...lines] = dims(input) as [number, number, number, ...number[]];
  const whole = covered(b, input, 2, reachOf(node, 0, depth, taps), padLow[0]!);
  // [N, C, depth, H, W, taps]: each position along the first axis with what it sees.
  const windows = b.add('window', [whole], {
    axis: 2,
    size: taps,
    stride: strides[0]!,
    dilation: rhsDilation[0]!,
  }) as Node;
  const planes = reshape(b, permute(b, windows, [0, 2, 1, 5, 3, 4]), [images * depth, all * taps, ...lines]);
  const flat = reshape(b, weight, [outputs, channels * taps, ...plane]);
  const attrs = {
    ...node.attrs,
    strides: strides.slice(1),
    padLow: padLow.slice(1),
    padHigh: padHigh.slice(1),
    lhsDilation: lhsDilation.slice(1),
    rhsDilation: rhsDilation.slice(1),
  };
  const conv = b.add('conv', [planes, flat], attrs) as NodeOf<'conv'>;
  const joined = (results: Node): Node =>
    permute(b, reshape(b, results, [images, depth, outputs, ...places]), [0, 2, 1, 3, 4]);
  return { conv, joined };
}
