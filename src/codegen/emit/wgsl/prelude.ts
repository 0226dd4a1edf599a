// The functions that generated WGSL calls: written once for all widths, spelled at the widths a
// kernel uses, in the order of their calls. The types F, I, U and B stand for f32, vec2f or vec4f
// (and so on); `tanh_F` becomes tanh_f32x4.

import { CompilerBug } from '../../../errors.ts';
import type { Width } from '../../loop/loop.ts';
import { mathFunctions } from './prelude-math.ts';
import { memoryFunctions } from './prelude-memory.ts';
import { wideFunctions } from './prelude-wide.ts';
import { typeName } from './types.ts';

// Integer functions of the prelude: shifts by any count, quotients, high products, random words.

/** Templates: F, I, U, B are f32, i32, u32, bool at some width. */
export const integerFunctions: readonly string[] = [
  `fn opaque_I(x: I) -> I { return x; }`,
  `fn opaque_U(x: U) -> U { return x; }`,
  // The lesser and the greater of vectors. Not the builtins: SwiftShader computes those of constant vectors wrong where the result
  // is compared (`min(vec4i(0, 1, 2, 3), vec4i(0)) == vec4i(0)` is false in every lane). Of scalars they are right.
  `fn min_I(a: I, b: I) -> I { return select(a, b, b < a); }`,
  `fn min_U(a: U, b: U) -> U { return select(a, b, b < a); }`,
  `fn max_I(a: I, b: I) -> I { return select(a, b, a < b); }`,
  `fn max_U(a: U, b: U) -> U { return select(a, b, a < b); }`,
  // A count below 0 or past 31 shifts everything out.
  `fn shl_I(a: I, count: I) -> I {
  return select(a << bitcast<U>(count), I(0), bitcast<U>(count) > U(31u));
}`,
  `fn shl_U(a: U, count: U) -> U {
  return select(a << count, U(0u), count > U(31u));
}`,
  `fn shr_I(a: I, count: I) -> I {
  return a >> min(bitcast<U>(count), U(31u));
}`,
  `fn shr_U(a: U, count: U) -> U {
  return select(a >> count, U(0u), count > U(31u));
}`,
  // WGSL gives x / 0 = x, x % 0 = 0, INT_MIN / −1 = INT_MIN; as functions, because constants of
  // that kind are errors. The zeros are replaced here too: a driver that knows them beforehand has
  // been seen to give 0.
  `fn div_I(a: I, b: I) -> I { return a / select(b, I(1), b == I(0)); }`,
  `fn div_U(a: U, b: U) -> U { return a / select(b, U(1u), b == U(0u)); }`,
  `fn mod_I(a: I, b: I) -> I { return a % select(b, I(1), b == I(0)); }`,
  `fn mod_U(a: U, b: U) -> U { return a % select(b, U(1u), b == U(0u)); }`,
  // ⌊a / b⌋ for positive b: ~a = −a − 1.
  `fn floor_div_I(a: I, b: I) -> I {
  return select(a / b, ~(~a / b), a < I(0));
}`,
  `fn floor_mod_I(a: I, b: I) -> I {
  let r = a % b;
  return select(r, r + b, r < I(0));
}`,
  // Upper half of the product, from 16-bit halves.
  `fn mulhi_U(a: U, b: U) -> U {
  let a_low = a & U(0xffffu);
  let a_high = a >> U(16u);
  let b_low = b & U(0xffffu);
  let b_high = b >> U(16u);
  let first = a_high * b_low + ((a_low * b_low) >> U(16u));
  let second = a_low * b_high + (first & U(0xffffu));
  return a_high * b_high + (first >> U(16u)) + (second >> U(16u));
}`,
  // A negative factor counts 2³² too much in the unsigned product.
  `fn mulhi_I(a: I, b: I) -> I {
  let high = bitcast<I>(mulhi_U(bitcast<U>(a), bitcast<U>(b)));
  return high - select(I(0), b, a < I(0)) - select(I(0), a, b < I(0));
}`,
  // Philox 4x32-10 (Salmon et al. 2011): the four words of element i's block.
  `fn philox_u32x4(key_low: u32, key_high: u32, low: u32, high: u32, i: i32) -> vec4u {
  let start = low + (u32(i) >> 2u);
  var c = vec4u(start, high + select(0u, 1u, start < low), 0u, 0u);
  var key = vec2u(key_low, key_high);
  for (var turn = 0; turn < 10; turn++) {
    let factors = vec2u(0xd2511f53u, 0xcd9e8d57u);
    let product_low = factors * c.xz;
    let product_high = mulhi_u32x2(factors, c.xz);
    c = vec4u(product_high.y ^ c.y ^ key.x, product_low.y, product_high.x ^ c.w ^ key.y, product_low.x);
    key += vec2u(0x9e3779b9u, 0xbb67ae85u);
  }
  return c;
}`,
  `fn philox_u32(key_low: u32, key_high: u32, low: u32, high: u32, i: i32) -> u32 {
  return philox_u32x4(key_low, key_high, low, high, i)[i & 3];
}`,
];

const scalars = { F: 'f32', I: 'i32', U: 'u32', B: 'bool' } as const;
const widths: readonly Width[] = [1, 2, 4];

/** Spells types, names that end in one, and lists and loops over the lanes, at one width. */
function atWidth(text: string, width: Width): string {
  const lanes = width === 1 ? [''] : [...'xyzw'].slice(0, width).map((lane) => `.${lane}`);
  const looped = width === 1 ? text.replaceAll('[lane]', '') : text;
  return looped
    .replaceAll('LANES', String(width))
    .replace(/EACH\[(.*?)\]/g, (_, each: string) =>
      lanes.map((lane) => each.replaceAll('@', lane)).join(', '),
    )
    .replace(/_([FIUB])\b/g, (_, letter: 'F') => `_${scalars[letter]}${width === 1 ? '' : `x${width}`}`)
    .replace(/\b([FIUB])\b/g, (_, letter: keyof typeof scalars) => typeName(scalars[letter], width))
    .replace(/\b(?:f32|i32|u32)\((-?[\d][\w.]*(?:e[+-]\d+)?)\)/g, '$1');
}

const nameOf = (text: string): string => /^(?:fn|struct) (\w+)/.exec(text)![1]!;

type Definitions = ReadonlyMap<string, string>;

function definitionsOf(templates: readonly string[]): Definitions {
  return new Map(
    templates.flatMap((template) =>
      widths.map((width) => {
        const text = atWidth(template, width);
        return [nameOf(text), text] as const;
      }),
    ),
  );
}

let defined: Definitions | undefined;

/** All functions, spelled when the first is asked for. */
function definitions(): Definitions {
  return (defined ??= new Map([
    ...definitionsOf([...integerFunctions, ...mathFunctions, ...memoryFunctions]),
    ...wideFunctions.map((text) => [nameOf(text), text] as const),
  ]));
}

function definition(name: string): string {
  const text = definitions().get(name);
  if (text === undefined) throw new CompilerBug('wgsl', `there is no function ${name}`);
  return text;
}

/** Whether the prelude may define the name. */
export function isPreludeName(name: string): boolean {
  return definitions().has(name);
}

/** The functions one module calls. */
export class WgslPrelude {
  readonly #used = new Set<string>();

  /** The name of a function at a width, from then on part of the prelude. */
  use(template: string, width: Width): string {
    const name = atWidth(template, width);
    this.#add(name);
    return name;
  }

  /** The functions used, each after those it calls. */
  get text(): string {
    return [...this.#used].map(definition).join('\n\n');
  }

  #add(name: string): void {
    if (this.#used.has(name)) return;
    const text = definition(name);
    for (const [word] of text.matchAll(/\w+/g)) if (word !== name && isPreludeName(word)) this.#add(word);
    this.#used.add(name);
  }
}
