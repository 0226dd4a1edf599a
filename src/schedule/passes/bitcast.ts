// Bits of 16-bit floats. Kernels hold such floats as f32 in registers, so reading their bits, or
// making floats of bits, is arithmetic on the bits of f32.

import { add, binary, cast, full, mul, where } from '../../ir/build.ts';
import { dtypeBytes, isFloat } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';

/** A bitcast from or to a 16-bit float without one; undefined for every other node. */
export function shortBitcast(node: Node, [x]: readonly Node[], b: GraphBuilder): Node | undefined {
  if (node.op !== 'bitcast' || x === undefined || dtypeBytes(node.dtype) !== 2) return undefined;
  if (!isFloat(node.dtype) && !isFloat(x.dtype)) return undefined;
  const bits = shortBits(b, x);
  if (node.dtype === 'f16') return halfOf(b, bits);
  if (node.dtype === 'bf16') return cast(b, reinterpret(b, binary(b, 'shl', bits, 16), 'f32'), 'bf16');
  return cast(b, bits, node.dtype);
}

/** Bits of 16-bit elements, as u32. */
export function shortBits(b: GraphBuilder, x: Node): Node {
  if (!isFloat(x.dtype)) return binary(b, 'and', cast(b, x, 'u32'), 0xffff);
  const wide = reinterpret(b, cast(b, x, 'f32'), 'u32');
  if (x.dtype === 'bf16') return binary(b, 'shr', wide, 16);
  const size = binary(b, 'and', wide, 0x7fffffff);
  const normal = binary(b, 'shr', binary(b, 'sub', size, 0x38000000), 13);
  const subnormal = cast(b, mul(b, reinterpret(b, size, 'f32'), 2 ** 24), 'u32');
  const special = binary(b, 'or', binary(b, 'and', binary(b, 'shr', size, 13), 0x3ff), 0x7c00);
  const sign = binary(b, 'and', binary(b, 'shr', wide, 16), 0x8000);
  return binary(b, 'or', choose(b, size, [0x38800000, 0x7f800000], [subnormal, normal, special]), sign);
}

/** The f16 that has these bits. */
function halfOf(b: GraphBuilder, bits: Node): Node {
  const size = binary(b, 'and', bits, 0x7fff);
  const moved = binary(b, 'shl', size, 13);
  const subnormal = reinterpret(b, mul(b, cast(b, size, 'f32'), 2 ** -24), 'u32');
  const normal = add(b, moved, 0x38000000);
  const special = binary(b, 'or', moved, 0x7f800000);
  const sign = binary(b, 'shl', binary(b, 'and', bits, 0x8000), 16);
  const wide = binary(b, 'or', choose(b, size, [0x400, 0x7c00], [subnormal, normal, special]), sign);
  return cast(b, reinterpret(b, wide, 'f32'), 'f16');
}

/** One value below the first bound, another below the second, a third from there on. */
function choose(
  b: GraphBuilder,
  x: Node,
  bounds: readonly [number, number],
  [low, middle, high]: readonly [Node, Node, Node],
): Node {
  const below = (bound: number): Node => binary(b, 'lt', x, full(b, dims(x), bound, x.dtype));
  return where(b, below(bounds[0]), low, where(b, below(bounds[1]), middle, high));
}

function reinterpret(b: GraphBuilder, x: Node, dtype: 'f32' | 'u32'): Node {
  return b.add('bitcast', [x], { dtype }) as Node;
}
