// Counts of n-grams (TfIdfVectorizer): runs of words or numbers of a row, also with gaps of one size
// between them, that stand in a pool.

import { SinterError } from '../../../errors.ts';
import type { Call } from '../../call.ts';
import { knownData, type Value } from '../../value.ts';

/** A tree of the pool: what may follow, and which n-gram ends here. */
interface Node {
  readonly next: Map<string, Node>;
  /** Places in the result; none where no n-gram ends here. */
  column: number | undefined;
}

const node = (): Node => ({ next: new Map(), column: undefined });

/** The pool as a tree of the n-grams of lengths that are asked for. */
function treeOf(call: Call, pool: readonly string[], [shortest, longest]: readonly [number, number]): Node {
  const counts = call.attributes.ints('ngram_counts') ?? [];
  const columns = call.attributes.ints('ngram_indexes') ?? [];
  const root = node();
  let gram = 0;
  counts.forEach((start, i) => {
    const length = i + 1;
    const end = counts[i + 1] ?? pool.length;
    if (start < 0 || end > pool.length || end < start)
      call.fail(`ngram_counts [${counts.join(',')}] do not fit a pool of ${pool.length}`);
    for (let at = start; at + length <= end; at += length) {
      const column = columns[gram++];
      if (column === undefined) call.fail(`${columns.length} ngram_indexes for more n-grams`);
      if (length < shortest || length > longest) continue;
      let inside = root;
      for (const item of pool.slice(at, at + length)) {
        let next = inside.next.get(item);
        if (next === undefined) inside.next.set(item, (next = node()));
        inside = next;
      }
      inside.column = column;
    }
  });
  return root;
}

/** Counts the n-grams of a row that are in the tree. */
function count(
  items: readonly string[],
  root: Node,
  [shortest, longest]: readonly [number, number],
  skips: number,
  into: Float32Array,
): void {
  for (let distance = 1; distance <= skips + 1; distance++) {
    // Gaps make no difference to single items, which are counted once.
    const least = distance === 1 ? shortest : Math.max(shortest, 2);
    for (let start = 0; start < items.length; start++) {
      let inside: Node | undefined = root;
      for (let length = 1; length <= longest; length++) {
        const item = items[start + (length - 1) * distance];
        inside = item === undefined ? undefined : inside.next.get(item);
        if (inside === undefined) break;
        if (length >= least && inside.column !== undefined)
          into[inside.column] = (into[inside.column] ?? 0) + 1;
      }
    }
  }
}

export function ngrams(call: Call): Value {
  const { attributes } = call;
  const value = call.value(0);
  const { shape } = value;
  if (shape.length < 1 || shape.length > 2)
    throw new SinterError('E_SHAPE', `takes [C] or [N,C], got [${shape.join(',')}]`);
  const words = attributes.strings('pool_strings');
  const pool = words ?? (attributes.ints('pool_int64s') ?? []).map(String);
  if ((words !== undefined) !== (value.type === 'string'))
    throw new SinterError(
      'E_DTYPE',
      `a pool of ${words === undefined ? 'int64' : 'strings'} for ${value.type}`,
    );
  const items = value.type === 'string' ? call.strings(0) : (call.numbers(0) ?? []).map(String);
  const lengths = [attributes.int('min_gram_length', 1), attributes.int('max_gram_length', 1)] as const;
  const root = treeOf(call, pool, lengths);
  const columns = attributes.ints('ngram_indexes') ?? [];
  const width = columns.reduce((most, column) => Math.max(most, column + 1), 0);
  const [rows, size] = shape.length === 1 ? [1, shape[0] ?? 0] : [shape[0] ?? 0, shape[1] ?? 0];
  const out = new Float32Array(call.count(rows * width));
  const skips = attributes.int('max_skip_count', 0);
  for (let i = 0; i < rows; i++)
    count(
      items.slice(i * size, (i + 1) * size),
      root,
      lengths,
      skips,
      out.subarray(i * width, (i + 1) * width),
    );
  const weigh = weighing(call, width);
  return knownData('float', shape.length === 1 ? [width] : [rows, width], out.map(weigh));
}

/** What becomes of the count of an element. */
function weighing(call: Call, width: number): (count: number, at: number) => number {
  const weights = call.attributes.floats('weights');
  const weight = (at: number): number => weights?.[at % width] ?? 1;
  const mode = call.attributes.string('mode', 'TF');
  switch (mode) {
    case 'TF':
      return (count) => count;
    case 'IDF':
      return (count, at) => (count > 0 ? weight(at) : 0);
    case 'TFIDF':
      return (count, at) => count * weight(at);
    default:
      return call.fail(`no mode ${mode}`);
  }
}
