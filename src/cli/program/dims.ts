// Sizes that a model leaves open, as they are given at a command line.

import type { SizeRange, SizeRanges } from '../../aot/points.ts';
import { sizesIn } from '../../aot/sizes.ts';
import { UsageError } from '../command.ts';

/**
 * Sizes of symbolic dimensions, one each, from `batch=1,length=128`. Throws UsageError at anything
 * else.
 */
export function readDims(text: string | undefined): ReadonlyMap<string, number> {
  const dims = new Map<string, number>();
  for (const part of text?.split(',') ?? []) {
    const [, name = '', size = ''] = /^\s*([^=]+?)\s*=\s*(\d+)\s*$/.exec(part) ?? [];
    if (name === '')
      throw new UsageError(`--dim: expects NAME=SIZE, got '${part}'\n  try: --dim batch=1,length=128`);
    dims.set(name, Number(size));
  }
  return dims;
}

/** Most sizes of a list, and the largest of a range. */
const [mostInList, mostInRange] = [1024, 2 ** 24];

/** Sizes as they are given: each of a list, or all within a range. */
export interface GivenSizes {
  readonly lists: ReadonlyMap<string, readonly number[]>;
  readonly ranges: SizeRanges;
}

/**
 * Several sizes for each name, from `batch=1,4,16` and `length=16..64:16` (16, 32, 48, 64). A single
 * range is one, if its ends are multiples of its step; in a list it is its sizes. Throws UsageError at
 * anything else.
 */
export function readSizes(texts: readonly string[]): GivenSizes {
  const parts = new Map<string, SizeRange[]>();
  for (const text of texts) {
    let current: SizeRange[] | undefined;
    for (const part of text.split(',')) {
      const found = /^\s*(?:([^=]+?)\s*=\s*)?(\d+)(?:\.\.(\d+)(?::([1-9]\d*))?)?\s*$/.exec(part);
      const [, name, first = '', last = first, step = '1'] = found ?? [];
      if (name !== undefined) current = parts.get(name) ?? [];
      if (name !== undefined) parts.set(name, current!);
      const [min, multipleOf] = [Number(first), Number(step)];
      const max = Number(last) - ((Number(last) - min) % multipleOf);
      if (found === null || current === undefined || max < min || max > mostInRange)
        throw new UsageError(
          `--dim: expects NAME=SIZE, got '${part}'\n  try: --dim batch=1,4,16 --dim length=16..64:16`,
        );
      current.push({ min, max, multipleOf });
    }
  }
  const lists = new Map<string, readonly number[]>();
  const ranges = new Map<string, SizeRange>();
  for (const [name, all] of parts) {
    const [only, ...others] = all as [SizeRange, ...SizeRange[]];
    const isRange = others.length === 0 && only.max > only.min && only.min > 0;
    if (isRange && only.min % only.multipleOf === 0) {
      ranges.set(name, only);
      continue;
    }
    if (all.reduce((sum, range) => sum + sizesIn(range).length, 0) > mostInList) throw tooMany(name);
    lists.set(name, [...new Set(all.flatMap(sizesIn))]);
  }
  return { lists, ranges };
}

function tooMany(name: string): UsageError {
  return new UsageError(
    `--dim: ${name} has more than ${mostInList} sizes\n  try: a range, --dim ${name}=1..2048, which has one program`,
  );
}

/**
 * Sizes whose sets each have a program; beside ranges a list becomes the range of its sizes, so that
 * one program is for all.
 */
export function besideRanges({ lists, ranges }: GivenSizes): GivenSizes {
  if (ranges.size === 0) return { lists, ranges };
  const several = [...lists].filter(([, sizes]) => sizes.length > 1);
  return {
    lists: new Map([...lists].filter(([, sizes]) => sizes.length === 1)),
    ranges: new Map([...ranges, ...several.map(([name, sizes]) => [name, spanOf(sizes)] as const)]),
  };
}

function spanOf(sizes: readonly number[]): SizeRange {
  const multipleOf = sizes.reduce((divisor, size) => {
    let [a, b] = [divisor, size];
    while (b !== 0) [a, b] = [b, a % b];
    return a;
  }, 0);
  return { min: Math.min(...sizes), max: Math.max(...sizes), multipleOf };
}
