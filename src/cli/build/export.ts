// `sinter export`: a function of a module, or an ONNX model at sizes that it leaves open, written
// as an ONNX model.

import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { weightFormats } from '../../aot/formats.ts';
import { setDevice } from '../../index.ts';
import { showBytes } from '../../table.ts';
import { tensorOf } from '../../tensor/values.ts';
import { openInputs } from './open-dims.ts';
import { buildSource } from './source.ts';
import { chosenFormat, fixOption } from '../program/choice.ts';
import { text, UsageError, wholeNumber, type Command } from '../command.ts';
import { fromPackage } from '../../packages/missing.ts';

/** What `--json` prints. */
export interface ExportResult {
  readonly out: string;
  readonly entry: string;
  readonly bytes: number;
  /** Files beside the model, with their bytes. */
  readonly files: Readonly<Record<string, number>>;
}

export const exportCommand: Command = {
  name: 'export',
  about: 'write a function as an ONNX model, for other runtimes',
  details:
    'Traces a function that FILE exports, on `inputs` as `sinter build` takes them, and writes it as an ONNX model, whose sizes\n' +
    'are fixed or lie in ranges. Tensors that it captures become initializers; an export `state` becomes inputs, and what is\n' +
    'returned of it outputs.\n' +
    'One error lists all operations that ONNX does not have, such as random draws.',
  operand: {
    name: 'file',
    value: 'FILE',
    about: 'a module with functions and inputs for them, or an ONNX model',
  },
  options: {
    out: {
      type: 'string',
      value: 'MODEL',
      about: 'the file to write; its folder is created if it is missing',
    },
    export: { type: 'string', value: 'NAME', about: 'which function of FILE' },
    dim: {
      type: 'string',
      multiple: true,
      value: 'LIST',
      about: 'sizes that FILE leaves open, or their ranges: batch=1..64,length=128',
    },
    fix: fixOption,
    dtype: {
      type: 'string',
      value: 'FORMAT',
      about: `store captured matrices of f32 as one of ${weightFormats.slice(1).join(', ')}`,
    },
    opset: { type: 'string', value: 'N', about: "the standard's version, 21 (the default) to 26" },
    external: {
      type: 'string',
      value: 'NAME',
      about: 'put weights into a file of this name beside the model',
    },
  },
  examples: [
    'sinter export model.ts --export predict --out model.onnx',
    'sinter export language.ts --out model.onnx --dtype q4_0 --external weights.bin',
    'sinter export model.ts --dim batch=1..64 --out model.onnx',
  ],
  run: async (values, output) => {
    const [file, out] = [text(values, 'file'), text(values, 'out')];
    if (file === undefined)
      throw new UsageError('export: no FILE given\n  try: sinter export model.ts --out model.onnx');
    if (out === undefined)
      throw new UsageError(`export: no file to write\n  try: sinter export ${file} --out model.onnx`);
    const format = chosenFormat(values);
    const opset = wholeNumber(values, 'opset', 21, 1);
    const external = text(values, 'external');
    const { exportOnnx } = await fromPackage(
      '@bufbuild/protobuf',
      'writing ONNX files',
      () => import('../../onnx/index.ts'),
    );
    // Weights are computed here, whoever runs the model.
    setDevice('wasm');
    output.live(`export: loading ${file}`);
    const { points, names, state } = await buildSource(file, values);
    const [chosen] = points;
    if (chosen === undefined || points.length > 1) {
      const known = points.map(({ name }) => name).join(', ');
      throw new UsageError(`${file} exports several functions: ${known}\n  try: --export ${chosen?.name}`);
    }
    if (chosen.sizes.length !== 1)
      throw new UsageError(
        `export: a model has one size of each dimension, or a range\n  try: --dim batch=1, or --dim batch=1..64`,
      );
    const { name } = chosen;
    const { fn, inputs, dims } = await openInputs(chosen, state);
    const parameters = Object.fromEntries([...names].map(([value, called]) => [called, tensorOf(value)]));
    const model = await exportOnnx(fn, inputs, {
      parameters,
      dims,
      dtype: format,
      opset,
      name,
      ...(external !== undefined && { externalData: external }),
    });
    await mkdir(dirname(out), { recursive: true });
    await model.save(out);
    const sizes = Object.entries(model.externalData).map(([path, { length }]) => [path, length] as const);
    const result: ExportResult = {
      out,
      entry: name,
      bytes: model.bytes.length,
      files: Object.fromEntries(sizes),
    };
    if (values['json'] === true) output.line(JSON.stringify(result));
    else {
      const beside = sizes.map(([path, bytes]) => `, ${path} ${showBytes(bytes)}`).join('');
      output.line(`wrote ${name} to ${out}: ${showBytes(result.bytes)}${beside}`);
    }
  },
};
