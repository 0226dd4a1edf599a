// PyTorch's call of every operator as ours: one table, a file per family.

import type { Call, Calls, Left } from '../args.ts';
import type { Picks } from '../picks.ts';
import { compare } from './compare.ts';
import { complex } from './complex.ts';
import { creation } from './creation.ts';
import { elementwise } from './elementwise.ts';
import { fft } from './fft.ts';
import { index } from './indexing.ts';
import { linalg } from './linalg.ts';
import { loss } from './loss.ts';
import { masked } from './masked.ts';
import { nn } from './nn.ts';
import { pool } from './pool.ts';
import { product } from './product.ts';
import { reduce } from './reduce.ts';
import { scatter } from './scatter.ts';
import { shape } from './shape.ts';
import { sort } from './sort.ts';
import { special } from './special.ts';
import { spectral } from './spectral.ts';
import { statistics } from './statistics.ts';

const families: Readonly<Record<string, Calls>> = {
  compare,
  complex,
  creation,
  elementwise,
  fft,
  index,
  linalg,
  loss,
  masked,
  nn,
  pool,
  product,
  reduce,
  scatter,
  shape,
  sort,
  special,
  spectral,
  statistics,
};

/** A row with the family that holds it. */
export type Row = (Left | Picks | { readonly call: Call }) & { readonly family: string };

const rows = new Map<string, Row>();
for (const [family, calls] of Object.entries(families)) {
  for (const [name, call] of Object.entries(calls)) {
    if (rows.has(name)) throw new Error(`${name} has two rows, one in ${family}`);
    rows.set(name, typeof call === 'function' ? { family, call } : { family, ...call });
  }
}

/** The row of an operator. */
export function rowOf(name: string): Row | undefined {
  return rows.get(name);
}

/** The names of all rows. */
export const rowNames: readonly string[] = [...rows.keys()];
