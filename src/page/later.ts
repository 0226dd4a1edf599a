// Operations of which a page has no more than the name: the first call of one begins to load the part of Sinter that it
// comes with, and waits for it.

import type { Lazy } from '../lazy.ts';
import { patient, type Operation, type Traits } from '../tensor/waiting.ts';

type Operations = Readonly<Record<string, Operation>>;

/** The operation of a part that has this name. */
export function later<M extends object>(
  part: Lazy<M>,
  name: Extract<keyof M, string>,
  traits?: Traits,
): Operation {
  return patient((...args) => (part.value as Operations)[name]!(...args), traits);
}

/** Operations of a namespace, by name. */
export type Space = Readonly<Record<string, Operation>>;

/**
 * A namespace of a part: operations that give one tensor, by their names in one text; others; and classes, which cannot be
 * asked for before they have come.
 */
export function space<M extends object>(
  part: Lazy<M>,
  pick: (from: M) => object,
  names: string,
  others: Readonly<Record<string, Traits>> = {},
  classes: readonly string[] = [],
): Space {
  const member = (name: string): Operation => (pick(part.value) as Operations)[name]!;
  const operation = (name: string, traits?: Traits): readonly [string, Operation] => {
    return [name, patient((...args) => member(name)(...args), traits)];
  };
  const made = Object.fromEntries([
    ...(names.match(/\S+/g) ?? []).map((name) => operation(name)),
    ...Object.entries(others).map(([name, traits]) => operation(name, traits)),
  ]);
  for (const name of classes)
    Object.defineProperty(made, name, { enumerable: true, get: () => member(name) });
  return made;
}
