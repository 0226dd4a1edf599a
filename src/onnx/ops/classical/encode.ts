// Encoders: values by other values, categories as ones among zeros, maps as tensors and tensors as
// maps.

import { SinterError } from '../../../errors.ts';
import { emptyData, type HostArray } from '../../../ir/value.ts';
import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Row, Rows } from '../../call.ts';
import { hostType, type ElementType } from '../../element.ts';
import { knownData, Value } from '../../value.ts';
import { byCodePoint, knownStrings, stringsOf } from '../../words.ts';
import { classLabels, labelled, placesOf, type Label, type LabelList } from './labels.ts';

/** The list that attributes of a kind and ending give: `keys_strings`, `keys_int64s`, … */
function listOf({ attributes }: Call, kind: string): LabelList | undefined {
  const strings = attributes.strings(`${kind}_strings`);
  if (strings !== undefined) return { type: 'string', list: strings };
  const ints = attributes.ints(`${kind}_int64s`);
  if (ints !== undefined) return { type: 'int64', list: ints };
  const floats = attributes.floats(`${kind}_floats`);
  if (floats !== undefined) return { type: 'float', list: floats };
  const stored = attributes.has(`${kind}_tensor`) ? attributes.tensor(`${kind}_tensor`) : undefined;
  if (stored === undefined) return undefined;
  const list: Label[] =
    stored.type === 'string'
      ? stringsOf(stored.words, stored.array)
      : [...(stored.array.data as Iterable<number>)];
  return { type: stored.type, list };
}

/** What stands for elements that are no key. */
function defaultOf({ attributes }: Call, type: ElementType): Label {
  const stored = attributes.has('default_tensor') ? attributes.tensor('default_tensor') : undefined;
  if (stored !== undefined)
    return stored.type === 'string'
      ? (stringsOf(stored.words, stored.array)[0] ?? '')
      : (stored.array.data[0] ?? 0);
  if (type === 'string') return attributes.string('default_string', '_Unused');
  if (type === 'float' || type === 'double') return attributes.float('default_float', -0);
  return attributes.int('default_int64', -1);
}

function labelEncoder(call: Call): Value {
  const classes = call.attributes.strings('classes_strings');
  if (call.opset < 2 && classes !== undefined) {
    const names: LabelList = { type: 'string', list: classes };
    const numbers: LabelList = { type: 'int64', list: classes.map((_, i) => i) };
    return call.type(0) === 'string' ? mapped(call, names, numbers) : mapped(call, numbers, names);
  }
  const [keys, values] = [listOf(call, 'keys'), listOf(call, 'values')];
  if (keys === undefined || values === undefined)
    throw new SinterError('E_FORMAT', 'its keys or their values are missing');
  return mapped(call, keys, values);
}

/** Elements by keys and the values of those, or a default. */
function mapped(call: Call, keys: LabelList, values: LabelList): Value {
  if (keys.list.length !== values.list.length)
    throw new SinterError('E_FORMAT', `${keys.list.length} keys have ${values.list.length} values`);
  const { type } = values;
  return labelled({ type, list: [...values.list, defaultOf(call, type)] }, placesOf(call, 0, keys));
}

function categoryMapper(call: Call): Value {
  const [strings, ints] = [call.attributes.strings('cats_strings'), call.attributes.ints('cats_int64s')];
  if (strings === undefined || ints === undefined)
    throw new SinterError('E_FORMAT', 'cats_strings or cats_int64s are missing');
  const [names, numbers]: LabelList[] = [
    { type: 'string', list: strings },
    { type: 'int64', list: ints },
  ];
  return call.type(0) === 'string' ? mapped(call, names!, numbers!) : mapped(call, numbers!, names!);
}

/** Whether unknown categories are mistakes, which the host has to look for. */
const isStrict = (call: Pick<Call, 'attributes'>): boolean => call.attributes.int('zeros', 1) === 0;

function oneHotEncoder(call: Call): Tensor {
  const categories = classLabels(call, 'cats_strings', 'cats_int64s');
  if (categories === undefined) throw new SinterError('E_FORMAT', 'it has no categories');
  const { length } = categories.list;
  if (isStrict(call)) {
    const known = new Set<string>(categories.list.map(String));
    const given =
      call.type(0) === 'string' ? call.strings(0) : call.numbers(0)?.map((x) => String(Math.trunc(x)));
    const odd = given?.find((item) => !known.has(item));
    if (odd !== undefined) call.fail(`${odd} is no category`);
  }
  const value = call.value(0);
  const own = value.type === 'string' ? call : whole(call);
  const places = placesOf(own, 0, categories);
  return sn.cast(sn.eq(sn.unsqueeze(places, value.shape.length), sn.arange(length)), 'f32');
}

/** The call with numbers cut off to whole ones. */
function whole(call: Call): Call {
  const { tensor, type } = call.value(0);
  if (type === 'int64') return call;
  const cut = Value.of(sn.cast(tensor, 'i64'), 'int64');
  return Object.assign(Object.create(call) as Call, { inputs: [cut] });
}

/** A tensor as maps from labels, one a row. */
function zipMap(call: Call): Value {
  const { tensor, type } = call.value(0);
  const labels = classLabels(call, 'classlabels_strings', 'classlabels_int64s');
  const width = tensor.shape.at(-1) ?? 1;
  if (labels?.list.length !== width)
    throw new SinterError('E_SHAPE', `${width} columns have ${labels?.list.length ?? 'no'} labels`);
  const names = labels.list.map((label) => (typeof label === 'string' ? label : BigInt(label)));
  return Value.maps(Value.of(sn.reshape(tensor, [tensor.size / Math.max(1, width), width]), type), names);
}

interface Entries {
  readonly names: readonly (string | bigint)[];
  readonly values: readonly Label[];
  readonly type: ElementType;
}

/** A map that went in, whose elements the host has. */
function entriesOf(call: Call): Entries {
  const value = call.value(0);
  const { keys, known, type, words } = value;
  if (keys?.isOne !== true || known === undefined)
    throw new SinterError('E_UNSUPPORTED', `it takes a map that went into the model, got ${value.kind}`);
  const values = type === 'string' ? stringsOf(words, known) : [...(known.data as Iterable<number>)];
  return { names: keys.names, values, type };
}

/** A row of values of a type. */
function rowOf(type: ElementType, list: readonly Label[]): Value {
  const shape = [1, list.length];
  if (type === 'string') return knownStrings(list.map(String), shape);
  const data: HostArray['data'] = emptyData(hostType(type), list.length);
  list.forEach((item, i) => (data[i] = type === 'int64' ? BigInt(item) : Number(item)));
  return knownData(type, shape, data);
}

function dictVectorizer(call: Call): Value {
  const vocabulary = classLabels(call, 'string_vocabulary', 'int64_vocabulary');
  const { names, values, type } = entriesOf(call);
  const at = new Map(names.map((name, i) => [String(name), values[i]]));
  const nothing = type === 'string' ? '' : 0;
  return rowOf(
    type,
    (vocabulary?.list ?? []).map((word) => at.get(String(word)) ?? nothing),
  );
}

const casts: Readonly<Record<string, ElementType>> = {
  TO_FLOAT: 'float',
  TO_STRING: 'string',
  TO_INT64: 'int64',
};

/** The values of a map in the order of its keys, or at the places that its keys are. */
function castMap(call: Call): Value {
  const { attributes } = call;
  const { names, values } = entriesOf(call);
  const name = attributes.string('cast_to', 'TO_FLOAT');
  const type = casts[name] ?? call.fail(`no cast_to ${name}`);
  const cast = (item: Label): Label => {
    if (type === 'string') return String(item);
    const number = Number(item);
    if (Number.isNaN(number) && item !== 'NaN') call.fail(`'${item}' is no number`);
    return type === 'int64' ? BigInt(Math.trunc(number)) : number;
  };
  const sorted = names
    .map((key, i) => [key, cast(values[i] ?? 0)] as const)
    .sort(([a], [b]) =>
      typeof a === 'string' || typeof b === 'string' ? byCodePoint(String(a), String(b)) : a < b ? -1 : 1,
    );
  if (attributes.string('map_form', 'DENSE') === 'DENSE')
    return rowOf(
      type,
      sorted.map(([, value]) => value),
    );
  const size = call.count(attributes.int('max_map', 1));
  const list = new Array<Label>(size).fill(type === 'string' ? '' : 0);
  for (const [key, value] of sorted) {
    const place = Number(key);
    if (!(place >= 0 && place < size)) call.fail(`the key ${key} is outside of ${size}`);
    list[place] = value;
  }
  return rowOf(type, list);
}

/** A row that reads a map. */
const ofMap = (run: Row['run']): Row => ({ since: [1], sequence: true, text: true, run });

export const encode: Rows = {
  CastMap: ofMap(castMap),
  CategoryMapper: { since: [1], text: true, run: categoryMapper },
  DictVectorizer: ofMap(dictVectorizer),
  LabelEncoder: { since: [1, 2, 4], text: true, run: labelEncoder },
  OneHotEncoder: {
    since: [1],
    text: true,
    host: (attributes) => (isStrict({ attributes }) ? [0] : []),
    run: oneHotEncoder,
  },
  ZipMap: { since: [1], sequence: true, run: zipMap },
};
