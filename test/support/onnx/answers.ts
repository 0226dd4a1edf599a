// Files of values that are no tensors of numbers: text, sequences and optional values of conformance cases, as what models take
// and as what their results are compared with.

import { readFileSync } from 'node:fs';
import type { ModelInput, Port } from '../../../src/onnx/index.ts';
import type { Message, MessageName } from '../../../src/onnx/schema.ts';
import { readTensor, type StoredInitializer } from '../../../src/onnx/weights.ts';
import { Value } from '../../../src/onnx/value.ts';
import { decode } from '../../../src/onnx/wire.ts';
import { knownStrings, stringsOf } from '../../../src/onnx/words.ts';
import { fromHost } from '../../../src/tensor/record.ts';

function fileOf<N extends MessageName>(name: N, path: string): Message<N> {
  return decode(name, new Uint8Array(readFileSync(path)));
}

/** What a file holds: a tensor, a list, or no element. */
type Answer = StoredInitializer | readonly Answer[] | null;

function answerOf({ kind, isOptional }: Port, path: string): Answer {
  if (isOptional) {
    const { tensor, sequence } = fileOf('Optional', path);
    if (tensor !== undefined) return readTensor(tensor);
    return sequence === undefined ? null : listOf(sequence);
  }
  return kind === 'sequence' ? listOf(fileOf('Sequence', path)) : readTensor(fileOf('Tensor', path));
}

const listOf = ({ tensors, sequences }: Message<'Sequence'>): Answer => [
  ...tensors.map((proto) => readTensor(proto)),
  ...sequences.map(listOf),
];

function isList(answer: Answer): answer is readonly Answer[] {
  return Array.isArray(answer);
}

/** What to give a model for an input. */
export function inputOf(port: Port, path: string): ModelInput {
  return given(answerOf(port, path)) as ModelInput;
}

function given(answer: Answer): unknown {
  if (answer === null) return null;
  if (isList(answer)) return answer.map(given);
  const { array, words } = answer;
  if (words !== undefined) return { shape: array.shape, strings: stringsOf(words, array) };
  return fromHost(array.data, array.shape, array.dtype);
}

/** Why a result is not what a file holds; tensors are compared by `compare`. */
export async function mismatch(
  value: Value,
  port: Port,
  path: string,
  compare: (actual: StoredInitializer, expected: StoredInitializer) => string | undefined,
): Promise<string | undefined> {
  return differs(value, answerOf(port, path), compare);
}

async function differs(
  value: Value,
  expected: Answer,
  compare: (actual: StoredInitializer, expected: StoredInitializer) => string | undefined,
): Promise<string | undefined> {
  if (expected === null) return value.isAbsent ? undefined : `expected no element, got ${value.kind}`;
  if (isList(expected)) {
    const { items } = value;
    if (items?.length !== expected.length)
      return `expected ${expected.length} values, got ${items?.length ?? value.kind}`;
    for (const [i, item] of items.entries()) {
      const problem = await differs(item, expected[i]!, compare);
      if (problem !== undefined) return `value ${i}: ${problem}`;
    }
    return undefined;
  }
  const { tensor, type, shape, words } = value;
  const array = { dtype: tensor.dtype, shape, data: await tensor.data() };
  if (expected.words === undefined) return compare({ type, array }, expected);
  // Places in other lists of words are other places.
  const own = knownStrings(words === undefined ? [] : stringsOf(words, array), shape);
  const problem = compare({ type, array: own.known! }, expected);
  const [a, b] = [own.words!, expected.words].map((list) => JSON.stringify(list));
  return problem ?? (a === b ? undefined : `expected the words ${b}, got ${a}`);
}
