// `sinter build --target c`: a folder of C instead of a bundle for JavaScript.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bindings, cBundleOf, mostThreads, type CBundle, type CBundleOptions } from '../../aot/c/bundle.ts';
import { isaNames } from '../../aot/c/isas.ts';
import { isPrefix } from '../../aot/c/names.ts';
import { showBytes, table } from '../../table.ts';
import type { BuildSource } from './source.ts';
import { text, UsageError, type Option, type OptionValues, type Output } from '../command.ts';

/** Options that only C has. */
export const cOptions: Readonly<Record<string, Option>> = {
  name: {
    type: 'string',
    value: 'NAME',
    about: 'C: what the names of files, functions and constants begin with; model by default',
  },
  embed: { type: 'boolean', about: 'C: write the weights as an array, so that no file has to be read' },
  freestanding: { type: 'boolean', about: 'C: use no library but memcpy and memset' },
  isa: {
    type: 'string',
    value: 'LIST',
    about: 'C: kernels for avx512 and avx2 beside the portable ones, chosen at run time; none by default',
  },
  threads: {
    type: 'string',
    value: 'N',
    about: 'C: how many POSIX threads may share the work of a call, at most; one thread by default',
  },
  bindings: {
    type: 'string',
    value: 'LIST',
    about: 'C: declarations for other languages too: cpp, rust, swift',
  },
};

/** What `--json` prints. */
export interface CBuildResult {
  readonly out: string;
  readonly targets: readonly ['c'];
  readonly entries: readonly string[];
  readonly kernels: { readonly c: number };
  readonly dispatches: { readonly c: number };
  readonly weights: number;
  /** Bytes of a context, and of all files. */
  readonly context: number;
  readonly total: number;
}

/** Options of other targets that C has nothing for. */
const others = ['arch', 'software', 'tune', 'schedules', 'shard-size'] as const;

type CChoice = Pick<CBundleOptions, 'name' | 'embed' | 'freestanding' | 'isas' | 'threads' | 'bindings'>;

/** What to build. Throws UsageError where options do not fit. */
export function chosenC(values: OptionValues): CChoice {
  const strange = others.find((name) => values[name] !== undefined);
  if (strange !== undefined) throw new UsageError(`--${strange}: not for --target c`);
  const name = text(values, 'name') ?? 'model';
  if (!isPrefix(name))
    throw new UsageError(
      `--name: expected a letter, then letters, digits and _, and no keyword, got '${name}'`,
    );
  const freestanding = values['freestanding'] === true;
  const chosen = listOf(values, 'isa', isaNames);
  if (freestanding && chosen.length > 0)
    throw new UsageError(
      '--isa: asking the processor what it has needs a library, and --freestanding has none',
    );
  const threads = text(values, 'threads');
  if (freestanding && threads !== undefined)
    throw new UsageError('--threads: threads need a library, and --freestanding has none');
  if (
    threads !== undefined &&
    !(/^\d+$/.test(threads) && Number(threads) >= 2 && Number(threads) <= mostThreads)
  )
    throw new UsageError(`--threads: expected a number from 2 to ${mostThreads}, got '${threads}'`);
  return {
    name,
    embed: values['embed'] === true,
    freestanding,
    isas: chosen,
    ...(threads !== undefined && { threads: Number(threads) }),
    bindings: listOf(values, 'bindings', bindings),
  };
}

/** What a list names, each once. Throws UsageError at other names. */
function listOf<Name extends string>(values: OptionValues, option: string, known: readonly Name[]): Name[] {
  const names = text(values, option)
    ?.split(',')
    .map((name) => name.trim());
  return [...new Set(names)].map((name) => {
    const found = known.find((one) => one === name);
    if (found !== undefined) return found;
    throw new UsageError(`--${option}: expected of ${known.join(', ')}, got '${name}'`);
  });
}

/** Throws UsageError where options of C are given for another target. */
export function expectNoC(values: OptionValues): void {
  const strange = Object.keys(cOptions).find((name) => values[name] !== undefined);
  if (strange !== undefined) throw new UsageError(`--${strange}: expects --target c`);
}

/** Compiles, writes the folder and says what is in it. */
export async function buildC(
  out: string,
  { points, names, state }: BuildSource,
  options: CBundleOptions,
  values: OptionValues,
  output: Output,
): Promise<void> {
  const bundle = await cBundleOf(points, { ...options, state, names });
  for (const note of bundle.notes) output.note(note);
  await write(out, bundle);
  const { model, dispatches, files } = bundle;
  const sizes = [...files].map(([path, content]) => [path, Buffer.byteLength(content)] as const);
  const result: CBuildResult = {
    out,
    targets: ['c'],
    entries: [...new Set(model.functions.map(({ title }) => title))],
    kernels: { c: model.kernels.length },
    dispatches: { c: dispatches },
    weights: model.weights.length,
    context: model.memory.bytes.state + model.memory.bytes.arena,
    total: sizes.reduce((sum, [, bytes]) => sum + bytes, 0),
  };
  if (values['json'] === true) {
    output.line(JSON.stringify(result));
    return;
  }
  const { prefix } = model;
  const about = new Map([
    [`${prefix}.h`, model.functions.map(({ name }) => name).join(', ')],
    [`${prefix}.c`, `${model.kernels.length} kernels; a context has ${showBytes(result.context)}`],
    ...model.variants.map(({ isa, kernels }): [string, string] => [
      `${prefix}_${isa}.c`,
      `${kernels.length} kernels for processors with ${isa}`,
    ]),
    [`${prefix}_threads.c`, `up to ${model.threads} threads that share the work of calls`],
    [`${prefix}.bin`, `${result.weights} tensors`],
    [`${prefix}_weights.c`, `${result.weights} tensors`],
    ['Makefile', `makes lib${prefix}.a${files.has('main.c') ? ' and demo' : ''}`],
    ['main.c', 'a program that calls each function'],
    ...bundle.bindings.map(({ file, about: what }): [string, string] => [file, what]),
  ]);
  const rows = sizes.map(([path, bytes]) => [path, showBytes(bytes), about.get(path) ?? '']);
  output.line(
    `wrote ${out}\n\n${table(['file', 'size', 'what it is'], rows, [1])}\n\n${join(out, 'README.md')} shows how to use it`,
  );
}

const madeBy = 'Made by sinter';

/**
 * Writes the files in place of those of an earlier build. Throws UsageError, before anything is written,
 * where a file is there that no build wrote.
 */
async function write(out: string, { files }: CBundle): Promise<void> {
  const there = new Set(await readdir(out));
  const own: string[] = [];
  for (const [name, content] of files) {
    if (!there.has(name)) continue;
    const path = join(out, name);
    const before = await readFile(path);
    const isOurs =
      typeof content === 'string'
        ? before.subarray(0, 400).toString().includes(madeBy)
        : before.subarray(0, 8).equals(content.subarray(0, 8));
    if (!isOurs) own.push(name);
  }
  if (own.length > 0)
    throw new UsageError(
      `--out: ${own.join(', ')} of ${out} would be replaced, which sinter build did not write\n  try: --out ${join(out, 'model')}`,
    );
  await mkdir(out, { recursive: true });
  for (const [name, content] of files) await writeFile(join(out, name), content);
}
