// Declared sizes: a name with the range that a size of arguments lies in, and which axes of which
// arguments have it.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { showShape, type FixedShape } from '../../ir/shape.ts';
import { parameterNames } from '../tracing.ts';
import { Tensor } from '../tensor.ts';
import { step, type Flat } from '../tree.ts';

export interface DimOptions {
  /** The smallest size, at least 1, which it is by default. */
  readonly min?: number;
  /** The largest size, by default 4096. */
  readonly max?: number;
  /** Sizes are multiples of this, by default of 1. */
  readonly multipleOf?: number;
}

/** A named size with its range, made by `dim`. */
export class Dim {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly multipleOf: number;

  constructor(name: string, min: number, max: number, multipleOf: number) {
    this.name = name;
    this.min = min;
    this.max = max;
    this.multipleOf = multipleOf;
    Object.freeze(this);
  }
}

const takesDim = arg.takes<typeof dim>(
  ['the name', arg.text],
  ['options', arg.options<DimOptions>({ min: arg.count(1), max: arg.count(1), multipleOf: arg.count(1) })],
);

/**
 * A size of arguments of a compiled function that may be another at each call, from `min` to `max`,
 * always a multiple of `multipleOf`: `compile(fn, { dims: { x: [dim('seq', { max: 2048 }), 64] } })`.
 * Axes with dims of one name have one size. Throws E_VALUE where no size is in the range.
 */
export function dim(name: string, options: DimOptions = {}): Dim {
  takesDim('dim', name, options);
  const { min = 1, max = 4096, multipleOf = 1 } = options;
  const [first, last] = [Math.ceil(min / multipleOf), Math.floor(max / multipleOf)].map(
    (k) => k * multipleOf,
  );
  if (name === '') throw new TensorError('E_VALUE', 'dim', 'the name is empty', `dim('seq', { max: 2048 })`);
  if (!(first! <= last!)) {
    const of = multipleOf === 1 ? 'size' : `multiple of ${multipleOf}`;
    throw new TensorError('E_VALUE', 'dim', `${name}: there is no ${of} from ${min} to ${max}`);
  }
  return new Dim(name, first!, last!, multipleOf);
}

/**
 * The axes of a tensor: a dim, the name of one (of the range 1 to 4096 where nothing else of the
 * function declares it), a fixed size, or null for an axis that is compiled for each of its sizes.
 */
export type DimPattern = readonly (Dim | string | number | null)[];

/** Patterns at the places of tensors within an argument. */
export type DimTree =
  | DimPattern
  | readonly DimTree[]
  | { readonly [key: string]: DimTree }
  | null
  | undefined;

/**
 * Which sizes of arguments may vary: patterns by the names of the function's parameters or by their
 * places (`{ x: [...] }`, `{ 0: [...] }`, or a list with one entry an argument). Where an argument is
 * a tree, so is its entry.
 */
export type Dims = Readonly<Record<string, DimTree>> | readonly DimTree[];

/** Whether a value is a pattern, not a tree of them. */
function isPattern(value: unknown): value is DimPattern {
  return (
    Array.isArray(value) &&
    value.every(
      (item) => item instanceof Dim || typeof item === 'string' || typeof item === 'number' || item === null,
    )
  );
}

/** The value of each dim, by name. */
export type Assignment = ReadonlyMap<string, number>;

/** The declared sizes of one function. */
export class Declared {
  /** By name, in the order in which they were declared. */
  readonly dims: ReadonlyMap<string, Dim>;
  readonly #function: string;
  readonly #op: string;
  readonly #patterns: ReadonlyMap<string, DimPattern>;

  /** `op` is the operation that takes the dims, for messages. */
  constructor(name: string, patterns: ReadonlyMap<string, DimPattern>, op: string = 'compile') {
    this.#function = name;
    this.#op = op;
    this.#patterns = patterns;
    const dims = new Map<string, Dim>();
    const all = [...patterns.values()].flat();
    for (const item of all) {
      if (!(item instanceof Dim)) continue;
      const { min, max, multipleOf } = dims.get(item.name) ?? item;
      if (min !== item.min || max !== item.max || multipleOf !== item.multipleOf) {
        const problem = `${name}: dims declares ${item.name} twice, with different ranges`;
        throw new TensorError('E_VALUE', op, problem);
      }
      dims.set(item.name, item);
    }
    for (const item of all) if (typeof item === 'string' && !dims.has(item)) dims.set(item, dim(item));
    this.dims = dims;
  }

  /** The sizes at a call. Throws E_SHAPE, naming function, argument and dim, where they do not fit. */
  sizesOf({ leaves, paths }: Flat, nameOf: (leaf: number) => string): Assignment {
    const found = new Map<string, { readonly size: number; readonly leaf: number; readonly axis: number }>();
    for (const [path, pattern] of this.#patterns) {
      const leaf = paths.indexOf(path);
      const value = leaves[leaf];
      if (!(value instanceof Tensor)) {
        this.#refuse('E_VALUE', `dims has sizes for ${path}, but the call has no tensor there`);
      }
      const { shape, dtype } = value;
      const name = nameOf(leaf);
      if (shape.length !== pattern.length) {
        const is = `${name} is ${showShape(shape, dtype)}`;
        this.#refuse('E_SHAPE', `${is}, and dims gives ${pattern.length} axes: ${showPattern(pattern)}`);
      }
      pattern.forEach((item, axis) => {
        if (item === null) return;
        const size = shape[axis]!;
        if (typeof item === 'number') {
          if (size !== item)
            this.#refuse('E_SHAPE', `axis ${axis} of ${name} is ${size}, declared as ${item}`);
          return;
        }
        const {
          name: of,
          min,
          max,
          multipleOf,
        } = this.dims.get(typeof item === 'string' ? item : item.name)!;
        if (size < min || size > max || size % multipleOf !== 0) {
          const multiple = multipleOf === 1 ? '' : `, a multiple of ${multipleOf}`;
          this.#refuse(
            'E_SHAPE',
            `${of} (axis ${axis} of ${name}) is ${size}, declared as ${min} to ${max}${multiple}`,
          );
        }
        const before = found.get(of);
        if (before === undefined) found.set(of, { size, leaf, axis });
        else if (before.size !== size) {
          const other = `${before.size} on axis ${before.axis} of ${nameOf(before.leaf)}`;
          this.#refuse('E_SHAPE', `${of} is ${other}, and ${size} on axis ${axis} of ${name}`);
        }
      });
    }
    return new Map([...this.dims.keys()].map((name) => [name, found.get(name)!.size]));
  }

  /** Whether these are arguments of declared sizes. */
  holds(flat: Flat): boolean {
    try {
      this.sizesOf(flat, String);
      return true;
    } catch (error) {
      if (error instanceof TensorError) return false;
      throw error;
    }
  }

  /** The shapes of leaves at other sizes, by leaf. */
  shapesAt({ leaves, paths }: Flat, sizes: Assignment): Map<number, FixedShape> {
    const shapes = new Map<number, FixedShape>();
    for (const [path, pattern] of this.#patterns) {
      const leaf = paths.indexOf(path);
      const { shape } = leaves[leaf] as Tensor;
      shapes.set(
        leaf,
        pattern.map((item, axis) => {
          if (item === null || typeof item === 'number') return shape[axis]!;
          return sizes.get(typeof item === 'string' ? item : item.name)!;
        }),
      );
    }
    return shapes;
  }

  /** The axes that vary, as `leaf axis`. */
  varyingAxes({ paths }: Flat): ReadonlySet<string> {
    const found = [...this.#patterns].flatMap(([path, pattern]) =>
      pattern.flatMap((item, axis) =>
        item instanceof Dim || typeof item === 'string' ? [`${paths.indexOf(path)} ${axis}`] : [],
      ),
    );
    return new Set(found);
  }

  #refuse(code: 'E_SHAPE' | 'E_VALUE', problem: string): never {
    throw new TensorError(code, this.#op, `${this.#function}: ${problem}`);
  }
}

function showPattern(pattern: DimPattern): string {
  return `[${pattern.map((item) => (item instanceof Dim ? item.name : String(item ?? '*'))).join(',')}]`;
}

/** The dims of a function's options by the paths of leaves. Throws E_VALUE where they make no sense. */
export function declaredOf(fn: (...args: never[]) => unknown, dims: Dims, op: string = 'compile'): Declared {
  const name = fn.name === '' ? 'a function' : fn.name;
  const patterns = new Map<string, DimPattern>();
  const refuse = (problem: string): never => {
    const hint = `dims: { x: ['batch', 64] }, by the names of parameters or by place: [['batch', 64]]`;
    throw new TensorError('E_VALUE', op, `${name}: ${problem}`, hint);
  };
  const walk = (tree: unknown, path: string): void => {
    if (tree === undefined || tree === null) return;
    if (isPattern(tree)) patterns.set(path, tree);
    else if (Array.isArray(tree)) tree.forEach((item, i) => walk(item, path + step(i)));
    else if (arg.isPlainObject(tree))
      for (const [key, item] of Object.entries(tree)) walk(item, path + step(key));
    else refuse(`dims${path} must be a list of sizes and dims, got ${showValue(tree)}`);
  };
  if (Array.isArray(dims)) {
    if (isPattern(dims) && dims.some((item) => item !== null))
      refuse('dims is a list of arguments, each with its own list');
    dims.forEach((tree, i) => walk(tree, step(i)));
  } else {
    const names = parameterNames(fn);
    for (const [key, tree] of Object.entries(dims as Readonly<Record<string, DimTree>>)) {
      const place = /^\d+$/.test(key) ? Number(key) : names.indexOf(key);
      if (place < 0) {
        const known = names.map((own, i) => own ?? String(i)).join(', ');
        refuse(`dims names ${key}, and its parameters are ${known === '' ? 'none' : known}`);
      }
      walk(tree, step(place));
    }
  }
  return new Declared(name, patterns, op);
}
