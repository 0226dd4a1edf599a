// The identities of conversions and roundings: detours through a dtype that loses nothing, and
// numbers that are whole already. Part of `simplify`.

import { cast } from '../build.ts';
import { dtypeBytes, integerRange, isFloat, isInteger, type DType } from '../dtype.ts';
import { rebuild } from '../graph.ts';
import { rule, type RewriteRule } from './rules.ts';

/** Rules of cast, bitcast and the rounding ops. */
export const castRules: readonly RewriteRule[] = [
  rule('cast-cast', 'c → b → a = c → a where b holds all of c, or both wrap', 'cast', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'cast') return undefined;
    const from = x.inputs[0]!;
    return isDetour(from.dtype, x.dtype, node.dtype) ? cast(b, from, node.dtype) : undefined;
  }),
  rule('bitcast-bitcast', 'bitcast(bitcast x) = bitcast x', 'bitcast', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'bitcast') return undefined;
    const from = x.inputs[0]!;
    return from.dtype === node.dtype ? from : rebuild(node, [from], b);
  }),
  rule(
    'whole-already',
    'round(n) = n for whole n',
    ['floor', 'ceil', 'round', 'trunc'],
    ({ inputs: [x] }) => {
      const whole = x!.op === 'cast' ? !isFloat(x!.inputs[0]!.dtype) : rounding.has(x!.op);
      return whole ? x : undefined;
    },
  ),
  rule('sign-sign', 'sign(sign x) = sign x', 'sign', ({ inputs: [x] }) => (x!.op === 'sign' ? x : undefined)),
];

const rounding: ReadonlySet<string> = new Set(['floor', 'ceil', 'round', 'trunc', 'sign']);

/** Bits of a float's significand, counting the implicit one. */
const precision: Partial<Record<DType, number>> = { f64: 53, f32: 24, f16: 11, bf16: 8 };

/** True when every value of `from` is a value of `to`. */
function embeds(from: DType, to: DType): boolean {
  if (from === to || from === 'bool') return true;
  if (isFloat(from)) return precision[from]! < (precision[to] ?? 0) && dtypeBytes(from) < dtypeBytes(to);
  const [low, high] = integerRange(from);
  if (isFloat(to)) return high < 1n << BigInt(precision[to]!);
  const [lowest, highest] = integerRange(to);
  return to !== 'bool' && lowest <= low && high <= highest;
}

/** True when casting `from` → `through` → `to` gives what `from` → `to` gives. */
function isDetour(from: DType, through: DType, to: DType): boolean {
  if (isInteger(from) && isInteger(through) && isInteger(to)) {
    return embeds(from, through) || dtypeBytes(to) <= dtypeBytes(through);
  }
  if (!embeds(from, through)) return false;
  // Floats saturate into integers where integers would wrap.
  return !(isInteger(from) && isFloat(through) && isInteger(to)) || embeds(from, to);
}
