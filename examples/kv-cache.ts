// A transformer that writes one token at a time, for `npx sinter build examples/kv-cache.ts --out bundle`: the keys and values of the
// tokens before are state, which stays on the device. A call gives the token and its position, and gets the scores of what comes next.
// The position is a number that each call brings, so one program serves them all, and attention looks at the keys that there are, not
// at the room for them. Run as it is, the example writes 512 tokens: `npx tsx examples/kv-cache.ts`.

import { pathToFileURL } from 'node:url';
import {
  arange,
  compile,
  indexCopy,
  le,
  manualSeed,
  scaledDotProductAttention,
  tensor,
  zeros,
  type Tensor,
} from 'sinter';
import { Embedding, LayerNorm, Linear, Module, TransformerBlock } from 'sinter/nn';

const [vocabulary, width, heads, layers] = [96, 64, 4, 2];
/** Tokens that a text may have; room for their keys and values is there from the beginning. */
export const longest = 512;

class Decoder extends Module {
  readonly tokens: Embedding = new Embedding(vocabulary, width);
  readonly positions: Embedding;
  readonly blocks: readonly TransformerBlock[] = Array.from(
    { length: layers },
    () => new TransformerBlock(width, heads, { causal: true }),
  );
  readonly norm: LayerNorm = new LayerNorm(width);
  readonly head: Linear = new Linear(width, vocabulary);

  constructor(capacity: number) {
    super();
    this.positions = new Embedding(capacity, width);
  }

  /** Scores at all positions of a text at once: what `decode` gives one by one. [length] to [length, vocabulary]. */
  forward(text: Tensor): Tensor {
    const start = this.tokens.forward(text).add(this.positions.forward(arange(text.shape[0]!)));
    return this.scores(this.blocks.reduce((stream, block) => block.forward(stream), start));
  }

  scores(stream: Tensor): Tensor {
    return this.head.forward(this.norm.forward(stream));
  }
}

/** What attention of one block has seen: [capacity, heads, width / heads] each. */
interface Seen {
  readonly keys: Tensor;
  readonly values: Tensor;
}

export interface State {
  readonly model: Decoder;
  readonly cache: readonly Seen[];
}

/** Each head apart: [n, width] to [n, heads, width / heads]. */
const split = (x: Tensor): Tensor => x.reshape([x.shape[0]!, heads, width / heads]);

/** A block on one token: its key and value join those of the tokens before, of which it sees all. */
function attend(block: TransformerBlock, stream: Tensor, before: Seen, position: Tensor): [Tensor, Seen] {
  const { attention, attentionNorm, feedForward, feedForwardNorm } = block;
  const token = attentionNorm.forward(stream);
  const place = position.reshape([1]);
  const keys = indexCopy(before.keys, 0, place, split(attention.key.forward(token)));
  const values = indexCopy(before.values, 0, place, split(attention.value.forward(token)));
  const [query, k, v] = [split(attention.query.forward(token)), keys, values].map((x) =>
    x.permute([1, 0, 2]),
  );
  // Behind the position lie zeros, or what another text has left.
  const mask = le(arange(before.keys.shape[0]!), position);
  const found = scaledDotProductAttention(query!, k!, v!, { mask });
  const after = stream.add(attention.output.forward(found.permute([1, 0, 2]).reshape([1, width])));
  return [after.add(feedForward.forward(feedForwardNorm.forward(after))), { keys, values }];
}

/** `token` is [1], `position` a single number: a text is given token by token, from position 0 on. */
export function decode(
  { model, cache }: State,
  token: Tensor,
  position: Tensor,
): { state: State; scores: Tensor } {
  let stream = model.tokens.forward(token).add(model.positions.forward(position.reshape([1])));
  const next = cache.map((before, i) => {
    const [after, seen] = attend(model.blocks[i]!, stream, before, position);
    stream = after;
    return seen;
  });
  return { state: { model, cache: next }, scores: model.scores(stream) };
}

/** A model and room for so many tokens. */
export function start(capacity: number): State {
  manualSeed(1);
  const shape = [capacity, heads, width / heads];
  const model = new Decoder(capacity);
  const cache = Array.from({ length: layers }, () => ({ keys: zeros(shape), values: zeros(shape) }));
  return { model, cache };
}

export const state: State = start(longest);
export const inputs: readonly Tensor[] = [zeros([1], { dtype: 'i32' }), zeros([], { dtype: 'i32' })];

/** Writes `count` tokens, the likeliest each, by one program: its cache is donated, and written where it lies. */
export async function write({ model, cache }: State, count: number, first: number): Promise<number[]> {
  const step = compile(
    (seen: State['cache'], token: Tensor, position: Tensor) => {
      const { state: after, scores } = decode({ model, cache: seen }, token, position);
      return { seen: after.cache, next: scores.argmax(-1) };
    },
    { donate: [0] },
  );
  let [seen, token] = [cache, tensor(Int32Array.of(first))];
  const written: Tensor[] = [];
  for (let position = 0; position < count; position++) {
    const result = step(seen, token, tensor(Int32Array.of(position), { shape: [] }));
    [seen, token] = [result.seen, result.next];
    written.push(token);
  }
  const tokens = await Promise.all(written.map((one) => one.data()));
  return tokens.map(([value]) => Number(value));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const tokens = await write(start(longest), longest, 1);
  console.log(`${tokens.length} tokens: ${tokens.slice(0, 16).join(' ')} …`);
}
