// The functions that generated WGSL calls: written once for all widths, spelled at the widths a
// kernel uses, in the order of their calls. The types F, I, U and B stand for f32, vec2f or vec4f
// (and so on); `tanh_F` becomes tanh_f32x4.

import type { Width } from '../../loop/loop.ts';
import { integerFunctions } from './prelude-integer.ts';
import { mathFunctions } from './prelude-math.ts';
import { memoryFunctions } from './prelude-memory.ts';
import { typeName } from './types.ts';

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

const definitions: ReadonlyMap<string, string> = new Map(
  [...integerFunctions, ...mathFunctions, ...memoryFunctions].flatMap((template) =>
    widths.map((width) => {
      const text = atWidth(template, width);
      return [nameOf(text), text] as const;
    }),
  ),
);

/** Every name a prelude may define. */
export const preludeNames: ReadonlySet<string> = new Set(definitions.keys());

/** The functions one module calls. */
export class Prelude {
  readonly #used = new Set<string>();

  /** The name of a function at a width, from then on part of the prelude. */
  use(template: string, width: Width): string {
    const name = atWidth(template, width);
    this.#add(name);
    return name;
  }

  /** The functions used, each after those it calls. */
  get text(): string {
    return [...this.#used].map((name) => definitions.get(name)!).join('\n\n');
  }

  #add(name: string): void {
    if (this.#used.has(name)) return;
    const text = definitions.get(name)!;
    for (const [word] of text.matchAll(/\w+/g)) if (word !== name && definitions.has(word)) this.#add(word);
    this.#used.add(name);
  }
}
