// Operations on vectors that C has no operator for, written with those that it has: a choice is made with the bits of a mask, for which
// compilers have one instruction. A loop over lanes would mostly be taken apart into scalars. What even that does not give is asked of
// the compiler by name where it knows the name, and else done lane by lane.

import type { LoopOp, RegisterType, Width } from '../../loop/loop.ts';
import { isLong } from '../../loop/register.ts';
import { isFloat, isUnsigned } from '../shared/c-spelling.ts';
import type { CPrelude, VectorBody } from './prelude.ts';

/** A function of vectors `x`, `y` and `z` of one width. */
export interface VectorFunction {
  /**
   * `min_zero` and `max_zero`: of operands of which one is the zero that, in order, lies beyond the other zero. `dot_add`: what dotI16
   * gives of the first two, added to the third.
   */
  readonly op: LoopOp | 'min_zero' | 'max_zero' | 'dot_add';
  readonly type: RegisterType;
  readonly width: Width;
  /** Types of the operands. */
  readonly types: readonly RegisterType[];
  readonly prelude: CPrelude;
}

/** Instructions that compilers know by a name, as an expression for the width; undefined where there is none. */
export function builtinOf({ op, type, width, prelude }: VectorFunction): string | undefined {
  if (op === 'dotI16') {
    const halves = halvesOf(prelude, width);
    if (halves === undefined) return undefined;
    const args = `(${halves})x, (${halves})y`;
    if (width < 16) return `__builtin_ia32_pmaddwd${32 * width}(${args})`;
    return `__builtin_ia32_pmaddwd512_mask(${args}, (${prelude.type('i32', width)}){0}, 0xffff)`;
  }
  if (op === 'dot_add') {
    const words = prelude.type('i32', width);
    return `__builtin_ia32_vpdpwssd_v${width}si(z, (${words})x, (${words})y)`;
  }
  if (!isFloat(type)) return undefined;
  const bits = (type === 'f32' ? 32 : 64) * width;
  if (bits !== 128 && bits !== 256 && bits !== 512) return undefined;
  const kind = type === 'f32' ? 'ps' : 'pd';
  // All lanes, in the type that GCC declares for it.
  const all = type === 'f32' ? '-1' : '0xff';
  const named = (name: string, args: string, mask = all): string =>
    bits === 512
      ? `__builtin_ia32_${name}${kind}512_mask(${args}, ${mask}, 4)`
      : `__builtin_ia32_${name}${kind}${bits === 256 ? '256' : ''}(${args})`;
  const rounded = (mode: number): string =>
    bits === 512 ? `__builtin_ia32_rndscale${kind}_mask(x, ${mode}, x, -1, 4)` : named('round', `x, ${mode}`);
  switch (op) {
    // Of two numbers the second one, unless the first is beyond it.
    case 'pmin':
      return named('min', bits === 512 ? 'y, x, x' : 'y, x');
    case 'pmax':
      return named('max', bits === 512 ? 'y, x, x' : 'y, x');
    case 'fma':
      return named('vfmadd', 'x, y, z');
    case 'sqrt':
      return named('sqrt', bits === 512 ? 'x, x' : 'x', '-1');
    // The eight: nobody is told what was rounded.
    case 'round':
      return rounded(8);
    case 'floor':
      return rounded(9);
    case 'ceil':
      return rounded(10);
    case 'trunc':
      return rounded(11);
    default:
      return undefined;
  }
}

/** The type of the 16-bit halves of so many words; undefined where no register is that wide. */
function halvesOf(prelude: CPrelude, width: Width): string | undefined {
  if (width === 4) return prelude.vector('i16', 8);
  if (width === 8) return prelude.vector('i16', 16);
  return width === 16 ? prelude.vector('i16', 32) : undefined;
}

/** The function in operators; undefined where it is to be done lane by lane. */
export function vectorBody(given: VectorFunction): VectorBody | undefined {
  const { op, type, width, types, prelude } = given;
  if (op === 'cast') return truncated(given);
  if (type === 'bool') return undefined;
  const own = prelude.type(type, width);
  const choose = (test: string, yes: string, no: string): string =>
    chosen(prelude, width, type, test, yes, no);
  const word = prelude.type(isLong(type) ? 'u64' : 'u32', width);
  const bits = isLong(type) ? 64 : 32;
  switch (op) {
    case 'where': {
      const mask = isLong(type) ? `__builtin_convertvector(x, ${prelude.type('i64', width)})` : 'x';
      return { result: choose(mask, 'y', 'z') };
    }
    case 'min_zero':
      return { result: choose('(y <= x)', 'y', 'x') };
    case 'max_zero':
      return { result: choose('(x <= y)', 'y', 'x') };
    case 'pmin':
      return { result: choose('(y < x)', 'y', 'x') };
    case 'pmax':
      return { result: choose('(x < y)', 'y', 'x') };
    case 'min':
    case 'max': {
      const [first, join] = op === 'min' ? (['(x < y)', '|'] as const) : (['(y < x)', '&'] as const);
      if (!isFloat(type)) return { result: choose(first, 'x', 'y') };
      // NaN wins, and −0 is less than 0.
      const zeros = `(${own})((${word})x ${join} (${word})y)`;
      return {
        lines: [
          `const ${own} one = ${choose(first, 'x', 'y')};`,
          `const ${own} ordered = ${choose('(x == y)', zeros, 'one')};`,
        ],
        result: choose('(x != x)', 'x', 'ordered'),
      };
    }
    case 'abs':
      if (!isFloat(type)) return undefined;
      return { result: `(${own})((${word})x & ${type === 'f32' ? '0x7fffffffu' : '0x7fffffffffffffffULL'})` };
    case 'shl':
    case 'shr': {
      // Counts outside of the word shift all bits out.
      const inside = `((${word})y < ${bits})`;
      const count = `(${word})y & ${bits - 1}`;
      if (op === 'shl') return { result: `(${own})(((${word})x << (${count})) & (${word})${inside})` };
      if (isUnsigned(type)) return { result: `(x >> (${count})) & (${word})${inside}` };
      return { result: choose(inside, `(x >> (${own})(${count}))`, `(x >> ${bits - 1})`) };
    }
    case 'byteU':
    case 'byteS': {
      if (isLong(type) || types[0] !== 'u32') return undefined;
      const words = prelude.type('u32', width);
      const at = `(${types[1] === 'u32' ? 'y' : `(${words})y`} * 8)`;
      const low = `(x >> ${at})`;
      if (op === 'byteU') return { result: `(${own})(${low} & 255)` };
      const signed = prelude.type('i32', width);
      return { result: `(${own})((${signed})(${low} << 24) >> 24)` };
    }
    case 'evenI8':
    case 'oddI8': {
      const halves = halvesOf(prelude, width);
      if (halves === undefined) return undefined;
      return { result: `(${own})((${halves})${op === 'evenI8' ? '(x << 8)' : 'x'} >> 8)` };
    }
    case 'dotI16': {
      const low = (word: string): string => `((${own})(${word} << 16) >> 16)`;
      const high = (word: string): string => `((${own})${word} >> 16)`;
      const words = prelude.type('u32', width);
      const sums = [low, high].map((half) => `(${words})(${half('x')} * ${half('y')})`);
      return { result: `(${own})(${sums.join(' + ')})` };
    }
    default:
      return undefined;
  }
}

/** One of two values in each lane, by a mask of their size. */
export function chosen(
  prelude: CPrelude,
  width: Width,
  type: RegisterType,
  test: string,
  yes: string,
  no: string,
): string {
  const mask = isLong(type) ? 'i64' : 'i32';
  if (type === mask) return `(${yes} & ${test}) | (${no} & ~${test})`;
  const bits = prelude.type(mask, width);
  const own = prelude.type(type, width);
  const [a, b] = [yes, no].map((value) => `(${bits})${value}`);
  return `(${own})((${a} & ${test}) | (${b} & ~${test}))`;
}

/** Floats as integers: the nearest toward 0, of those that there are; of NaN, 0. */
function truncated(given: VectorFunction): VectorBody | undefined {
  const { type, types, width, prelude } = given;
  const from = types[0]!;
  if (from === 'f32' && (type === 'i64' || type === 'u64')) return truncatedWide(given);
  if (from !== 'f32' || type !== 'i32') return undefined;
  const own = prelude.type(type, width);
  const floats = prelude.type(from, width);
  const words = prelude.type('u32', width);
  return {
    lines: [
      `const ${own} inside = (x >= -2147483648.0f) & (x < 2147483648.0f);`,
      `const ${own} near = __builtin_convertvector((${floats})((${own})x & inside), ${own});`,
      // The sign bit alone is the least integer, one less is the largest.
      `const ${words} beyond = ((${words})(x < 0.0f) & 0x80000000u) | ((${words})(x >= 0.0f) & 0x7fffffffu);`,
    ],
    result: `near | (${own})(beyond & ~(${words})inside)`,
  };
}

/** The same of floats as integers of 64 bits. Lane by lane, GCC 12 ends with an internal error where the processor has AVX-512. */
function truncatedWide({ type, width, prelude }: VectorFunction): VectorBody {
  const own = prelude.type(type, width);
  const floats = prelude.type('f32', width);
  const masks = prelude.type('i32', width);
  const words = prelude.type('u64', width);
  const wide = (mask: string): string =>
    `(${words})__builtin_convertvector(${mask}, ${prelude.type('i64', width)})`;
  const [low, high] =
    type === 'i64'
      ? ['-9223372036854775808.0f', '9223372036854775808.0f']
      : ['0.0f', '18446744073709551616.0f'];
  const beyond =
    type === 'i64'
      ? `(${wide('(x < 0.0f)')} & 0x8000000000000000ULL) | (${wide('(x >= 0.0f)')} & 0x7fffffffffffffffULL)`
      : wide('(x >= 0.0f)');
  return {
    lines: [
      `const ${masks} inside = (x >= ${low}) & (x < ${high});`,
      `const ${own} near = __builtin_convertvector((${floats})((${masks})x & inside), ${own});`,
      `const ${words} beyond = ${beyond};`,
    ],
    result: `near | (${own})(beyond & ~${wide('inside')})`,
  };
}
