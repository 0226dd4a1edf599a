// A small transformer learns to continue a text, character by character: layers of `sinter/nn`, an AdamW step of `sinter/optim`,
// both compiled into one program. Run it with `npx tsx examples/char-transformer.ts [FILE]`; without a file it learns
// the essay beside it.

import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import * as sn from 'sinter';
import * as nn from 'sinter/nn';
import { adamW, warmupCosine, type OptimizerState } from 'sinter/optim';

export interface TransformerSettings {
  readonly text: string;
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly context: number;
  readonly batch: number;
  readonly steps: number;
  readonly rate: number;
  readonly seed: number;
  /** Characters to write in the end. */
  readonly length: number;
  readonly say: (text: string) => void;
}

/** Tokens in, logits of what comes next out. */
class Decoder extends nn.Module {
  readonly tokens: nn.Embedding;
  readonly positions: nn.Embedding;
  readonly blocks: readonly nn.TransformerBlock[];
  readonly norm: nn.LayerNorm;
  readonly head: nn.Linear;

  constructor(alphabet: number, { layers, width, heads, context }: TransformerSettings) {
    super();
    this.tokens = new nn.Embedding(alphabet, width);
    this.positions = new nn.Embedding(context, width);
    const make = (): nn.TransformerBlock => new nn.TransformerBlock(width, heads, { causal: true });
    this.blocks = Array.from({ length: layers }, make);
    this.norm = new nn.LayerNorm(width);
    this.head = new nn.Linear(width, alphabet);
  }

  /** [batch, positions] to [batch, positions, alphabet]. */
  forward(tokens: sn.Tensor): sn.Tensor {
    const places = sn.arange(tokens.shape[1]!);
    const start = this.tokens.forward(tokens).add(this.positions.forward(places));
    const stream = this.blocks.reduce((x, block) => block.forward(x), start);
    return this.head.forward(this.norm.forward(stream));
  }
}

/** Trains on a text and writes; gives the loss of every step and what was written. */
export async function charTransformer(
  settings: TransformerSettings,
): Promise<{ losses: number[]; written: string }> {
  const { text, context, batch, steps, rate, seed, length, say } = settings;
  sn.manualSeed(seed);
  // A character's number is its place among those that the text has.
  const alphabet = [...new Set(text)].sort();
  const encode = (part: string): Int32Array => Int32Array.from(part, (each) => alphabet.indexOf(each));
  const numbers = sn.tensor(encode(text));
  const optimizer = adamW({ weightDecay: 0.05 });
  const schedule = warmupCosine({ lr: rate, warmup: steps / 10, tMax: steps, etaMin: rate / 10 });
  let model = new Decoder(alphabet.length, settings);
  let state = optimizer.init(model);
  say(`${nn.countParameters(model)} parameters, ${alphabet.length} characters`);

  const step = sn.compile(
    (net: Decoder, before: OptimizerState, lr: sn.TensorLike) => {
      // Windows of the text at random places; each position predicts the character after it.
      const starts = sn.randint(0, numbers.size - context, [batch, 1]);
      const windows = numbers.take(starts.add(sn.arange(context + 1)));
      const [x, y] = [windows.narrow(1, 0, context), windows.narrow(1, 1, context).flatten()];
      const loss = (m: Decoder): sn.Tensor => sn.crossEntropy(m.forward(x).flatten(0, 1), y);
      const { value, grad } = sn.valueAndGrad(loss)(net);
      const [next, after] = optimizer.update(net, grad, before, { lr });
      return { model: next, state: after, loss: value };
    },
    { donate: [0, 1] },
  );
  const losses: number[] = [];
  let unread: sn.Tensor[] = [];
  for (let i = 1; i <= steps; i++) {
    const done = step(model, state, schedule(i - 1));
    ({ model, state } = done);
    unread.push(done.loss);
    if (i % 20 !== 0 && i !== steps) continue;
    losses.push(...((await sn.stack(unread).data()) as Float32Array));
    unread = [];
    say(`step ${i}  loss ${losses.at(-1)!.toFixed(3)}`);
  }

  const next = sn.compile((net: Decoder, tokens: sn.Tensor, last: sn.Tensor) => {
    const logits = net.forward(tokens).flatten(0, 1).indexSelect(0, last);
    return sn.multinomial(logits.div(0.8).softmax(), 1, { replacement: true });
  });
  const written = [...encode(text.slice(0, context))];
  for (let i = 0; i < length; i++) {
    const seen = sn.tensor(Int32Array.from(written.slice(-context)), { shape: [1, context] });
    written.push(Number(await next(model, seen, sn.tensor([context - 1], { dtype: 'i32' })).item()));
  }
  return {
    losses,
    written: written
      .slice(context)
      .map((number) => alphabet[number])
      .join(''),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const file = process.argv[2];
  const { written } = await charTransformer({
    text: await readFile(file ?? new URL('essay.txt', import.meta.url), 'utf8'),
    layers: 2,
    width: 64,
    heads: 4,
    context: 32,
    batch: 16,
    steps: 400,
    rate: 4e-3,
    seed: 1,
    length: 400,
    say: console.log,
  });
  console.log(`\n${written}`);
}
