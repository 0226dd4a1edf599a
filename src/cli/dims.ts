// Sizes that a model leaves open, as they are given at a command line.

import { UsageError } from './command.ts';

/** Sizes of symbolic dimensions, from `batch=1,length=128`. Throws UsageError at anything else. */
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
