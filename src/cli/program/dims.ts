// Sizes that a model leaves open, as they are given at a command line.

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

/** Most sizes that a range may have. */
const mostInRange = 1024;

/**
 * Several sizes for each name, from `batch=1,4,16` and `length=16..64:16` (16, 32, 48, 64). Throws
 * UsageError at anything else.
 */
export function readSizes(texts: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const dims = new Map<string, Set<number>>();
  for (const text of texts) {
    let current: Set<number> | undefined;
    for (const part of text.split(',')) {
      const found = /^\s*(?:([^=]+?)\s*=\s*)?(\d+)(?:\.\.(\d+)(?::([1-9]\d*))?)?\s*$/.exec(part);
      const [, name, first = '', last = first, step = '1'] = found ?? [];
      if (name !== undefined) current = dims.get(name) ?? new Set();
      if (name !== undefined) dims.set(name, current!);
      const count = (Number(last) - Number(first)) / Number(step);
      if (found === null || current === undefined || count < 0 || count >= mostInRange)
        throw new UsageError(
          `--dim: expects NAME=SIZE, got '${part}'\n  try: --dim batch=1,4,16 --dim length=16..64:16`,
        );
      for (let i = 0; i <= count; i++) current.add(Number(first) + i * Number(step));
    }
  }
  return new Map([...dims].map(([name, sizes]) => [name, [...sizes]]));
}
