// What `sinter build` compiles: an ONNX model, or the functions of a module with their example
// arguments, at all sizes that are asked for.

import type { EntryPoint } from '../../aot/entry.ts';
import { combinations, type OpenPoint } from '../../aot/sizes.ts';
import { membersOf } from '../../nn/module.ts';
import type { Sizes } from '../../bundle-runtime/manifest.ts';
import { valueOf, type Value } from '../../tensor/values.ts';
import { isOnnxFile, onnxPrograms } from '../program/choice.ts';
import { text, texts, UsageError, type OptionValues } from '../command.ts';
import { besideRanges, readSizes, type GivenSizes } from '../program/dims.ts';
import { argumentsFor, declaredSizes, loadModule, type Exports } from '../program/module-file.ts';

export interface BuildSource {
  readonly points: readonly OpenPoint[];
  /** What captured tensors are called. */
  readonly names: ReadonlyMap<Value, string>;
  readonly state?: unknown;
}

/** The functions of a file. Throws UsageError where they, or inputs for them, are not there. */
export async function buildSource(file: string, values: OptionValues): Promise<BuildSource> {
  const given = readSizes(texts(values, 'dim'));
  const fixes = texts(values, 'fix');
  if (isOnnxFile(file)) {
    const { onnxProgram } = await onnxPrograms(file);
    const { lists, ranges } = besideRanges(given);
    const { at, names } = await onnxProgram(file, [...lists.keys(), ...ranges.keys()], fixes);
    return { points: [{ name: 'run', sizes: combinations(lists), ranges, at }], names };
  }
  if (fixes.length > 0)
    throw new UsageError(`--fix: ${file} is no ONNX model\n  try: a function that takes less`);
  const found = await loadModule(file);
  const declared = declaredSizes(found, file);
  const own = new Set([...declared.lists.keys(), ...declared.ranges.keys()]);
  const asked = [...given.lists.keys(), ...given.ranges.keys()];
  const strange = asked.find((name) => !own.has(name));
  if (strange !== undefined && own.size > 0) {
    throw new UsageError(
      `--dim: ${file} has no size called '${strange}': its \`dims\` are ${[...own].join(', ')}`,
    );
  }
  const without = <T>(all: ReadonlyMap<string, T>): [string, T][] =>
    [...all].filter(([name]) => !asked.includes(name));
  const sizes = besideRanges({
    lists: new Map([...without(declared.lists), ...given.lists]),
    ranges: new Map([...without(declared.ranges), ...given.ranges]),
  });
  const points = entryPoints(found, file, text(values, 'export'), sizes);
  return { points, names: namesOf(found), state: found['state'] };
}

function entryPoints(
  found: Exports,
  file: string,
  chosen: string | undefined,
  { lists, ranges }: GivenSizes,
): OpenPoint[] {
  const functions = Object.keys(found).filter((key) => key !== 'inputs' && typeof found[key] === 'function');
  const names = chosen === undefined ? functions : chosen.split(',').map((name) => name.trim());
  const missing = names.find((name) => !functions.includes(name));
  if (missing !== undefined || names.length === 0) {
    const problem = missing === undefined ? 'exports no function' : `exports no function '${missing}'`;
    throw new UsageError(
      `${file} ${problem}: it exports ${Object.keys(found).sort().join(', ') || 'nothing'}`,
    );
  }
  const given = found['inputs'];
  const open = [...lists.keys(), ...ranges.keys()];
  if (typeof given !== 'function' && open.length > 0) {
    const parameters = open.join(', ');
    throw new UsageError(
      `${file}: sizes are left open, and inputs have them fixed\n` +
        `  try: export const inputs = ({ ${parameters} }) => ({ ${names[0]!}: [zeros([${parameters}])] });`,
    );
  }
  const sizes = combinations(lists);
  const inputs = new Map<string, unknown>();
  return names.map((name): OpenPoint => ({
    name: name === 'default' ? 'run' : name,
    sizes,
    ranges,
    at: async (own) => {
      const key = JSON.stringify(own);
      if (!inputs.has(key))
        inputs.set(key, typeof given === 'function' ? (given as (sizes: Sizes) => unknown)(own) : given);
      return entryPoint(found, file, names, name, await inputs.get(key));
    },
  }));
}

/** A function with its own of the inputs. */
function entryPoint(
  found: Exports,
  file: string,
  names: readonly string[],
  name: string,
  inputs: unknown,
): EntryPoint {
  const own = argumentsFor(inputs, name, names, file);
  return { name: name === 'default' ? 'run' : name, fn: found[name] as EntryPoint['fn'], inputs: own };
}

/** Names of the tensors that exports hold. */
function namesOf(found: Exports): Map<Value, string> {
  const names = new Map<Value, string>();
  for (const [key, value] of Object.entries(found)) {
    if (key === 'inputs' || key === 'dims' || typeof value === 'function') continue;
    for (const { name, tensor } of membersOf(value, key)) {
      const value = valueOf(tensor);
      if (!names.has(value)) names.set(value, name);
    }
  }
  return names;
}
