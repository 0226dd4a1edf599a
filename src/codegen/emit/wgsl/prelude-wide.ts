// Functions of the prelude on integers of 64 bits, which WGSL has none of: a `vec2u` of the low and
// the high word. Names end in the type where the sign matters, else in 64. They are written for
// single values; lanes.ts sees that no others are asked for.

export const wideFunctions: readonly string[] = [
  // A sum of words carries where it is less than what was added.
  `fn add_64(a: vec2u, b: vec2u) -> vec2u {
  let low = a.x + b.x;
  return vec2u(low, a.y + b.y + select(0u, 1u, low < b.x));
}`,
  `fn sub_64(a: vec2u, b: vec2u) -> vec2u {
  return vec2u(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}`,
  `fn neg_64(a: vec2u) -> vec2u {
  return vec2u(0u - a.x, ~a.y + select(0u, 1u, a.x == 0u));
}`,
  `fn is_negative_64(a: vec2u) -> bool { return (a.y >> 31u) != 0u; }`,
  `fn abs_i64(a: vec2u) -> vec2u { return select(a, neg_64(a), is_negative_64(a)); }`,
  `fn sign_u64(a: vec2u) -> vec2u { return vec2u(min(a.x | a.y, 1u), 0u); }`,
  `fn sign_i64(a: vec2u) -> vec2u { return select(sign_u64(a), vec2u(4294967295u), is_negative_64(a)); }`,
  // The whole product of two words.
  `fn product_64(a: u32, b: u32) -> vec2u { return vec2u(a * b, mulhi_u32(a, b)); }`,
  `fn mul_64(a: vec2u, b: vec2u) -> vec2u {
  return vec2u(a.x * b.x, mulhi_u32(a.x, b.x) + a.x * b.y + a.y * b.x);
}`,
  // No sum leaves 64 bits: (2³² − 1)² + 2 (2³² − 1) = 2⁶⁴ − 1.
  `fn mulhi_u64(a: vec2u, b: vec2u) -> vec2u {
  let first = add_64(product_64(a.x, b.y), vec2u(mulhi_u32(a.x, b.x), 0u));
  let second = add_64(product_64(a.y, b.x), vec2u(first.x, 0u));
  return add_64(add_64(product_64(a.y, b.y), vec2u(first.y, 0u)), vec2u(second.y, 0u));
}`,
  // A negative factor counts 2⁶⁴ too much in the unsigned product.
  `fn mulhi_i64(a: vec2u, b: vec2u) -> vec2u {
  let nothing = vec2u(0u);
  let high = sub_64(mulhi_u64(a, b), select(nothing, b, is_negative_64(a)));
  return sub_64(high, select(nothing, a, is_negative_64(b)));
}`,
  `fn eq_64(a: vec2u, b: vec2u) -> bool { return all(a == b); }`,
  `fn lt_u64(a: vec2u, b: vec2u) -> bool { return (a.y < b.y) | ((a.y == b.y) & (a.x < b.x)); }`,
  `fn lt_i64(a: vec2u, b: vec2u) -> bool {
  return (bitcast<i32>(a.y) < bitcast<i32>(b.y)) | ((a.y == b.y) & (a.x < b.x));
}`,
  `fn min_u64(a: vec2u, b: vec2u) -> vec2u { return select(a, b, lt_u64(b, a)); }`,
  `fn min_i64(a: vec2u, b: vec2u) -> vec2u { return select(a, b, lt_i64(b, a)); }`,
  `fn max_u64(a: vec2u, b: vec2u) -> vec2u { return select(a, b, lt_u64(a, b)); }`,
  `fn max_i64(a: vec2u, b: vec2u) -> vec2u { return select(a, b, lt_i64(a, b)); }`,
  // Shifts within a word take the count's low five bits, from 32 on words change places, and a count
  // below 0 or past 63 shifts everything out. WGSL knows no shift of a word by 32, so what crosses
  // over goes in two steps.
  `fn is_past_64(count: vec2u) -> bool { return (count.y != 0u) | (count.x > 63u); }`,
  `fn shl_64(a: vec2u, count: vec2u) -> vec2u {
  let by = count.x & 31u;
  let near = vec2u(a.x << by, (a.y << by) | ((a.x >> 1u) >> (31u - by)));
  let within = select(near, vec2u(0u, near.x), count.x > 31u);
  return select(within, vec2u(0u), is_past_64(count));
}`,
  `fn shr_u64(a: vec2u, count: vec2u) -> vec2u {
  let by = count.x & 31u;
  let near = vec2u((a.x >> by) | ((a.y << 1u) << (31u - by)), a.y >> by);
  let within = select(near, vec2u(near.y, 0u), count.x > 31u);
  return select(within, vec2u(0u), is_past_64(count));
}`,
  // The complement of a negative number is shifted in its place: ones come in.
  `fn shr_i64(a: vec2u, count: vec2u) -> vec2u {
  let fill = vec2u(select(0u, 4294967295u, is_negative_64(a)));
  return shr_u64(a ^ fill, count) ^ fill;
}`,
  `fn leading_zeros_64(a: vec2u) -> u32 {
  return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
}`,
  // Division by digits of 16 bits (Knuth, The Art of Computer Programming 2, 4.3.1, Algorithm D). Its
  // few steps are written out: some compilers take minutes for a kernel with many loops.
  //
  // The digit of high * 2¹⁶ + low by a word whose highest bit is set, where high < by. The quotient
  // of the words above is too large by two at most.
  `fn div_digit(high: u32, low: u32, by: u32) -> u32 {
  let top = by >> 16u;
  let last = by & 65535u;
  var digit = high / top;
  var rest = high - digit * top;
  let first = (digit > 65535u) | (digit * last > ((rest << 16u) | low));
  digit -= select(0u, 1u, first);
  rest += select(0u, top, first);
  let second = (rest < 65536u) & ((digit > 65535u) | (digit * last > ((rest << 16u) | low)));
  return digit - select(0u, 1u, second);
}`,
  `fn div_words(a: vec2u, by: u32) -> u32 {
  let first = div_digit(a.y, a.x >> 16u, by);
  let rest = ((a.y << 16u) | (a.x >> 16u)) - first * by;
  return (first << 16u) | div_digit(rest, a.x & 65535u, by);
}`,
  // Quotient and remainder. x / 0 = x and x % 0 = 0, as WGSL has it of words. A divisor of one word
  // divides the high word first. One of two words divides by its highest 32 bits, which gives the
  // quotient or one more (Hacker's Delight, 9-5), so one less is taken and tried.
  `fn div_mod_64(a: vec2u, b: vec2u) -> vec4u {
  let by = select(b, vec2u(1u, 0u), eq_64(b, vec2u(0u)));
  let isWide = by.y != 0u;
  let zeros = countLeadingZeros(select(by.x, by.y, isWide));
  let top = select(by.x << zeros, shl_64(by, vec2u(zeros, 0u)).y, isWide);
  let high = a.y / max(by.x, 1u);
  let part = shl_64(vec2u(a.x, a.y - high * by.x), vec2u(zeros, 0u));
  let half = vec2u((a.y << 31u) | (a.x >> 1u), a.y >> 1u);
  let low = div_words(select(part, half, isWide), top);
  let near = vec2u(max(low >> (31u - zeros), 1u) - 1u, 0u);
  let quotient = select(vec2u(low, high), near, isWide);
  let rest = sub_64(a, mul_64(quotient, by));
  let more = vec2u(select(1u, 0u, lt_u64(rest, by)), 0u);
  return vec4u(add_64(quotient, more), sub_64(rest, select(vec2u(0u), by, more.x != 0u)));
}`,
  `fn div_u64(a: vec2u, b: vec2u) -> vec2u { return div_mod_64(a, b).xy; }`,
  `fn mod_u64(a: vec2u, b: vec2u) -> vec2u { return div_mod_64(a, b).zw; }`,
  `fn div_i64(a: vec2u, b: vec2u) -> vec2u {
  let size = div_u64(abs_i64(a), abs_i64(b));
  return select(size, neg_64(size), is_negative_64(a ^ b));
}`,
  `fn mod_i64(a: vec2u, b: vec2u) -> vec2u {
  let size = mod_u64(abs_i64(a), abs_i64(b));
  return select(size, neg_64(size), is_negative_64(a));
}`,
  `fn words_i32(a: i32) -> vec2u { return vec2u(bitcast<u32>(a), bitcast<u32>(a >> 31u)); }`,
  // The highest 32 bits, the last of them 1 if any below is: the conversion of that word rounds as
  // that of all bits would. A power of two puts it where it belongs.
  `fn float_u64(a: vec2u) -> f32 {
  let zeros = leading_zeros_64(a);
  let top = shl_64(a, vec2u(zeros, 0u));
  return float_u32(top.y | min(top.x, 1u)) * bitcast<f32>((159u - zeros) << 23u);
}`,
  `fn float_i64(a: vec2u) -> f32 {
  let size = float_u64(abs_i64(a));
  return select(size, -size, is_negative_64(a));
}`,
  // A float's whole part is its fraction, shifted by its exponent: exact, whatever compilers think of
  // floats. NaN becomes 0, and what is too large the integer nearest to it.
  `fn whole_64(x: f32) -> vec2u {
  let bits = bitcast<u32>(x);
  let exponent = (bits >> 23u) & 255u;
  let fraction = vec2u((bits & 8388607u) | 8388608u, 0u);
  let left = vec2u(exponent - 150u, 0u);
  let right = vec2u(150u - exponent, 0u);
  return select(shl_64(fraction, left), shr_u64(fraction, right), exponent < 150u);
}`,
  `fn uint_64(x: f32) -> vec2u {
  let bits = bitcast<u32>(x);
  let whole = select(whole_64(x), vec2u(4294967295u), bits > 1602224127u);
  return select(whole, vec2u(0u), ((bits & 2147483647u) > 2139095040u) | (bits > 2147483647u));
}`,
  `fn int_64(x: f32) -> vec2u {
  let bits = bitcast<u32>(x);
  let size = bits & 2147483647u;
  let least = bits != size;
  let whole = whole_64(x);
  let far = select(vec2u(4294967295u, 2147483647u), vec2u(0u, 2147483648u), least);
  let near = select(whole, neg_64(whole), least);
  return select(select(near, far, size > 1593835519u), vec2u(0u), size > 2139095040u);
}`,
];
