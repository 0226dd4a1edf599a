// Scalar functions that generated CUDA C calls, by name: where C or the device's own functions differ from the interpreter on special
// values, and where C says nothing about overflow. What is PTX stands under SINTER_HOST's absence: a compiler for the
// host brings functions of the same names.

import { device, inline, matrixFunctions } from './prelude-matrix.ts';

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
      'unsigned short bits;',
      'asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));',
      'return bits;',
    ),
  ),
  f16_to_float: inline('float f16_to_float(f16 x)', 'return cuda_f16_to_f32(x);'),
  float_to_f16: inline('f16 float_to_f16(float x)', 'return cuda_f32_to_f16(x);'),
  bf16_to_float: inline('float bf16_to_float(bf16 x)', 'return __uint_as_float(unsigned(x) << 16);'),
  float_to_bf16: inline('bf16 float_to_bf16(float x)', 'return cuda_f32_to_bf16(x);'),
  round_f16: inline('float round_f16(float x)', 'return f16_to_float(float_to_f16(x));'),
  round_bf16: inline('float round_bf16(float x)', 'return bf16_to_float(float_to_bf16(x));'),

  // NaN wins; a + b is one when either is.
  min_f32: inline('float min_f32(float a, float b)', 'return a != a || b != b ? a + b : fminf(a, b);'),
  max_f32: inline('float max_f32(float a, float b)', 'return a != a || b != b ? a + b : fmaxf(a, b);'),
  sign_f32: inline('float sign_f32(float x)', 'return float(x > 0.0f) - float(x < 0.0f);'),
  square_f32: inline('float square_f32(float x)', 'return x * x;'),
  cube_f32: inline('float cube_f32(float x)', 'return x * x * x;'),
  // Truncates, saturates, NaN to 0.
  float_to_int: inline(
    'int float_to_int(float x)',
    'if (x >= 2147483648.0f) return 2147483647;',
    'if (x <= -2147483648.0f) return -2147483647 - 1;',
    'return x == x ? int(x) : 0;',
  ),
  float_to_uint: inline(
    'unsigned float_to_uint(float x)',
    'if (x >= 4294967296.0f) return 4294967295u;',
    'return x > 0.0f ? unsigned(x) : 0u;',
  ),

  // Signed arithmetic that wraps around, which C leaves undefined.
  add_i32: inline('int add_i32(int a, int b)', 'return int(unsigned(a) + unsigned(b));'),
  sub_i32: inline('int sub_i32(int a, int b)', 'return int(unsigned(a) - unsigned(b));'),
  mul_i32: inline('int mul_i32(int a, int b)', 'return int(unsigned(a) * unsigned(b));'),
  neg_i32: inline('int neg_i32(int x)', 'return int(0u - unsigned(x));'),
  abs_i32: inline('int abs_i32(int x)', 'return x < 0 ? neg_i32(x) : x;'),
  sign_i32: inline('int sign_i32(int x)', 'return int(x > 0) - int(x < 0);'),
  min_i32: inline('int min_i32(int a, int b)', 'return a < b ? a : b;'),
  max_i32: inline('int max_i32(int a, int b)', 'return a < b ? b : a;'),
  min_u32: inline('unsigned min_u32(unsigned a, unsigned b)', 'return a < b ? a : b;'),
  max_u32: inline('unsigned max_u32(unsigned a, unsigned b)', 'return a < b ? b : a;'),
  // x / 0 = x, x mod 0 = 0, INT_MIN / −1 = INT_MIN.
  div_i32: inline('int div_i32(int a, int b)', 'return b == 0 ? a : b == -1 ? neg_i32(a) : a / b;'),
  mod_i32: inline('int mod_i32(int a, int b)', 'return b == 0 || b == -1 ? 0 : a % b;'),
  div_u32: inline('unsigned div_u32(unsigned a, unsigned b)', 'return b == 0u ? a : a / b;'),
  mod_u32: inline('unsigned mod_u32(unsigned a, unsigned b)', 'return b == 0u ? 0u : a % b;'),
  // ⌊a / b⌋ for positive b: ~a = −a − 1.
  floor_div_i32: inline('int floor_div_i32(int a, int b)', 'return a < 0 ? ~(~a / b) : a / b;'),
  floor_mod_i32: inline(
    'int floor_mod_i32(int a, int b)',
    'const int rest = a % b;',
    'return rest < 0 ? rest + b : rest;',
  ),
  // A count below 0 or past 31 shifts everything out.
  shl_i32: inline(
    'int shl_i32(int a, int count)',
    'return unsigned(count) > 31u ? 0 : int(unsigned(a) << count);',
  ),
  shl_u32: inline('unsigned shl_u32(unsigned a, unsigned count)', 'return count > 31u ? 0u : a << count;'),
  shr_i32: inline('int shr_i32(int a, int count)', 'return a >> (unsigned(count) > 31u ? 31 : count);'),
  shr_u32: inline('unsigned shr_u32(unsigned a, unsigned count)', 'return count > 31u ? 0u : a >> count;'),
  mulhi_i32: inline('int mulhi_i32(int a, int b)', 'return int(((long long)a * b) >> 32);'),
  mulhi_u32: inline(
    'unsigned mulhi_u32(unsigned a, unsigned b)',
    'return unsigned(((unsigned long long)a * b) >> 32);',
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

  pack_f16: packed('f16'),
  pack_bf16: packed('bf16'),

  ...matrixFunctions,

  // Atomics that CUDA lacks: an exchange that is tried until nobody came between.
  ...Object.fromEntries(
    [
      ['mul', 'f32', 'old * x'],
      ['min', 'f32', 'min_f32(old, x)'],
      ['max', 'f32', 'max_f32(old, x)'],
      ['mul', 'i32', 'mul_i32(old, x)'],
      ['mul', 'u32', 'old * x'],
    ].map(([op, type, folded]) => [`atomic_${op}_${type}`, exchange(`atomic_${op}_${type}`, type!, folded!)]),
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

function exchange(name: string, type: string, folded: string): string {
  const [c, into, from] = {
    f32: ['float', '__float_as_uint', '__uint_as_float'],
    i32: ['int', 'unsigned', 'int'],
    u32: ['unsigned', 'unsigned', 'unsigned'],
  }[type] as [string, string, string];
  return `__device__ inline void ${name}(${c} *at, ${c} x) {
  unsigned *word = reinterpret_cast<unsigned *>(at);
  unsigned seen = *word;
  unsigned before;
  do {
    before = seen;
    const ${c} old = ${from}(before);
    seen = atomicCAS(word, before, ${into}(${folded}));
  } while (seen != before);
}`;
}

/** Text by name. */
export const definitions: ReadonlyMap<string, string> = new Map(Object.entries(table));
