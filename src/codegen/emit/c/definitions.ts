// Functions on scalars that kernels call, by name: what C has no operator for, or leaves undefined.

import { CompilerBug } from '../../../errors.ts';
import type { RegisterType } from '../../loop/loop.ts';
import { scalarType } from './types.ts';

/** What a definition asks for before itself. */
interface Uses {
  use(name: string): string;
}

type Integer = 'i32' | 'u32' | 'i64' | 'u64';
type Float = 'f32' | 'f64';

/** A function of one expression. */
function inline(name: string, result: string, params: string, value: string): string {
  return `static inline ${result} ${name}(${params}) {\n  return ${value};\n}`;
}

const unsignedOf = { i32: 'u32', u32: 'u32', i64: 'u64', u64: 'u64' } as const;
const bitsOf = { f32: 'u32', f64: 'u64' } as const;

/** Integers wrap around: signed ones are added, subtracted and multiplied as unsigned ones. */
const wrapping =
  (operator: '+' | '-' | '*') =>
  (name: string, type: Integer): string => {
    const [own, word] = [scalarType(type), scalarType(unsignedOf[type])];
    return inline(name, own, `${own} x, ${own} y`, `(${own})((${word})x ${operator} (${word})y)`);
  };

const lowest = { i32: 'INT32_MIN', i64: 'INT64_MIN' } as const;

const ofIntegers: Readonly<Record<string, (name: string, type: Integer) => string>> = {
  add: wrapping('+'),
  sub: wrapping('-'),
  mul: wrapping('*'),
  neg: (name, type) => {
    const [own, word] = [scalarType(type), scalarType(unsignedOf[type])];
    return inline(name, own, `${own} x`, `(${own})(0 - (${word})x)`);
  },
  abs: (name, type) => {
    const [own, word] = [scalarType(type), scalarType(unsignedOf[type])];
    return inline(name, own, `${own} x`, `x < 0 ? (${own})(0 - (${word})x) : x`);
  },
  div: (name, type) => {
    const own = scalarType(type);
    const divided =
      type === 'i32' || type === 'i64'
        ? `x / (y == 0 || (x == ${lowest[type]} && y == -1) ? 1 : y)`
        : 'x / (y == 0 ? 1 : y)';
    return `// By 0, the dividend.\n${inline(name, own, `${own} x, ${own} y`, divided)}`;
  },
  mod: (name, type) => {
    const own = scalarType(type);
    const rest =
      type === 'i32' || type === 'i64' ? 'x % (y == 0 || y == -1 ? 1 : y)' : 'x % (y == 0 ? 1 : y)';
    return `// By 0, nothing is left.\n${inline(name, own, `${own} x, ${own} y`, rest)}`;
  },
  shl: (name, type) => {
    const [own, word] = [scalarType(type), scalarType(unsignedOf[type])];
    const bits = type === 'i64' || type === 'u64' ? 64 : 32;
    const inside = `(${word})y < ${bits} ? (${own})((${word})x << y) : 0`;
    return `// Counts outside of the word shift all bits out.\n${inline(name, own, `${own} x, ${own} y`, inside)}`;
  },
  shr: (name, type) => {
    const [own, word] = [scalarType(type), scalarType(unsignedOf[type])];
    const bits = type === 'i64' || type === 'u64' ? 64 : 32;
    const outside = type === 'i32' || type === 'i64' ? `x >> ${bits - 1}` : '0';
    const inside = `(${word})y < ${bits} ? x >> y : ${outside}`;
    return `// Counts outside of the word shift all bits out.\n${inline(name, own, `${own} x, ${own} y`, inside)}`;
  },
  min: (name, type) =>
    inline(name, scalarType(type), `${scalarType(type)} x, ${scalarType(type)} y`, 'y < x ? y : x'),
  max: (name, type) =>
    inline(name, scalarType(type), `${scalarType(type)} x, ${scalarType(type)} y`, 'x < y ? y : x'),
  mulhi: (name, type) => {
    const own = scalarType(type);
    const wide = type === 'i32' ? 'int64_t' : 'uint64_t';
    return inline(name, own, `${own} x, ${own} y`, `(${own})((${wide})x * y >> 32)`);
  },
  eq: (name, type) => inline(name, '_Bool', `${scalarType(type)} x, ${scalarType(type)} y`, 'x == y'),
  ne: (name, type) => inline(name, '_Bool', `${scalarType(type)} x, ${scalarType(type)} y`, 'x != y'),
  lt: (name, type) => inline(name, '_Bool', `${scalarType(type)} x, ${scalarType(type)} y`, 'x < y'),
  le: (name, type) => inline(name, '_Bool', `${scalarType(type)} x, ${scalarType(type)} y`, 'x <= y'),
};

/** The first of two floats in order, −0 before 0; NaN wins. */
const extreme =
  (kind: 'min' | 'max') =>
  (name: string, type: Float, to: Uses): string => {
    const own = scalarType(type);
    const [bits, back] = [to.use(`${bitsOf[type]}_bits_${type}`), to.use(`${type}_bits_${bitsOf[type]}`)];
    const [less, join] = kind === 'min' ? ['x < y', '|'] : ['y < x', '&'];
    return [
      kind === 'min' ? '// NaN wins, and −0 is less than 0.' : '// NaN wins, and 0 is more than −0.',
      `static inline ${own} ${name}(${own} x, ${own} y) {`,
      `  const ${own} one = ${less} ? x : y;`,
      `  const ${own} ordered = x == y ? ${back}(${bits}(x) ${join} ${bits}(y)) : one;`,
      '  return x != x ? x : ordered;',
      '}',
    ].join('\n');
  };

const builtin =
  (name: string) =>
  (own: string, type: Float): string =>
    inline(
      own,
      scalarType(type),
      `${scalarType(type)} x`,
      `__builtin_${name}${type === 'f32' ? 'f' : ''}(x)`,
    );

const ofFloats: Readonly<Record<string, (name: string, type: Float, to: Uses) => string>> = {
  min: extreme('min'),
  max: extreme('max'),
  floor: builtin('floor'),
  ceil: builtin('ceil'),
  nearest: builtin('rint'),
  trunc: builtin('trunc'),
  sqrt: builtin('sqrt'),
  fma: (name, type) => {
    const own = scalarType(type);
    const f = type === 'f32' ? 'f' : '';
    const params = `${own} x, ${own} y, ${own} z`;
    return [
      '// One instruction where the processor has it.',
      `static inline ${own} ${name}(${params}) {`,
      `#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMA${f.toUpperCase()})`,
      `  return __builtin_fma${f}(x, y, z);`,
      '#else',
      '  return x * y + z;',
      '#endif',
      '}',
    ].join('\n');
  },
};

/** 2 to a power, as a literal of a float type. */
const power = (bits: number, type: Float): string => `${2 ** bits}.0${type === 'f32' ? 'f' : ''}`;

/** Truncation that saturates; NaN gives 0. */
function saturated(name: string, to: Integer, from: Float): string {
  const [own, given] = [scalarType(to), scalarType(from)];
  const bits = to === 'i64' || to === 'u64' ? 64 : 32;
  const isSigned = to === 'i32' || to === 'i64';
  const high = power(isSigned ? bits - 1 : bits, from);
  const low = isSigned ? `-${high}` : `0.0${from === 'f32' ? 'f' : ''}`;
  const limit = `${isSigned ? '' : 'U'}INT${bits}`;
  const below = isSigned ? `x < ${low} ? ${limit}_MIN : ` : '';
  return [
    '// The nearest integer toward 0, of those that there are; of NaN, 0.',
    `static inline ${own} ${name}(${given} x) {`,
    `  const ${given} inside = x >= ${low} && x < ${high} ? x : 0;`,
    `  return x >= ${high} ? ${limit}_MAX : ${below}(${own})inside;`,
    '}',
  ].join('\n');
}

function reinterpreted(name: string, to: RegisterType, from: RegisterType): string {
  const [own, given] = [scalarType(to), scalarType(from)];
  return `static inline ${own} ${name}(${given} x) {\n  ${own} r;\n  __builtin_memcpy(&r, &x, sizeof r);\n  return r;\n}`;
}

const philoxRounds = `  for (int i = 0; i < 10; i++) {
    const uint64_t p = (uint64_t)x * 0xd2511f53u, q = (uint64_t)z * 0xcd9e8d57u;
    x = (uint32_t)(q >> 32) ^ y ^ key_lo;
    y = (uint32_t)q;
    z = (uint32_t)(p >> 32) ^ w ^ key_hi;
    w = (uint32_t)p;
    key_lo += 0x9e3779b9u;
    key_hi += 0xbb67ae85u;
  }`;

/** Functions that there is one of. */
const single: Readonly<Record<string, (to: Uses) => string>> = {
  // Scaling by 2¹¹² makes subnormals normal.
  f32_of_f16: (to) => {
    const [bits, back] = [to.use('u32_bits_f32'), to.use('f32_bits_u32')];
    return `// The float that the low 16 bits of a word are: scaled, as its exponents are others.
static inline float f32_of_f16(uint32_t x) {
  const float scaled = ${back}((x & 0x7fffu) << 13) * 5192296858534827628530496329220096.0f;
  // Infinities and NaN keep their fraction under the largest exponent.
  const uint32_t special = scaled >= 65536.0f ? 0x7f800000u : 0u;
  return ${back}(${bits}(scaled) | special | (x & 0x8000u) << 16);
}`;
  },
  f16_of_f32: (to) => {
    const [bits, back] = [to.use('u32_bits_f32'), to.use('f32_bits_u32')];
    return `// The nearest 16-bit float, of two the even one.
static inline uint16_t f16_of_f32(float x) {
  const uint32_t word = ${bits}(x), size = word & 0x7fffffffu;
  // The exponent's bias changes, and half of the last place is added, a little less where that is even.
  const uint32_t normal = (size + 0xc8000fffu + ((size >> 13) & 1u)) >> 13;
  // Below 2^-14: added to a half, the last bits are those of the result.
  const uint32_t small = ${bits}(${back}(size) + 0.5f) - 0x3f000000u;
  const uint32_t finite = size > 0x387fffffu ? normal : small;
  const uint32_t other = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return (uint16_t)((size < 0x47800000u ? finite : other) | ((word >> 16) & 0x8000u));
}`;
  },
  bf16_of_f32: (to) => `// The nearest bfloat16, of two the even one; NaN gives the quiet one.
static inline uint16_t bf16_of_f32(float x) {
  const uint32_t word = ${to.use('u32_bits_f32')}(x);
  const uint32_t nearest = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  return (uint16_t)(x != x ? 0x7fc0u : nearest);
}`,
  f32_of_bf16: (to) => inline('f32_of_bf16', 'float', 'uint32_t x', `${to.use('f32_bits_u32')}(x << 16)`),
  round_tf32: (to) => {
    const [bits, back] = [to.use('u32_bits_f32'), to.use('f32_bits_u32')];
    return inline(
      'round_tf32',
      'float',
      'float x',
      `x - x == 0 ? ${back}((${bits}(x) + 0x1000u) & 0xffffe000u) : x`,
    );
  },
  pack_f16: (to) =>
    inline(
      'pack_f16',
      'uint32_t',
      'float x, float y',
      `${to.use('f16_of_f32')}(x) | (uint32_t)f16_of_f32(y) << 16`,
    ),
  pack_bf16: (to) =>
    inline(
      'pack_bf16',
      'uint32_t',
      'float x, float y',
      `${to.use('bf16_of_f32')}(x) | (uint32_t)bf16_of_f32(y) << 16`,
    ),
  even_bytes: () =>
    `// Bytes 0 and 2 with their signs, as 16 bits each.\n${inline('even_bytes', 'uint32_t', 'uint32_t x', '(uint16_t)(int8_t)x | (uint32_t)(uint16_t)(int8_t)(x >> 16) << 16')}`,
  odd_bytes: () =>
    `// Bytes 1 and 3 with their signs, as 16 bits each.\n${inline('odd_bytes', 'uint32_t', 'uint32_t x', '(uint16_t)(int8_t)(x >> 8) | (uint32_t)(uint16_t)(int8_t)(x >> 24) << 16')}`,
  dot_halves: () =>
    [
      '// The products of the low and of the high 16 bits, with signs, added.',
      'static inline int32_t dot_halves(uint32_t x, uint32_t y) {',
      '  const int32_t low = (int16_t)x * (int16_t)y, high = (int16_t)(x >> 16) * (int16_t)(y >> 16);',
      '  return (int32_t)((uint32_t)low + (uint32_t)high);',
      '}',
    ].join('\n'),
  floor_div_i32: () => inline('floor_div_i32', 'int32_t', 'int32_t x, int32_t y', 'x / y - (x % y < 0)'),
  floor_mod_i32: () =>
    inline('floor_mod_i32', 'int32_t', 'int32_t x, int32_t y', 'x % y < 0 ? x % y + y : x % y'),
  philox_block: () => `// Philox 4x32-10 (Salmon et al., 2011): the four words of a block, behind a counter.
static inline void philox_block(
    uint32_t key_lo, uint32_t key_hi, uint32_t counter_lo, uint32_t counter_hi, uint32_t block, uint32_t *words) {
  uint32_t x = counter_lo + block, y = counter_hi + (x < counter_lo), z = 0, w = 0;
${philoxRounds}
  words[0] = x;
  words[1] = y;
  words[2] = z;
  words[3] = w;
}`,
  philox_word: (to) => `static inline uint32_t philox_word(
    uint32_t key_lo, uint32_t key_hi, uint32_t counter_lo, uint32_t counter_hi, int32_t element) {
  uint32_t words[4];
  ${to.use('philox_block')}(key_lo, key_hi, counter_lo, counter_hi, (uint32_t)element >> 2, words);
  return words[element & 3];
}`,
};

const integers: readonly string[] = ['i32', 'u32', 'i64', 'u64', 'bool'];

/** The text of a function, by its name: `add_i32`, `min_f32`, `i32_of_f32`, `u32_bits_f32`, `atomic_min_i32`. */
export function definitions(name: string, to: Uses): string {
  const one = single[name];
  if (one !== undefined) return one(to);
  const cast = /^([iu]\d+)_of_(f\d+)$/.exec(name);
  if (cast !== null) return saturated(name, cast[1] as Integer, cast[2] as Float);
  const bits = /^([a-z]\d+)_bits_([a-z]\d+)$/.exec(name);
  if (bits !== null) return reinterpreted(name, bits[1] as RegisterType, bits[2] as RegisterType);
  const atomic = /^atomic_([a-z]+)_([a-z]\d+)$/.exec(name);
  if (atomic !== null) return swapped(name, atomic[1]!, atomic[2] as Integer, to);
  const typed = /^([a-z]+)_([a-z]\d+|bool)$/.exec(name);
  if (typed !== null) {
    const [, verb, type] = typed as unknown as [string, string, string];
    const text = integers.includes(type)
      ? ofIntegers[verb]?.(name, type as Integer)
      : ofFloats[verb]?.(name, type as Float, to);
    if (text !== undefined) return text;
  }
  throw new CompilerBug('emit-c', `no function is called ${name}`);
}

/** A compare-and-swap loop, for operations without an atomic instruction. */
function swapped(name: string, op: string, type: Integer, to: Uses): string {
  const own = scalarType(type);
  const order = '__ATOMIC_RELAXED';
  return [
    `static inline void ${name}(${own} *p, ${own} x) {`,
    `  ${own} old = __atomic_load_n(p, ${order});`,
    `  while (!__atomic_compare_exchange_n(p, &old, ${to.use(`${op}_${type}`)}(old, x), 1, ${order}, ${order})) {`,
    '  }',
    '}',
  ].join('\n');
}
