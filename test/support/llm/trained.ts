// A tiny Llama that learns the essay of examples/ here: the decoder that `sinter/llm` runs is what is trained, and
// its weights become a GGUF file with a tokenizer of bytes.

import { readFileSync } from 'node:fs';
import * as sn from '../../../src/index.ts';
import { fittingType, openGguf, type GgufTensorGiven } from '../../../src/io/index.ts';
import { configFromGguf } from '../../../src/llm/config/gguf.ts';
import { emptyCache } from '../../../src/llm/decoder/cache.ts';
import { Decoder, turnsOf } from '../../../src/llm/decoder/decoder.ts';
import { loadWeights, type DecoderWeights } from '../../../src/llm/decoder/weights.ts';
import { textOfGguf, type ModelConfig } from '../../../src/llm/index.ts';
import { ggufSource } from '../../../src/llm/sources/gguf.ts';
import { adamW, warmupCosine, type OptimizerState } from '../../../src/optim/index.ts';
import { ggufBytes, tensorsOf, type FileSpec } from './gguf-model.ts';

/** Sizes of the model: 40,000 weights. */
export const trainedSpec: FileSpec = {
  name: 'essay',
  architecture: 'llama',
  type: 'f32',
  width: 32,
  heads: 4,
  keyHeads: 2,
  headSize: 16,
  hidden: 96,
  isTied: true,
};

/** A beginning, as its tokens: bytes of GPT-2's alphabet are numbered as they are. */
export const essayPrompt: readonly number[] = [...new TextEncoder().encode('People ')];

interface Trained {
  readonly config: ModelConfig;
  readonly weights: DecoderWeights;
  /** The loss of each step. */
  readonly losses: readonly number[];
}

type Headless = Omit<DecoderWeights, 'head'>;

const [context, batch, rate] = [48, 8, 8e-3] as const;

/** Trains on the current device, from weights that are always the same. */
export async function trainEssay(steps: number): Promise<Trained> {
  sn.manualSeed(1);
  const file = await openGguf(await ggufBytes(trainedSpec));
  const config = configFromGguf(file);
  // The head is the embedding: in the tree that is trained it stands once.
  const { head: _, ...loaded } = await loadWeights((await ggufSource(file)).weights, config);
  let weights: Headless = loaded;
  const { encode } = await textOfGguf(file);
  const essay = readFileSync(new URL('../../../examples/essay.txt', import.meta.url), 'utf8');
  const numbers = sn.tensor(Int32Array.from(encode(essay)));
  const turns = turnsOf(config, context, context);
  const start = sn.tensor(0, { dtype: 'i32' });
  const optimizer = adamW({ weightDecay: 0.01 });
  const schedule = warmupCosine({ lr: rate, warmup: steps / 10, tMax: steps, etaMin: rate / 20 });
  let state = optimizer.init(weights);

  const step = sn.compile(
    (tree: Headless, before: OptimizerState, lr: sn.TensorLike) => {
      const starts = sn.randint(0, numbers.size - context, [batch, 1]);
      const windows = numbers.take(starts.add(sn.arange(context + 1)));
      const [x, y] = [windows.narrow(1, 0, context), windows.narrow(1, 1, context).flatten()];
      const loss = (each: Headless): sn.Tensor => {
        const decoder = new Decoder(config, { ...each, head: each.embedding }, turns);
        const scores = sn.vmap((tokens: sn.Tensor) =>
          decoder.scores(decoder.run(tokens, start, emptyCache(config, context, 'f32')).hidden),
        )(x);
        return sn.crossEntropy(scores.flatten(0, 1), y);
      };
      const { value, grad } = sn.valueAndGrad(loss)(tree);
      const [next, after] = optimizer.update(tree, grad, before, { lr });
      return { tree: next, state: after, loss: value };
    },
    { donate: [0, 1] },
  );
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    const done = step(weights, state, schedule(i));
    weights = done.tree;
    state = done.state;
    losses.push(Number(await done.loss.item()));
  }
  await file.close();
  return { config, weights: { ...weights, head: weights.embedding }, losses };
}

/** The file of trained weights; vectors stay f32. */
export async function trainedFile(weights: DecoderWeights, type: 'f16' | 'q8_0'): Promise<Uint8Array> {
  const values = new Map<string, sn.Tensor>();
  const put = (name: string, weight: unknown, rows?: readonly [from: number, count: number]): void => {
    if (!(weight instanceof sn.Tensor)) throw new Error(`${name} is no tensor`);
    values.set(`${name}.weight`, rows === undefined ? weight : weight.narrow(0, ...rows));
  };
  const { heads, keyHeads, headSize } = trainedSpec;
  const [queries, keys] = [heads * headSize, keyHeads * headSize];
  put('token_embd', weights.embedding.parts[0]);
  put('output_norm', weights.norm);
  for (const [i, layer] of weights.layers.entries()) {
    const at = `blk.${i}.`;
    const [qkv] = layer.attention.qkv.parts;
    put(`${at}attn_norm`, layer.attentionNorm);
    put(`${at}attn_q`, qkv, [0, queries]);
    put(`${at}attn_k`, qkv, [queries, keys]);
    put(`${at}attn_v`, qkv, [queries + keys, keys]);
    put(`${at}attn_output`, layer.attention.output.parts[0]);
    put(`${at}ffn_norm`, layer.feedNorm);
    if (!('gateUp' in layer.feed)) throw new Error('there are no experts');
    put(`${at}ffn_gate`, layer.feed.gateUp.parts[0]);
    put(`${at}ffn_up`, layer.feed.gateUp.parts[1]);
    put(`${at}ffn_down`, layer.feed.down.parts[0]);
  }
  const tensors: GgufTensorGiven[] = [];
  for (const { name, shape } of tensorsOf(trainedSpec)) {
    const data = (await values.get(name)!.data()) as Float32Array;
    tensors.push({ name, shape, type: fittingType(type, shape), data });
  }
  return ggufBytes(trainedSpec, tensors);
}

/** A file of floats as one of blocks. */
export async function inBlocks(bytes: Uint8Array): Promise<Uint8Array> {
  const file = await openGguf(bytes);
  const tensors = [...file.tensors.values()].map((data) => ({
    name: data.name,
    shape: data.shape,
    type: fittingType('q8_0', data.shape),
    data,
  }));
  return ggufBytes(trainedSpec, tensors);
}
