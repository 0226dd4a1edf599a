// Numbers that follow from open sizes, as nodes of a file: sizes are read from the shapes of inputs, and formulas
// of them are computed. Whole numbers are i64, all others f64.

import { valueOf, type Formula, type Sizes } from '../../../aot/formula.ts';
import { uniqueName } from '../../../aot/names.ts';
import { hostArray, packBytes, unpackBytes, type Scalar } from '../../../ir/value.ts';
import { codeOf, hostType, typeOf, type ElementType } from '../../element.ts';
import type { MessageDraft } from '../../schema.ts';
import { attributeDraft, type AttributeValues, type Initializer } from '../emitter.ts';

/** What a constant's elements have to do with sizes is not known. */
export class Unfollowed extends Error {}

/** The axis of an input that has a size. */
export interface SizeSource {
  readonly input: string;
  readonly axis: number;
}

/** Constants of so many elements at most are computed one by one. */
const mostElements = 64;

/** The nodes that compute numbers from sizes. Each number is a list of one element, and is computed once. */
export class SizeNodes {
  readonly nodes: MessageDraft<'Node'>[] = [];
  readonly initializers: Initializer[] = [];
  readonly #sourceOf: (name: string) => SizeSource;
  readonly #samples: readonly Sizes[];
  readonly #taken: Set<string>;
  readonly #known = new Map<string, string>();

  /** `taken` are names of the file. */
  constructor(sourceOf: (name: string) => SizeSource, samples: readonly Sizes[], taken: readonly string[]) {
    this.#sourceOf = sourceOf;
    this.#samples = samples;
    this.#taken = new Set(taken);
  }

  #once(key: string, make: () => string): string {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.#known.set(key, made);
    return made;
  }

  /** A node, made once of these inputs; gives its result's name. */
  node(op: string, inputs: readonly string[], attributes: AttributeValues = {}, wished: string = op): string {
    return this.#once(JSON.stringify([op, inputs, attributes]), () => {
      const name = uniqueName(wished, this.#taken);
      const attribute = Object.entries(attributes).map(([key, value]) => attributeDraft(key, value));
      this.nodes.push({ opType: op, name, input: [...inputs], output: [name], attribute });
      return name;
    });
  }

  /** Elements in the file. */
  constant(type: ElementType, shape: readonly number[], values: readonly Scalar[]): string {
    return this.#once(JSON.stringify([type, shape, values.map(String)]), () => {
      const name = uniqueName('size', this.#taken);
      const data = packBytes(hostArray(hostType(type), shape, values));
      this.initializers.push({ name, type, shape, data });
      return name;
    });
  }

  /** A formula's value in a list of one element. */
  number(formula: Formula, type: ElementType): string {
    if (typeof formula === 'number') return this.constant(type, [1], [formula]);
    if (this.#isWhole(formula)) return this.#cast(this.#whole(formula), 'int64', type);
    return this.#cast(this.#real(formula), 'double', type);
  }

  #cast(name: string, from: ElementType, to: ElementType): string {
    return from === to ? name : this.node('Cast', [name], { to: codeOf(to) });
  }

  /** Whether it is computed in whole numbers, without remainders. */
  #isWhole(formula: Formula): boolean {
    if (typeof formula !== 'object') return typeof formula === 'string' || Number.isSafeInteger(formula);
    const [op, ...of] = formula;
    if (op === 'floor' || op === 'sqrt' || op === 'log' || op === 'fround') return false;
    return (
      of.every((part) => this.#isWhole(part)) &&
      this.#samples.every((sizes) => Number.isSafeInteger(valueOf(formula, sizes)))
    );
  }

  #whole(formula: Formula): string {
    if (typeof formula === 'number') return this.constant('int64', [1], [formula]);
    if (typeof formula === 'string') {
      const { input, axis } = this.#sourceOf(formula);
      return this.node('Shape', [input], { start: axis, end: axis + 1 }, formula);
    }
    const [op, ...of] = formula;
    return this.node(
      operators[op],
      of.map((part) => this.#whole(part)),
    );
  }

  #real(formula: Formula): string {
    if (typeof formula === 'number') return this.constant('double', [1], [formula]);
    if (typeof formula === 'string') return this.#cast(this.#whole(formula), 'int64', 'double');
    const [op, ...of] = formula;
    const parts = of.map((part) => this.#real(part));
    if (op === 'fround') return this.#cast(this.#cast(parts[0]!, 'double', 'float'), 'float', 'double');
    return this.node(operators[op], parts);
  }

  /** Formulas' values in a list. */
  list(formulas: readonly Formula[], type: ElementType): string {
    if (formulas.length === 1) return this.number(formulas[0]!, type);
    const parts: string[] = [];
    for (let i = 0; i < formulas.length;) {
      const end = formulas.findIndex((formula, k) => k >= i && typeof formula !== 'number');
      const fixed = formulas.slice(i, end < 0 ? formulas.length : end) as number[];
      if (fixed.length > 0) parts.push(this.constant(type, [fixed.length], fixed));
      i += fixed.length;
      if (i < formulas.length) parts.push(this.number(formulas[i++]!, type));
    }
    return this.node('Concat', parts, { axis: 0 });
  }

  /** A list's elements in a shape. */
  inShape(list: string, shape: readonly Formula[]): string {
    if (shape.length === 1) return list;
    return this.node('Reshape', [
      list,
      shape.length === 0 ? this.constant('int64', [0], []) : this.list(shape, 'int64'),
    ]);
  }

  /** `base + Σ steps[axis] · index[axis]`, an element of each index of the shape. */
  grid(shape: readonly Formula[], base: Formula, steps: readonly Formula[], type: ElementType): string {
    const scalar = (formula: Formula): string =>
      typeof formula === 'number'
        ? this.constant('int64', [], [formula])
        : this.node('Squeeze', [this.number(formula, 'int64')]);
    const isNone = (step: Formula): boolean => step === 0;
    if (steps.every(isNone)) return this.node('Expand', [this.number(base, type), this.list(shape, 'int64')]);
    let sum: string | undefined;
    steps.forEach((step, axis) => {
      if (isNone(step)) return;
      const limits = [scalar(0), scalar(shape[axis]!), scalar(1)];
      const count = this.node('Range', limits);
      const scaled = step === 1 ? count : this.node('Mul', [count, this.number(step, 'int64')]);
      const behind = shape.slice(axis + 1).map(() => 1);
      const turned = behind.length === 0 ? scaled : this.inShape(scaled, [-1, ...behind]);
      sum = sum === undefined ? turned : this.node('Add', [sum, turned]);
    });
    const moved = base === 0 ? sum! : this.node('Add', [sum!, this.number(base, 'int64')]);
    const spread = steps.some(isNone) ? this.node('Expand', [moved, this.list(shape, 'int64')]) : moved;
    return this.#cast(spread, 'int64', type);
  }
}

const operators = {
  '+': 'Add',
  '*': 'Mul',
  '/': 'Div',
  min: 'Min',
  max: 'Max',
  floor: 'Floor',
  sqrt: 'Sqrt',
  log: 'Log',
  fround: 'Cast',
} as const;

/** How a constant is found from what it is at several sizes. */
interface ConstantFacts {
  /** It is read as the shape of reshapes alone. */
  readonly isShape: boolean;
  /** The formula of a number of the constant. */
  readonly formula: (read: (constant: Initializer) => number) => Formula;
}

/**
 * A constant that is another at other sizes: one in which a size is inferred, or the name of the value that
 * computes it. Throws Unfollowed where its elements follow no rule that is known.
 */
export function openConstant(
  sizes: SizeNodes,
  all: readonly Initializer[],
  { isShape, formula }: ConstantFacts,
): Initializer | string {
  const [first] = all as [Initializer];
  const { type, shape } = first;
  const same = all.every((one) => `${one.shape}` === `${shape}`);
  if (same && countOf(first) <= mostElements) {
    const elements = Array.from({ length: countOf(first) }, (_, k) => formula((one) => elementsOf(one)[k]!));
    const open = elements.filter((element) => typeof element !== 'number');
    if (isShape && open.length === 1 && !elements.includes(0)) {
      const values = elements.map((element) => (typeof element === 'number' ? element : -1));
      return { ...first, data: packBytes(hostArray('i64', shape, values)) };
    }
    return sizes.inShape(sizes.list(elements, type), shape);
  }
  const steps = shape.map((_, axis) => {
    if (all.every((one) => one.shape[axis]! < 2)) return 0;
    return formula((one) => stepOf(one, axis));
  });
  const base = formula((one) => elementsOf(one)[0] ?? 0);
  if (!all.every((one) => isGrid(one))) throw new Unfollowed();
  const whole = [base, ...steps].every((each) => typeof each !== 'number' || Number.isSafeInteger(each));
  if (!whole && steps.some((step) => step !== 0)) throw new Unfollowed();
  const extents = shape.map((_, axis) => formula((one) => one.shape[axis]!));
  return sizes.grid(extents, base, steps, type);
}

function countOf({ shape }: Initializer): number {
  return shape.reduce((product, size) => product * size, 1);
}

const decoded = new WeakMap<Initializer, readonly number[]>();

/** The elements as numbers. */
function elementsOf(one: Initializer): readonly number[] {
  const known = decoded.get(one);
  if (known !== undefined) return known;
  const dtype = hostType(one.type);
  // Blocks of few bits are weights: they do not follow from sizes.
  if (typeOf(dtype) !== one.type) throw new Unfollowed();
  const elements = Array.from(unpackBytes(one.data, dtype, one.shape).data as ArrayLike<Scalar>, Number);
  decoded.set(one, elements);
  return elements;
}

/** By how much elements differ from those before them along an axis. */
function stepOf(one: Initializer, axis: number): number {
  if (one.shape[axis]! < 2) return 0;
  const elements = elementsOf(one);
  const behind = one.shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  const [before, after] = [elements[0]!, elements[behind]!];
  return Object.is(before, after) ? 0 : after - before;
}

/** Whether each element is the first one plus the steps of its index. */
function isGrid(one: Initializer): boolean {
  const steps = one.shape.map((_, axis) => stepOf(one, axis));
  const elements = elementsOf(one);
  return elements.every((element, i) => {
    let rest = i;
    let expected = elements[0]!;
    for (let axis = steps.length - 1; axis >= 0; axis--) {
      expected += steps[axis]! * (rest % one.shape[axis]!);
      rest = Math.floor(rest / one.shape[axis]!);
    }
    return Object.is(element, expected);
  });
}
