// Functions that generated WGSL calls where a builtin is missing, faulty, or undefined on special values. Each is written once
// for all widths: the types F, I, U and B stand for f32, vec2f or vec4f (and so on), and `tanh_F` becomes tanh_f32x4.

import type { Width } from '../loop.ts';

const functions = [
  `fn opaque_F(x: F) -> F { return x; }`,
  `fn opaque_I(x: I) -> I { return x; }`,
  `fn opaque_U(x: U) -> U { return x; }`,
  `fn opaque_B(x: B) -> B { return x; }`,
  `fn inf_F() -> F { var bits = U(0x7f800000u); return bitcast<F>(bits); }`,
  `fn nan_F() -> F { var bits = U(0x7fc00000u); return bitcast<F>(bits); }`,
  `fn is_nan_F(x: F) -> B { return (bitcast<U>(x) & U(0x7fffffffu)) > U(0x7f800000u); }`,
  `fn min_F(a: F, b: F) -> F { return select(min(a, b), a + b, is_nan_F(a) | is_nan_F(b)); }`,
  `fn max_F(a: F, b: F) -> F { return select(max(a, b), a + b, is_nan_F(a) | is_nan_F(b)); }`,
  `fn expm1_F(x: F) -> F { return exp(x) - F(1.0); }`,
  `fn log1p_F(x: F) -> F { return log(x + F(1.0)); }`,
  `fn tanh_F(x: F) -> F { return tanh(clamp(x, F(-9.0), F(9.0))); }`,
  `fn erf_F(x: F) -> F { return x; }`,
  `fn mulhi_U(a: U, b: U) -> U { return a; }`,
  `fn mulhi_I(a: I, b: I) -> I { return a; }`,
  `fn philox_U(k0: u32, k1: u32, c0: u32, c1: u32, i: i32) -> U { return U(k0); }`,
  `fn shl_I(a: I, b: I) -> I { return select(a << bitcast<U>(b), I(0), bitcast<U>(b) > U(31u)); }`,
  `fn shl_U(a: U, b: U) -> U { return select(a << b, U(0u), b > U(31u)); }`,
  `fn shr_I(a: I, b: I) -> I { return a >> min(bitcast<U>(b), U(31u)); }`,
  `fn shr_U(a: U, b: U) -> U { return select(a >> b, U(0u), b > U(31u)); }`,
  `fn div_I(a: I, b: I) -> I { return a / b; }`,
  `fn div_U(a: U, b: U) -> U { return a / b; }`,
  `fn mod_I(a: I, b: I) -> I { return a % b; }`,
  `fn mod_U(a: U, b: U) -> U { return a % b; }`,
  `fn floor_div_I(a: I, b: I) -> I { return select(a / b, ~(~a / b), a < I(0)); }`,
  `fn floor_mod_I(a: I, b: I) -> I { let r = a % b; return select(r, r + b, r < I(0)); }`,
  `fn round_f16_F(x: F) -> F { return x; }`,
  `fn round_bf16_F(x: F) -> F {
  let bits = bitcast<U>(x);
  return select(bitcast<F>((bits + U(0x7fffu) + ((bits >> U(16u)) & U(1u))) & U(0xffff0000u)), x, is_nan_F(x));
}`,
  `fn int_F(x: F) -> I { return select(I(x), I(0), is_nan_F(x)); }`,
  `fn uint_F(x: F) -> U { return select(U(x), U(0u), is_nan_F(x)); }`,
  // Narrow elements in 32-bit words: one element by its index, or all of a word.
  `fn get_f16(word: u32, i: i32) -> f32 { return unpack2x16float(word)[i & 1]; }`,
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
  `fn unpack_bool(word: u32) -> vec4<bool> { return unpack_u8(word) != vec4u(0u); }`,
  `fn bits_f16(x: f32) -> u32 { return pack_f16(vec2f(x, 0.0)); }`,
  `fn bits_bf16(x: f32) -> u32 { return bitcast<u32>(round_bf16_f32(x)) >> 16u; }`,
  `fn bits_i16(x: i32) -> u32 { return bitcast<u32>(x) & 0xffffu; }`,
  `fn bits_u16(x: u32) -> u32 { return x & 0xffffu; }`,
  `fn bits_i8(x: i32) -> u32 { return bitcast<u32>(x) & 0xffu; }`,
  `fn bits_u8(x: u32) -> u32 { return x & 0xffu; }`,
  `fn bits_bool(x: bool) -> u32 { return select(0u, 1u, x); }`,
  `fn pack_f16(x: vec2f) -> u32 {
  let safe = pack2x16float(clamp(x, vec2f(-65536.0), vec2f(65536.0)));
  let nan = vec2u(0x7e00u, 0x7e000000u);
  let wrong = is_nan_f32x2(x);
  let kept = select(vec2u(0xffffu, 0xffff0000u) & vec2u(safe), nan, wrong);
  return kept.x | kept.y;
}`,
  `fn pack_bf16(x: vec2f) -> u32 { return bits_bf16(x.x) | (bits_bf16(x.y) << 16u); }`,
  `fn pack_i16(x: vec2i) -> u32 { return pack_u16(bitcast<vec2u>(x)); }`,
  `fn pack_u16(x: vec2u) -> u32 { return (x.x & 0xffffu) | (x.y << 16u); }`,
  `fn pack_i8(x: vec4i) -> u32 { return pack_u8(bitcast<vec4u>(x)); }`,
  `fn pack_u8(x: vec4u) -> u32 {
  let low = x & vec4u(0xffu);
  return low.x | (low.y << 8u) | (low.z << 16u) | (low.w << 24u);
}`,
  `fn pack_bool(x: vec4<bool>) -> u32 { return pack_u8(select(vec4u(0u), vec4u(1u), x)); }`,
];

const nameOf = (text: string): string => /^fn (\w+)/.exec(text)![1]!;
const table: ReadonlyMap<string, string> = new Map(functions.map((text) => [nameOf(text), text]));

const types = { F: 'f32', I: 'i32', U: 'u32', B: 'bool' } as const;

/** Spells the types F, I, U, B and the names that end in them for one width. */
function atWidth(text: string, width: Width): string {
  return text.replace(/(_)?\b([FIUB])\b|_([FIUB])\b/g, (_, __, type: string, suffix: string) => {
    if (suffix !== undefined) return `_${types[suffix as 'F']}${width === 1 ? '' : `x${width}`}`;
    const scalar = types[type as 'F'];
    return width === 1 ? scalar : type === 'B' ? `vec${width}<bool>` : `vec${width}${scalar[0]}`;
  });
}

const widths: readonly Width[] = [1, 2, 4];

/** Every name a prelude may define. */
export const preludeNames: ReadonlySet<string> = new Set(
  [...table.keys()].flatMap((name) => widths.map((width) => atWidth(name, width))),
);

const concrete: ReadonlyMap<string, string> = new Map(
  functions.flatMap((text) =>
    widths.map((width) => [atWidth(nameOf(text), width), atWidth(text, width)] as const),
  ),
);

/** The functions one module calls. */
export class Prelude {
  readonly #used = new Map<string, string>();

  /** The name of a function at a width, from then on part of the prelude. */
  use(template: string, width: Width): string {
    const name = atWidth(template, width);
    this.#add(name);
    return name;
  }

  /** The functions used, each after those it calls. */
  get text(): string {
    return [...this.#used.values()].join('\n');
  }

  #add(name: string): void {
    if (this.#used.has(name)) return;
    const text = concrete.get(name);
    if (text === undefined) return;
    for (const [callee] of text.matchAll(/\b\w+\b/g))
      if (callee !== name && concrete.has(callee)) this.#add(callee);
    this.#used.set(name, text);
  }
}
