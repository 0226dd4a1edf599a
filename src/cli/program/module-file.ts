// A program in a file of the user's: a module that exports a function, and inputs to trace it with.
// TypeScript is read where Node or the project's tsx can.

import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SinterError } from '../../errors.ts';
import type { SizeRange } from '../../aot/points.ts';
import { dim, Tensor } from '../../index.ts';
import type { Sizes } from '../../bundle-runtime/manifest.ts';
import { UsageError } from '../command.ts';
import type { GivenSizes } from './dims.ts';
import { load } from './module-hooks.ts';

/** What a file asks to be explained. */
export interface FileProgram {
  readonly name: string;
  readonly subject: Tensor | ((...args: never[]) => unknown);
  readonly args: readonly unknown[];
  /** The export `plans` as the file has it: how processes of a mesh hold the arguments. */
  readonly plans?: unknown;
}

export type Exports = Readonly<Record<string, unknown>>;

/** Names of the exports that are looked for when none is asked for. */
const usual = ['default', 'fn', 'main', 'forward', 'step'];

/**
 * Loads `file` and takes its export `name` (else `default`, `fn`, `main`, `forward`, `step`, or its
 * only function), with the export `inputs`: arrays of arguments by name of the function, one array
 * for the function that is chosen, or a function of the sizes in the export `dims` that gives
 * either. An export `state` goes first, as in bundles. Throws UsageError that says what the file
 * exports.
 */
export async function programFile(file: string, name: string | undefined): Promise<FileProgram> {
  const found = await loadModule(file);
  const isProgram = (value: unknown): boolean => value instanceof Tensor || typeof value === 'function';
  const programs = Object.keys(found).filter(
    (key) => key !== 'inputs' && key !== 'plans' && isProgram(found[key]),
  );
  const chosen =
    name ?? usual.find((key) => programs.includes(key)) ?? (programs.length === 1 ? programs[0] : undefined);
  const subject = chosen === undefined ? undefined : found[chosen];
  if (!isProgram(subject)) {
    const exported = Object.keys(found).sort().join(', ') || 'nothing';
    const problem =
      name === undefined
        ? `${file} exports ${programs.length === 0 ? 'no function or tensor' : 'several functions'}`
        : `${file} exports no function or tensor '${name}'`;
    throw new UsageError(
      `${problem}: it exports ${exported}\n  try: ${programs.length > 1 ? '--export NAME' : 'export const fn = (x) => …; export const inputs = { fn: [zeros([8, 8])] };'}`,
    );
  }
  const title = chosen === 'default' ? basename(file) : `${basename(file)}: ${chosen!}`;
  if (chosen === undefined || subject instanceof Tensor)
    return { name: title, subject: subject as FileProgram['subject'], args: [] };
  return {
    name: title,
    subject: subject as FileProgram['subject'],
    args: await inputsOf(found, file, chosen),
    ...plansOf(found, chosen),
  };
}

/** The export `plans`: of the function `name` where there are plans by name. */
function plansOf({ plans }: Exports, name: string): Pick<FileProgram, 'plans'> {
  const isByName = typeof plans === 'object' && plans !== null && !Array.isArray(plans);
  const own = isByName ? (plans as Exports)[name] : plans;
  return own === undefined ? {} : { plans: own };
}

async function inputsOf(found: Exports, file: string, name: string): Promise<readonly unknown[]> {
  const given = found['inputs'];
  const state = found['state'] === undefined ? [] : [found['state']];
  if (given === undefined) return state;
  const { lists, ranges } = declaredSizes(found, file);
  const sizes = Object.fromEntries([
    ...[...lists].map(([size, [first]]) => [size, first ?? 0] as const),
    ...[...ranges].map(([size, { max }]) => [size, max] as const),
  ]);
  const inputs: unknown =
    typeof given === 'function' ? await (given as (all: Sizes) => unknown)(sizes) : given;
  return [...state, ...argumentsFor(inputs, name, [name], file)];
}

/**
 * What a function called `name` gets of the export `inputs`: arrays by name of the function, or,
 * where only one function is chosen, its array. Throws UsageError where there is none.
 */
export function argumentsFor(
  inputs: unknown,
  name: string,
  chosen: readonly string[],
  file: string,
): readonly unknown[] {
  const own: unknown = Array.isArray(inputs)
    ? inputs
    : (inputs as Readonly<Record<string, unknown>> | undefined)?.[name];
  if (!Array.isArray(own) || (Array.isArray(inputs) && chosen.length > 1)) {
    const all = chosen.map((one) => `${one}: [zeros([8, 8])]`).join(', ');
    throw new UsageError(
      `${file}: there are no inputs for ${name}\n  try: export const inputs = { ${all} };`,
    );
  }
  expectOwnTensors(own, file);
  return own;
}

/** The export `dims`: sizes by name, one, several, or a range as `dim` makes it. */
export function declaredSizes(found: Exports, file: string): GivenSizes {
  const { dims = {} } = found;
  const isSize = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  const lists = new Map<string, readonly number[]>();
  const ranges = new Map<string, SizeRange>();
  for (const [name, value] of Object.entries(dims as object)) {
    const { min = 1, max, multipleOf = 1 } = Object(value) as Partial<SizeRange>;
    if (isSize(max)) {
      const { min: first, max: last } = dim(name, { min, max: max!, multipleOf });
      if (last > first) ranges.set(name, { min: first, max: last, multipleOf });
      else lists.set(name, [first]);
      continue;
    }
    const sizes: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (sizes.length === 0 || !sizes.every(isSize))
      throw new UsageError(
        `${file}: the sizes of ${name} are not whole numbers\n  try: export const dims = { ${name}: [1, 4] };`,
      );
    lists.set(name, sizes as readonly number[]);
  }
  return { lists, ranges };
}

/** Throws E_VALUE at tensors of another copy of Sinter, which this one cannot read. */
export function expectOwnTensors(inputs: readonly unknown[], file: string): void {
  const foreign = inputs.some(
    (input) => Object(input).constructor?.name === 'Tensor' && !(input instanceof Tensor),
  );
  if (!foreign) return;
  throw new SinterError(
    'E_VALUE',
    `${file} imports another copy of sinter than the one of this command\n  try: npx sinter in the folder of its package.json`,
  );
}

/**
 * What a module of the user's exports, CommonJS or a module, JavaScript or TypeScript. Throws UsageError where there is no such file,
 * and E_UNSUPPORTED where nothing here reads TypeScript.
 */
export async function loadModule(file: string): Promise<Exports> {
  const path = resolve(file);
  if (!existsSync(path)) throw new UsageError(`there is no file ${file}`);
  const url = pathToFileURL(path).href;
  // Errors name the lines of the file as the user wrote it, not of the JavaScript made from it.
  process.setSourceMapsEnabled(true);
  const isTypeScript = /\.[cm]?tsx?$/.test(path);
  if (!isTypeScript || (process.features as { typescript?: unknown }).typescript) useHooks();
  try {
    return (await import(url)) as Exports;
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw error;
  }
  // This Node reads no TypeScript: the project's tsx may, and asks these hooks.
  const unregister = await useTsx(path, file);
  useHooks();
  try {
    // Node remembers that it could not load the address as it was.
    return (await import(`${url}?module`)) as Exports;
  } finally {
    await unregister();
  }
}

let used = false;

/** Registers module-hooks.ts. */
function useHooks(): void {
  if (used) return;
  used = true;
  // Node 22.15 and later run hooks in this thread; `register` goes away there.
  const { registerHooks } = nodeModule as { registerHooks?: (hooks: { load: typeof load }) => unknown };
  if (registerHooks !== undefined) registerHooks({ load });
  else nodeModule.register(new URL('module-hooks.js', import.meta.url));
}

/** Lets the tsx of the file's project read TypeScript; gives what ends that. */
async function useTsx(path: string, file: string): Promise<() => Promise<void>> {
  let tsx: string;
  try {
    // Of its two builds the one for `require` cannot register itself.
    tsx = nodeModule
      .createRequire(path)
      .resolve('tsx/esm/api')
      .replace(/\.cjs$/, '.mjs');
  } catch {
    throw new SinterError(
      'E_UNSUPPORTED',
      `${file}: Node ${process.versions.node} cannot read TypeScript by itself\n  try: npm install --save-dev tsx, Node 22.18 or later, or a .js file`,
    );
  }
  const { register } = (await import(pathToFileURL(tsx).href)) as { register: () => () => Promise<void> };
  return register();
}
