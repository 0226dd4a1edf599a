// What a walk through a graph has at hand: values by name, and the function by which it asks its
// driver for elements that only a device has.

import type { HostArray } from '../ir/value.ts';
import type { GraphPlan, GraphStep } from './plan.ts';
import type { Value } from './value.ts';

/** A value whose elements a row needs, under its name in the graph. */
export interface WantedValue {
  readonly name: string;
  readonly value: Value;
  readonly step: GraphStep;
}

export type Walk<T> = Generator<WantedValue, T, HostArray>;

/** The values of a graph by name, and of the graphs around it. */
export class GraphScope {
  readonly #values = new Map<string, Value>();
  readonly #leftOut = new Set<string>();
  readonly #outer: GraphScope | undefined;
  readonly #isApart: boolean;
  readonly #copies = new Map<Value, Value>();

  /** `isApart`: in a recording of its own, where what is known around it gets tensors of its own. */
  constructor(outer?: GraphScope, isApart = false) {
    this.#outer = outer;
    this.#isApart = isApart;
  }

  get(name: string): Value | undefined {
    const own = this.#values.get(name);
    if (own !== undefined || this.#outer === undefined) return own;
    const outside = this.#outer.get(name);
    if (!this.#isApart || outside?.known === undefined) return outside;
    const copy = outside.apart(this.#copies);
    this.#values.set(name, copy);
    return copy;
  }

  /** Whether the graph itself has a value of this name, be there one around it or not. */
  hasOwn(name: string): boolean {
    return this.#values.has(name);
  }

  set(name: string, value: Value): void {
    this.#values.set(name, value);
  }

  /** Notes an input that is optional and was left out: what reads it reads nothing. */
  leaveOut(name: string): void {
    this.#leftOut.add(name);
  }

  isLeftOut(name: string): boolean {
    return this.#leftOut.has(name) || this.#outer?.isLeftOut(name) === true;
  }
}

/** Runs a plan whose inputs stand in the scope. */
export type RunPlan = (plan: GraphPlan, scope: GraphScope) => Walk<Value[]>;
