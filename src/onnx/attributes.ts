// Attributes of a node, read by name and kind. An attribute of another kind than expected is an
// error, not a default.

import { ParseError } from '../errors.ts';
import { attributeKinds, type Message } from './schema.ts';
import { readSparse, readTensor, type ExternalData, type StoredInitializer } from './weights.ts';

type Attribute = Message<'Attribute'>;
type Kind = (typeof attributeKinds)[keyof typeof attributeKinds];

const utf8 = new TextDecoder();

export class Attributes {
  readonly #what: string;
  readonly #external: ExternalData | undefined;
  readonly #byName = new Map<string, Attribute>();

  constructor(what: string, attributes: readonly Attribute[], external?: ExternalData) {
    this.#what = what;
    this.#external = external;
    for (const attribute of attributes) this.#byName.set(attribute.name ?? '', attribute);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  names(): readonly string[] {
    return [...this.#byName.keys()];
  }

  get(name: string): Attribute | undefined {
    return this.#byName.get(name);
  }

  #read<K extends Kind>(name: string, kind: K): NonNullable<Attribute[K]> | undefined {
    const attribute = this.#byName.get(name);
    if (attribute === undefined) return undefined;
    const declaredKind: Kind | undefined = attributeKinds[attribute.type as keyof typeof attributeKinds];
    const value = attribute[kind];
    const isThere = Array.isArray(value) ? declaredKind === kind || value.length > 0 : value !== undefined;
    // Files of the first versions do not tell the kind, and leave out what is 0.
    if (declaredKind === kind && value === undefined)
      return (kind === 'f' ? 0 : kind === 'i' ? 0n : new Uint8Array()) as never;
    if (!isThere) {
      const problem = `attribute '${name}' is ${declaredKind ?? 'of an unknown kind'}, expected ${kind}`;
      throw new ParseError('E_FORMAT', this.#what, problem);
    }
    return value as NonNullable<Attribute[K]>;
  }

  int(name: string, otherwise: number): number;
  int(name: string): number | undefined;
  int(name: string, otherwise?: number): number | undefined {
    const value = this.#read(name, 'i');
    return value === undefined ? otherwise : toNumber(value);
  }

  /** Attributes are floats of 32 bits, and so is what the standard has for one that is left out. */
  float(name: string, otherwise: number): number;
  float(name: string): number | undefined;
  float(name: string, otherwise?: number): number | undefined {
    return this.#read(name, 'f') ?? (otherwise === undefined ? undefined : Math.fround(otherwise));
  }

  string(name: string, otherwise: string): string {
    const value = this.#read(name, 's');
    return value === undefined ? otherwise : utf8.decode(value);
  }

  ints(name: string): number[] | undefined {
    return this.#read(name, 'ints')?.map((value) => toNumber(value));
  }

  floats(name: string): readonly number[] | undefined {
    return this.#read(name, 'floats');
  }

  strings(name: string): string[] | undefined {
    return this.#read(name, 'strings')?.map((value) => utf8.decode(value));
  }

  tensor(name: string): StoredInitializer | undefined {
    const proto = this.#read(name, 't');
    return proto === undefined ? undefined : readTensor(proto, this.#external);
  }

  sparse(name: string): StoredInitializer | undefined {
    const proto = this.#read(name, 'sparseTensor');
    return proto === undefined ? undefined : readSparse(proto, this.#external);
  }
}

/** The ends of int64 stand for "as far as it goes", and stay far. */
export function toNumber(value: bigint | number): number {
  return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(value)));
}
