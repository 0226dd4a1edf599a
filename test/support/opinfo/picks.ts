// Positions of elements that an operator picks along an axis: among equal values PyTorch leaves open which (only a stable sort does
// not). They are right where they name elements of the value that PyTorch's positions name, and none twice. One rule for all such
// operators; the values themselves are compared as everywhere.

import { toHostTensor } from '../../../src/io/tensors.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { signature, type Args, type Call, type Result } from './args.ts';
import { numbersOf, type Numbers } from './judge.ts';
import type { Value } from './value.ts';

/** What is picked from, and along which axis. */
interface Source {
  readonly x: Tensor;
  readonly axis: number;
  /** Whether equal elements have to keep their order. */
  readonly isStable: boolean;
}

/** A row whose last output are positions. */
export interface Picks {
  readonly call: Call;
  readonly source: (positional: readonly Value[], keywords: Readonly<Record<string, Value>>) => Source;
}

/** A row of an operator that picks along `dim` of `input`, by PyTorch's signature. */
export function picking(text: string, row: (args: Args) => Result | Promise<Result>): Picks {
  const sourceOf = (a: Args): Source => ({
    x: a.tensor('input'),
    axis: a.number('dim'),
    isStable: text.includes('stable') && a.flag('stable'),
  });
  const source: Picks['source'] = (positional, keywords) => {
    let found: Source | undefined;
    void signature(text)((a) => {
      found = sourceOf(a);
      return [];
    })(positional, keywords);
    if (found === undefined) throw new Error(`no source: ${text}`);
    return found;
  };
  return { call: signature(text)(row), source };
}

const sizeOf = (shape: readonly number[]): number => shape.reduce((size, n) => size * n, 1);

/** Whether two tensors of positions pick equal elements of the source, and the first none twice. */
export async function picksTheSame(
  { x, axis }: Source,
  actual: Numbers,
  expected: Numbers,
): Promise<boolean> {
  if (actual.shape.join() !== expected.shape.join()) return false;
  const from = await toHostTensor(x);
  const values = numbersOf(from).data;
  const shape = from.shape.length === 0 ? [1] : from.shape;
  const at = axis < 0 ? axis + shape.length : axis;
  const [size, inner] = [shape[at]!, sizeOf(shape.slice(at + 1))];
  const outer = sizeOf(shape.slice(0, at));
  // Elements picked from one line; an axis that was dropped had one.
  const count = actual.data.length / (outer * inner);
  for (let line = 0; line < outer * inner; line++) {
    const [before, behind] = [Math.floor(line / inner), line % inner];
    const seen = new Set<number>();
    for (let k = 0; k < count; k++) {
      const place = (before * count + k) * inner + behind;
      const [own, theirs] = [Number(actual.data[place]), Number(expected.data[place])];
      if (!(own >= 0 && own < size) || seen.has(own)) return false;
      seen.add(own);
      const value = (position: number): number => Number(values[(before * size + position) * inner + behind]);
      if (!Object.is(value(own), value(theirs))) return false;
    }
  }
  return true;
}
