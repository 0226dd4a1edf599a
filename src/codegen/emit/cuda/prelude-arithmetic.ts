// Arithmetic on scalars where C says nothing or something else: NaN through minima, integers that
// wrap around or are divided by zero, shifts by any count, floats beyond the integers. Once for 32
// bits and once for 64.

import { inline } from './prelude-matrix.ts';

/** Functions on one type of float; `suffix` is that of C's functions on it. */
export function floatFunctions(
  type: 'f32' | 'f64',
  c: string,
  suffix: string,
): Readonly<Record<string, string>> {
  const number = (digits: string): string => `${digits}${suffix}`;
  /** To integers: truncates, saturates, NaN to 0. */
  const toSigned = (to: 'i32' | 'i64', name: string, past: string, highest: string, lowest: string): string =>
    inline(
      `${name} ${to}_of_${type}(${c} x)`,
      `if (x >= ${number(past)}) return ${highest};`,
      `if (x <= -${number(past)}) return ${lowest};`,
      `return x == x ? ${name}(x) : 0;`,
    );
  const toUnsigned = (to: 'u32' | 'u64', name: string, past: string, highest: string): string =>
    inline(
      `${name} ${to}_of_${type}(${c} x)`,
      `if (x >= ${number(past)}) return ${highest};`,
      `return x > ${number('0.0')} ? ${name}(x) : 0;`,
    );
  const longest = '9223372036854775807LL';
  const extreme = (name: 'min' | 'max'): string => {
    const portable = `return a != a || b != b ? a + b : f${name}${suffix}(a, b);`;
    const declared = `${c} ${name}_${type}(${c} a, ${c} b)`;
    if (type === 'f64') return inline(declared, portable);
    // One instruction from compute capability 8 on.
    return inline(
      declared,
      '#if __CUDA_ARCH__ >= 800 && !defined(SINTER_HOST)',
      'float x;',
      `asm("${name}.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));`,
      'return x;',
      '#else',
      portable,
      '#endif',
    );
  };
  return {
    // NaN wins; a + b is one when either is.
    [`min_${type}`]: extreme('min'),
    [`max_${type}`]: extreme('max'),
    // NVRTC's isnan gives an int.
    [`is_nan_${type}`]: inline(`bool is_nan_${type}(${c} x)`, 'return x != x;'),
    [`sign_${type}`]: inline(
      `${c} sign_${type}(${c} x)`,
      `return ${c}(x > ${number('0.0')}) - ${c}(x < ${number('0.0')});`,
    ),
    [`square_${type}`]: inline(`${c} square_${type}(${c} x)`, 'return x * x;'),
    [`cube_${type}`]: inline(`${c} cube_${type}(${c} x)`, 'return x * x * x;'),
    [`i32_of_${type}`]: toSigned('i32', 'int', '2147483648.0', '2147483647', '-2147483647 - 1'),
    [`u32_of_${type}`]: toUnsigned('u32', 'unsigned', '4294967296.0', '4294967295u'),
    [`i64_of_${type}`]: toSigned('i64', 'i64', '9223372036854775808.0', longest, `-${longest} - 1`),
    [`u64_of_${type}`]: toUnsigned('u64', 'u64', '18446744073709551616.0', '18446744073709551615ULL'),
  };
}

/** Functions on the integers of one size. */
export function integerFunctions(bits: '32' | '64', s: string, u: string): Readonly<Record<string, string>> {
  const last = Number(bits) - 1;
  const both = (
    name: string,
    parameters: readonly string[],
    signed: string,
    unsigned: string,
  ): Readonly<Record<string, string>> => {
    const define = (kind: 'i' | 'u', c: string, text: string): readonly [string, string] => {
      const declared = parameters.map((parameter) => `${c} ${parameter}`).join(', ');
      return [
        `${name}_${kind}${bits}`,
        inline(`${c} ${name}_${kind}${bits}(${declared})`, `return ${text};`),
      ];
    };
    return Object.fromEntries([define('i', s, signed), define('u', u, unsigned)]);
  };
  const signedOnly = (
    name: string,
    parameters: readonly string[],
    text: string,
  ): Readonly<Record<string, string>> => {
    const declared = parameters.map((parameter) => `${s} ${parameter}`).join(', ');
    return { [`${name}_i${bits}`]: inline(`${s} ${name}_i${bits}(${declared})`, `return ${text};`) };
  };
  return {
    // Wrapping around, which C leaves undefined on signed integers.
    ...signedOnly('add', ['a', 'b'], `${s}(${u}(a) + ${u}(b))`),
    ...signedOnly('sub', ['a', 'b'], `${s}(${u}(a) - ${u}(b))`),
    ...signedOnly('mul', ['a', 'b'], `${s}(${u}(a) * ${u}(b))`),
    ...signedOnly('neg', ['x'], `${s}(0u - ${u}(x))`),
    ...signedOnly('abs', ['x'], `x < 0 ? neg_i${bits}(x) : x`),
    ...signedOnly('sign', ['x'], `${s}(x > 0) - ${s}(x < 0)`),
    ...both('min', ['a', 'b'], 'a < b ? a : b', 'a < b ? a : b'),
    ...both('max', ['a', 'b'], 'a < b ? b : a', 'a < b ? b : a'),
    // x / 0 = x, x mod 0 = 0, and the least integer divided by −1 is itself.
    ...both('div', ['a', 'b'], `b == 0 ? a : b == -1 ? neg_i${bits}(a) : a / b`, 'b == 0u ? a : a / b'),
    ...both('mod', ['a', 'b'], 'b == 0 || b == -1 ? 0 : a % b', 'b == 0u ? 0u : a % b'),
    // A count below 0 or past the last bit shifts everything out.
    ...both(
      'shl',
      ['a', 'count'],
      `${u}(count) > ${last}u ? 0 : ${s}(${u}(a) << count)`,
      `count > ${last}u ? 0u : a << count`,
    ),
    ...both(
      'shr',
      ['a', 'count'],
      `a >> (${u}(count) > ${last}u ? ${last} : count)`,
      `count > ${last}u ? 0u : a >> count`,
    ),
  };
}
