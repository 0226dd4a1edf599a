// The functions that generated WGSL calls: written once for all widths, spelled at the widths a
// kernel uses, in the order of their calls. The types F, I, U and B stand for f32, vec2f or vec4f
// (and so on); `tanh_F` becomes tanh_f32x4.

import { CompilerBug } from '../../../errors.ts';
import type { Width } from '../../loop/loop.ts';
import { integerFunctions } from './prelude-integer.ts';
import { mathFunctions } from './prelude-math.ts';
import { memoryFunctions } from './prelude-memory.ts';
import { wideFunctions } from './prelude-wide.ts';
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
