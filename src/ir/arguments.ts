// Checks of the arguments of public functions, as data. A kind says which values it takes and how
// it refuses others; options are tables of kinds, one for each of their names, tied to their
// TypeScript type; a signature is a kind for each place. Nothing is recorded before a signature has
// passed. TypeScript's types are erased, so these checks are the only ones that users of JavaScript
// get. What makes them is declared free of side effects, so that bundlers drop the signatures of functions that nobody calls.

import { showValue, TensorError, type ErrorCode } from '../errors.ts';
import { dtypes, isDType, isFloat, type DType } from './dtype.ts';

/** Which values an argument takes. `T` is the argument's TypeScript type. */
export interface Kind<in out T> {
  accepts(value: unknown): boolean;
  /** Throws what is wrong with a value that is not accepted. */
  refuse(op: string, what: string, value: unknown): never;
  /** Never present: ties the kind to its type. */
  readonly type?: (value: T) => T;
}

/** A kind whose refusals are a sentence: `what must be a number, got 'a'`. */
/* @__NO_SIDE_EFFECTS__ */
export function kind<T>(
  expected: string,
  accepts: (value: unknown) => boolean,
  hint?: (value: unknown) => string | undefined,
  code: ErrorCode = 'E_VALUE',
): Kind<T> {
  const refuse = (op: string, what: string, value: unknown): never => {
    throw new TensorError(code, op, `${what} must be ${expected}, got ${showValue(value)}`, hint?.(value));
  };
  return { accepts, refuse };
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && !Number.isNaN(value);
}

/* @__NO_SIDE_EFFECTS__ */
function within(low: number, high: number): (value: unknown) => boolean {
  return (value) => isNumber(value) && value >= low && value <= high;
}

/** A number that stands in a formula: any but NaN. */
export const number: Kind<number> = kind('a number', isNumber);
/** A number that becomes an element: NaN and infinities too. */
export const element: Kind<number> = kind('a number', (value) => typeof value === 'number');
export const finite: Kind<number> = kind('a finite number', Number.isFinite);
export const positive: Kind<number> = kind('a positive number', (value) => isNumber(value) && value > 0);
export const notNegative: Kind<number> = kind('a number of at least 0', within(0, Infinity));
export const share: Kind<number> = kind('a number in [0, 1]', within(0, 1));
export const integer: Kind<number> = kind('an integer', Number.isSafeInteger);
export const flag: Kind<boolean> = kind('true or false', (value) => typeof value === 'boolean');
export const text: Kind<string> = kind('a string', (value) => typeof value === 'string');
/** Bytes of this or another realm, Node's Buffer among them. */
export function isBytes(value: unknown): value is Uint8Array {
  return Object.prototype.toString.call(value) === '[object Uint8Array]';
}

export const bytes: Kind<Uint8Array> = kind('bytes (a Uint8Array)', isBytes, (value) => {
  if (typeof value === 'string') return 'await readFile(path), or the bytes of a fetch';
  return value instanceof ArrayBuffer ? 'new Uint8Array(buffer)' : undefined;
});

/** An integer of at least `minimum`. */
/* @__NO_SIDE_EFFECTS__ */
export function count(minimum: number): Kind<number> {
  return kind(
    `an integer of at least ${minimum}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= minimum,
  );
}

/** Text by name. */
export const texts: Kind<Readonly<Record<string, string>>> = kind(
  'an object of strings',
  (value) => isPlainObject(value) && Object.values(value).every((at) => typeof at === 'string'),
);

/** Whether a value can be called; classes are functions that cannot. */
export function isCallable(value: unknown): value is (...args: never[]) => unknown {
  return typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value));
}

/** A function. */
/* @__NO_SIDE_EFFECTS__ */
export function callable<F>(): Kind<F> {
  return {
    accepts: isCallable,
    refuse(op, _, value): never {
      const isClass = typeof value === 'function';
      const got = isClass ? `the class ${value.name}` : showValue(value);
      const hint = isClass ? `new ${value.name}(…)` : undefined;
      throw new TensorError('E_VALUE', op, `expects a function, got ${got}`, hint);
    },
  };
}

/** The name of a dtype. */
export const dtype: Kind<DType> = {
  accepts: (value) => typeof value === 'string' && isDType(value),
  refuse(op, _, value): never {
    const problem = `no dtype is called ${showValue(value)}`;
    const near = typeof value === 'string' ? nearest(value, dtypes) : undefined;
    throw new TensorError('E_DTYPE', op, problem, near ?? `one of ${dtypes.join(' ')}`);
  },
};

/** The name of a dtype of floats. */
export const floatDType: Kind<DType> = {
  accepts: (value) => dtype.accepts(value) && isFloat(value as DType),
  refuse(op, what, value): never {
    if (!dtype.accepts(value)) return dtype.refuse(op, what, value);
    throw new TensorError('E_DTYPE', op, `${showValue(value)} has no fractions`, 'a float dtype');
  },
};

/** One of some words. */
/* @__NO_SIDE_EFFECTS__ */
export function oneOf<const T extends string>(...names: readonly T[]): Kind<T> {
  return {
    accepts: (value) => names.includes(value as T),
    refuse(op, what, value): never {
      const known = names.map((name) => `'${name}'`).join(', ');
      throw new TensorError('E_VALUE', op, `unknown ${what} ${showValue(value)}`, `one of ${known}`);
    },
  };
}

/** An argument that may be left out. */
/* @__NO_SIDE_EFFECTS__ */
export function optional<T>(inner: Kind<T>): Kind<T | undefined> {
  return {
    accepts: (value) => value === undefined || inner.accepts(value),
    refuse: (op, what, value) => inner.refuse(op, what, value),
  };
}

/** Either of two kinds; the second tells what is wrong. */
/* @__NO_SIDE_EFFECTS__ */
export function either<A, B>(first: Kind<A>, second: Kind<B>): Kind<A | B> {
  return {
    accepts: (value) => first.accepts(value) || second.accepts(value),
    refuse: (op, what, value) => second.refuse(op, what, value),
  };
}

/** Any value: the function itself checks it. */
/* @__NO_SIDE_EFFECTS__ */
export function anything<T>(): Kind<T> {
  return {
    accepts: () => true,
    refuse(op, what, value): never {
      throw new TensorError('E_VALUE', op, `refuses ${what}: ${showValue(value)}`);
    },
  };
}

/**
 * A value that the function itself checks, such as axes and shapes, which depend on the tensor;
 * null is refused here.
 */
/* @__NO_SIDE_EFFECTS__ */
export function inside<T>(): Kind<T> {
  return {
    accepts: (value) => value !== null,
    refuse(op, what, value): never {
      throw new TensorError('E_VALUE', op, `expects ${what} as integers, got ${showValue(value)}`);
    },
  };
}

/** An array whose items are of one kind. */
/* @__NO_SIDE_EFFECTS__ */
export function listOf<T>(item: Kind<T>): Kind<readonly T[]> {
  return {
    accepts: (value) => Array.isArray(value) && Array.from<unknown>(value).every((at) => item.accepts(at)),
    refuse(op, what, value): never {
      if (!Array.isArray(value))
        throw new TensorError('E_VALUE', op, `${what} must be an array, got ${showValue(value)}`);
      const wrong = Array.from<unknown>(value).findIndex((at) => !item.accepts(at));
      return item.refuse(op, `${what}[${wrong}]`, value[wrong]);
    },
  };
}

/**
 * Whether a value is an object as `{ … }` makes them, of this or another realm: no array, no
 * instance of a class.
 */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf');
}

/** An array of as many items, each of its kind. */
/* @__NO_SIDE_EFFECTS__ */
export function tupleOf<const P extends readonly unknown[]>(
  ...items: { readonly [K in keyof P]: Kind<P[K]> }
): Kind<Readonly<P>> {
  const kinds = items as unknown as readonly Kind<unknown>[];
  return {
    accepts: (value) =>
      Array.isArray(value) && value.length === kinds.length && kinds.every((at, i) => at.accepts(value[i])),
    refuse(op, what, value): never {
      if (!Array.isArray(value) || value.length !== kinds.length) {
        const problem = `${what} must be an array of ${kinds.length}, got ${showValue(value)}`;
        throw new TensorError('E_VALUE', op, problem);
      }
      const wrong = kinds.findIndex((at, i) => !at.accepts(value[i]));
      return kinds[wrong]!.refuse(op, `${what}[${wrong}]`, value[wrong]);
    },
  };
}

/** An array of numbers, or one of their typed arrays. */
export function isNumberList(value: unknown): value is ArrayLike<number> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value);
}

/** Integers of at least `minimum`: one for all axes, or a list of one each. */
/* @__NO_SIDE_EFFECTS__ */
export function sizes(minimum: number): Kind<number | readonly number[]> {
  const size = count(minimum);
  return {
    accepts: (value) =>
      size.accepts(value) ||
      (isNumberList(value) && value.length > 0 && Array.from(value).every((at) => size.accepts(at))),
    refuse(op, what, value): never {
      if (typeof value === 'number') return size.refuse(op, what, value);
      if (isNumberList(value) && value.length > 0) return listOf(size).refuse(op, what, Array.from(value));
      const problem = `expects ${what} as an array of integers, got ${showValue(value)}`;
      throw new TensorError('E_VALUE', op, problem);
    },
  };
}

/** The kind of each option, where it is given; every name of `O` is there. */
export type Table<O> = { readonly [K in keyof O]-?: Kind<Exclude<O[K], undefined>> };

/** The names that `O` demands. */
type Demanded<O> = { readonly [K in keyof O]-?: undefined extends O[K] ? never : K }[keyof O];

/**
 * An object of options, each of its kind, and none that is not in the table; `demanded` ones are
 * there.
 */
/* @__NO_SIDE_EFFECTS__ */
export function settings<O extends object>(table: Table<O>, demanded: readonly Demanded<O>[] = []): Kind<O> {
  const kinds = new Map(Object.entries(table as unknown as Readonly<Record<string, Kind<unknown>>>));
  const needed = demanded as readonly string[];
  return {
    accepts(value) {
      if (!isPlainObject(value)) return false;
      for (const name in value) {
        const at = kinds.get(name);
        if (at === undefined) return false;
        const given = value[name];
        if (given !== undefined && !at.accepts(given)) return false;
      }
      return needed.every((name) => value[name] !== undefined);
    },
    refuse(op, _, value): never {
      if (!isPlainObject(value)) throw notOptions(op, value, [...kinds.keys()]);
      for (const name in value) {
        const at = kinds.get(name);
        if (at === undefined) throw unknownOption(op, name, [...kinds.keys()]);
        if (value[name] !== undefined && !at.accepts(value[name])) return at.refuse(op, name, value[name]);
      }
      const missing = needed.find((name) => value[name] === undefined);
      throw new TensorError('E_VALUE', op, `needs the option ${missing}: ${showValue(value)}`);
    },
  };
}

/** The options that a table has: those that a function passes on to another. */
export function only<O extends object>(table: Table<O>, given: Readonly<Record<keyof O, unknown>> | O): O {
  const kept = Object.entries(given).filter(([name]) => Object.hasOwn(table, name));
  return Object.fromEntries(kept) as O;
}

/** Options that may all be left out. */
/* @__NO_SIDE_EFFECTS__ */
export function options<O extends object>(table: Table<O>): Kind<O | undefined> {
  return optional(settings(table, []));
}

function notOptions(op: string, value: unknown, names: readonly string[]): TensorError {
  const isName = names.includes('dtype') && typeof value === 'string' && isDType(value);
  const isRate = names.includes('lr') && typeof value === 'number';
  const hint = isName ? `{ dtype: '${value}' }` : isRate ? `{ lr: ${value} }` : undefined;
  return new TensorError('E_VALUE', op, `expects options as an object, got ${showValue(value)}`, hint);
}

function unknownOption(op: string, name: string, known: readonly string[]): TensorError {
  const near = nearest(name, known);
  const all = known.length === 0 ? 'there are no options' : `one of ${known.join(', ')}`;
  return new TensorError('E_VALUE', op, `there is no option ${showValue(name)}`, near ?? all);
}

/**
 * The name most like this one by edits of letters (Levenshtein, 1966), where it is like enough to
 * be meant.
 */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const plain = (word: string): string => word.toLowerCase().replace(/[^a-z0-9]/g, '');
  const ranked = known
    .map((word) => ({ word, away: distance(plain(name), plain(word)) }))
    .sort((a, b) => a.away - b.away);
  const [first] = ranked;
  if (first === undefined) return undefined;
  const [given, word] = [plain(name), plain(first.word)];
  const isPart = word.length > 2 && given.startsWith(word);
  return isPart || first.away <= Math.max(1, Math.floor(word.length / 3)) ? first.word : undefined;
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swapped = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swapped, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/** What a function takes: a name for messages and a kind for each place. */
export type ArgumentPlaces<P extends readonly unknown[]> = {
  readonly [K in keyof P]-?: readonly [what: string, kind: Kind<P[K]>];
};

/** Checks the arguments of `op`, in order. Throws at the first that is not of its kind. */
export type Signature<P extends readonly unknown[]> = (op: string, ...given: P) => void;

/** The parameters of a function or of a class's constructor. */
type ParametersOf<F> = F extends abstract new (...args: infer P) => unknown
  ? P
  : F extends (...args: infer P) => unknown
    ? P
    : never;

/** A signature over these places; `F` is the type of the function or class. */
/* @__NO_SIDE_EFFECTS__ */
export function takes<F>(...places: ArgumentPlaces<ParametersOf<F>>): Signature<ParametersOf<F>> {
  const list = places as unknown as readonly (readonly [string, Kind<unknown>])[];
  const kinds = list.map(([, at]) => at);
  return (op, ...given) => {
    for (let i = 0; i < kinds.length; i++) {
      if (kinds[i]!.accepts(given[i])) continue;
      const sizes = given.slice(0, i + 1);
      if (i > 0 && list[0]![0] === 'the shape' && sizes.every((value) => typeof value === 'number')) {
        const problem = `expects a shape as an array of integers, got ${sizes.join(', ')}`;
        throw new TensorError('E_VALUE', op, problem, `${op}([${sizes.join(',')}]), all sizes in one array`);
      }
      kinds[i]!.refuse(op, list[i]![0], given[i]);
    }
  };
}
