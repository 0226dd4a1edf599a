// Sequences of tensors, as exporters write the results of splits: lists of tensors while a model is
// recorded; programs see only the tensors.

import { SinterError } from '../../errors.ts';
import * as sn from '../../operations/index.ts';
import type { Call, Row, Rows } from '../call.ts';
import { codeOf, type ElementType } from '../element.ts';
import { knownInts, Value } from '../value.ts';
import { commonWords } from '../words.ts';
import { wantedType } from './convert.ts';

/** A row that gives a sequence, and reads where on the host. */
function listed(since: readonly number[], host: readonly number[], run: Row['run']): Row {
  return { since, host, sequence: true, text: true, run };
}

/**
 * A place of up to `last` that input `at` tells, counted from the end of the sequence when
 * negative.
 */
function placeOf(call: Call, at: number, last: number): number {
  const { length } = call.items(0);
  const given = call.number(at) ?? last;
  const place = given < 0 ? given + length : given;
  if (place >= 0 && place <= last) return place;
  throw new SinterError('E_VALUE', `place ${given} is outside of ${length}`);
}

function insert(call: Call): Value {
  const items = call.items(0);
  const place = placeOf(call, 2, items.length);
  const item = call.value(1);
  return Value.sequence([...items.slice(0, place), item, ...items.slice(place)], item.type);
}

function erase(call: Call): Value {
  const items = call.items(0);
  const place = placeOf(call, 1, items.length - 1);
  return Value.sequence(items.toSpliced(place, 1), call.type(0));
}

/** Parts of one size, or of sizes one by one; without either single elements, whose axis may go. */
function splitToSequence(call: Call): Value {
  const [x, type] = [call.tensor(0), call.type(0)];
  const axis = call.axis(call.attributes.int('axis', 0), x.rank);
  const size = x.shape[axis]!;
  const given = call.host(1);
  const numbers = call.numbers(1);
  const part = given === undefined ? 1 : numbers![0]!;
  const isList = given !== undefined && given.shape.length > 0;
  if (!isList && part < 1) call.fail(`parts of ${part} elements`);
  const count = isList ? numbers!.length : Math.ceil(size / part);
  call.spend(count);
  const sizes = isList ? numbers! : Array.from({ length: count }, (_, i) => Math.min(part, size - i * part));
  const parts = sn.split(x, sizes, axis);
  const isFlat = given === undefined && call.attributes.int('keepdims', 1) === 0;
  return Value.sequence(
    parts.map((item) => Value.of(isFlat ? sn.squeeze(item, axis) : item, type)),
    type,
  );
}

function concatenated(call: Call): Value {
  const tensors = call.items(0).map(({ tensor }) => tensor);
  if (tensors.length === 0) call.fail('nothing to join');
  const axis = call.attributes.int('axis', 0);
  const isNew = call.attributes.int('new_axis', 0) === 1;
  const words = commonWords(call.items(0));
  return Value.of(isNew ? sn.stack(tensors, axis) : sn.cat(tensors, axis), call.type(0), undefined, words);
}

function listType(call: Call): ElementType {
  const code = call.attributes.int('dtype', 1);
  return code === codeOf('string') ? 'string' : wantedType(code);
}

export const sequence: Rows = {
  ConcatFromSequence: listed([11], [], concatenated),
  SequenceAt: listed([11], [1], (call) => {
    const items = call.items(0);
    return items[placeOf(call, 1, items.length - 1)];
  }),
  SequenceConstruct: listed([11], [], (call) =>
    Value.sequence(
      call.inputs.map((_, place) => call.value(place)),
      call.type(0),
    ),
  ),
  SequenceEmpty: listed([11], [], (call) => Value.sequence([], listType(call))),
  SequenceErase: listed([11], [1], erase),
  SequenceInsert: listed([11], [2], insert),
  SequenceLength: listed([11], [], (call) => knownInts([call.items(0).length], [])),
  SplitToSequence: listed([11, 24], [1], splitToSequence),
};
