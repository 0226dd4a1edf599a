// Strings: joined, split, cleaned and matched on the host, where they are.

import { SinterError } from '../../../errors.ts';
import { sizeOf } from '../../../ir/shape.ts';
import type { Call, Row, Rows } from '../../call.ts';
import { knownData, Value } from '../../value.ts';
import { knownStrings } from '../../words.ts';
import { fullMatcher } from './pattern.ts';
import { ngrams } from './ngrams.ts';

/** A row that reads these inputs as strings, or as numbers. */
function spoken(since: readonly number[], host: readonly number[], run: Row['run']): Row {
  return { since, host, sequence: true, text: true, run };
}

/** The place in an operand of each element of a result that it is spread over. */
function spreadPlaces(from: readonly number[], to: readonly number[]): number[] {
  const lead = to.length - from.length;
  const strides = new Array<number>(to.length).fill(0);
  let stride = 1;
  for (let axis = from.length - 1; axis >= 0; axis--) {
    strides[axis + lead] = from[axis] === 1 ? 0 : stride;
    stride *= from[axis] ?? 1;
  }
  return Array.from({ length: sizeOf(to) }, (_, flat) => {
    let [rest, place] = [flat, 0];
    for (let axis = to.length - 1; axis >= 0; axis--) {
      const size = to[axis] ?? 1;
      place += (rest % size) * (strides[axis] ?? 0);
      rest = Math.floor(rest / size);
    }
    return place;
  });
}

function concat(call: Call): Value {
  const shapes = [0, 1].map((place) => call.value(place).shape);
  const rank = Math.max(...shapes.map(({ length }) => length));
  const shape = Array.from({ length: rank }, (_, axis) => {
    const sizes = shapes.map((own) => own[axis - (rank - own.length)] ?? 1);
    const wide = sizes.find((size) => size !== 1) ?? 1;
    if (sizes.some((size) => size !== 1 && size !== wide))
      throw new SinterError(
        'E_SHAPE',
        `[${shapes[0]?.join(',')}] and [${shapes[1]?.join(',')}] do not fit each other`,
      );
    return wide;
  });
  call.count(sizeOf(shape));
  const [left, right] = shapes.map((own) => spreadPlaces(own, shape));
  const [a, b] = [call.strings(0), call.strings(1)];
  return knownStrings(
    (left ?? []).map((place, i) => (a[place] ?? '') + (b[right?.[i] ?? 0] ?? '')),
    shape,
  );
}

/** The parts of a string, at most `most` cuts; without a delimiter between runs of white space. */
function partsOf(text: string, delimiter: string, most: number): string[] {
  const parts: string[] = [];
  if (delimiter === '') {
    let rest = text.trimStart();
    while (rest !== '') {
      const cut = parts.length < most ? /\s+/.exec(rest) : null;
      if (cut === null) return [...parts, parts.length < most ? rest.trimEnd() : rest];
      parts.push(rest.slice(0, cut.index));
      rest = rest.slice(cut.index + cut[0].length);
    }
    return parts;
  }
  let from = 0;
  for (let at = text.indexOf(delimiter); at >= 0 && parts.length < most; at = text.indexOf(delimiter, from)) {
    parts.push(text.slice(from, at));
    from = at + delimiter.length;
  }
  return [...parts, text.slice(from)];
}

/** Parts of each string, filled with empty ones, and how many there were. */
function split(call: Call): Value[] {
  const { shape } = call.value(0);
  const delimiter = call.attributes.string('delimiter', '');
  const most = call.attributes.int('maxsplit', Infinity);
  const all = call.strings(0).map((text) => partsOf(text, delimiter, most));
  const width = all.reduce((widest, { length }) => Math.max(widest, length), 0);
  call.count(all.length * width);
  const filled = all.flatMap((parts) => Array.from({ length: width }, (_, i) => parts[i] ?? ''));
  const counts = BigInt64Array.from(all, ({ length }) => BigInt(length));
  return [knownStrings(filled, [...shape, width]), knownData('int64', shape, counts)];
}

const changes: Readonly<Record<string, (text: string) => string>> = {
  NONE: (text) => text,
  LOWER: (text) => text.toLowerCase(),
  UPPER: (text) => text.toUpperCase(),
};

/** Without stop words, in one case; one empty string where nothing is left. */
function normalise(call: Call): Value {
  const { shape } = call.value(0);
  if (shape.length > 2 || shape.length === 0 || (shape.length === 2 && shape[0] !== 1))
    throw new SinterError('E_SHAPE', `takes [C] or [1,C], got [${shape.join(',')}]`);
  const { attributes } = call;
  const isExact = attributes.int('is_case_sensitive', 0) === 1;
  const action = attributes.string('case_change_action', 'NONE');
  const change = changes[action] ?? call.fail(`no case_change_action ${action}`);
  const locale = attributes.string('locale', '');
  // These languages have cases of their own.
  if (/^(az|lt|tr)/.test(locale)) call.fail(`attribute 'locale': '${locale}' is not supported`);
  const plain = (text: string): string => (isExact ? text : text.toLowerCase());
  const stops = new Set((attributes.strings('stopwords') ?? []).map(plain));
  const kept = call
    .strings(0)
    .filter((text) => !stops.has(plain(text)))
    .map(change);
  const left = kept.length === 0 ? [''] : kept;
  return knownStrings(left, shape.length === 1 ? [left.length] : [1, left.length]);
}

function matches(call: Call): Value {
  const fits = fullMatcher(call.attributes.string('pattern', ''));
  const found = call.strings(0).map((text) => (fits(text) ? 1 : 0));
  return knownData('bool', call.value(0).shape, Uint8Array.from(found));
}

export const text: Rows = {
  RegexFullMatch: spoken([20], [0], matches),
  StringConcat: spoken([20], [0, 1], concat),
  StringNormalizer: spoken([10], [0], normalise),
  StringSplit: spoken([20], [0], split),
  TfIdfVectorizer: spoken([9], [0], ngrams),
};
