// One call of an operator: what a row of the table can read of a node. Inputs are by position, as tensors or,
// if the row needs them on the host, as numbers.

import { SinterError } from '../errors.ts';
import { isFloat } from '../ir/dtype.ts';
import type { HostArray } from '../ir/value.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { toNumber, type Attributes } from './attributes.ts';
import { currentBudget } from './budget.ts';
import type { ElementType } from './element.ts';
import type { Value } from './value.ts';
import { stringsOf } from './words.ts';

/**
 * The results of a row: a tensor takes the type of an input with its dtype, a Value has its own.
 */
export type Result = Tensor | Value | undefined | readonly (Tensor | Value | undefined)[];

/** The inputs whose elements are needed, as attributes and types tell. */
export type HostPlaces = (
  attributes: Attributes,
  inputs: readonly (Value | undefined)[],
) => readonly number[];

/** How one operator of a domain is imported. */
export interface Row {
  /** The opset versions in which its meaning changed, ascending. */
  readonly since: readonly number[];
  /**
   * Inputs whose elements the row needs on the host: shapes, axes, pads. Attributes may tell which.
   */
  readonly host?: readonly number[] | 'all' | HostPlaces;
  /** Draws random numbers, so that it is never computed ahead. */
  readonly random?: true;
  /** Gives a sequence, or reads something else than elements: it is not computed ahead. */
  readonly sequence?: true;
  /** Has as many results as its data say, computed on the host: runs go on with them as data. */
  readonly counts?: true;
  /** Gives sizes of its inputs, whatever their elements. */
  readonly sizes?: true;
  /** Takes strings: it moves or compares elements, or reads them as strings on the host. */
  readonly text?: true;
  /** The attributes that it has in some opset; nothing where they are not checked. */
  readonly attributes?: readonly string[];
  /** Inputs from this place on have one type. */
  readonly alike?: number;
  readonly run: (call: Call) => Result;
}

/** Rows by the operator's name. */
export type Rows = Readonly<Record<string, Row>>;

export class Call {
  readonly op: string;
  /** The opset version that the model asks for. */
  readonly opset: number;
  readonly attributes: Attributes;
  readonly inputs: readonly (Value | undefined)[];
  /** How many results the node names; '' where one is not wanted. */
  readonly outputs: readonly string[];

  constructor(
    op: string,
    opset: number,
    attributes: Attributes,
    inputs: readonly (Value | undefined)[],
    outputs: readonly string[],
  ) {
    this.op = op;
    this.opset = opset;
    this.attributes = attributes;
    this.inputs = inputs;
    this.outputs = outputs;
  }

  /** Whether the result at this place is asked for. */
  wants(place: number): boolean {
    return (this.outputs[place] ?? '') !== '';
  }

  value(place: number): Value {
    const value = this.inputs[place];
    if (value === undefined) throw new SinterError('E_FORMAT', `input ${place} is missing`);
    return value;
  }

  /** The tensors of an input that is a sequence. */
  items(place: number): readonly Value[] {
    const { items } = this.value(place);
    if (items === undefined) throw new SinterError('E_FORMAT', `input ${place} is no sequence`);
    return items;
  }

  tensor(place: number): Tensor {
    return this.value(place).tensor;
  }

  optional(place: number): Tensor | undefined {
    return this.inputs[place]?.tensor;
  }

  /** All inputs from `place` on. */
  tensors(place = 0): Tensor[] {
    return this.inputs.slice(place).map((_, i) => this.tensor(place + i));
  }

  type(place: number): ElementType {
    return this.value(place).type;
  }

  /** The elements of an input that the row declares in `host`. */
  host(place: number): HostArray | undefined {
    const value = this.inputs[place];
    if (value === undefined) return undefined;
    const array = value.host();
    if (array === undefined)
      throw new SinterError('E_BUG', `${this.op} reads input ${place} without asking for it`);
    return array;
  }

  /** The strings of an input that the row declares in `host`. */
  strings(place: number): readonly string[] {
    const array = this.host(place);
    if (array === undefined) throw new SinterError('E_FORMAT', `input ${place} is missing`);
    return stringsOf(this.value(place).words, array);
  }

  /**
   * Counts nodes that are about to be recorded for this one, beyond it. Throws E_LIMIT where they
   * are too many.
   */
  spend(nodes: number): void {
    currentBudget().spend(nodes, this.op);
  }

  /**
   * As many elements as are about to be computed on the host, one by one. Throws E_VALUE at what is
   * no size, E_LIMIT beyond the budget.
   */
  count(count: number): number {
    if (!(Number.isInteger(count) && count >= 0)) this.fail(`asks for ${count} elements`);
    currentBudget().list(count, this.op);
    return count;
  }

  /** A number that an input must hold. */
  needed(place: number): number {
    this.value(place);
    return this.number(place) ?? this.fail(`input ${place} is empty`);
  }

  numbers(place: number): number[] | undefined {
    const array = this.host(place);
    if (array === undefined) return undefined;
    // Integers beyond the safe range mean "up to the end" and are clamped; floats are kept.
    const read = isFloat(array.dtype) ? Number : toNumber;
    return Array.from(array.data as ArrayLike<number | bigint>, read);
  }

  number(place: number): number | undefined {
    return this.numbers(place)?.[0];
  }

  /** Integers that older opsets give as an attribute and newer ones as an input. */
  ints(name: string, place: number): number[] | undefined {
    const given = this.attributes.ints(name) ?? this.numbers(place);
    const strange = given?.find((value) => !Number.isSafeInteger(value));
    if (strange !== undefined) this.fail(`${name} holds ${strange}, which is no whole number`);
    return given;
  }

  /** An axis, counted from the end when negative. Throws E_AXIS outside the rank. */
  axis(axis: number, rank: number): number {
    if (Number.isInteger(axis) && axis >= -rank && axis < Math.max(rank, 1))
      return axis < 0 ? axis + rank : axis;
    throw new SinterError('E_AXIS', `axis ${axis} is outside rank ${rank}`);
  }

  axes(axes: readonly number[], rank: number): number[] {
    return axes.map((axis) => this.axis(axis, rank));
  }

  /** A mistake in the node. */
  fail(problem: string): never {
    throw new SinterError('E_VALUE', problem);
  }
}
