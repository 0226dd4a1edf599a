// Roundings to 16-bit floats, and the remainder, in operations that WebAssembly has.

import type { Value } from '../../../loop/loop.ts';
import { scale as scaleDouble } from './double-exp.ts';
import { scale } from './log.ts';
import { Terms, type Draft } from './terms.ts';

/**
 * Half a unit of the last bit that stays is added, less one where that bit is 0: ties go to even.
 */
function roundBits(m: Terms, bits: Value, dropped: number): Value {
  const last = m.and(m.shr(bits, dropped), 1);
  return m.and(m.add(m.add(bits, 2 ** (dropped - 1) - 1), last), -(2 ** dropped));
}

/**
 * Below 2^−14, where the last place stands for 2^−24 as it does in a f32 near ½, adding ½ rounds.
 */
export function roundF16(m: Terms, x: Value): Value {
  const size = m.abs(x);
  const normal = m.real(roundBits(m, m.bits(size), 13));
  const small = m.sub(m.add(size, 0.5), 0.5);
  const finite = m.where(m.lt(size, 2 ** -14), small, normal);
  return m.withSign(m.where(m.lt(size, 65520), finite, m.add(size, Infinity)), x);
}

export function roundBf16(m: Terms, x: Value): Value {
  return m.where(m.isNan(x), x, m.real(roundBits(m, m.bits(x), 16)));
}

interface Mantissa {
  /** With the leading bit, for all but 0. */
  readonly mantissa: Value;
  readonly exponent: Value;
}

/**
 * How floats of a type are made: bits of the fraction, the exponent of the smallest normal number,
 * and how `scale` is done.
 */
const forms = {
  f32: { fraction: 23, minExponent: -126, scale },
  f64: { fraction: 52, minExponent: -1022, scale: scaleDouble },
} as const;

/**
 * A positive number as a whole number (its fraction with the leading bit) and a power of two,
 * denormal ones, too.
 */
function mantissaOf(m: Terms, size: Value): Mantissa {
  const { fraction, minExponent } = forms[m.float];
  const isSmall = m.lt(size, 2 ** minExponent);
  const bits = m.bits(m.where(isSmall, m.mul(size, 2 ** (fraction + 1)), size));
  const lifted = (by: number): Value => m.constant(by, bits.type);
  return {
    mantissa: m.or(m.and(bits, 2 ** fraction - 1), 2 ** fraction),
    exponent: m.sub(m.shr(bits, fraction), m.where(isSmall, lifted(fraction + 1), lifted(0))),
  };
}

/** C's fmod by long division of the mantissas, one bit at a time: exact for every quotient. */
export function mod(draft: Draft, hint: string, given: Value, y: Value): Value {
  const float = given.type === 'f64' ? 'f64' : 'f32';
  const m = new Terms(draft, given.width, hint, float);
  const x = draft.let(`${hint}_x`, given);
  const a = draft.let(`${hint}_a`, m.abs(x));
  const b = draft.let(`${hint}_b`, m.abs(y));
  const [dividend, divisor] = [mantissaOf(m, a), mantissaOf(m, b)];
  const isDefined = m.and(m.and(m.lt(a, Infinity), m.not(m.isNan(b))), m.lt(0, b));
  const isPlain = m.and(isDefined, m.le(b, a));
  const isDivided = m.and(isPlain, m.lt(b, Infinity));
  const steps = m.op('cast', [m.sub(dividend.exponent, divisor.exponent)], 'i32');
  const left = draft.let(`${hint}_left`, m.where(isDivided, steps, m.constant(0, 'i32')));
  const by = draft.let(`${hint}_by`, divisor.mantissa);
  const reduced = (t: Terms, value: Value): Value => t.where(t.lt(value, by), value, t.sub(value, by));
  const rest = draft.var(`${hint}_rest`, reduced(m, dividend.mantissa));
  const [end] = draft.written([widest(m, left)], hint);
  const counter = draft.name(`${hint}_i`);
  const inner = draft.inner();
  const i = m.inside(inner);
  const step: Value = inner.node({ kind: 'variable', name: counter, type: 'i32', width: 1 });
  const lanes = m.width === 1 ? step : inner.node({ kind: 'splat', arg: step, type: 'i32', width: m.width });
  const [next] = inner.written([i.where(i.lt(lanes, left), reduced(i, i.add(rest, rest)), rest)], hint);
  if (rest.kind === 'variable') inner.stmts.push({ kind: 'assign', name: rest.name, value: next! });
  draft.stmts.push({
    kind: 'for',
    name: counter,
    start: { kind: 'constant', value: 0, type: 'i32', width: 1 },
    end: end!,
    step: 1,
    body: inner.stmts,
  });
  const { fraction, minExponent, scale: scaled } = forms[float];
  const size = scaled(m, m.toReal(rest), m.sub(divisor.exponent, fraction + 1 - minExponent));
  // x where |x| < |y|.
  const whole = m.where(isDivided, m.withSign(size, x), x);
  return m.where(isDefined, whole, NaN);
}

/** The greatest lane. */
function widest(m: Terms, x: Value): Value {
  const node = (value: Value): Value => m.draft.node(value);
  const lanes = Array.from({ length: m.width }, (_, lane) =>
    m.width === 1 ? x : node({ kind: 'lane', arg: x, lane, type: 'i32', width: 1 }),
  );
  return lanes.reduce((greatest, one) =>
    node({ kind: 'op', op: 'max', args: [greatest, one], type: 'i32', width: 1 }),
  );
}
