// What a command works on: a workload by name, or a program in a file of the user's.

import { existsSync } from 'node:fs';
import { weightFormats, type WeightFormat } from '../../aot/formats.ts';
import { workloads } from '../../workloads/all.ts';
import { timedWorkloads } from '../../workloads/timed/workloads.ts';
import type { Workload } from '../../workloads/workload.ts';
import { text, texts, UsageError, type Command, type Option, type OptionValues } from '../command.ts';
import { readDims } from './dims.ts';
import { fromPackage } from '../../packages/missing.ts';
import { programFile, type FileProgram } from './module-file.ts';

/** Counted and timed workloads. Where both have a name, it is the same program. */
const named: readonly Workload[] = [
  ...workloads,
  ...timedWorkloads.filter(({ name }) => !workloads.some((counted) => counted.name === name)),
];

/** The workload of this name. Throws UsageError listing what there is. */
export function chosenWorkload(name: string | undefined): Workload {
  const found = named.find((workload) => workload.name === name);
  if (found !== undefined) return found;
  const width = Math.max(...named.map((workload) => workload.name.length));
  const problem = name === undefined ? '--workload NAME is missing' : `there is no workload '${name}'`;
  const known = named.map((workload) => `  ${workload.name.padEnd(width)}  ${workload.about}`);
  throw new UsageError([`${problem}: expected one of`, ...known].join('\n'));
}

/** Inputs of ONNX models that shapes are computed from. */
export const fixOption: Option = {
  type: 'string',
  multiple: true,
  value: 'NAME=LIST',
  about: 'fix an input that is the same in every call, such as a shape: shape=1,-1; repeatable',
};

/** The options of commands that take a program. */
export const programOptions: Readonly<Record<string, Option>> = {
  workload: { type: 'string', value: 'NAME', about: 'use a built-in program; an unknown name lists them' },
  export: { type: 'string', value: 'NAME', about: 'the export of FILE to use' },
  dim: { type: 'string', value: 'LIST', about: 'sizes that a model leaves open: batch=1,length=128' },
  fix: fixOption,
};

export const programOperand: NonNullable<Command['operand']> = {
  name: 'file',
  value: 'FILE',
  about: 'a module with a function and inputs for it, or an ONNX model',
};

/** How help tells what FILE is. */
export const programDetails: string =
  'FILE is a module that exports a function (default, fn, or the one that --export names) and `inputs`: an object with an\n' +
  'array of arguments for each function, or the array alone, or a function that returns either. Only their shapes and dtypes\n' +
  'matter. FILE may be TypeScript, if Node or tsx can read it, or an ONNX model.';

/**
 * The file's program, or the workload. Throws UsageError where
 * neither or both are given.
 */
export async function chosenProgram(values: OptionValues, command: string): Promise<FileProgram> {
  const [file, workload] = [text(values, 'file'), text(values, 'workload')];
  if (file !== undefined && workload !== undefined)
    throw new UsageError(`${command} takes a file or --workload, not both`);
  if (file === undefined) {
    const { name, fn, args } = chosenWorkload(workload);
    return { name, subject: fn, args: args() };
  }
  if (!isOnnxFile(file)) return programFile(file, text(values, 'export'));
  const { onnxProgram } = await onnxPrograms(file);
  const dims = readDims(text(values, 'dim'));
  const { at } = await onnxProgram(file, dims.keys(), texts(values, 'fix'));
  const { fn, inputs } = at(Object.fromEntries(dims));
  return { name: file, subject: fn, args: inputs };
}

export function isOnnxFile(file: string): boolean {
  return /\.onnx$/i.test(file);
}

/**
 * What reads ONNX files: the package that it needs is optional. Throws UsageError where there is no
 * such file.
 */
export async function onnxPrograms(file: string): Promise<typeof import('./onnx-file.ts')> {
  if (!existsSync(file)) throw new UsageError(`there is no file ${file}`);
  return fromPackage('@bufbuild/protobuf', `${file}: reading ONNX files`, () => import('./onnx-file.ts'));
}

/** How weights are stored, by `--dtype`; f32 where nothing is said. */
export function chosenFormat(values: OptionValues): WeightFormat {
  const name = text(values, 'dtype') ?? 'f32';
  const format = weightFormats.find((known) => known === name);
  if (format !== undefined) return format;
  throw new UsageError(`--dtype: weights are not stored as '${name}': expected ${weightFormats.join(', ')}`);
}
