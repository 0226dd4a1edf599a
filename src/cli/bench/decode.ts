// Writing of a language model: tokens a second, and how much of the device's bandwidth that takes. Every token reads
// all weights once, and the keys and values of the tokens before it, so the bandwidth bounds the rate.

import { compile, ones, synchronize, type Tensor } from '../../index.ts';
import { blockFacts, bytesOfBlocks } from '../../ir/blocks/format.ts';
import { loadModel, type ModelSource } from '../../llm/index.ts';
import { fromBlocks } from '../../quant/index.ts';
import { showBytes, table } from '../../table.ts';
import { device } from '../../tensor/device.ts';
import { stats } from '../../tensor/report/stats.ts';
import { smallLlama } from '../../workloads/language.ts';
import { beginningOtherwise, countedPrompt, drained, warmed } from '../llm/generate.ts';

export const decodeName = 'decode';

/** How a device writes with a language model; rates are of the best round. */
export interface DecodeRates {
  readonly model: string;
  /** Tokens of a prompt of 128 a second, and tokens that are written behind it. */
  readonly prefillTokens: number;
  readonly decodeTokens: number;
  /** What a token reads: weights, and keys and values of the tokens before. */
  readonly tokenBytes: number;
  /** Bytes a second that are read and written where an array is copied. */
  readonly copyBandwidth: number;
  /** Bytes a second that are read while writing, as a share of `copyBandwidth`. */
  readonly bandwidthShare: number;
  /**
   * How long asking for a token keeps the host, in µs; of devices that do not work beside the host it is the time of
   * the whole token.
   */
  readonly host_us: number;
}

const config = smallLlama;
const [queries, keys] = [config.heads * config.headSize, config.keyHeads * config.headSize];

/** Weights of a layer, [out, in]. */
const layerShapes: Readonly<Record<string, readonly [number, number]>> = {
  attn_q: [queries, config.width],
  attn_k: [keys, config.width],
  attn_v: [keys, config.width],
  attn_output: [config.width, queries],
  ffn_gate: [config.hidden, config.width],
  ffn_up: [config.hidden, config.width],
  ffn_down: [config.width, config.hidden],
};

const format = 'q8_0';

const bytesOf = ([rows, columns]: readonly [number, number]): number =>
  bytesOfBlocks('bench', format, rows * columns);

/** Random codes under one scale, which keeps the products of a row about as large as its values. */
function randomBlocks(shape: readonly [number, number], seed: number): Uint8Array {
  const bytes = new Uint8Array(bytesOf(shape));
  const words = new Uint32Array(bytes.buffer, 0, Math.floor(bytes.length / 4));
  let state = seed;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  // A power of two in half precision: 127 codes either way have a deviation of 74.
  const exponent = 15 - Math.round(Math.log2(74 * Math.sqrt(shape[1])));
  for (let at = 0; at < bytes.length; at += blockFacts[format].bytes) {
    bytes[at] = 0;
    bytes[at + 1] = exponent << 2;
  }
  return bytes;
}

/** A model with the sizes of SmolLM-135M in q8_0, with random weights: 136 MiB. */
function randomModel(): ModelSource {
  const shapes = new Map<string, readonly [number, number]>([
    ['token_embd.weight', [config.vocabulary, config.width]],
  ]);
  for (let layer = 0; layer < config.layers; layer++)
    for (const [name, shape] of Object.entries(layerShapes)) shapes.set(`blk.${layer}.${name}.weight`, shape);
  const seeds = new Map([...shapes.keys()].map((name, i) => [name, 0x9e37_79b9 ^ (i + 1)]));
  const isNorm = (name: string): boolean => name.endsWith('norm.weight');
  return {
    config,
    sizes: new Map([...shapes].map(([name, shape]) => [name, bytesOf(shape)])),
    weights: {
      has: (name) => shapes.has(name) || /^(blk\.\d+\.(attn|ffn)|output)_norm\.weight$/.test(name),
      kind: (name) => (isNorm(name) ? 'f32' : format),
      load: async (names) => {
        if (names.some(isNorm)) return ones([config.width]);
        const blocks = names.map((name) => randomBlocks(shapes.get(name)!, seeds.get(name)!));
        const rows = names.reduce((sum, name) => sum + shapes.get(name)![0], 0);
        return fromBlocks(blocks, { format, shape: [rows, shapes.get(names[0]!)![1]] });
      },
    },
  };
}

/** How the device in use writes: with the model of a file, or with one of random weights. */
export async function measureDecode(
  path: string | undefined,
  repeat: number,
  onRound: (tokens: number) => void,
): Promise<DecodeRates> {
  const lengths = { prompt: 128, written: 64 };
  const contextLength = lengths.prompt + lengths.written + 8;
  const model = await loadModel(path ?? randomModel(), { contextLength });
  try {
    const prompt = countedPrompt(lengths.prompt);
    /** Tokens between which each that is read is followed by one that is asked for. */
    const steady = { from: 4, to: lengths.written - 4 };
    const options = { temperature: 0, maxTokens: lengths.written, ignoreEnd: true };
    await warmed(model, prompt, { ...options, maxTokens: 8 });
    let [prefill, decode, host] = [0, 0, Infinity];
    for (let round = 0; round < repeat; round++) {
      const given = beginningOtherwise(model, prompt, 2 + (round % 32));
      let [began, ended] = [0, 0];
      const { timings } = await drained(model, given, options, (count) => {
        if (count === steady.from) began = stats().callMilliseconds;
        if (count === steady.to) ended = stats().callMilliseconds;
      });
      const { prompt: before, decode: behind } = timings;
      host = Math.min(host, (1000 * (ended - began)) / (steady.to - steady.from));
      const rate = ((lengths.written - 1) / behind) * 1000;
      prefill = Math.max(prefill, (lengths.prompt / before) * 1000);
      decode = Math.max(decode, rate);
      onRound(rate);
    }
    const tokenBytes = model.tokenBytes(lengths.prompt + lengths.written / 2);
    const copyBandwidth = await measureCopies();
    return {
      model: path ?? 'the sizes of SmolLM-135M in q8_0, random weights',
      prefillTokens: rounded(prefill),
      decodeTokens: rounded(decode),
      tokenBytes,
      copyBandwidth: Math.round(copyBandwidth),
      bandwidthShare: rounded((tokenBytes * decode) / copyBandwidth),
      host_us: rounded(host),
    };
  } finally {
    model.dispose();
  }
}

const rounded = (value: number): number => Number(value.toPrecision(4));

/** Elements of the array that is copied: larger than the caches. */
const copied = 64 * 2 ** 20;

/** Bytes a second that a kernel reads and writes which changes nothing else; the best of a few. */
async function measureCopies(): Promise<number> {
  const copy = compile((x: Tensor) => x.neg());
  const from = ones([copied]).mul(2);
  let best = 0;
  for (let i = 0; i < 8; i++) {
    if (i === 4) await (await device()).settled?.();
    const began = performance.now();
    const to = copy(from);
    await synchronize();
    best = Math.max(best, (2 * 4 * copied) / ((performance.now() - began) / 1000));
    to.dispose();
  }
  from.dispose();
  return best;
}

export function decodeTable(rates: DecodeRates): string {
  const { prefillTokens, decodeTokens, tokenBytes, copyBandwidth, bandwidthShare, host_us: host } = rates;
  const head = ['prefill tokens/s', 'decode tokens/s', 'bytes a token', 'copying', 'share of it', 'host µs'];
  const row = [
    prefillTokens.toFixed(1),
    decodeTokens.toFixed(1),
    showBytes(tokenBytes),
    `${showBytes(copyBandwidth)}/s`,
    `${(100 * bandwidthShare).toFixed(0)} %`,
    host.toFixed(0),
  ];
  return table(head, [row], [0, 1, 2, 3, 4, 5]);
}
