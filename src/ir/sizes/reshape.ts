// Reshapes values whose sizes are known only at run time. If the axes of the result consist of whole factors
// of the operand's axes, the capacities are reshaped like the sizes, and nothing moves. Otherwise every
// element is gathered: its position among the valid elements is the same before and after.

import { broadcast, mul, reshape } from '../build.ts';
import { dims, type Node } from '../graph.ts';
import { capacityOf, prefixAxis, type SizeAxis, type Factor } from './layout.ts';
import type { SizeLowering, SizedNode } from './lowering.ts';
import { isVarying, type Num } from './size.ts';

/** The value in another shape of the same number of elements. */
export function reshaped(ctx: SizeLowering, x: SizedNode, shape: readonly Num[]): SizedNode {
  const axes = regrouped(ctx, x.axes, shape);
  if (axes !== undefined) return { node: reshape(ctx.b, x.node, axes.map(capacityOf)), axes };
  return gatheredAs(ctx, x, shape);
}

/** A factor, and whether all elements along its axis are the same. */
interface Piece {
  readonly factor: Factor;
  readonly uniform: boolean;
}

/** The axes of the result made of factors of the operand's axes; undefined where that cannot be. */
function regrouped(
  { sizes }: SizeLowering,
  from: readonly SizeAxis[],
  shape: readonly Num[],
): readonly SizeAxis[] | undefined {
  const queue = mergedPieces(from);
  const axes: SizeAxis[] = [];
  for (const size of shape) {
    const taken: Piece[] = [];
    let rest = size;
    while (rest !== 1) {
      const piece = queue.shift();
      if (piece === undefined) return undefined;
      const after = sizes.quotient(rest, piece.factor.size);
      if (after !== undefined) {
        taken.push(piece);
        rest = after;
        continue;
      }
      const inner = sizes.quotient(piece.factor.size, rest);
      const { capacity } = piece.factor;
      // The inner part has to be fixed: of an outer one whole blocks are left out at the end.
      if (typeof inner !== 'number' || capacity % inner !== 0) return undefined;
      if (!isVarying(rest) && capacity / inner !== rest) return undefined;
      taken.push({ ...piece, factor: { size: rest, capacity: capacity / inner } });
      queue.unshift({ ...piece, factor: { size: inner, capacity: inner } });
      rest = 1;
    }
    axes.push({
      factors: taken.map(({ factor }) => factor),
      uniform: taken.length > 0 && taken.every(({ uniform }) => uniform),
    });
  }
  return queue.length === 0 ? axes : undefined;
}

/** The factors of axes in order, neighbouring fixed ones as one. */
function mergedPieces(axes: readonly SizeAxis[]): Piece[] {
  const pieces: Piece[] = [];
  for (const { factors, uniform } of axes) {
    for (const factor of factors) {
      const before = pieces.at(-1);
      const { size } = factor;
      if (before === undefined || isVarying(size) || isVarying(before.factor.size)) {
        pieces.push({ factor, uniform });
        continue;
      }
      const product = before.factor.capacity * factor.capacity;
      pieces[pieces.length - 1] = {
        factor: { size: product, capacity: product },
        uniform: uniform && before.uniform,
      };
    }
  }
  return pieces;
}

/** Every element of the result from its place in the operand; axes begin with the elements that count. */
function gatheredAs(ctx: SizeLowering, x: SizedNode, shape: readonly Num[]): SizedNode {
  const { b } = ctx;
  const axes = shape.map((size) => prefixAxis(size, ctx.capacity(size)));
  const to = axes.map(capacityOf);
  const total = to.reduce((product, size) => product * size, 1);
  const place = ctx.fromTrue(
    reshape(b, trueIndex(ctx, shape, to), [total]),
    x.axes.flatMap(({ factors }) => factors),
  );
  const capacity = dims(x.node).reduce((product, size) => product * size, 1);
  const line = reshape(b, x.node, [capacity]);
  const node = b.add('gather', [line, place], { axis: 0 }) as Node;
  return { node: reshape(b, node, to), axes };
}

/** For each element its place among those that count. */
function trueIndex(ctx: SizeLowering, shape: readonly Num[], to: readonly number[]): Node {
  const { b, sizes } = ctx;
  let index: Node | undefined;
  shape.forEach((size, axis) => {
    if (size === 1) return;
    const stride = sizes.total(shape.slice(axis + 1));
    const own = ctx.count(to, axis);
    const term = stride === 1 ? own : mul(b, own, broadcast(b, ctx.whole(stride), to));
    index = index === undefined ? term : (b.add('add', [index, term], {}) as Node);
  });
  return index ?? ctx.filled(0, to, 'i32');
}
