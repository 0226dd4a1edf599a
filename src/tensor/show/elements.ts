// The elements of a tensor as text: nested brackets, a part of each axis where there are many, in
// one line or in columns.

import type { DType } from '../../ir/dtype.ts';
import { sizeOf, stridesOf, type FixedShape } from '../../ir/shape.ts';
import type { ComplexNumber, Scalar } from '../../ir/value.ts';
import { showElement } from './number.ts';

/** What elements are read from. */
export interface ShownElements {
  readonly dtype: DType;
  readonly shape: FixedShape;
  /** The element at this place in C-order. */
  readonly at: (place: number) => Scalar | ComplexNumber;
}

/** Elements up to which all are shown. */
const few = 100;
/** Shown at either end of an axis where not all are. */
const ends = 3;
const gap = '…';

type Part = string | readonly Part[];

/**
 * In one line of at most `width` characters, with as many elements at the ends of axes as fit;
 * undefined where none do.
 */
export function elementsInLine(elements: ShownElements, width: number): string | undefined {
  const size = sizeOf(elements.shape);
  for (const maxPerEnd of [...(size <= few ? [Infinity] : []), ends, ends - 1, ends - 2]) {
    const text = inLine(partsOf(elements, maxPerEnd));
    if (text.length <= width) return text;
  }
  return undefined;
}

/** In lines of about `width` characters, numbers below each other. */
export function elementsInLines(elements: ShownElements, width: number): string {
  const size = sizeOf(elements.shape);
  const parts = partsOf(elements, size <= few ? Infinity : ends);
  const line = inLine(parts);
  return line.length <= width ? line : inLines(parts, longest(parts), width, 1);
}

/** The elements shown, `maxPerEnd` at either end of an axis. */
function partsOf({ dtype, shape, at }: ShownElements, maxPerEnd: number): Part {
  const strides = stridesOf(shape);
  const part = (axis: number, place: number): Part => {
    const extent = shape[axis];
    if (extent === undefined) return showElement(at(place), dtype);
    const item = (i: number): Part => part(axis + 1, place + i * strides[axis]!);
    const range = (from: number, to: number): Part[] =>
      Array.from({ length: to - from }, (_, i) => item(from + i));
    if (extent <= 2 * maxPerEnd) return range(0, extent);
    return [...range(0, maxPerEnd), gap, ...range(extent - maxPerEnd, extent)];
  };
  return part(0, 0);
}

function inLine(part: Part): string {
  return typeof part === 'string' ? part : `[${part.map(inLine).join(', ')}]`;
}

function longest(part: Part): number {
  return typeof part === 'string' ? part.length : Math.max(0, ...part.map(longest));
}

/** `indent`: characters before the first item of this part. */
function inLines(part: Part, column: number, width: number, indent: number): string {
  if (typeof part === 'string') return part.padStart(column);
  const isRow = part.every((item) => typeof item === 'string');
  const before = ' '.repeat(indent);
  if (!isRow) {
    const rank = depthOf(part);
    const items = part.map((item) => (item === gap ? gap : inLines(item, column, width, indent + 1)));
    return `[${items.join(`,${'\n'.repeat(Math.max(1, rank - 1))}${before}`)}]`;
  }
  const lines: string[] = [];
  for (const item of part) {
    const text = item === gap ? gap : (item as string).padStart(column);
    const last = lines.at(-1);
    if (last === undefined || indent + last.length + 2 + text.length > width) lines.push(text);
    else lines[lines.length - 1] = `${last}, ${text}`;
  }
  return `[${lines.join(`,\n${before}`)}]`;
}

function depthOf(part: Part): number {
  return typeof part === 'string' ? 0 : 1 + Math.max(0, ...part.map(depthOf));
}
