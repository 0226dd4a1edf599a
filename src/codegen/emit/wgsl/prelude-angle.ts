// Functions of angles of the prelude: sine, cosine and tangent with the reduction of their
// arguments, and their inverses. prelude-math.ts says what all of these functions keep to.

/** Templates, as those of prelude-math.ts. */
export const angleFunctions: readonly string[] = [
  // Angles: x = quarter · π/2 + rest, |rest| ≤ π/4. Cody and Waite: π/2 in three parts of 8 bits
  // and a last one, so that up to 2^16 the products are exact.
  `struct angle_F { rest: F, quarter: I }`,
  `fn reduce_F(x: F) -> angle_F {
  let turned = near_bits_F(x * 0.6366197723675814);
  let quarter = turned - 0x4b400000;
  let none = none_I(turned);
  let n = F(quarter);
  let first = held_F(x - n * 1.5703125, none);
  let second = held_F(first - n * 0.0004825592041015625, none);
  let near = held_F(second - n * 1.2665987014770508e-6, none) - n * 9.92093629470503e-10;
  let far = (bitcast<I>(x) & I(0x7fffffff)) > I(0x47800000);
  var angle = angle_F(near, quarter);
  // One lane at a time, in a loop that mostly does not run: an adapter without branches pays for its body once in any case.
  for (var lane = select(LANES, 0, any(far)); lane < LANES; lane++) {
    if (far[lane]) {
      let other = far_angle(x[lane]);
      angle.rest[lane] = other.rest;
      angle.quarter[lane] = other.quarter;
    }
  }
  return angle;
}`,
  // Payne and Hanek: |x| · 2/π modulo 4, with 2 bits before the point, from those bits of 2/π that
  // matter: a window of 64 bits that starts at bit 'first' of 32 zeros and then 2/π. A shift by 32
  // − 0 in two steps is a shift by 32.
  `fn word_of(at: u32, d0: u32, d1: u32, d2: u32, d3: u32, d4: u32) -> u32 {
  let low = select(select(d0, d1, at == 1u), d2, at == 2u);
  return select(select(low, d3, at == 3u), d4, at == 4u);
}`,
  `fn far_turns(x: f32) -> u32 {
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  let first = clamp(bits >> 23u, 143u, 254u) - 120u;
  let at = first >> 5u;
  let by = first & 31u;
  let a = word_of(at, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u);
  let b = word_of(at, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u);
  let c = word_of(at, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u);
  let high = (a << by) | ((b >> 1u) >> (31u - by));
  let low = (b << by) | ((c >> 1u) >> (31u - by));
  let m = (bits & 0x7fffffu) | 0x800000u;
  return high * m + mulhi_u32(low, m);
}`,
  `fn far_angle(x: f32) -> angle_f32 {
  let turns = far_turns(x);
  let rest = f32(bitcast<i32>(turns * 4u)) * 3.65729529994141e-10;
  let quarter = bitcast<i32>((turns + 0x20000000u) >> 30u);
  let finite = angle_f32(select(rest, -rest, x < 0.0), select(quarter, -quarter, x < 0.0));
  return angle_f32(select(finite.rest, nan_f32(), not_finite_f32(x)), finite.quarter);
}`,
  // 3.7e-9 and 1.1e-10 for |r| ≤ π/4.
  `fn sin_core_F(r: F) -> F {
  let z = r * r;
  return r + r * z * (-0.16666655242443085 + z * (0.008332191966474056 - z * 0.00019518790941219777));
}`,
  `fn cos_core_F(r: F) -> F {
  let z = r * r;
  return 1.0 - z * (0.5 - z * (0.04166664555668831 + z * (-0.00138873013202101 + z * 2.443066841806285e-5)));
}`,
  `fn turn_F(x: F, ahead: i32) -> F {
  let a = reduce_F(x);
  let quarter = a.quarter + ahead;
  let y = select(sin_core_F(a.rest), cos_core_F(a.rest), (quarter & I(1)) != I(0));
  return bitcast<F>(bitcast<I>(y) ^ ((quarter & I(2)) * 1073741824));
}`,
  `fn sin_F(x: F) -> F { return turn_F(x, 0); }`,
  `fn cos_F(x: F) -> F { return turn_F(x, 1); }`,
  `fn tan_F(x: F) -> F {
  let a = reduce_F(x);
  let s = sin_core_F(a.rest);
  let c = cos_core_F(a.rest);
  let odd = (a.quarter & I(1)) != I(0);
  return select(s, -c, odd) / select(c, s, odd);
}`,
  // atan t for 0 ≤ t ≤ 1; 1.5e-8.
  `fn atan_core_F(t: F) -> F {
  let z = t * t;
  let p = -0.3333316743373871 + z * (0.1999414712190628 + z * (-0.14214284718036652 + z * (0.10679222643375397 + z * (-0.07581154257059097 + z * (0.04356009140610695 + z * (-0.016585083678364754 + z * 0.0029755369760096073))))));
  return t + t * z * p;
}`,
  `fn atan_F(x: F) -> F {
  let size = abs(x);
  let steep = size > F(1.0);
  let y = atan_core_F(select(size, 1.0 / size, steep));
  return select(with_sign_F(select(y, 1.5707963267948966 - y, steep), x), x, is_nan_F(x));
}`,
  // The angle of (x, y) from the octant's: |lesser / greater| ≤ 1, where 0/0 counts as 0 and ∞/∞ as
  // 1.
  `fn atan2_F(y: F, x: F) -> F {
  let greater = max(abs(x), abs(y));
  let lesser = min(abs(x), abs(y));
  let ratio = select(select(lesser / greater, F(1.0), not_finite_F(lesser)), F(0.0), greater == F(0.0));
  let octant = atan_core_F(ratio);
  let right = select(octant, 1.5707963267948966 - octant, abs(y) > abs(x));
  let size = select(right, 3.141592653589793 - right, bitcast<I>(x) < I(0));
  return select(with_sign_F(size, y), x + y, any_nan_F(x, y));
}`,
  // asin √z / √z − 1 over z for 0 ≤ z ≤ ¼; 5e-9. Beyond ½, asin x = π/2 − 2 asin √((1 − x)/2).
  `fn asin_core_F(size: F) -> F {
  let z = select(size * size, 0.5 - 0.5 * size, size > F(0.5));
  let t = select(size, sqrt(max(z, F(0.0))), size > F(0.5));
  let p = 0.16666753590106964 + z * (0.07495249807834625 + z * (0.045476529747247696 + z * (0.02414884977042675 + z * 0.04221852123737335)));
  return t + t * z * p;
}`,
  `fn outside_one_F(x: F) -> B {
  return (bitcast<I>(x) & I(0x7fffffff)) > I(0x3f800000);
}`,
  `fn asin_F(x: F) -> F {
  let t = asin_core_F(abs(x));
  let y = select(t, 1.5707963267948966 - 2.0 * t, abs(x) > F(0.5));
  return select(with_sign_F(y, x), nan_F(), outside_one_F(x));
}`,
  `fn acos_F(x: F) -> F {
  let t = asin_core_F(abs(x));
  let outer = select(2.0 * t, 3.141592653589793 - 2.0 * t, x < F(0.0));
  let y = select(1.5707963267948966 - with_sign_F(t, x), outer, abs(x) > F(0.5));
  return select(y, nan_F(), outside_one_F(x));
}`,
];
