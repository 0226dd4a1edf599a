// `sinter lower`: a program's generated kernels, as files or on stdout.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lower } from '../../explain/explain.ts';
import { chosenProgram, programDetails, programOperand, programOptions } from '../program/choice.ts';
import { text, type Command } from '../command.ts';

/** What files of a language end with. */
const suffixes: Readonly<Record<string, string>> = { wgsl: 'wgsl', cuda: 'cu', wasm: 'wat', native: 'c' };

export const lowerCommand: Command = {
  name: 'lower',
  about: 'write the generated kernels of a program',
  details:
    'Generates the kernels of a program without a device: one file each, NN-name.wgsl, .cu, .wat or .c, in the\n' +
    'order they run. Without --out the sources go to stdout.\n\n' +
    programDetails,
  operand: programOperand,
  options: {
    ...programOptions,
    target: {
      type: 'string',
      value: 'TARGET',
      about: 'the language: wgsl (the default), cuda, wasm or native (C)',
    },
    software: { type: 'boolean', about: 'schedule for the software adapter instead of a GPU' },
    out: { type: 'string', value: 'DIR', about: 'the folder to write to; created if it is missing' },
  },
  examples: [
    'sinter lower --workload softmax',
    'sinter lower model.ts --export trainStep --out kernels',
    'sinter lower model.onnx --dim batch=1 --target wasm --out kernels',
    'sinter lower --workload softmax --target cuda',
    'sinter lower --workload softmax --target native',
  ],
  run: async (values, output) => {
    const target = text(values, 'target') ?? 'wgsl';
    const options = { target, software: values['software'] === true };
    const { subject, args } = await chosenProgram(values, 'lower');
    const kernels = lower(subject, args, options);
    const folder = text(values, 'out');
    if (folder === undefined) {
      if (values['json'] === true) output.line(JSON.stringify(kernels));
      else for (const { source } of kernels) output.line(`${source.trimEnd()}\n`);
      return;
    }
    const suffix = suffixes[target] ?? target;
    await mkdir(folder, { recursive: true });
    const width = Math.max(2, String(kernels.length - 1).length);
    const files: { name: string; kind: string; file: string }[] = [];
    for (const [i, { name, kind, source }] of kernels.entries()) {
      const file = join(folder, `${String(i).padStart(width, '0')}-${name}.${suffix}`);
      await writeFile(file, source);
      files.push({ name, kind, file });
      if (values['json'] !== true) output.line(`wrote ${file}`);
    }
    if (values['json'] === true) output.line(JSON.stringify(files));
  },
};
