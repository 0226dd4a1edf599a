// Numbers of things, each kind a type of its own, so that none is taken for another. Counted, not
// addresses: a number is never given again.

import * as arg from '../ir/arguments.ts';
import { aTensor } from '../tensor/expect.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { identityOf } from '../tensor/values.ts';

declare const kind: unique symbol;
/** A number of one kind of thing. */
export type Id<Kind extends string> = number & { readonly [kind]: Kind };

/** The number of a value's memory. */
export type StorageId = Id<'storage'>;
/** The number of a value that carries gradients. */
export type GradId = Id<'grad'>;
/** The number of a recorded operation. */
export type OpId = Id<'op'>;
/** The number of a leaf that is trained. */
export type ParamId = Id<'param'>;

let given = 0;

/** The next number. */
export function freshId<Kind extends string>(): Id<Kind> {
  return ++given as Id<Kind>;
}

/** Numbers of objects, given when they are first asked for. */
export class Numbered<Kind extends string> {
  readonly #known = new WeakMap<object, Id<Kind>>();

  of(object: object): Id<Kind> {
    const known = this.#known.get(object) ?? freshId<Kind>();
    this.#known.set(object, known);
    return known;
  }

  /** Gives an object the number of another thing. */
  join(object: object, id: Id<Kind>): void {
    this.#known.set(object, id);
  }

  find(object: object): Id<Kind> | undefined {
    return this.#known.get(object);
  }
}

const storages = new Numbered<'storage'>();
/** What tensors were told, at which version. */
const earlier = new WeakMap<object, { readonly version: number; readonly id: StorageId }>();
const takesTensor = arg.takes<typeof storageId>(['the tensor', aTensor]);

/**
 * The number of the value that a tensor stands for: equal for tensors that share it, before and
 * after it is computed; another one once `assign` replaced the value.
 */
export function storageId(tensor: Tensor): StorageId {
  takesTensor('storageId', tensor);
  const { value, version, node, storage } = identityOf(tensor);
  // Once it is computed, another node stands for it.
  const asked = earlier.get(value);
  const before = asked?.version === version ? asked.id : undefined;
  const known = storage === undefined ? undefined : storages.find(storage);
  const id = known ?? storages.find(node) ?? before ?? storages.of(storage ?? node);
  storages.join(storage ?? node, id);
  earlier.set(value, { version, id });
  return id;
}
