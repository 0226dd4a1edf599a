// Stacking: items become a batch, on the host. Numbers and typed arrays of all items are laid behind
// one another, lists and objects are gone into, everything else stays a list. The function that does
// it runs in workers as well, which are sent its text: it uses its arguments and globals alone, and
// has no functions of its own that have names, which bundlers would wrap in helpers.

/** A batch on the host. */
export type Stacked =
  | { readonly kind: 'tensor'; readonly dtype: string; readonly shape: number[]; readonly data: Uint8Array }
  /** Tensors that are still to be stacked, on the device. */
  | { readonly kind: 'tensors'; readonly items: readonly unknown[] }
  | { readonly kind: 'list'; readonly items: readonly unknown[] }
  | { readonly kind: 'array'; readonly items: readonly Stacked[] }
  | { readonly kind: 'object'; readonly keys: readonly string[]; readonly items: readonly Stacked[] };

/** What an error of `stackItems` carries: it is thrown where `errors.ts` is not. */
export interface StackingError extends Error {
  readonly stacking: 'E_SHAPE' | 'E_DTYPE' | 'E_VALUE';
}

/**
 * The dtype of a typed array; undefined of anything else, and where it holds neither bytes nor
 * elements of the dtype `of`.
 */
export function typedDType(value: unknown, of?: string): string | undefined {
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  const dtypes: Readonly<Record<string, string>> = {
    Float32Array: 'f32',
    Float64Array: 'f64',
    Int32Array: 'i32',
    Uint32Array: 'u32',
    Int16Array: 'i16',
    Uint16Array: 'u16',
    Int8Array: 'i8',
    Uint8Array: 'u8',
    Uint8ClampedArray: 'u8',
    BigInt64Array: 'i64',
    BigUint64Array: 'u64',
  };
  const dtype = Object.hasOwn(dtypes, tag) ? dtypes[tag] : undefined;
  if (of === undefined) return dtype;
  const words: Readonly<Record<string, string>> = { f16: 'u16', bf16: 'u16', c64: 'f32', c128: 'f64' };
  return dtype === 'u8' || dtype === (words[of] ?? of) ? dtype : undefined;
}

/**
 * The batch of items, of which there is one at least. `path` leads to them from the whole item;
 * `isTensor` tells tensors, whose batches are left to be made; `buffers` is told of memory that is
 * new. Throws an error with the code `stacking` where items do not fit together.
 */
export function stackItems(
  items: readonly unknown[],
  path: string,
  isTensor: (value: unknown) => boolean,
  typed: (value: unknown, of?: string) => string | undefined,
  buffers: ArrayBuffer[],
): Stacked {
  const first = items[0];
  const place = path === '' ? '' : ` at ${path}`;
  const kinds = items.map((item) => {
    if (typeof item !== 'object' || item === null) return typeof item;
    if (isTensor(item)) return 'tensor';
    const dtype = typed(item);
    if (dtype !== undefined) return `typed array of ${dtype}`;
    if (Array.isArray(item)) return 'list';
    const prototype: unknown = Object.getPrototypeOf(item);
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return 'other';
    const { dtype: named, shape, data } = item as Record<string, unknown>;
    return typeof named === 'string' && Array.isArray(shape) && typed(data, named) !== undefined
      ? `array of ${named}`
      : 'object';
  });
  const kind = kinds[0] as string;
  const odd = kinds.findIndex((at) => at !== kind);
  const isPlain = /^(?:string|undefined|other|symbol|function)$/.test(kind) || first === null;
  if (isPlain && kinds.every((at) => /^(?:string|undefined|other|symbol|function|object)$/.test(at)))
    return { kind: 'list', items };
  if (odd >= 0) {
    const got = items[odd] === null ? 'null' : kinds[odd];
    throw Object.assign(
      new Error(`item 0 has ${first === null ? 'null' : kind}${place}, item ${odd} has ${got}`),
      {
        stacking: 'E_DTYPE',
      },
    );
  }
  if (kind === 'tensor') return { kind: 'tensors', items };
  if (kind === 'number' || kind === 'bigint' || kind === 'boolean') {
    const elements =
      kind === 'number'
        ? Float32Array.from(items as readonly number[])
        : kind === 'bigint'
          ? BigInt64Array.from(items as readonly bigint[])
          : Uint8Array.from(items as readonly number[]);
    buffers.push(elements.buffer);
    const dtype = kind === 'number' ? 'f32' : kind === 'bigint' ? 'i64' : 'bool';
    return { kind: 'tensor', dtype, shape: [items.length], data: new Uint8Array(elements.buffer) };
  }
  if (kind.includes('array of ')) {
    const parts = items.map((item) => {
      const isNamed = kind.startsWith('array of ');
      const own = item as { shape: readonly number[]; data: Float32Array<ArrayBuffer> };
      const elements = isNamed ? own.data : (item as Float32Array<ArrayBuffer>);
      const { buffer, byteOffset, byteLength, length } = elements;
      const shape = isNamed ? own.shape : [length];
      return { shape, data: new Uint8Array(buffer, byteOffset, byteLength) };
    });
    const [{ shape, data }] = parts as [(typeof parts)[0]];
    const other = parts.findIndex(
      (part) => part.data.length !== data.length || String(part.shape) !== String(shape),
    );
    if (other >= 0) {
      const shapes = `[${shape.join(',')}] and [${(parts[other] as (typeof parts)[0]).shape.join(',')}]`;
      throw Object.assign(new Error(`items 0 and ${other} have different shapes${place}: ${shapes}`), {
        stacking: 'E_SHAPE',
      });
    }
    const all = new Uint8Array(items.length * data.length);
    parts.forEach((part, i) => all.set(part.data, i * data.length));
    buffers.push(all.buffer);
    const dtype = kind.slice(kind.indexOf(' of ') + 4);
    return { kind: 'tensor', dtype, shape: [items.length, ...shape], data: all };
  }
  if (kind === 'list') {
    const lists = items as readonly (readonly unknown[])[];
    const { length } = lists[0] as readonly unknown[];
    const other = lists.findIndex((list) => list.length !== length);
    if (other >= 0) {
      const problem = `items 0 and ${other} have lists of ${length} and ${lists[other]?.length}${place}`;
      throw Object.assign(new Error(problem), { stacking: 'E_SHAPE' });
    }
    return {
      kind: 'array',
      items: Array.from({ length }, (_, i) =>
        stackItems(
          lists.map((list) => list[i]),
          `${path}[${i}]`,
          isTensor,
          typed,
          buffers,
        ),
      ),
    };
  }
  const objects = items as readonly Readonly<Record<string, unknown>>[];
  const keys = Object.keys(first as object);
  const other = objects.findIndex(
    (item) => Object.keys(item).length !== keys.length || keys.some((key) => !(key in item)),
  );
  if (other >= 0) {
    const problem = `items 0 and ${other} have different keys${place}: {${keys.join(', ')}} and {${Object.keys(objects[other] as object).join(', ')}}`;
    throw Object.assign(new Error(problem), { stacking: 'E_VALUE' });
  }
  return {
    kind: 'object',
    keys,
    items: keys.map((key) =>
      stackItems(
        objects.map((item) => item[key]),
        `${path}.${key}`,
        isTensor,
        typed,
        buffers,
      ),
    ),
  };
}
