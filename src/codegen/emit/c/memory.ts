// Functions that read and write vectors of consecutive elements, wherever they begin. Elements that are narrower than lanes are
// converted, all at once.

import { dtypeBytes, lowered, type DType, type RealDType } from '../../../ir/dtype.ts';
import type { Width } from '../../loop/loop.ts';
import { widened } from '../../loop/register.ts';
import { chosen } from './lanes.ts';
import type { CPrelude } from './prelude.ts';
import { elementType } from './types.ts';

/** The function that reads consecutive elements. */
export function loadFunction(prelude: CPrelude, dtype: DType, width: Width): string {
  const plain = lowered(dtype);
  const name = `load_${plain}x${width}`;
  return prelude.define(name, () => {
    const own = prelude.type(widened(dtype), width);
    const elements = `*(const ${prelude.packed(dtype, width)} *)p`;
    return [
      `static inline ${own} ${name}(const ${elementType(dtype)} *p) {`,
      ...loadLines(prelude, plain, width, elements),
      '}',
    ].join('\n');
  });
}

function loadLines(prelude: CPrelude, dtype: RealDType, width: Width, elements: string): readonly string[] {
  const own = prelude.type(widened(dtype), width);
  const converted = (type: string): string => `__builtin_convertvector(${elements}, ${type})`;
  switch (dtype) {
    case 'f16': {
      const words = `${halvesToFloats(prelude, width)}(${converted(prelude.type('u32', width))})`;
      const whole = [`  return ${words};`];
      const halves = prelude.vector('i16', width === 16 ? 16 : 8);
      if (width === 16) {
        const builtin = `__builtin_ia32_vcvtph2ps512_mask((${halves})${elements}, (${own}){0}, -1, 4)`;
        return prelude.known(builtin, [`  return ${builtin};`], whole);
      }
      if (width === 8) {
        const builtin = `__builtin_ia32_vcvtph2ps256((${halves})${elements})`;
        return prelude.known(builtin, [`  return ${builtin};`], whole);
      }
      if (width !== 4) return whole;
      const pair = prelude.vector('u64', 2);
      const builtin = `__builtin_ia32_vcvtph2ps((${halves})(${pair}){four, 0})`;
      const lines = [
        '  uint64_t four;',
        '  __builtin_memcpy(&four, p, sizeof four);',
        `  return ${builtin};`,
      ];
      return prelude.known(builtin, lines, whole);
    }
    case 'bf16':
      return [`  return (${own})(${converted(prelude.type('u32', width))} << 16);`];
    case 'bool':
      return [`  return ${converted(own)} != 0;`];
    default:
      return [`  return ${dtypeBytes(dtype) < 4 ? converted(own) : elements};`];
  }
}

/** The function that writes consecutive elements. */
export function storeFunction(prelude: CPrelude, dtype: DType, width: Width): string {
  const plain = lowered(dtype);
  const name = `store_${plain}x${width}`;
  return prelude.define(name, () => {
    const type = prelude.type(widened(dtype), width);
    const packed = prelude.packed(dtype, width);
    return [
      `static inline void ${name}(${elementType(dtype)} *p, ${type} x) {`,
      `  *(${packed} *)p = ${stored(prelude, plain, width)};`,
      '}',
    ].join('\n');
  });
}

/** What elements are of the lanes of `x`. */
function stored(prelude: CPrelude, dtype: RealDType, width: Width): string {
  const packed = prelude.packed(dtype, width);
  const narrow = (value: string): string => `__builtin_convertvector(${value}, ${packed})`;
  switch (dtype) {
    case 'f16':
      return narrow(`${floatsToHalves(prelude, width)}(x)`);
    case 'bf16':
      return narrow(`${floatsToBrains(prelude, width)}(x)`);
    case 'bool':
      return narrow('x & 1');
    default:
      return dtypeBytes(dtype) < 4 ? narrow('x') : 'x';
  }
}

/** A function of one vector, by its lines and its result. */
function converting(
  prelude: CPrelude,
  name: string,
  [to, from]: readonly [to: string, from: string],
  lines: readonly string[],
): string {
  return prelude.define(name, () =>
    [`static inline ${to} ${name}(${from} x) {`, ...lines.map((line) => `  ${line}`), '}'].join('\n'),
  );
}

/** The floats that the low 16 bits of words are; scaling by 2¹¹² makes subnormals normal. */
export function halvesToFloats(prelude: CPrelude, width: Width): string {
  const [floats, words] = [prelude.type('f32', width), prelude.type('u32', width)];
  const low = prelude.type('i32', width);
  // What has F16C has SSE4.1 too.
  const known = [
    '#ifdef __F16C__',
    `const ${low} low = (${low})(x & 0xffffu);`,
    'return __builtin_ia32_vcvtph2ps(__builtin_ia32_packusdw128(low, low));',
    '#else',
  ];
  return converting(
    prelude,
    `${floats}_of_f16`,
    [floats, words],
    [
      ...(width === 4 ? known : []),
      `const ${floats} scaled = (${floats})((x & 0x7fffu) << 13) * 5192296858534827628530496329220096.0f;`,
      '// Infinities and NaN keep their fraction under the largest exponent.',
      `const ${words} special = (${words})(scaled >= 65536.0f) & 0x7f800000u;`,
      `return (${floats})((${words})scaled | special | (x & 0x8000u) << 16);`,
      ...(width === 4 ? ['#endif'] : []),
    ],
  );
}

/** The nearest 16-bit floats, of two the even one, in words. */
export function floatsToHalves(prelude: CPrelude, width: Width): string {
  const [floats, words] = [prelude.type('f32', width), prelude.type('u32', width)];
  const choose = (test: string, yes: string, no: string): string =>
    chosen(prelude, width, 'u32', test, yes, no);
  return converting(
    prelude,
    `f16_of_${floats}`,
    [words, floats],
    [
      `const ${words} word = (${words})x, size = word & 0x7fffffffu;`,
      "// The exponent's bias changes, and half of the last place is added, a little less where that is even.",
      `const ${words} normal = (size + 0xc8000fffu + ((size >> 13) & 1u)) >> 13;`,
      '// Below 2^-14: added to a half, the last bits are those of the result.',
      `const ${words} small = (${words})((${floats})size + 0.5f) - 0x3f000000u;`,
      `const ${words} finite = ${choose('(size > 0x387fffffu)', 'normal', 'small')};`,
      `const ${words} other = 0x7c00u | ((${words})(size > 0x7f800000u) & 0x0200u);`,
      `const ${words} whole = ${choose('(size < 0x47800000u)', 'finite', 'other')};`,
      'return whole | ((word >> 16) & 0x8000u);',
    ],
  );
}

/** The nearest bfloat16, of two the even one, in words; NaN gives the quiet one. */
export function floatsToBrains(prelude: CPrelude, width: Width): string {
  const [floats, words] = [prelude.type('f32', width), prelude.type('u32', width)];
  return converting(
    prelude,
    `bf16_of_${floats}`,
    [words, floats],
    [
      `const ${words} word = (${words})x, odd = (${words})(x != x);`,
      `const ${words} nearest = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;`,
      'return (nearest & ~odd) | (0x7fc0u & odd);',
    ],
  );
}
