// Backend tests of the ONNX project: folders of a model and of TensorProto files for its inputs and outputs. A case passes when
// every output has the expected type, shape and elements.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isPlain } from '../../../src/onnx/ports/port.ts';
import { loadOnnx, type ModelInput } from '../../../src/onnx/index.ts';
import { decode } from '../../../src/onnx/wire.ts';
import { readTensor, type StoredInitializer } from '../../../src/onnx/weights.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import { inputOf, mismatch } from './answers.ts';

/** A row of index.json. */
export interface Case {
  readonly name: string;
  readonly group: string;
  readonly scope: 'core' | 'out' | 'random';
  readonly tags: readonly string[];
}

export interface Failure {
  readonly name: string;
  readonly reason: string;
}

export interface Tally {
  total: number;
  passed: number;
}

/** The last line of the runner. */
export interface Report extends Tally {
  readonly byScope: Record<string, Tally>;
  readonly byTag: Record<string, Tally>;
  readonly failures: Failure[];
}

/** The tensor of a TensorProto file. */
export function readPb(path: string): StoredInitializer {
  return readTensor(decode('Tensor', new Uint8Array(readFileSync(path))));
}

/** Why an output is not the expected one; undefined when it is. */
export function difference(
  actual: StoredInitializer,
  expected: StoredInitializer,
  onlyType: boolean,
): string | undefined {
  const show = ({ type, array }: StoredInitializer): string => `${type}[${array.shape.join(',')}]`;
  if (show(actual) !== show(expected)) return `expected ${show(expected)}, got ${show(actual)}`;
  if (onlyType) return undefined;
  const { data } = expected.array;
  for (let i = 0; i < data.length; i++) {
    const [a, b] = [actual.array.data[i]!, data[i]!];
    if (Object.is(a, b) || a === b) continue;
    if (typeof a === 'number' && typeof b === 'number' && Math.abs(a - b) <= 1e-7 + 1e-3 * Math.abs(b))
      continue;
    return `element ${i} of ${show(expected)}: expected ${b}, got ${a}`;
  }
  return undefined;
}

/** Runs one case; gives the reason of its failure. */
export async function runCase(folder: string, onlyType = false): Promise<string | undefined> {
  try {
    const model = await loadOnnx(join(folder, 'model.onnx'));
    for (const set of readdirSync(folder).filter((name) => name.startsWith('test_data_set_'))) {
      const path = join(folder, set);
      const files = readdirSync(path);
      const at = (kind: string, i: number): string => join(path, `${kind}_${i}.pb`);
      const inputs = model.inputs.flatMap((port, i): [string, ModelInput][] => {
        const { name } = port;
        if (!files.includes(`input_${i}.pb`)) return [];
        if (!isPlain(port) || port.isOptional) return [[name, inputOf(port, at('input', i))]];
        const { array } = readPb(at('input', i));
        return [[name, fromHost(array.data, array.shape, array.dtype)]];
      });
      const outputs = await model.evaluate(Object.fromEntries(inputs));
      for (const [i, value] of outputs.entries()) {
        if (!files.includes(`output_${i}.pb`)) continue;
        const port = model.outputs[i]!;
        if (!isPlain(port) || port.isOptional || value.words !== undefined) {
          const compare = (a: StoredInitializer, b: StoredInitializer): string | undefined =>
            difference(a, b, onlyType);
          const problem = await mismatch(value, port, at('output', i), compare);
          if (problem !== undefined) return `output ${i}: ${problem}`;
          continue;
        }
        // The tensor, as a user reads it, be the elements known or not.
        const { dtype, shape } = value.tensor;
        const array = { dtype, shape, data: await value.tensor.data() };
        const problem = difference({ type: value.type, array }, readPb(at('output', i)), onlyType);
        if (problem !== undefined) return `output ${i}: ${problem}`;
      }
    }
    return undefined;
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
}

/** The cases of a folder, those of `only` names if given. */
export function casesOf(dir: string): readonly Case[] {
  return JSON.parse(readFileSync(join(dir, 'index.json'), 'utf8')) as Case[];
}

/** Runs cases one after the other and counts. */
export async function runCases(
  dir: string,
  cases: readonly Case[],
  each: (item: Case, reason: string | undefined) => void = () => undefined,
): Promise<Report> {
  const report: Report = { total: 0, passed: 0, byScope: {}, byTag: {}, failures: [] };
  for (const item of cases) {
    const reason = await runCase(join(dir, item.group, item.name), item.scope === 'random');
    const tallies = [
      report,
      (report.byScope[item.scope] ??= { total: 0, passed: 0 }),
      ...(item.scope === 'core' ? item.tags : []).map(
        (tag) => (report.byTag[tag] ??= { total: 0, passed: 0 }),
      ),
    ];
    for (const tally of tallies) {
      tally.total += 1;
      if (reason === undefined) tally.passed += 1;
    }
    if (reason !== undefined) report.failures.push({ name: item.name, reason });
    each(item, reason);
  }
  return report;
}
