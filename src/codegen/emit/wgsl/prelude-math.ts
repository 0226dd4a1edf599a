// Float functions of the prelude, for where WGSL's builtins are missing, too coarse (sin is 2e-4
// off on one adapter) or undefined on special values. NaN and infinity are told apart by their
// bits: compilers may assume that arithmetic never meets them. Polynomials are minimax fits with
// coefficients rounded one after the other to f32; each comment gives the fit's own relative error,
// to which f32 arithmetic adds about 1e-7. Denormal arguments may count as zero.
//
// Drivers may rearrange float arithmetic as if numbers were real: Mesa turns a − (a − b) into b,
// Metal's compiler sums and factors in any order. So where a sum is meant to keep what another has
// rounded off (ln 2 and π/2 in parts, pow's logarithm in two words), each step is `held`: its bits
// pass through an integer operation with a word that is zero, but not by anything that a compiler
// can know. What is needed of other sums holds in any order. test/numerics/fast-math.test.ts runs
// these functions through such a compiler.

import { angleFunctions } from './prelude-angle.ts';

/**
 * Templates: F, I, U, B are f32, i32, u32, bool at some width; `EACH[f(x@)]` lists f of every lane.
 */
export const mathFunctions: readonly string[] = [
  // Hides a constant from WGSL's own constant evaluation, which refuses results that are not
  // finite.
  `fn opaque_F(x: F) -> F { return x; }`,
  `fn opaque_B(x: B) -> B { return x; }`,
  `fn inf_F() -> F {
  var bits = U(0x7f800000u);
  return bitcast<F>(bits);
}`,
  // As a constant, −0 loses its sign on the way to the adapter.
  `fn minus_zero_F() -> F {
  var bits = U(0x80000000u);
  return bitcast<F>(bits);
}`,
  `fn nan_F() -> F {
  var bits = U(0x7fc00000u);
  return bitcast<F>(bits);
}`,
  `fn is_nan_F(x: F) -> B {
  return (bitcast<I>(x) & I(0x7fffffff)) > I(0x7f800000);
}`,
  `fn not_finite_F(x: F) -> B {
  return (bitcast<I>(x) & I(0x7fffffff)) >= I(0x7f800000);
}`,
  // size ≥ 0.
  `fn with_sign_F(size: F, sign: F) -> F {
  return bitcast<F>(bitcast<U>(size) | (bitcast<U>(sign) & U(0x80000000u)));
}`,
  // x + 0 and 0 − x, which are +0 for either zero.
  `fn plus_zero_F(x: F) -> F {
  return select(x, F(0.0), x == F(0.0));
}`,
  `fn zero_minus_F(x: F) -> F {
  return select(-x, F(0.0), x == F(0.0));
}`,
  // 0·x and 0/x, NaN where x is not finite, or is 0 or NaN.
  `fn zero_times_F(x: F) -> F {
  return select(with_sign_F(F(0.0), x), nan_F(), not_finite_F(x));
}`,
  `fn zero_over_F(x: F) -> F {
  return select(with_sign_F(F(0.0), x), nan_F(), (x == F(0.0)) | is_nan_F(x));
}`,
  // x between two bounds, the lower one negative and the upper one positive, both given as bits;
  // NaN goes to one of them. As integers, floats of one sign are in order: two instructions, where
  // comparing and selecting floats takes eight.
  `fn between_F(x: F, low: u32, high: i32) -> F {
  return bitcast<F>(min(bitcast<I>(min(bitcast<U>(x), U(low))), I(high)));
}`,
  `fn sign_F(x: F) -> F {
  return F(x > F(0.0)) - F(x < F(0.0));
}`,
  // NaN wins; a + b is one when either is.
  `fn any_nan_F(a: F, b: F) -> B {
  return max(bitcast<I>(a) & I(0x7fffffff), bitcast<I>(b) & I(0x7fffffff)) > I(0x7f800000);
}`,
  `fn min_F(a: F, b: F) -> F {
  return select(select(b, a, a < b), a + b, any_nan_F(a, b));
}`,
  `fn max_F(a: F, b: F) -> F {
  return select(select(b, a, b < a), a + b, any_nan_F(a, b));
}`,
  // Integers in the order of floats, NaN last or first; and back.
  `fn order_max_F(x: F) -> I {
  let bits = bitcast<I>(x);
  return select(select(bits, bits ^ I(0x7fffffff), bits < I(0)), I(0x7fffffff), is_nan_F(x));
}`,
  `fn order_min_F(x: F) -> I {
  let bits = bitcast<I>(x);
  return select(select(bits, bits ^ I(0x7fffffff), bits < I(0)), I(-2147483647 - 1), is_nan_F(x));
}`,
  `fn unorder_F(key: I) -> F {
  return bitcast<F>(select(key, key ^ I(0x7fffffff), key < I(0)));
}`,
  // x, hidden from simplification of arithmetic: `none` is zero, but computed from the exponent of
  // a float that is the result of arithmetic on data; compilers may derive signs from that, and the
  // bits of integers, but not magnitudes of floats.
  `fn held_F(x: F, none: I) -> F {
  return bitcast<F>(bitcast<I>(x) ^ none);
}`,
  // x·2^n for −250 ≤ n ≤ 250, in two factors that are normal numbers; as one, they may not be.
  `fn scale_F(x: F, n: I, none: I) -> F {
  let most = clamp(n, I(-126), I(127));
  return held_F(x * bitcast<F>((most + 127) * 8388608), none) * bitcast<F>((n - most + 127) * 8388608);
}`,
  // e^r − 1 for |r| ≤ ln 2 / 2; 1.4e-8.
  `fn expm1_core_F(r: F) -> F {
  let q = 0.4999999701976776 + r * (0.1666654646396637 + r * (0.04166744276881218 + r * (0.008366253226995468 + r * 0.0013869944959878922)));
  return r + r * r * q;
}`,
  // The nearest integer, for |x| < 2^22: adding 1.5·2^23 leaves it in the low bits. Cheaper than
  // round and a conversion.
  `fn nearest_F(x: F) -> I {
  return bitcast<I>(x + 12582912.0) - 0x4b400000;
}`,
  // The same with 0x4b400000 still added. Between 2^23 and 2^24 a float has the exponent 0x4b: two
  // of its bits are zero.
  `fn near_bits_F(x: F) -> I {
  return bitcast<I>(x + 12582912.0);
}`,
  `fn none_I(near: I) -> I {
  return near & I(0x30000000);
}`,
  `fn high_F(x: F) -> F {
  return bitcast<F>(bitcast<U>(x) & U(0xfffff000u));
}`,
  `fn exp2_F(x: F) -> F {
  return select(exp2(x), x, is_nan_F(x));
}`,
  // e^x = 2^n·e^r for x = n·ln 2 + r, −200 ≤ x ≤ 89. ln 2 in two parts, so that n times the first
  // is exact. n is added to the exponent; what leaves its range then is 0 or ∞.
  `fn exp_core_F(x: F) -> F {
  let near = near_bits_F(x * 1.4426950408889634);
  let n = near - 0x4b400000;
  let r = held_F(x - F(n) * 0.693359375, none_I(near)) + F(n) * 0.00021219444170128554;
  let bits = bitcast<I>(1.0 + expm1_core_F(r)) + n * 8388608;
  return bitcast<F>(clamp(bits, I(0), I(0x7f800000)));
}`,
  `fn exp_F(x: F) -> F {
  return select(exp_core_F(between_F(x, 0xc3480000u, 0x42b20000)), x, is_nan_F(x));
}`,
  // 2^n·(e^r − 1) + (2^n − 1) for x = n·ln 2 + r, −20 ≤ x ≤ 89, halved on the way so that 2^128
  // does not overflow.
  `fn expm1_wide_F(x: F) -> F {
  let near = near_bits_F(x * 1.4426950408889634);
  let n = near - 0x4b400000;
  let none = none_I(near);
  let r = held_F(x - F(n) * 0.693359375, none) + F(n) * 0.00021219444170128554;
  let half = bitcast<F>((n + 126) * 8388608);
  return 2.0 * held_F(half * expm1_core_F(r) + held_F(half - 0.5, none), none);
}`,
  `fn expm1_F(x: F) -> F {
  return select(expm1_wide_F(between_F(x, 0xc1a00000u, 0x42b20000)), x, is_nan_F(x));
}`,
  // log(1 + f) for √½ ≤ 1 + f ≤ √2; 3.2e-8.
  `fn log_core_F(f: F) -> F {
  let p = 0.333339124917984 + f * (-0.2500132918357849 + f * (0.19962988793849945 + f * (-0.16577807068824768 + f * (0.14915835857391357 + f * (-0.1426600217819214 + f * 0.08695247024297714)))));
  return f + f * f * (f * p - 0.5);
}`,
  // x = 2^k · m with √½ ≤ m < √2, for normal positive x: k · 2^23, which can be taken from the bits
  // of x as it is.
  `fn log_power_F(x: F) -> I {
  return (bitcast<I>(x) - 0x3f3504f3) & I(-8388608);
}`,
  `fn log_mantissa_F(x: F, power: I) -> F {
  return bitcast<F>(bitcast<I>(x) - power);
}`,
  `fn log_exponent_F(power: I) -> F {
  return F(power) * 1.1920928955078125e-7;
}`,
  // The logarithm y of x where x is positive and finite; −∞ at 0, NaN below, ∞ and NaN as they are.
  `fn log_edges_F(x: F, y: F) -> F {
  let bits = bitcast<I>(x);
  let beyond = select(I(0x7fc00000), bits, bits == I(0x7f800000));
  let edge = select(beyond, I(-8388608), (bits & I(0x7fffffff)) < I(0x00800000));
  return select(bitcast<F>(edge), y, (bits >= I(0x00800000)) & (bits < I(0x7f800000)));
}`,
  `fn log_F(x: F) -> F {
  let power = log_power_F(x);
  let y = log_core_F(log_mantissa_F(x, power) - 1.0);
  let k = log_exponent_F(power);
  return log_edges_F(x, (y - k * 0.00021219444170128554) + k * 0.693359375);
}`,
  `fn log2_F(x: F) -> F {
  let power = log_power_F(x);
  return log_edges_F(x, log_core_F(log_mantissa_F(x, power) - 1.0) * 1.4426950408889634 + log_exponent_F(power));
}`,
  // Near 0 the polynomial takes x itself, before 1 + x rounds it.
  `fn log1p_F(x: F) -> F {
  let u = 1.0 + x;
  let small = abs(x) < F(0.28);
  let power = log_power_F(u);
  let k = select(log_exponent_F(power), F(0.0), small);
  let y = log_core_F(select(log_mantissa_F(u, power) - 1.0, x, small));
  return log_edges_F(u, (y - k * 0.00021219444170128554) + k * 0.693359375);
}`,
  ...angleFunctions,
  // x/2 for 1 ≤ x, by its exponent, so that it stays halved before it is multiplied.
  `fn half_of_F(x: F) -> F {
  return bitcast<F>(bitcast<I>(x) - 0x00800000);
}`,
  // With w = e^{|x|/2} and d = w − 1: sinh = (w² − w⁻²)/2 = d(d + 2)(1 + w⁻²)/2, which neither
  // cancels nor overflows early. w⁻² ends where it no longer counts: brought to one denominator
  // with the rest, it would be ∞/∞.
  `fn sinh_F(x: F) -> F {
  let d = expm1_F(0.5 * abs(x));
  let w = d + 1.0;
  let half = select(0.5 * d, half_of_F(d), d > F(1.0));
  let rest = select(1.0 / (w * w), F(0.0), w > F(8192.0));
  return with_sign_F(half * (d + 2.0) * (1.0 + rest), x);
}`,
  `fn cosh_F(x: F) -> F {
  let w = exp_F(0.5 * abs(x));
  return half_of_F(w) * w + select(0.5 / (w * w), F(0.0), w > F(8192.0));
}`,
  // tanh = d / (d + 2) with d = e^{2|x|} − 1; 1 from 9.02 on.
  `fn tanh_F(x: F) -> F {
  let size = min(bitcast<I>(x) & I(0x7fffffff), I(0x41200000));
  let d = expm1_wide_F(2.0 * bitcast<F>(size));
  return select(with_sign_F(d / (d + 2.0), x), x, is_nan_F(x));
}`,
  // x·P(x²) up to 0.94 (5.9e-8), then 1 − e^{−Q(x)} with Q fitted to −log erfc on [0.92, 4]
  // (4.9e-11 of erf).
  `fn erf_F(x: F) -> F {
  let z = x * x;
  let inner = x * (1.1283791065216064 + z * (-0.37612295150756836 + z * (0.11280209571123123 + z * (-0.026718446984887123 + z * (0.004932328127324581 - z * 0.0005716579617001116)))));
  let a = bitcast<F>(min(bitcast<I>(x) & I(0x7fffffff), I(0x40800000)));
  let q = -0.00017468418809585273 + a * (1.1295149326324463 + a * (0.6333469152450562 + a * (0.10828004032373428 + a * (-0.025119353085756302 + a * (0.004171011969447136 + a * (-0.0004344460612628609 + a * 2.1093006580485962e-5))))));
  return select(select(with_sign_F(1.0 - exp_core_F(-q), x), inner, abs(x) < F(0.94)), x, is_nan_F(x));
}`,
  `fn square_F(x: F) -> F { return x * x; }`,
  `fn cube_F(x: F) -> F { return x * x * x; }`,
  // C's pow: 2^(y·log2|x|), where the logarithm has twice f32's digits (products of 12-bit halves
  // are exact), then the sign and the special cases. log(1 + f) = f − f²/2 + f³P(f), P to 7e-10. Of
  // each sum the upper half is cut off by its bits, and what is left of the summands is the lower
  // half.
  `fn pow_F(x: F, y: F) -> F {
  let size = abs(x);
  let power_bits = log_power_F(size);
  let k = log_exponent_F(power_bits);
  let mantissa = log_mantissa_F(size, power_bits);
  // Below 2, whatever x is.
  let none = bitcast<I>(mantissa) & I(0x40000000);
  let f = mantissa - 1.0;
  let p = 0.3333331048488617 + f * (-0.24999986588954926 + f * (0.20002225041389465 + f * (-0.16669249534606934 + f * (0.1421867161989212 + f * (-0.12384390085935593 + f * (0.11873012036085129 + f * (-0.11789526045322418 + f * 0.06914743036031723)))))));
  let fh = high_F(f);
  let square = 0.5 * fh * fh;
  let head = high_F(f - square);
  let log_low = held_F(held_F(f - head, none) - square, none) - 0.5 * (f + fh) * (f - fh) + f * f * f * p;
  let lead = head * 1.4423828125;
  let tail = head * 0.00031222839606925845 + log_low * 1.4426950408889634;
  let log2_high = high_F(k + lead);
  let log2_low = held_F(held_F(k - log2_high, none) + lead, none) + tail;
  let yh = high_F(y);
  let exact = yh * log2_high;
  let small = yh * log2_low + (y - yh) * (log2_high + log2_low);
  let n = clamp(nearest_F(clamp(exact + small, F(-151.0), F(129.0))), I(-151), I(129));
  let rest = held_F(exact - F(n), none) + small;
  let middle = scale_F(1.0 + expm1_core_F(rest * 0.6931471805599453), n, none);
  // Denormal numbers too, where a device keeps them: their exponents say nothing.
  let zero = bitcast<I>(size) < I(0x00800000);
  let still = (bitcast<I>(y) & I(0x7fffffff)) < I(0x00800000);
  let one = still | (bitcast<I>(size) == I(0x3f800000));
  let log2_size = select(select(log2_high + log2_low, inf_F(), not_finite_F(x)), -inf_F(), zero);
  let power = select(y * log2_size, F(0.0), one);
  let above = select(middle, inf_F(), power > F(128.5));
  let inside = select(select(above, F(0.0), power < F(-150.5)), F(1.0), one);
  let whole = y == floor(y);
  let odd = whole & (abs(y) < F(16777216.0)) & ((I(y) & I(1)) != I(0));
  let negative = bitcast<I>(x) < I(0);
  let rooted = select(inside, -inside, negative & odd);
  let rootless = negative & !whole & !zero & !not_finite_F(x);
  let undefined_ = (any_nan_F(x, y) | rootless) & !(still | (bitcast<I>(x) == I(0x3f800000)));
  return select(rooted, nan_F(), undefined_);
}`,
  // C's fmod by long division of the mantissas, eight bits at a time: exact for every quotient. All
  // lanes take turns in one loop, and what needs none is selected at the end: SwiftShader takes minutes
  // for a dozen branches or loops after one another within a loop.
  `fn mod_F(x: F, y: F) -> F {
  let a = bitcast<U>(x) & U(0x7fffffffu);
  let b = bitcast<U>(y) & U(0x7fffffffu);
  let undefined_ = (a >= U(0x7f800000u)) | (b > U(0x7f800000u)) | (b < U(0x00800000u));
  let less = a < b;
  let divisor = (b & U(0x7fffffu)) | U(0x800000u);
  var left = select((a >> U(23u)) - (b >> U(23u)), U(0u), less | undefined_);
  var m = ((a & U(0x7fffffu)) | U(0x800000u)) % divisor;
  while (any(left > U(0u))) {
    let step = min_U(left, U(8u));
    m = (m << step) % divisor;
    left -= step;
  }
  // m·2^n, and below the normal numbers m·2^(n + 149) of the least.
  let n = bitcast<I>(b >> U(23u)) - I(150);
  let normal = bitcast<I>(F(m)) + n * I(8388608);
  let low = (normal < I(0x00800000)) | (m == U(0u));
  let size = select(normal, bitcast<I>(m << bitcast<U>(n + I(149))), low);
  return select(select(with_sign_F(bitcast<F>(size), x), x, less), nan_F(), undefined_);
}`,
  // The builtin conversion rounds twice on one adapter; both halves are exact.
  `fn float_U(x: U) -> F {
  return F(x >> U(16u)) * 65536.0 + F(x & U(0xffffu));
}`,
  // To integers: truncate, saturate, NaN to 0.
  `fn int_F(x: F) -> I {
  let inside = select(I(x), I(2147483647), x >= F(2147483648.0));
  return select(inside, I(0), is_nan_F(x));
}`,
  `fn uint_F(x: F) -> U {
  let inside = select(U(max(x, F(0.0))), U(4294967295u), x >= F(4294967296.0));
  return select(inside, U(0u), is_nan_F(x));
}`,
];
