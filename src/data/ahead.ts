// Work that is begun before its result is asked for, a few results ahead, and ends with whoever
// asks.

/** The next result, or that there is none. What is asked for at once may be worked on at once. */
export type Next<T> = () => Promise<IteratorResult<T, undefined>>;

/**
 * The results in order, with `depth` of them under way while the loop is busy with one. Stops at the
 * first failure. `end` is called when the loop is over, however it ends.
 */
export async function* ahead<T>(
  next: Next<T>,
  depth: number,
  end: () => Promise<void> | void,
): AsyncGenerator<T, undefined, undefined> {
  const begun: Promise<IteratorResult<T, undefined>>[] = [];
  try {
    for (;;) {
      while (begun.length <= depth) {
        const result = next();
        // It is looked at in its turn, or never, where the loop ends before.
        result.catch(() => undefined);
        begun.push(result);
      }
      const { done, value } = (await begun.shift()) as IteratorResult<T, undefined>;
      if (done === true) return undefined;
      yield value;
    }
  } finally {
    await end();
  }
}

/** One call after the other: what needs the one before waits for it. */
export function inTurn<T>(call: () => Promise<T>): () => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    const turn = last.then(call);
    last = turn.catch(() => undefined);
    return turn;
  };
}
