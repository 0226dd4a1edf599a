// `sinter build --target c`: functions compiled ahead of time into C. `model.ts` says what a model in C is,
// `memory.ts` where everything lies; `header.ts`, `source.ts`, `weights.ts` and `project.ts` write the files.

import { joinC } from '../../codegen/emit/c/join.ts';
import { compileGraph, type PinnedTilings } from '../../compile.ts';
import { SinterError } from '../../errors.ts';
import { everyStep } from '../../runtime/program.ts';
import { cTarget, type Target } from '../../schedule/target.ts';
import type { EntryPoint, TracedEntry } from '../entry.ts';
import { portedProgram, type PortedProgram } from '../ported.ts';
import { prepared, type PrepareOptions } from '../prepared.ts';
import type { OpenPoint } from '../sizes.ts';
import { overStored } from '../storage.ts';
import { cppText } from './bindings/cpp.ts';
import { rustText } from './bindings/rust.ts';
import { moduleMapText, swiftHeaderText, swiftText } from './bindings/swift.ts';
import { headerText } from './header.ts';
import { isaNames, targetFor, type CIsa } from './isas.ts';
import { modelOf, type CModel, type GivenFunction, type GivenProgram } from './model.ts';
import { isPrefix } from './names.ts';
import { demoText, makefileText, readmeText, type CBinding, type ProjectOptions } from './project.ts';
import { expectNoLibrary } from './sizes.ts';
import { isaText, ready, sourceText } from './source.ts';
import { threadsText } from './threads.ts';
import { weightsImage, weightsText } from './weights.ts';

/** Languages that call C, for which declarations are written. */
export type CLanguage = 'cpp' | 'rust' | 'swift';

export const bindings: readonly CLanguage[] = ['cpp', 'rust', 'swift'];

export interface CBundleOptions extends PrepareOptions {
  /** What made it, e.g. `sinter 0.1.0`. */
  readonly producer: string;
  /** The model's name in its README. */
  readonly title: string;
  /** What all names in C begin with, and the names of its files; `model` by default. */
  readonly name?: string;
  /** Whether the weights are an array in C; a file by default. */
  readonly embed?: boolean;
  /** Whether there is no C library; there is one by default. */
  readonly freestanding?: boolean;
  /** Instruction sets with kernels of their own, which the model uses where the processor has them; none by default. */
  readonly isas?: readonly CIsa[];
  /** How many threads may share the work of a call, at most; calls run on one thread, and need no threads, by default. */
  readonly threads?: number;
  /** Languages besides C and C++ as far as they read the header; none by default. */
  readonly bindings?: readonly CLanguage[];
  /** Schedules that were measured; those of the model by default. */
  readonly schedules?: (entry: TracedEntry) => Promise<PinnedTilings | undefined>;
}

export interface CBundle {
  readonly model: CModel;
  /** How often a kernel is called when every function is called once, at its largest sizes. */
  readonly dispatches: number;
  /** Contents by path in the folder. */
  readonly files: ReadonlyMap<string, string | Uint8Array>;
  /** Those of them that are for other languages. */
  readonly bindings: readonly CBinding[];
  /** What is not as it was asked for. */
  readonly notes: readonly string[];
}

/**
 * Compiles functions to C. Throws the compiler's errors, and E_UNSUPPORTED for what bundles in C do not
 * support.
 */
export async function cBundleOf(
  points: readonly (EntryPoint | OpenPoint)[],
  options: CBundleOptions,
): Promise<CBundle> {
  const { name: prefix = 'model', embed = false, freestanding = false, producer, title, threads } = options;
  expectThreads(threads, freestanding);
  if (!isPrefix(prefix))
    throw new SinterError(
      'E_VALUE',
      `build: ${JSON.stringify(prefix)} cannot begin the names of C: expected a letter, then letters, digits and _, and no keyword`,
    );
  const { recorded, weights, values, stored, notes } = await prepared(points, options);
  const isas = isaNames.filter((isa) => options.isas?.includes(isa));
  const functions: GivenFunction[] = [];
  for (const { name, entry, cases } of recorded) {
    const { inputs, outputs, ranges, derived } = entry;
    const programs: GivenProgram[] = [];
    for (const { sizes, traced } of cases) {
      const given = overStored(traced, stored);
      const pinned = await options.schedules?.(given);
      const ported = compiled(name, given, cTarget, pinned);
      if (freestanding) expectNoLibrary(name, ported.ports.scalars);
      const variants = isas.map((isa) => compiled(`${name}-${isa}`, given, targetFor(isa)));
      programs.push({ upTo: sizes, ported, variants });
    }
    const typed = { title: name, inputs, outputs };
    // One function for all sizes of ranges, or one for each set of sizes.
    if (ranges !== undefined)
      functions.push({ ...typed, sizes: {}, ranges, ...(derived && { derived }), programs });
    else for (const one of programs) functions.push({ ...typed, sizes: one.upTo, programs: [one] });
  }
  const model = modelOf({ prefix, producer, title, functions, weights, values, isas, threads });
  const image = weightsImage(model);
  const declared = (options.bindings ?? []).flatMap((language) =>
    bindingsOf(language, model, image.bytes.length, embed),
  );
  const project: ProjectOptions = { embed, freestanding, bindings: declared };
  const written = { layout: image.layout, freestanding, join: joinC };
  const files = new Map<string, string | Uint8Array>([
    [`${prefix}.h`, headerText(model, { weightsBytes: image.bytes.length, embed })],
    [`${prefix}.c`, sourceText(model, written)],
    ...model.variants.map((one): [string, string] => [
      `${prefix}_${one.isa}.c`,
      isaText(model, one, written),
    ]),
    embed ? [`${prefix}_weights.c`, weightsText(model, image)] : [`${prefix}.bin`, image.bytes],
    ['Makefile', makefileText(model, project)],
    ['README.md', readmeText(model, project)],
    ...declared.map(({ file, text }): [string, string] => [file, text]),
  ]);
  if (threads !== undefined) files.set(`${prefix}_threads.c`, threadsText(model, ready));
  if (!freestanding) files.set('main.c', demoText(model, project));
  const dispatches = functions.reduce((sum, { programs }) => sum + dispatchesOf(programs.at(-1)!.ported), 0);
  return { model, dispatches, files, bindings: declared, notes };
}

/** The most threads that a model may be built for. */
export const mostThreads = 256;

function expectThreads(threads: number | undefined, freestanding: boolean): void {
  if (threads === undefined) return;
  if (!Number.isInteger(threads) || threads < 2 || threads > mostThreads)
    throw new SinterError(
      'E_VALUE',
      `build: expected 2 to ${mostThreads} threads, got ${threads}\n  try: no threads, if calls run on one`,
    );
  if (freestanding)
    throw new SinterError('E_VALUE', 'build: threads need a library, and a freestanding model has none');
}

/** The files of a language. */
function bindingsOf(
  language: CLanguage,
  model: CModel,
  weightsBytes: number,
  embed: boolean,
): readonly CBinding[] {
  const { prefix } = model;
  switch (language) {
    case 'cpp':
      return [{ file: `${prefix}.hpp`, text: cppText(model, embed), about: 'a class for C++17' }];
    case 'rust':
      return [
        {
          file: `${prefix}.rs`,
          text: rustText(model, weightsBytes, embed),
          about: 'a module of Rust over the library',
        },
      ];
    case 'swift':
      return [
        { file: `${prefix}.swift`, text: swiftText(model, weightsBytes, embed), about: 'a class for Swift' },
        { file: 'module.modulemap', text: moduleMapText(model), about: 'what Swift imports C by' },
        { file: `${prefix}_swift.h`, text: swiftHeaderText(model, embed), about: 'what Swift calls besides' },
      ];
    default:
      return language satisfies never;
  }
}

function dispatchesOf({ program }: PortedProgram): number {
  return [...everyStep(program.steps)].filter(({ kind }) => kind === 'dispatch').length;
}

function compiled(
  name: string,
  { graph, scalars, donate, wiring, inputs }: TracedEntry,
  target: Target,
  pinned?: PinnedTilings,
): PortedProgram {
  const { program } = compileGraph(graph, target, {
    scalars,
    donate,
    ...(pinned && { schedules: pinned }),
    title: () => `${name}-c`,
  });
  return portedProgram(name, program, wiring, inputs.length);
}
