// Containers: layers and parameters in lists and by name, as PyTorch has them. What they hold are
// properties of their own, so that names of tensors are PyTorch's: `blocks.0.weight`. Arrays and
// plain objects do as well; these say what cannot be in them.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { aTensor } from '../../tensor/expect.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { Module } from '../module.ts';

const aModule: arg.Kind<Module> = arg.kind('a layer (a Module)', (value) => value instanceof Module);

/** What all containers have: items as properties, and no `forward`. */
abstract class Container<T> extends Module {
  /** What an item has to be. */
  protected abstract itemKind(): arg.Kind<T>;

  forward(): never {
    const { name } = this.constructor;
    throw new TensorError(
      'E_STATE',
      name,
      'a container has no forward of its own',
      'to call what it holds in the forward of a layer of your own',
    );
  }

  protected put(key: string, item: T): void {
    const kind = this.itemKind();
    if (!kind.accepts(item)) kind.refuse(this.constructor.name, `item ${key}`, item);
    (this as unknown as Record<string, T>)[key] = item;
  }

  protected take(key: string | undefined, asked: unknown): T {
    if (key !== undefined && Object.hasOwn(this, key)) return (this as unknown as Record<string, T>)[key]!;
    throw new TensorError('E_VALUE', this.constructor.name, `there is no item ${showValue(asked)}`);
  }
}

/** A list of items of one kind. */
abstract class List<T> extends Container<T> implements Iterable<T> {
  constructor(items: readonly T[]) {
    super();
    this.extend(items);
  }

  /** How many items there are. */
  get length(): number {
    return Object.keys(this).filter((key) => /^\d+$/.test(key)).length;
  }

  /** The item at a place, counted from the end where it is negative. */
  at(place: number): T {
    return this.take(this.keyOf(place), place);
  }

  /** Puts another item at a place where there is one. */
  set(place: number, item: T): void {
    this.take(this.keyOf(place), place);
    this.put(this.keyOf(place)!, item);
  }

  /** Adds an item at the end; gives the list. */
  append(item: T): this {
    this.put(String(this.length), item);
    return this;
  }

  /** Adds items at the end; gives the list. */
  extend(items: readonly T[]): this {
    if (!Array.isArray(items)) arg.listOf(this.itemKind()).refuse(this.constructor.name, 'the items', items);
    for (const item of items) this.append(item);
    return this;
  }

  *[Symbol.iterator](): Iterator<T> {
    const { length } = this;
    for (let i = 0; i < length; i++) yield this.at(i);
  }

  protected keyOf(place: number): string | undefined {
    if (!Number.isSafeInteger(place)) return undefined;
    const at = place < 0 ? place + this.length : place;
    return at < 0 ? undefined : String(at);
  }
}

/** Layers in a list: `blocks.0`, `blocks.1`, … */
export class ModuleList<M extends Module = Module> extends List<M> {
  constructor(layers: readonly M[] = []) {
    super(layers);
  }

  protected itemKind(): arg.Kind<M> {
    return aModule as arg.Kind<unknown> as arg.Kind<M>;
  }
}

/** Parameters in a list. Tensors are made parameters when they are put in. */
export class ParameterList extends List<Tensor> {
  constructor(values: readonly Tensor[] = []) {
    super(values);
  }

  protected itemKind(): arg.Kind<Tensor> {
    return aTensor;
  }

  protected override put(key: string, item: Tensor): void {
    super.put(key, item);
    item.requiresGrad_();
  }
}

/** Items of one kind by name. */
abstract class Dictionary<T> extends Container<T> implements Iterable<readonly [string, T]> {
  constructor(items: Readonly<Record<string, T>>) {
    super();
    this.update(items);
  }

  /** The names, in the order of their first use. */
  keys(): string[] {
    const kind = this.itemKind();
    const own = this as unknown as Readonly<Record<string, unknown>>;
    return Object.keys(this).filter((key) => kind.accepts(own[key]));
  }

  values(): T[] {
    return this.keys().map((key) => this.get(key));
  }

  has(key: string): boolean {
    return this.keys().includes(key);
  }

  get(key: string): T {
    return this.take(this.has(key) ? key : undefined, key);
  }

  /**
   * Puts an item under a name. Throws E_VALUE at a name with a dot, or one that layers have already
   * (`forward`, `training`).
   */
  set(key: string, item: T): this {
    const isText = typeof key === 'string' && key !== '';
    if (!isText || key.includes('.') || (key in this && !this.has(key))) {
      const problem = `${showValue(key)} cannot be the name of an item`;
      throw new TensorError(
        'E_VALUE',
        this.constructor.name,
        problem,
        'a name without dots that layers lack',
      );
    }
    this.put(key, item);
    return this;
  }

  /** Takes an item out; whether there was one. */
  delete(key: string): boolean {
    return this.has(key) && Reflect.deleteProperty(this, key);
  }

  /** Puts several items in; gives the dictionary. */
  update(items: Readonly<Record<string, T>>): this {
    if (!arg.isPlainObject(items)) {
      const problem = `the items must be an object, got ${showValue(items)}`;
      throw new TensorError('E_VALUE', this.constructor.name, problem);
    }
    for (const [key, item] of Object.entries(items)) this.set(key, item);
    return this;
  }

  *[Symbol.iterator](): Iterator<readonly [string, T]> {
    for (const key of this.keys()) yield [key, this.get(key)];
  }
}

/** Layers by name. */
export class ModuleDict<M extends Module = Module> extends Dictionary<M> {
  constructor(layers: Readonly<Record<string, M>> = {}) {
    super(layers);
  }

  protected itemKind(): arg.Kind<M> {
    return aModule as arg.Kind<unknown> as arg.Kind<M>;
  }
}

/** Parameters by name. Tensors are made parameters when they are put in. */
export class ParameterDict extends Dictionary<Tensor> {
  constructor(values: Readonly<Record<string, Tensor>> = {}) {
    super(values);
  }

  protected itemKind(): arg.Kind<Tensor> {
    return aTensor;
  }

  protected override put(key: string, item: Tensor): void {
    super.put(key, item);
    item.requiresGrad_();
  }
}
