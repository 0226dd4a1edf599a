// Real networks that lie beside the checkout, where they are given at all: ONNX files, with an input each and what comes of it.

import { existsSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { decode } from '../../../src/onnx/wire.ts';
import { readTensor } from '../../../src/onnx/weights.ts';

export const networks = ['squeezenet', 'shufflenet'] as const;
export type Network = (typeof networks)[number];

const networksFolder = path.resolve(import.meta.dirname, '../../../../shared/onnx/models');

/** Why there are none here. */
export const missingNetworks: string | undefined = existsSync(networksFolder)
  ? undefined
  : `${networksFolder} is not there`;

export interface NetworkFigures {
  /** Where `model.onnx`, `input_0.pb` and `output_0.pb` lie. */
  readonly folder: string;
  readonly model: string;
  readonly input: Figures;
  readonly output: Figures;
}

interface Figures {
  readonly shape: readonly number[];
  readonly data: Float32Array<ArrayBuffer>;
}

export function networkFigures(name: Network): NetworkFigures {
  const folder = path.join(networksFolder, name);
  const at = (file: string): string => path.join(folder, file);
  return { folder, model: at('model.onnx'), input: read(at('input_0.pb')), output: read(at('output_0.pb')) };
}

function read(file: string): Figures {
  const { array } = readTensor(decode('Tensor', readFileSync(file)));
  return { shape: array.shape as readonly number[], data: Float32Array.from(array.data as Float32Array) };
}
