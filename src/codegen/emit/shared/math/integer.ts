// Products of integers by halves, for what WebAssembly has no instruction for, and signs of numbers of all types.

import type { Value } from '../../../loop/loop.ts';
import type { Terms } from './terms.ts';

/** The upper half of a product of unsigned integers. */
export function highProduct(m: Terms, a: Value, b: Value): Value {
  const half = a.type === 'u64' ? 32 : 16;
  const mask = 2 ** half - 1;
  const [al, ah] = [m.and(a, mask), m.shr(a, half)];
  const [bl, bh] = [m.and(b, mask), m.shr(b, half)];
  const first = m.add(m.mul(ah, bl), m.shr(m.mul(al, bl), half));
  const second = m.add(m.mul(al, bh), m.and(first, mask));
  return m.add(m.add(m.mul(ah, bh), m.shr(first, half)), m.shr(second, half));
}

/**
 * The upper half of a product of 64 bits: a negative factor counts 2⁶⁴ too much in the unsigned
 * product.
 */
export function mulhi(m: Terms, a: Value, b: Value): Value {
  if (a.type === 'u64') return highProduct(m, a, b);
  const unsigned = (x: Value): Value => m.op('bitcast', [x], 'u64');
  const product = m.op('bitcast', [highProduct(m, unsigned(a), unsigned(b))], 'i64');
  const excess = (x: Value, y: Value): Value => m.where(m.lt(x, 0), y, m.constant(0, 'i64'));
  return m.sub(m.sub(product, excess(a, b)), excess(b, a));
}

/** ±0 and NaN give 0. */
export function sign(m: Terms, x: Value): Value {
  if (x.type === 'u32' || x.type === 'u64') return m.min(x, 1);
  if (x.type === 'i32' || x.type === 'i64') return m.max(m.min(x, 1), -1);
  return m.where(m.lt(0, x), 1, m.where(m.lt(x, 0), -1, 0));
}
