// Sizes left open within ranges: which a call has, the program that goes so far, and its scalars. A
// file of its own, which bundles load that have such entries.

import { SinterError } from '../errors.ts';
import type { BundledProgram, BundleEntry, Formula, ScalarSource, Sizes, TensorInput } from './manifest.ts';
import { bytesOf, countOf, fits, misfit, shapeAt, shapeOf } from './values.ts';

/** The value of a formula at some sizes. */
export function valueOf(formula: Formula, sizes: Sizes): number {
  if (typeof formula === 'number') return formula;
  if (typeof formula === 'string') return sizes[formula]!;
  const [op, ...of] = formula;
  const [a = 0, b = 0] = of.map((part) => valueOf(part, sizes));
  switch (op) {
    case '+':
      return a + b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    default:
      return (Math[op] as (a: number, b: number) => number)(a, b);
  }
}

/**
 * The sizes of a call of an entry with ranges: of the shapes that inputs are given with, else of their
 * counts. Throws E_SHAPE at those outside of a range, naming the size.
 */
export function sizesOf(name: string, entry: BundleEntry, inputs: Readonly<Record<string, unknown>>): Sizes {
  const found: Record<string, number> = {};
  const { ranges = {}, derived = {}, built } = entry;
  const tensors = entry.inputs.flatMap((input) => (input.kind === 'tensor' ? [input] : []));
  const take = (size: string, value: number, input: string): void => {
    const [min, max, step] = ranges[size]!;
    found[size] ??= value;
    if (found[size] !== value)
      throw new SinterError('E_SHAPE', `${name}: ${size} is ${found[size]}, and ${value} in ${input}`);
    if (!(value >= min && value <= max && value % step === 0))
      throw new SinterError('E_SHAPE', `${name}: ${size} is ${value} in ${input}: built for ${built}`);
  };
  for (const { name: input, shape } of tensors)
    shapeOf(inputs[input])?.forEach((value, axis) => {
      const size = shape[axis]!;
      if (typeof size === 'string' && size in ranges) take(size, value, input);
    });
  // A count tells the one size that is not known yet.
  for (let before = -1; before < Object.keys(found).length;) {
    before = Object.keys(found).length;
    for (const { name: input, shape } of tensors) {
      const open = shape.filter((size) => typeof size === 'string' && !(size in found));
      const count = countOf(inputs[input]);
      const [size] = open as string[];
      if (size === undefined || open.length > 1 || !(size in ranges) || count === undefined) continue;
      const rest = shape.reduce<number>(
        (product, one) => product * (one === size ? 1 : typeof one === 'string' ? found[one]! : one),
        1,
      );
      take(size, count / rest, input);
    }
  }
  const missing = Object.keys(ranges).find((size) => !(size in found));
  if (missing !== undefined)
    throw new SinterError(
      'E_SHAPE',
      `${name}: the inputs do not determine ${missing}: built for ${built}\n  try: { data, shape }`,
    );
  for (const [size, formula] of Object.entries(derived)) found[size] = valueOf(formula, found);
  return found;
}

/** Whether a program goes up to these sizes. */
export function holds(program: BundledProgram, sizes: Sizes): boolean {
  return Object.entries(program.sizes).every(([name, most]) => sizes[name]! <= most);
}

/** Of an entry's programs the first that goes up to the sizes of a call, as it is at them. */
export function chosen<R extends { readonly name: string; readonly program: BundledProgram }>(
  name: string,
  entry: BundleEntry,
  ready: readonly R[],
  inputs: Readonly<Record<string, unknown>>,
): R {
  const sizes = sizesOf(name, entry, inputs);
  const strange = entry.inputs.find((input) => !fits(input, inputs[input.name], sizes));
  if (strange !== undefined) throw misfit(name, strange as TensorInput, inputs[strange.name], entry.built);
  const one = ready.find((other) => other.name === name && holds(other.program, sizes))!;
  const program = programAt(one.program, sizes);
  const buffers = [...program.buffers];
  // Results are as large as the sizes say: in words, as machines read them.
  program.ports.results.forEach((buffer, i) => {
    const { dtype, shape } = { ...entry.outputs[i]!, shape: shapeAt(entry.outputs[i]!, sizes) };
    buffers[buffer] = {
      ...buffers[buffer]!,
      dtype: 'u32',
      shape: [Math.ceil(bytesOf({ dtype, shape }) / 4)],
    };
  });
  return { ...one, program: { ...program, buffers } };
}

/** The program as it is at some sizes. */
export function programAt(program: BundledProgram, sizes: Sizes): BundledProgram {
  const { ports } = program;
  const scalars = ports.scalars.map((source): ScalarSource => {
    if ('counter' in source) return { ...source, offset: valueOf(source.offset, sizes) };
    return 'size' in source ? { word: wordOf(valueOf(source.size, sizes), source.as) } : source;
  });
  const checks = (ports.checks ?? []).map((check) => {
    return { ...check, first: valueOf(check.first, sizes), end: valueOf(check.end, sizes) };
  });
  return { ...program, sizes, ports: { ...ports, scalars, checks, draws: valueOf(ports.draws, sizes) } };
}

/** A number as the word that kernels read. */
function wordOf(value: number, as: string): number {
  const bytes = new DataView(new ArrayBuffer(8));
  if (as === 'f') bytes.setFloat32(4, value);
  else if (as[0] === 'd') bytes.setFloat64(0, value);
  else bytes.setBigInt64(0, BigInt(value));
  return bytes.getInt32(as[1] === 'h' ? 0 : 4);
}
