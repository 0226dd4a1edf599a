// What `sinter build` compiles: an ONNX model, or the functions of a module with their example
// arguments, at all sizes that are asked for.

import type { EntryPoint } from '../../aot/entry.ts';
import { combinations, type OpenPoint } from '../../aot/sizes.ts';
import { membersOf } from '../../nn/module.ts';
import type { Sizes } from '../../bundle-runtime/manifest.ts';
import { handleOf } from '../../tensor/tensor.ts';
import type { Handle } from '../../tensor/recording/handle.ts';
import { isOnnxFile, onnxPrograms } from '../program/choice.ts';
import { text, texts, UsageError, type Values } from '../command.ts';
import { readSizes } from '../program/dims.ts';
import { argumentsFor, declaredSizes, loadModule, type Exports } from '../program/module-file.ts';

export interface BuildSource {
  readonly points: readonly (EntryPoint | OpenPoint)[];
  /** What captured tensors are called. */
  readonly names: ReadonlyMap<Handle, string>;
  readonly state?: unknown;
}

/** The functions of a file. Throws UsageError where they, or inputs for them, are not there. */
export async function buildSource(file: string, values: Values): Promise<BuildSource> {
  const given = readSizes(texts(values, 'dim'));
  const fixes = texts(values, 'fix');
  if (isOnnxFile(file)) {
    const { onnxProgram } = await onnxPrograms(file);
    const { at, names } = await onnxProgram(file, given.keys(), fixes);
    return { points: [{ name: 'run', sizes: combinations(given), at }], names };
  }
  if (fixes.length > 0)
    throw new UsageError(`--fix: ${file} is no ONNX model\n  try: a function that takes less`);
  const found = await loadModule(file);
  const declared = declaredSizes(found, file);
  const strange = [...given.keys()].find((name) => !declared.some(([own]) => own === name));
  if (strange !== undefined && declared.length > 0) {
    const known = declared.map(([name]) => name).join(', ');
    throw new UsageError(`--dim: ${file} has no size called '${strange}': its \`dims\` are ${known}`);
  }
  const sizes = combinations(new Map([...declared, ...given]));
  const points = await entryPoints(found, file, text(values, 'export'), sizes);
  return { points, names: namesOf(found), state: found['state'] };
}

async function entryPoints(
  found: Exports,
  file: string,
  chosen: string | undefined,
  sizes: readonly Sizes[],
): Promise<(EntryPoint | OpenPoint)[]> {
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
  if (typeof given !== 'function' && Object.keys(sizes[0] ?? {}).length > 0) {
    const parameters = Object.keys(sizes[0]!).join(', ');
    throw new UsageError(
      `${file}: sizes are left open, and inputs have them fixed\n` +
        `  try: export const inputs = ({ ${parameters} }) => ({ ${names[0]!}: [zeros([${parameters}])] });`,
    );
  }
  const inputs = await Promise.all(
    sizes.map(async (own): Promise<unknown> =>
      typeof given === 'function' ? await (given as (sizes: Sizes) => unknown)(own) : given,
    ),
  );
  return names.map((name): OpenPoint => {
    const points = inputs.map((all) => entryPoint(found, file, names, name, all));
    return {
      name: points[0]!.name,
      sizes,
      at: (own) => points[sizes.indexOf(own)]!,
    };
  });
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
function namesOf(found: Exports): Map<Handle, string> {
  const names = new Map<Handle, string>();
  for (const [key, value] of Object.entries(found)) {
    if (key === 'inputs' || key === 'dims' || typeof value === 'function') continue;
    for (const { name, tensor } of membersOf(value, key)) {
      const handle = handleOf(tensor);
      if (!names.has(handle)) names.set(handle, name);
    }
  }
  return names;
}
