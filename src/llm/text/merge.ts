// Byte pair encoding as a queue: neighbours are joined, the best pair first and of equal ones the
// leftmost, until no pair is in the vocabulary (Sennrich et al., 2016; SentencePiece orders pairs by
// the scores of what they become). Long words cost n·log n.

interface Pair {
  readonly left: number;
  readonly right: number;
  readonly order: number;
  readonly text: string;
}

/** Whether `a` is joined before `b`. */
function before(a: Pair, b: Pair): boolean {
  return a.order < b.order || (a.order === b.order && a.left < b.left);
}

/** A binary heap of pairs, the first to be joined on top. */
class Queue {
  readonly #pairs: Pair[] = [];

  push(pair: Pair): void {
    const pairs = this.#pairs;
    let at = pairs.push(pair) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = pairs[parent];
      if (above === undefined || !before(pair, above)) break;
      pairs[at] = above;
      at = parent;
    }
    pairs[at] = pair;
  }

  pop(): Pair | undefined {
    const pairs = this.#pairs;
    const [top] = pairs;
    const last = pairs.pop();
    if (last === undefined || pairs.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const [first, second] = [pairs[child], pairs[child + 1]];
      if (first === undefined) break;
      let lower = first;
      if (second !== undefined && before(second, first)) [lower, child] = [second, child + 1];
      if (!before(lower, last)) break;
      pairs[at] = lower;
      at = child;
    }
    pairs[at] = last;
    return top;
  }
}

/**
 * Joins symbols. `orderOf` says when two neighbours are joined, the smallest first; undefined: never.
 */
export function joinSymbols(
  symbols: readonly string[],
  orderOf: (left: string, right: string) => number | undefined,
): string[] {
  const texts: (string | undefined)[] = [...symbols];
  const next = symbols.map((_, i) => i + 1);
  const previous = symbols.map((_, i) => i - 1);
  const queue = new Queue();
  const offer = (left: number, right: number): void => {
    const [a, b] = [texts[left], texts[right]];
    if (a === undefined || b === undefined) return;
    const order = orderOf(a, b);
    if (order !== undefined) queue.push({ left, right, order, text: a + b });
  };
  for (let i = 0; i + 1 < symbols.length; i++) offer(i, i + 1);
  for (let pair = queue.pop(); pair !== undefined; pair = queue.pop()) {
    const { left, right, text } = pair;
    const [a, b] = [texts[left], texts[right]];
    // One of the two was joined with another neighbour meanwhile.
    if (a === undefined || b === undefined || next[left] !== right || a + b !== text) continue;
    texts[left] = text;
    texts[right] = undefined;
    const after = next[right] ?? texts.length;
    next[left] = after;
    if (after < texts.length) previous[after] = left;
    offer(previous[left] ?? -1, left);
    offer(left, after);
  }
  return texts.filter((text) => text !== undefined);
}
