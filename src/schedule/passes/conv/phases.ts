// A convolution over an input with gaps between its elements, such as the gradient of a strided convolution
// with respect to its input. Neighbouring results use different taps, but results that are as far apart as
// the elements use the same ones. Each such phase is a dense convolution with every n-th tap, and the results
// of the phases are interleaved. So no product is with the zeros between elements (the sub-pixel convolution
// of Shi et al., 2016).

import { full, reshape, slice } from '../../../ir/build.ts';
import { isWide } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { packsOperands } from '../../machine.ts';
import type { Target } from '../../target.ts';

/** Products for each result, at least: with fewer, interleaving takes the time. */
const leastTerms = 64;

/** One axis of a phase: its taps are `first`, `first + gap`, … and its input begins `low` elements early. */
interface Phase {
  readonly first: number;
  readonly taps: number;
  readonly low: number;
}

/** The convolution as interleaved dense ones; undefined where it is better left as it is. */
export function convByPhases(
  node: NodeOf<'conv'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node | undefined {
  const { strides, padLow, lhsDilation, rhsDilation } = node.attrs;
  const [input, weight] = [inputs[0]!, inputs[1]!];
  const shape = dims(node as Node);
  const [channels, ...taps] = dims(weight).slice(1) as [number, ...number[]];
  const [images, outputs, ...places] = shape as [number, number, ...number[]];
  const isPlain = lhsDilation.every((gap, i) => gap === 1 || (strides[i] === 1 && rhsDilation[i] === 1));
  const isSpread = lhsDilation.some((gap) => gap > 1);
  if (!packsOperands(target) || isWide(node.dtype) || !isPlain || !isSpread) return undefined;
  if (sizeOf(shape) === 0 || sizeOf(dims(input)) === 0 || channels * sizeOf(taps) < leastTerms)
    return undefined;
  const counts = places.map((size, i) => (lhsDilation[i] === 1 ? size : Math.ceil(size / lhsDilation[i]!)));

  const phase = (number: number, i: number): Phase => {
    const gap = lhsDilation[i]!;
    if (gap === 1) return { first: 0, taps: taps[i]!, low: padLow[i]! };
    const first = (((padLow[i]! - number) % gap) + gap) % gap;
    return {
      first,
      taps: Math.max(0, Math.ceil((taps[i]! - first) / gap)),
      low: (padLow[i]! - number - first) / gap,
    };
  };
  const dense = (phases: readonly Phase[]): Node => {
    if (phases.some((each) => each.taps === 0)) return full(b, [images, outputs, ...counts], 0, node.dtype);
    const part = slice(
      b,
      weight,
      [0, 0, ...phases.map(({ first }) => first)],
      [...dims(weight).slice(0, 2), ...phases.map((each) => each.taps)],
      [1, 1, ...lhsDilation],
    );
    const padHigh = phases.map((each, i) => {
      const reach = (counts[i]! - 1) * strides[i]! + (each.taps - 1) * rhsDilation[i]! + 1;
      return reach - each.low - dims(input)[i + 2]!;
    });
    const attrs = {
      ...node.attrs,
      padLow: phases.map(({ low }) => low),
      padHigh,
      lhsDilation: lhsDilation.map(() => 1),
    };
    return b.add('conv', [input, part], attrs) as Node;
  };
  // [images, outputs, count, 1, count, 1, …], joined along the axes of one element from the last on.
  const joined = (i: number, phases: readonly Phase[]): Node => {
    if (i === places.length)
      return reshape(b, dense(phases), [images, outputs, ...counts.flatMap((n) => [n, 1])]);
    const parts = Array.from({ length: lhsDilation[i]! }, (_, number) =>
      joined(i + 1, [...phases, phase(number, i)]),
    );
    return parts.length === 1 ? parts[0]! : (b.add('concat', parts, { axis: 3 + 2 * i }) as Node);
  };
  const whole = reshape(b, joined(0, []), [images, outputs, ...counts.map((n, i) => n * lhsDilation[i]!)]);
  return slice(
    b,
    whole,
    shape.map(() => 0),
    shape,
  );
}
