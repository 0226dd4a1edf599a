// The weights of a decoder: where they come from, what they are called there, and the tree of them
// that the decoder computes with.

import { SinterError, TensorError } from '../../errors.ts';
import { isBlockFormat } from '../../ir/blocks/format.ts';
import { rowWords } from '../../ir/blocks/sizes.ts';
import { dtypeBytes, isDType } from '../../ir/dtype.ts';
import { showShape } from '../../ir/shape.ts';
import { add, cat, toFloat } from '../../operations/index.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { treeLeaves, type TreeNode } from '../../tensor/tree.ts';
import { moveToDevice } from '../../tensor/values.ts';
import type { ModelConfig } from '../config/config.ts';

/** A weight whose values are kept in blocks of few bits each: a tree, which compiled functions take whole. */
export interface BlockWeight extends TreeNode {
  readonly shape: readonly number[];
  /** Its values as f32: in a kernel that reads them, never in memory. */
  dequantize(): Tensor;
  /** Gives its memory back. */
  dispose?(): void;
}

/** A weight as it lies in memory: a tensor, or blocks of one. */
export type Weight = Tensor | BlockWeight;

/** Rows of a matrix: the first, and the one behind the last. */
export type RowRange = readonly [from: number, to: number];

/** Where weights come from: names, as GGUF files have them, to tensors. Matrices are [out, in]. */
export interface WeightSource {
  has(name: string): boolean;
  /** How the weight is stored; weights of one kind can be loaded as one. */
  kind(name: string): string;
  /** A weight, or several of one kind as one: their rows follow each other. With `rows` only these, from one to before the other. */
  load(names: readonly string[], rows?: RowRange): Promise<Weight>;
}

/** Values of a weight, f32. */
export function valuesOf(weight: Weight): Tensor {
  return weight instanceof Tensor ? toFloat(weight) : weight.dequantize();
}

/** A product's weight [out, in], or parts that follow each other along `out`, and what is added. */
export interface LinearWeights {
  readonly parts: readonly Weight[];
  readonly bias?: Tensor | undefined;
}

export interface AttentionWeights {
  /** Rows of queries, then keys, then values. */
  readonly qkv: LinearWeights;
  readonly output: LinearWeights;
  readonly queryNorm?: Tensor | undefined;
  readonly keyNorm?: Tensor | undefined;
}

export interface DenseWeights {
  /** Rows of the gate, then those of what it lets through. */
  readonly gateUp: LinearWeights;
  readonly down: LinearWeights;
}

/** Weights of all experts in one, [experts, out, in] each. */
export interface ExpertWeights {
  /** What chooses: [experts, width]. */
  readonly router: LinearWeights;
  readonly gate: Weight;
  readonly up: Weight;
  readonly down: Weight;
}

export interface LayerWeights {
  readonly attentionNorm: Tensor;
  readonly attention: AttentionWeights;
  readonly attentionPostNorm?: Tensor | undefined;
  readonly feedNorm: Tensor;
  readonly feed: DenseWeights | ExpertWeights;
  readonly feedPostNorm?: Tensor | undefined;
}

export interface DecoderWeights {
  /** [vocabulary, width]. */
  readonly embedding: LinearWeights;
  readonly layers: readonly LayerWeights[];
  readonly norm: Tensor;
  /** [vocabulary, width]; the embedding itself where they are tied. */
  readonly head: LinearWeights;
}

class Loader {
  readonly #source: WeightSource;
  readonly #config: ModelConfig;
  readonly #loaded: (name: string) => void;
  readonly #most: number;

  constructor(source: WeightSource, config: ModelConfig, { loaded, most }: LoadWeightsOptions) {
    this.#source = source;
    this.#config = config;
    this.#loaded = loaded ?? (() => undefined);
    this.#most = most ?? Infinity;
  }

  has(name: string): boolean {
    return this.#source.has(name);
  }

  /** A weight. */
  async weight(name: string, shape: readonly number[]): Promise<Weight> {
    const found = await this.#load([name], shape);
    this.#loaded(name);
    return found;
  }

  /**
   * A matrix, or several whose rows follow each other; `shape` is that of all. What is larger than a kernel can bind
   * comes in parts of about equally many rows.
   */
  async matrix(names: readonly string[], shape: readonly [rows: number, columns: number]): Promise<Weight[]> {
    const [rows, columns] = shape;
    const fitting = Math.max(1, Math.floor(this.#most / bytesOfRow(this.#source.kind(names[0]!), columns)));
    const parts = Math.ceil(rows / fitting);
    // Kernels take rows four at a time.
    const each = parts === 1 ? rows : Math.min(fitting, 4 * Math.ceil(rows / parts / 4));
    const found: Weight[] = [];
    for (let from = 0; from < rows; from += each) {
      const to = Math.min(from + each, rows);
      found.push(await this.#load(names, [to - from, columns], parts === 1 ? undefined : [from, to]));
    }
    for (const name of names) this.#loaded(name);
    return found;
  }

  async #load(names: readonly string[], shape: readonly number[], rows?: RowRange): Promise<Weight> {
    for (const name of names) {
      if (!this.#source.has(name)) throw new SinterError('E_FORMAT', `loadModel: there is no weight ${name}`);
    }
    const found = await this.#source.load(names, rows);
    const fits = found.shape.length === shape.length && found.shape.every((size, i) => size === shape[i]);
    if (!fits) {
      const problem = `${names.join(' and ')} is ${showShape(found.shape)}, and the configuration makes it ${showShape(shape)}`;
      throw new TensorError('E_SHAPE', 'loadModel', problem);
    }
    // The host keeps none: it would hold all weights a second time.
    await moveToDevice(treeLeaves(found));
    return found;
  }

  async vector(name: string, size: number): Promise<Tensor> {
    return toFloat(valuesOf(await this.weight(name, [size])));
  }

  async norm(name: string, size: number): Promise<Tensor> {
    const stored = await this.vector(name, size);
    return this.#config.normOffset === 0 ? stored : add(stored, this.#config.normOffset);
  }

  /** A norm behind a part of a layer, which some models have. */
  async postNorm(name: string): Promise<Tensor | undefined> {
    return this.#config.hasPostNorms ? this.norm(name, this.#config.width) : undefined;
  }

  /** A product of one weight, or of several side by side; with `joins` those of one kind are one. */
  async linear(
    names: readonly string[],
    sizes: readonly number[],
    input: number,
    joins = false,
  ): Promise<LinearWeights> {
    const parts: Weight[] = [];
    for (let from = 0; from < names.length;) {
      const kind = this.#source.kind(`${names[from]!}.weight`);
      const other = names.findIndex((name, i) => i > from && this.#source.kind(`${name}.weight`) !== kind);
      const to = joins && other < 0 ? names.length : joins ? other : from + 1;
      const rows = sizes.slice(from, to).reduce((sum, size) => sum + size, 0);
      const own = names.slice(from, to).map((name) => `${name}.weight`);
      parts.push(...(await this.matrix(own, [rows, input])));
      from = to;
    }
    const biases = names.filter((name) => this.has(`${name}.bias`));
    if (biases.length === 0) return { parts };
    if (biases.length !== names.length) {
      const problem = `there is a bias of ${biases.join(', ')}, but not of all of ${names.join(', ')}`;
      throw new TensorError('E_VALUE', 'loadModel', problem);
    }
    const each: Tensor[] = [];
    for (const [i, name] of names.entries()) each.push(await this.vector(`${name}.bias`, sizes[i]!));
    return { parts, bias: each.length === 1 ? each[0] : cat(each, 0) };
  }
}

/** Bytes of a row of a matrix in memory, by how it is stored. */
function bytesOfRow(kind: string, columns: number): number {
  if (isBlockFormat(kind)) return 4 * rowWords(kind, columns);
  return columns * (isDType(kind) ? dtypeBytes(kind) : 4);
}

export interface LoadWeightsOptions {
  /** Told the name of each weight that has come; none by default. */
  readonly loaded?: ((name: string) => void) | undefined;
  /** Bytes that one tensor may have; matrices that have more come in parts. No limit by default. */
  readonly most?: number | undefined;
}

/** All weights of a decoder, one after the other. */
export async function loadWeights(
  source: WeightSource,
  config: ModelConfig,
  options: LoadWeightsOptions = {},
): Promise<DecoderWeights> {
  const loader = new Loader(source, config, options);
  const { width, vocabulary } = config;
  const table = async (name: string): Promise<LinearWeights> => {
    return { parts: await loader.matrix([name], [vocabulary, width]) };
  };
  const embedding = await table('token_embd.weight');
  const layers: LayerWeights[] = [];
  for (let i = 0; i < config.layers; i++) layers.push(await layerWeights(loader, config, i));
  const norm = await loader.norm('output_norm.weight', width);
  const isTied = !loader.has('output.weight');
  const head = isTied ? embedding : await table('output.weight');
  return { embedding, layers, norm, head };
}

async function layerWeights(loader: Loader, config: ModelConfig, layer: number): Promise<LayerWeights> {
  const { width } = config;
  const at = `blk.${layer}.`;
  return {
    attentionNorm: await loader.norm(`${at}attn_norm.weight`, width),
    attention: await attentionWeights(loader, config, at),
    attentionPostNorm: await loader.postNorm(`${at}post_attention_norm.weight`),
    feedNorm: await loader.norm(`${at}ffn_norm.weight`, width),
    feed: await feedWeights(loader, config, layer),
    feedPostNorm: await loader.postNorm(`${at}post_ffw_norm.weight`),
  };
}

async function attentionWeights(loader: Loader, config: ModelConfig, at: string): Promise<AttentionWeights> {
  const { width, heads, keyHeads, headSize, hasHeadNorms } = config;
  const [queries, keys] = [heads * headSize, keyHeads * headSize];
  const isFused = loader.has(`${at}attn_qkv.weight`);
  const names = isFused ? ['attn_qkv'] : ['attn_q', 'attn_k', 'attn_v'];
  const sizes = isFused ? [queries + 2 * keys] : [queries, keys, keys];
  const norms = hasHeadNorms
    ? {
        queryNorm: await loader.norm(`${at}attn_q_norm.weight`, headSize),
        keyNorm: await loader.norm(`${at}attn_k_norm.weight`, headSize),
      }
    : {};
  return {
    qkv: await loader.linear(
      names.map((name) => at + name),
      sizes,
      width,
      true,
    ),
    output: await loader.linear([`${at}attn_output`], [width], queries),
    ...norms,
  };
}

async function feedWeights(
  loader: Loader,
  config: ModelConfig,
  layer: number,
): Promise<DenseWeights | ExpertWeights> {
  const { width, hidden, experts } = config;
  const at = `blk.${layer}.`;
  if (experts !== undefined && experts.dense?.includes(layer) !== true) {
    const { count } = experts;
    return {
      router: await loader.linear([`${at}ffn_gate_inp`], [count], width),
      gate: await loader.weight(`${at}ffn_gate_exps.weight`, [count, experts.hidden, width]),
      up: await loader.weight(`${at}ffn_up_exps.weight`, [count, experts.hidden, width]),
      down: await loader.weight(`${at}ffn_down_exps.weight`, [count, width, experts.hidden]),
    };
  }
  const isFused = !loader.has(`${at}ffn_gate.weight`);
  const names = isFused ? ['ffn_up'] : ['ffn_gate', 'ffn_up'];
  const sizes = isFused ? [2 * hidden] : [hidden, hidden];
  return {
    gateUp: await loader.linear(
      names.map((name) => at + name),
      sizes,
      width,
    ),
    down: await loader.linear([`${at}ffn_down`], [width], hidden),
  };
}

/** All weights of a tree, each as often as it stands in it. */
export function heldOf(tree: DecoderWeights): Weight[] {
  const found: Weight[] = [];
  const visit = (value: unknown): void => {
    if (value instanceof Tensor || isBlocks(value)) found.push(value);
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit);
  };
  visit(tree);
  return found;
}

function isBlocks(value: unknown): value is BlockWeight {
  return typeof value === 'object' && value !== null && 'dequantize' in value;
}
