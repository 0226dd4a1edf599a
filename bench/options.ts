// Options that several benches have: numbers, and lists of names.

/** The value of an option that is a whole number of at least 1. Throws an Error otherwise. */
export function count<K extends string>(option: K, values: Readonly<Partial<Record<K, string>>>): number {
  const number = Number(values[option]);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new Error(`--${option}: expects a whole number of at least 1, got '${values[option]}'`);
}

/** The names of a comma-separated list, in the order of `known`. Throws an Error at a name that is not there. */
export function chosen<T extends string>(option: string, list: string, known: readonly T[]): T[] {
  const names = list.split(',').map((name) => name.trim());
  const strange = names.find((name) => !(known as readonly string[]).includes(name));
  if (strange !== undefined)
    throw new Error(`--${option}: there is no '${strange}': expected some of ${known.join(', ')}`);
  return known.filter((name) => names.includes(name));
}
