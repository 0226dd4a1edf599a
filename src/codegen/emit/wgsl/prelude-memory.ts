// Packing functions of the prelude: elements narrower than 32 bits share u32 words, lowest bits
// first. `get` takes one element out of its word by the element's index, `unpack` all of them;
// `bits` gives one element's bits, `pack` a whole word. `unpack` and `pack` of `x4` are those of
// four elements of 16 bits, in two words.

/** Templates: F, I, U, B are f32, i32, u32, bool at some width. */
export const memoryFunctions: readonly string[] = [
  `fn get_f16(word: u32, i: i32) -> f32 { return unpack2x16float(word >> (u32(i & 1) << 4u)).x; }`,
  `fn get_bf16(word: u32, i: i32) -> f32 { return bitcast<f32>(select(word << 16u, word & 0xffff0000u, (i & 1) != 0)); }`,
  `fn get_i16(word: u32, i: i32) -> i32 { return extractBits(bitcast<i32>(word), u32(i & 1) << 4u, 16u); }`,
  `fn get_u16(word: u32, i: i32) -> u32 { return extractBits(word, u32(i & 1) << 4u, 16u); }`,
  `fn get_i8(word: u32, i: i32) -> i32 { return extractBits(bitcast<i32>(word), u32(i & 3) << 3u, 8u); }`,
  `fn get_u8(word: u32, i: i32) -> u32 { return extractBits(word, u32(i & 3) << 3u, 8u); }`,
  `fn get_bool(word: u32, i: i32) -> bool { return extractBits(word, u32(i & 3) << 3u, 8u) != 0u; }`,
  `fn unpack_f16(word: u32) -> vec2f { return unpack2x16float(word); }`,
  `fn unpack_bf16(word: u32) -> vec2f { return bitcast<vec2f>(vec2u(word << 16u, word & 0xffff0000u)); }`,
  `fn unpack_i16(word: u32) -> vec2i { return bitcast<vec2i>(vec2u(word << 16u, word)) >> vec2u(16u); }`,
  `fn unpack_u16(word: u32) -> vec2u { return vec2u(word & 0xffffu, word >> 16u); }`,
  `fn unpack_i8(word: u32) -> vec4i { return bitcast<vec4i>(vec4u(word) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u); }`,
  `fn unpack_u8(word: u32) -> vec4u { return (vec4u(word) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(0xffu); }`,
  `fn unpack_bool(word: u32) -> vec4<bool> {
  return (vec4u(word) & vec4u(0xffu, 0xff00u, 0xff0000u, 0xff000000u)) != vec4u(0u);
}`,
  // The bits of the nearest half, ties to even. pack2x16float may truncate, and gives NaN beyond
  // 65536 on one adapter.
  `fn half_U(x: F) -> U {
  let bits = bitcast<I>(x) & I(0x7fffffff);
  let normal = bitcast<U>(bits - 0x38000000 + 0xfff + ((bits >> U(13u)) & I(1))) >> U(13u);
  let subnormal = bitcast<U>(nearest_F(bitcast<F>(bits) * 16777216.0));
  let finite = select(normal, subnormal, bits < I(0x38800000));
  let size = select(finite, select(U(0x7c00u), U(0x7e00u), bits > I(0x7f800000)), bits >= I(0x477ff000));
  return size | ((bitcast<U>(x) >> U(16u)) & U(0x8000u));
}`,
  // The nearest bfloat16 in the upper half, ties to even; NaN stays one.
  `fn brain_U(x: F) -> U {
  let bits = bitcast<U>(x);
  let near = bits + U(0x7fffu) + ((bits >> U(16u)) & U(1u));
  return select(near, bits | U(0x00400000u), is_nan_F(x)) & U(0xffff0000u);
}`,
  // The same roundings, still in f32.
  `fn round_f16_F(x: F) -> F {
  let bits = bitcast<I>(x) & I(0x7fffffff);
  let normal = bitcast<F>((bits + 0xfff + ((bits >> U(13u)) & I(1))) & I(-8192));
  let subnormal = F(nearest_F(bitcast<F>(bits) * 16777216.0)) * 5.9604644775390625e-8;
  let finite = select(normal, subnormal, bits < I(0x38800000));
  let size = select(finite, bitcast<F>(max(bits, I(0x7f800000))), bits >= I(0x477ff000));
  return with_sign_F(size, x);
}`,
  `fn round_bf16_F(x: F) -> F { return bitcast<F>(brain_U(x)); }`,
  // Parts of words: the low half as a float, a byte, two bytes or none as 16 bits with a sign.
  `fn half_float_F(x: U) -> F { return F(EACH[unpack2x16float(x@).x]); }`,
  `fn byte_U(x: U, place: U) -> U { return (x >> (place << U(3u))) & U(255u); }`,
  `fn byte_I(x: U, place: U) -> I { return bitcast<I>(x << (U(24u) - (place << U(3u)))) >> U(24u); }`,
  `fn even_bytes_U(x: U) -> U {
  return (bitcast<U>(bitcast<I>(x << U(24u)) >> U(24u)) & U(0xffffu)) | (bitcast<U>(bitcast<I>(x << U(8u)) >> U(24u)) << U(16u));
}`,
  `fn odd_bytes_U(x: U) -> U {
  return (bitcast<U>(bitcast<I>(x << U(16u)) >> U(24u)) & U(0xffffu)) | (bitcast<U>(bitcast<I>(x) >> U(24u)) << U(16u));
}`,
  `fn dot_halves_I(x: U, y: U) -> I {
  let low = (bitcast<I>(x << U(16u)) >> U(16u)) * (bitcast<I>(y << U(16u)) >> U(16u));
  return low + (bitcast<I>(x) >> U(16u)) * (bitcast<I>(y) >> U(16u));
}`,
  `fn bits_f16(x: f32) -> u32 { return half_u32(x); }`,
  `fn bits_bf16(x: f32) -> u32 { return brain_u32(x) >> 16u; }`,
  `fn bits_i16(x: i32) -> u32 { return bitcast<u32>(x) & 0xffffu; }`,
  `fn bits_u16(x: u32) -> u32 { return x & 0xffffu; }`,
  `fn bits_i8(x: i32) -> u32 { return bitcast<u32>(x) & 0xffu; }`,
  `fn bits_u8(x: u32) -> u32 { return x & 0xffu; }`,
  `fn bits_bool(x: bool) -> u32 { return select(0u, 1u, x); }`,
  `fn pack_f16(x: vec2f) -> u32 {
  let bits = half_u32x2(x);
  return bits.x | (bits.y << 16u);
}`,
  `fn pack_bf16(x: vec2f) -> u32 {
  let bits = brain_u32x2(x);
  return (bits.x >> 16u) | bits.y;
}`,
  `fn pack_i16(x: vec2i) -> u32 { return pack_u16(bitcast<vec2u>(x)); }`,
  `fn pack_u16(x: vec2u) -> u32 { return (x.x & 0xffffu) | (x.y << 16u); }`,
  `fn pack_i8(x: vec4i) -> u32 { return pack_u8(bitcast<vec4u>(x)); }`,
  `fn pack_u8(x: vec4u) -> u32 {
  let low = x & vec4u(0xffu);
  return low.x | (low.y << 8u) | (low.z << 16u) | (low.w << 24u);
}`,
  `fn pack_bool(x: vec4<bool>) -> u32 {
  let bits = select(vec4u(0u), vec4u(1u, 0x100u, 0x10000u, 0x1000000u), x);
  return bits.x | bits.y | bits.z | bits.w;
}`,
  `fn unpack_f16x4(words: vec2u) -> vec4f { return vec4f(unpack_f16(words.x), unpack_f16(words.y)); }`,
  `fn unpack_bf16x4(words: vec2u) -> vec4f {
  return bitcast<vec4f>(vec4u(words.x << 16u, words.x & 0xffff0000u, words.y << 16u, words.y & 0xffff0000u));
}`,
  `fn unpack_i16x4(words: vec2u) -> vec4i { return vec4i(unpack_i16(words.x), unpack_i16(words.y)); }`,
  `fn unpack_u16x4(words: vec2u) -> vec4u { return vec4u(unpack_u16(words.x), unpack_u16(words.y)); }`,
  `fn pack_f16x4(x: vec4f) -> vec2u {
  let bits = half_u32x4(x);
  return bits.xz | (bits.yw << vec2u(16u));
}`,
  `fn pack_bf16x4(x: vec4f) -> vec2u {
  let bits = brain_u32x4(x);
  return (bits.xz >> vec2u(16u)) | bits.yw;
}`,
  `fn pack_i16x4(x: vec4i) -> vec2u { return vec2u(pack_i16(x.xy), pack_i16(x.zw)); }`,
  `fn pack_u16x4(x: vec4u) -> vec2u { return vec2u(pack_u16(x.xy), pack_u16(x.zw)); }`,
];
