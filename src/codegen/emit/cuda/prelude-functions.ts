// Scalar functions that generated CUDA C calls, by name: where C or the device's own functions
// differ from the interpreter on special values, and where C says nothing about overflow. PTX is
// compiled only where SINTER_HOST is not defined: a build for the host supplies functions of the
// same names.

import { floatFunctions, integerFunctions } from './prelude-arithmetic.ts';
import { device, inline, matrixFunctions } from './prelude-matrix.ts';
import { warpgroupFunctions } from './prelude-warpgroup.ts';

type Atomic = 'f32' | 'i32' | 'u32' | 'f64' | 'i64' | 'u64';

/** What a fold makes of `old` and `x`. */
function folds(type: Atomic): Readonly<Record<string, string>> {
  const isFloat = type === 'f32' || type === 'f64';
  const isSigned = type === 'i32' || type === 'i64';
  return {
    add: isSigned ? `add_${type}(old, x)` : 'old + x',
    mul: isSigned ? `mul_${type}(old, x)` : 'old * x',
    min: `min_${type}(old, x)`,
    max: `max_${type}(old, x)`,
    ...(isFloat ? {} : { and: 'old & x', or: 'old | x' }),
  };
}

const words: Readonly<Record<Atomic, readonly [c: string, word: string, into: string, from: string]>> = {
  f32: ['float', 'unsigned', '__float_as_uint', '__uint_as_float'],
  i32: ['int', 'unsigned', 'unsigned', 'int'],
  u32: ['unsigned', 'unsigned', 'unsigned', 'unsigned'],
  f64: ['double', 'u64', '__double_as_longlong', '__longlong_as_double'],
  i64: ['i64', 'u64', 'u64', 'i64'],
  u64: ['u64', 'u64', 'u64', 'u64'],
};

const table: Readonly<Record<string, string>> = {
  f16: 'using f16 = unsigned short;',
  bf16: 'using bf16 = unsigned short;',
  u16: 'using u16 = unsigned short;',
  i8: 'using i8 = signed char;',
  u8: 'using u8 = unsigned char;',
  i64: 'using i64 = long long;',
  u64: 'using u64 = unsigned long long;',

  // 16-bit floats by the device's own conversions: to the nearest, ties to even.
  cuda_f16_to_f32: device(
    inline(
      'float cuda_f16_to_f32(unsigned short bits)',
      'float x;',
      'asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));',
      'return x;',
    ),
  ),
  cuda_f32_to_f16: device(
    inline(
      'unsigned short cuda_f32_to_f16(float x)',
      'unsigned short bits;',
      'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));',
      'return bits;',
    ),
  ),
  cuda_f32_to_bf16: device(
    inline(
      'unsigned short cuda_f32_to_bf16(float x)',
      '#if __CUDA_ARCH__ >= 800',
      'unsigned short bits;',
      'asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));',
      'return bits;',
      '#else',
      'const unsigned bits = __float_as_uint(x);',
      'return static_cast<unsigned short>((x == x ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits | 0x400000u) >> 16);',
      '#endif',
    ),
  ),
  f16_to_float: inline('float f16_to_float(f16 x)', 'return cuda_f16_to_f32(x);'),
  float_to_f16: inline('f16 float_to_f16(float x)', 'return cuda_f32_to_f16(x);'),
  bf16_to_float: inline('float bf16_to_float(bf16 x)', 'return __uint_as_float(unsigned(x) << 16);'),
  float_to_bf16: inline('bf16 float_to_bf16(float x)', 'return cuda_f32_to_bf16(x);'),
  round_f16: inline('float round_f16(float x)', 'return f16_to_float(float_to_f16(x));'),
  round_bf16: inline('float round_bf16(float x)', 'return bf16_to_float(float_to_bf16(x));'),

  ...floatFunctions('f32', 'float', 'f'),
  ...floatFunctions('f64', 'double', ''),
  ...integerFunctions('32', 'int', 'unsigned'),
  ...integerFunctions('64', 'i64', 'u64'),
  mulhi_i32: inline('int mulhi_i32(int a, int b)', 'return int(((long long)a * b) >> 32);'),
  mulhi_u32: inline(
    'unsigned mulhi_u32(unsigned a, unsigned b)',
    'return unsigned(((unsigned long long)a * b) >> 32);',
  ),
  mulhi_i64: inline('i64 mulhi_i64(i64 a, i64 b)', 'return __mul64hi(a, b);'),
  mulhi_u64: inline('u64 mulhi_u64(u64 a, u64 b)', 'return __umul64hi(a, b);'),
  // ⌊a / b⌋ for positive b: ~a = −a − 1.
  floor_div_i32: inline('int floor_div_i32(int a, int b)', 'return a < 0 ? ~(~a / b) : a / b;'),
  floor_mod_i32: inline(
    'int floor_mod_i32(int a, int b)',
    'const int rest = a % b;',
    'return rest < 0 ? rest + b : rest;',
  ),
  // Philox 4x32-10 (Salmon et al. 2011): the four words of element i's block.
  philox_block: `__device__ inline uint4 philox_block(unsigned key_low, unsigned key_high, unsigned low, unsigned high, int i) {
  unsigned c0 = low + (unsigned(i) >> 2);
  unsigned c1 = high + (c0 < low ? 1u : 0u);
  unsigned c2 = 0u;
  unsigned c3 = 0u;
  for (int turn = 0; turn < 10; turn++) {
    const unsigned high0 = mulhi_u32(0xd2511f53u, c0);
    const unsigned high1 = mulhi_u32(0xcd9e8d57u, c2);
    const unsigned low0 = 0xd2511f53u * c0;
    const unsigned low1 = 0xcd9e8d57u * c2;
    c0 = high1 ^ c1 ^ key_low;
    c1 = low1;
    c2 = high0 ^ c3 ^ key_high;
    c3 = low0;
    key_low += 0x9e3779b9u;
    key_high += 0xbb67ae85u;
  }
  return uint4{c0, c1, c2, c3};
}`,
  philox_word: `__device__ inline unsigned philox_word(unsigned key_low, unsigned key_high, unsigned low, unsigned high, int i) {
  const uint4 block = philox_block(key_low, key_high, low, high, i);
  const int word = i & 3;
  return word == 0 ? block.x : word == 1 ? block.y : word == 2 ? block.z : block.w;
}`,

  exp2_normal: inline(
    'float exp2_normal(float x)',
    '#ifdef SINTER_HOST',
    'const float power = exp2f(x);',
    'return power < 1.17549435e-38f ? 0.0f : power;',
    '#else',
    'float power;',
    'asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));',
    'return power;',
    '#endif',
  ),
  // One step of Newton's rounds the reciprocal as a quotient does. Quotients test besides whether it is a normal number.
  recip_normal: inline(
    'float recip_normal(float x)',
    '#ifdef SINTER_HOST',
    'const float by = fabsf(x);',
    'if (!(by >= 1.17549435e-38f && by <= 3.40282347e+38f)) return __builtin_nanf("");',
    'return by > 8.50705917e+37f ? 0.0f : 1.0f / x;',
    '#else',
    'float near;',
    'asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x));',
    'return __fmaf_rn(near, __fmaf_rn(-x, near, 1.0f), near);',
    '#endif',
  ),
  pack_f16: packed('f16'),
  pack_bf16: packed('bf16'),
  // Parts of words: the low half as a float, a byte, two bytes as 16 bits each with a sign.
  unpack_f16: inline('float unpack_f16(unsigned word)', 'return f16_to_float(f16(word & 0xffffu));'),
  // (x & mask) | bits, by the table of a function of three bits.
  and_or_u32: inline(
    'unsigned and_or_u32(unsigned x, unsigned mask, unsigned bits)',
    '#ifdef SINTER_HOST',
    'return (x & mask) | bits;',
    '#else',
    'unsigned word;',
    'asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(word) : "r"(x), "r"(mask), "r"(bits));',
    'return word;',
    '#endif',
  ),
  byte_u32: inline(
    'unsigned byte_u32(unsigned word, unsigned place)',
    'return (word >> (8u * place)) & 0xffu;',
  ),
  byte_i32: inline(
    'int byte_i32(unsigned word, unsigned place)',
    'return int(word << (24u - 8u * place)) >> 24;',
  ),
  even_bytes: inline(
    'unsigned even_bytes(unsigned word)',
    'return (unsigned(int(word << 24) >> 24) & 0xffffu) | unsigned(int(word << 8) >> 24) << 16;',
  ),
  odd_bytes: inline(
    'unsigned odd_bytes(unsigned word)',
    'return (unsigned(int(word << 16) >> 24) & 0xffffu) | unsigned(int(word) >> 24) << 16;',
  ),
  dot_halves: inline(
    'int dot_halves(unsigned a, unsigned b)',
    'return int(unsigned((int(a << 16) >> 16) * (int(b << 16) >> 16)) + unsigned((int(a) >> 16) * (int(b) >> 16)));',
  ),

  ...matrixFunctions,
  ...warpgroupFunctions,

  // Atomics that CUDA lacks, or has for unsigned long long only.
  ...Object.fromEntries(
    (['f32', 'i32', 'u32', 'f64', 'i64', 'u64'] as const).flatMap((type) =>
      Object.entries(folds(type)).map(([op, folded]) => {
        const name = `atomic_${op}_${type}`;
        return [name, exchange(name, type, folded)] as const;
      }),
    ),
  ),
};

/** Two floats in a word, rounded by one instruction. */
function packed(type: 'f16' | 'bf16'): string {
  return `__device__ __forceinline__ unsigned pack_${type}(float low, float high) {
#ifdef SINTER_HOST
  return unsigned(cuda_f32_to_${type}(low)) | unsigned(cuda_f32_to_${type}(high)) << 16;
#else
  unsigned word;
  asm("cvt.rn.${type}x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#endif
}`;
}

/** A compare-and-swap loop, for operations without an atomic instruction. */
function exchange(name: string, type: Atomic, folded: string): string {
  const [c, word, into, from] = words[type];
  return `__device__ inline void ${name}(${c} *at, ${c} x) {
  ${word} *word = reinterpret_cast<${word} *>(at);
  ${word} seen = *word;
  ${word} before;
  do {
    before = seen;
    const ${c} old = ${from}(before);
    seen = atomicCAS(word, before, ${into}(${folded}));
  } while (seen != before);
}`;
}

/** Text by name. */
export const definitions: ReadonlyMap<string, string> = new Map(Object.entries(table));
