// What a tensor shows of itself: dtype, shape, and its values where they can be had without waiting
// or computing, else why they cannot. `console.log` of Node, Bun and Deno asks for this, text asks
// for one line of it, and browsers do where "custom formatters" is on.

import { dtypeBytes, isComplex, lowered, partType, type DType, type RealDType } from '../../ir/dtype.ts';
import { bf16FromBits, f16FromBits, type Scalar } from '../../ir/value.ts';
import { showHandle, type Handle } from '../handle/handle.ts';
import { storageOf } from '../handle/leaf.ts';
import { seen } from '../handle/recording.ts';
import type { StoredValue } from '../storage/storage.ts';
import { elementsInLine, elementsInLines, type ShownElements } from './elements.ts';

/** Characters of a line of text. */
const wide = 100;
/** Of the values of a tensor among other things. */
const narrow = 40;

/** `Tensor f32[2,2] (requires grad) [[1, 2], [3, 4]]`, `Tensor f32[8] (pending)`: one line. */
export function tensorInLine(handle: Handle): string {
  const { elements, remarks } = seenOf(handle);
  return headOf(handle, remarks, elements && elementsInLine(elements, wide));
}

/** The same among other things that are shown: values only where they are few. */
export function tensorAmongOthers(handle: Handle): string {
  const { elements, remarks } = seenOf(handle);
  return headOf(handle, remarks, elements && elementsInLine(elements, narrow));
}

/** The same in lines of `width` characters, values below each other. */
export function tensorInLines(handle: Handle, width: number): string {
  const { elements, remarks } = seenOf(handle);
  const values = elements && elementsInLines(elements, width);
  const line = headOf(handle, remarks, values);
  return values !== undefined && (values.includes('\n') || line.length > width)
    ? `${headOf(handle, remarks)}\n${values}`
    : line;
}

function headOf(handle: Handle, remarks: readonly string[], values?: string): string {
  const noted = remarks.length === 0 ? '' : ` (${remarks.join(', ')})`;
  return `Tensor ${showHandle(handle)}${noted}${values === undefined ? '' : ` ${values}`}`;
}

/** The elements where they can be looked at; what else there is to say. */
function seenOf(of: Handle): { readonly elements?: ShownElements; readonly remarks: readonly string[] } {
  const handle = seen(of);
  const gone = of.gone ?? handle.gone;
  if (gone !== undefined) return { remarks: [gone] };
  // In a trace everything is recorded as if it did.
  const requiresGrad = handle.trace === undefined ? handle.requiresGrad : handle.leaf;
  const remarks = requiresGrad ? ['requires grad'] : [];
  const { dtype, shape, trace } = handle;
  const storage = handle.storage ?? storageOf(handle.node);
  if (storage === undefined) {
    const { node } = handle;
    if (node.op === 'constant') return { elements: { dtype, shape, at: () => node.attrs.value }, remarks };
    return { remarks: [trace === undefined ? 'pending' : 'traced', ...remarks] };
  }
  if (storage.lost !== undefined) return { remarks: [storage.lost] };
  if (storage.failure !== undefined) return { remarks: [`failed: ${firstLine(storage.failure)}`] };
  const bytes = storage.seen;
  if (bytes === undefined) return { remarks: [placeOf(storage), ...remarks] };
  return { elements: { dtype, shape, at: readerOf(dtype, bytes) }, remarks };
}

function placeOf(storage: StoredValue): string {
  const { device, part } = storage;
  const place = device === undefined ? 'pending' : `on ${device}`;
  return part === undefined ? place : `${part.toString()}, ${place}`;
}

function firstLine(failure: unknown): string {
  return (failure instanceof Error ? failure.message : String(failure)).split('\n')[0]!;
}

/** Elements one by one, wherever the bytes begin. */
function readerOf(dtype: DType, bytes: Uint8Array): ShownElements['at'] {
  if (isComplex(dtype)) {
    const part = partReader(partType(dtype), bytes);
    return (place) => ({ re: Number(part(2 * place)), im: Number(part(2 * place + 1)) });
  }
  return partReader(lowered(dtype), bytes);
}

function partReader(dtype: RealDType, bytes: Uint8Array): (place: number) => Scalar {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const read = readers[dtype];
  const size = dtypeBytes(dtype);
  return (place) => read(view, place * size);
}

const readers: Readonly<Record<RealDType, (view: DataView, at: number) => Scalar>> = {
  bool: (view, at) => view.getUint8(at),
  i8: (view, at) => view.getInt8(at),
  u8: (view, at) => view.getUint8(at),
  i16: (view, at) => view.getInt16(at, true),
  u16: (view, at) => view.getUint16(at, true),
  i32: (view, at) => view.getInt32(at, true),
  u32: (view, at) => view.getUint32(at, true),
  i64: (view, at) => view.getBigInt64(at, true),
  u64: (view, at) => view.getBigUint64(at, true),
  f16: (view, at) => f16FromBits(view.getUint16(at, true)),
  bf16: (view, at) => bf16FromBits(view.getUint16(at, true)),
  f32: (view, at) => view.getFloat32(at, true),
  f64: (view, at) => view.getFloat64(at, true),
};

/** What hosts' `inspect` gives us: `depth` levels may follow of `options.depth`. */
interface InspectOptions {
  readonly depth?: number | null;
  readonly breakLength?: number;
}

/**
 * What `console.log` and `util.inspect` show of a class in Node, Bun and Deno: lines of values, or
 * few among other things.
 */
export function showInConsoles<T extends object>(prototype: T, reveal: (tensor: T) => Handle): void {
  const show = (tensor: T, depth: unknown, options: InspectOptions = {}): string => {
    const isInside = typeof depth === 'number' && typeof options.depth === 'number' && depth < options.depth;
    if (isInside) return tensorAmongOthers(reveal(tensor));
    const { breakLength = 80 } = options;
    return tensorInLines(reveal(tensor), Math.min(Math.max(breakLength, 88), 120));
  };
  Object.defineProperty(prototype, Symbol.for('nodejs.util.inspect.custom'), {
    value(this: T, depth: unknown, options?: InspectOptions) {
      return show(this, depth, options);
    },
  });
  Object.defineProperty(prototype, Symbol.for('Deno.customInspect'), {
    value(this: T, _: unknown, options?: InspectOptions) {
      return show(this, undefined, options);
    },
  });
}
