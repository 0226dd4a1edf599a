// A transformer that writes one token at a time, for `npx sinter build examples/kv-cache.ts --out bundle`: the keys and values of the
// tokens before are state, which stays on the device. A call gives the token and its position, and gets the scores of what comes next.

import { arange, indexCopy, le, manualSeed, scaledDotProductAttention, zeros, type Tensor } from 'sinter';
import { Embedding, LayerNorm, Linear, Module, TransformerBlock } from 'sinter/nn';

const [vocabulary, width, heads, layers] = [96, 64, 4, 2];
/** Tokens that a text may have; room for their keys and values is there from the beginning. */
export const longest = 128;

class Decoder extends Module {
  readonly tokens: Embedding = new Embedding(vocabulary, width);
  readonly positions: Embedding = new Embedding(longest, width);
  readonly blocks: readonly TransformerBlock[] = Array.from(
    { length: layers },
    () => new TransformerBlock(width, heads, { causal: true }),
  );
  readonly norm: LayerNorm = new LayerNorm(width);
  readonly head: Linear = new Linear(width, vocabulary);

  /** Scores at all positions of a text at once: what `decode` gives one by one. [length] to [length, vocabulary]. */
  forward(text: Tensor): Tensor {
    const start = this.tokens.forward(text).add(this.positions.forward(arange(text.shape[0]!)));
    return this.scores(this.blocks.reduce((stream, block) => block.forward(stream), start));
  }

  scores(stream: Tensor): Tensor {
    return this.head.forward(this.norm.forward(stream));
  }
}

/** What attention of one block has seen: [longest, heads, width / heads] each. */
interface Seen {
  readonly keys: Tensor;
  readonly values: Tensor;
}

interface State {
  readonly model: Decoder;
  readonly cache: readonly Seen[];
}

/** Each head apart: [n, width] to [n, heads, width / heads]. */
const split = (x: Tensor): Tensor => x.reshape([x.shape[0]!, heads, width / heads]);

/** A block on one token: its key and value join those of the tokens before, of which it sees all. */
function attend(block: TransformerBlock, stream: Tensor, before: Seen, position: Tensor): [Tensor, Seen] {
  const { attention, attentionNorm, feedForward, feedForwardNorm } = block;
  const token = attentionNorm.forward(stream);
  const keys = indexCopy(before.keys, 0, position, split(attention.key.forward(token)));
  const values = indexCopy(before.values, 0, position, split(attention.value.forward(token)));
  const [query, k, v] = [split(attention.query.forward(token)), keys, values].map((x) =>
    x.permute([1, 0, 2]),
  );
  // Behind the position lie zeros, or what another text has left.
  const mask = le(arange(longest), position);
  const found = scaledDotProductAttention(query!, k!, v!, { mask });
  const after = stream.add(attention.output.forward(found.permute([1, 0, 2]).reshape([1, width])));
  return [after.add(feedForward.forward(feedForwardNorm.forward(after))), { keys, values }];
}

/** `token` and `position` are [1]: a text is given token by token, from position 0 on. */
export function decode(
  { model, cache }: State,
  token: Tensor,
  position: Tensor,
): { state: State; scores: Tensor } {
  let stream = model.tokens.forward(token).add(model.positions.forward(position));
  const next = cache.map((before, i) => {
    const [after, seen] = attend(model.blocks[i]!, stream, before, position);
    stream = after;
    return seen;
  });
  return { state: { model, cache: next }, scores: model.scores(stream) };
}

manualSeed(1);
const shape = [longest, heads, width / heads];
export const state: State = {
  model: new Decoder(),
  cache: Array.from({ length: layers }, () => ({ keys: zeros(shape), values: zeros(shape) })),
};
export const inputs: readonly Tensor[] = [zeros([1], { dtype: 'i32' }), zeros([1], { dtype: 'i32' })];
