// The figures of the special functions (test/fixtures/special.json, made by scripts/special/fixtures.py with mpmath), and how far off
// the functions are on a device.

import { readFileSync } from 'node:fs';
import * as sn from '../../src/index.ts';

type Figure = number | 'nan' | 'inf' | '-inf';
export type FloatName = 'f32' | 'f64';

interface Figures {
  readonly args: readonly (readonly number[])[];
  readonly values: readonly Figure[];
  /** What errors are measured by where it is not 0, in place of the value. */
  readonly scale?: readonly number[];
}

/** Figures by name of the function, as it is called: `special.zeta`, `polygamma(2)`. */
export const figures: Readonly<Record<string, Readonly<Record<FloatName, Figures>>>> = JSON.parse(
  readFileSync(new URL('../fixtures/special.json', import.meta.url), 'utf8'),
) as never;

type Call = (...args: readonly sn.Tensor[]) => sn.Tensor;

/** The function that a name stands for. */
export function functionOf(name: string): Call {
  const order = /^polygamma\((\d)\)$/.exec(name);
  if (order !== null) return (x) => sn.polygamma(Number(order[1]), x!);
  const [space, inner] = name.includes('.')
    ? ([sn.special, name.split('.')[1]!] as const)
    : ([sn, name] as const);
  return (space as unknown as Readonly<Record<string, Call>>)[inner]!;
}

/** The distance between floats at a value: a unit of the last place. */
function unit(value: number, dtype: FloatName): number {
  const [digits, least] = dtype === 'f32' ? [23, -149] : [52, -1074];
  if (value === 0) return 2 ** least;
  let exponent = Math.floor(Math.log2(Math.abs(value)));
  if (2 ** exponent > Math.abs(value)) exponent -= 1;
  return 2 ** Math.max(least, exponent - digits);
}

/** The units of the last place that errors in f32 may have. */
export function boundOf(name: string): number {
  return { igamma: 6, igammac: 6, 'polygamma(3)': 8 }[name] ?? 4;
}

export interface Worst {
  /** In units of the last place of the figure, or of its scale. */
  readonly units: number;
  /** Relative to the figure, or its scale. */
  readonly relative: number;
  readonly at: string;
}

/** The greatest error of a function over its figures, on the device in use. Below `least`, what is 0 counts as right. */
export async function worstOf(name: string, dtype: FloatName, least = 0): Promise<Worst> {
  const { args, values, scale } = figures[name]![dtype];
  const found = await functionOf(name)(...args.map((list) => sn.tensor([...list], { dtype }))).data();
  let worst: Worst = { units: 0, relative: 0, at: '' };
  values.forEach((want, i) => {
    const got = Number(found[i]);
    const told = `${name}(${args.map((list) => list[i]).join(', ')}) = ${got}, not ${want}`;
    if (typeof want === 'string') throw new Error(`no figure: ${told}`);
    if (Math.abs(want) < least && got === 0) return;
    const by = Math.max(Math.abs(want), scale?.[i] ?? 0);
    const units = Math.abs(got - want) / unit(by, dtype);
    if (!(units <= worst.units))
      worst = { units, relative: by === 0 ? 0 : Math.abs(got - want) / by, at: told };
  });
  return worst;
}
