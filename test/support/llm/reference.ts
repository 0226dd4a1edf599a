// A decoder in plain loops and double precision, written from the papers: what the compiled one is
// held to. Every position attends to all before it at once; there is no cache.

import type { ModelConfig, RopeConfig } from '../../../src/llm/index.ts';
import { frequenciesOf } from '../../../src/llm/config/rope.ts';
import type { SmallModel, StoredWeight } from './small.ts';

type Vector = Float64Array<ArrayBuffer>;

const dot = (a: ArrayLike<number>, b: ArrayLike<number>, from = 0): number => {
  let sum = 0;
  for (let i = 0; i < b.length; i++) sum += a[from + i]! * b[i]!;
  return sum;
};

const plus = (a: Vector, b: Vector): Vector => a.map((value, i) => value + b[i]!);

/** A matrix [out, in], or one of a stack of them, times a vector. */
function times({ shape, data }: StoredWeight, x: Vector, at = 0): Vector {
  const [rows, columns] = shape.slice(-2) as [number, number];
  return Float64Array.from({ length: rows }, (_, row) => dot(data, x, (at * rows + row) * columns));
}

function softmax(scores: readonly number[]): number[] {
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

class Reference {
  readonly #config: ModelConfig;
  readonly #weights: SmallModel['weights'];
  readonly #room: number;

  constructor({ config, weights }: SmallModel, room: number) {
    this.#config = config;
    this.#weights = weights;
    this.#room = room;
  }

  #get(name: string): StoredWeight {
    const found = this.#weights.get(name);
    if (found === undefined) throw new Error(`there is no ${name}`);
    return found;
  }

  #norm(x: Vector, name: string): Vector {
    const { epsilon, normOffset } = this.#config;
    const root = Math.sqrt(dot(x, x) / x.length + epsilon);
    const { data } = this.#get(name);
    return x.map((value, i) => (value / root) * (data[i]! + normOffset));
  }

  #linear(x: Vector, name: string): Vector {
    const bias = this.#weights.get(`${name}.bias`)?.data;
    const result = times(this.#get(`${name}.weight`), x);
    return bias === undefined ? result : result.map((value, i) => value + bias[i]!);
  }

  #turn(head: Vector, position: number, rope: RopeConfig): Vector {
    const { perPair, magnitude } = frequenciesOf(rope, this.#room);
    const turned = head.slice();
    for (const [i, frequency] of perPair.entries()) {
      const [a, b] = rope.layout === 'interleaved' ? [2 * i, 2 * i + 1] : [i, i + rope.dims / 2];
      const [cos, sin] = [Math.cos(position * frequency), Math.sin(position * frequency)];
      turned[a] = magnitude * (head[a]! * cos - head[b]! * sin);
      turned[b] = magnitude * (head[b]! * cos + head[a]! * sin);
    }
    return turned;
  }

  /** Heads of queries, keys and values of one token. */
  #heads(x: Vector, at: string, position: number, rope: RopeConfig): Record<'q' | 'k' | 'v', Vector[]> {
    const { heads, keyHeads, headSize, hasHeadNorms } = this.#config;
    const [queries, keys] = [heads * headSize, keyHeads * headSize];
    const fused = this.#weights.has(`${at}attn_qkv.weight`) ? this.#linear(x, `${at}attn_qkv`) : undefined;
    const whole = {
      q: fused?.slice(0, queries) ?? this.#linear(x, `${at}attn_q`),
      k: fused?.slice(queries, queries + keys) ?? this.#linear(x, `${at}attn_k`),
      v: fused?.slice(queries + keys) ?? this.#linear(x, `${at}attn_v`),
    };
    const split = (all: Vector): Vector[] =>
      Array.from({ length: all.length / headSize }, (_, i) => all.slice(i * headSize, (i + 1) * headSize));
    const turned = (all: Vector, which: 'q' | 'k'): Vector[] =>
      split(all).map((head) => {
        const normed = hasHeadNorms ? this.#norm(head, `${at}attn_${which}_norm.weight`) : head;
        return this.#turn(normed, position, rope);
      });
    return { q: turned(whole.q, 'q'), k: turned(whole.k, 'k'), v: split(whole.v) };
  }

  #attention(stream: readonly Vector[], at: string, layer: number): Vector[] {
    const { heads, keyHeads, headSize, windows, windowRope, rope, scale, scoreCap } = this.#config;
    const window = windows[layer];
    const all = stream.map((x, i) =>
      this.#heads(this.#norm(x, `${at}attn_norm.weight`), at, i, window === undefined ? rope : windowRope),
    );
    return all.map(({ q }, i) => {
      const first = window === undefined ? 0 : Math.max(0, i - window + 1);
      const seen = all.slice(first, i + 1);
      const found = new Float64Array(heads * headSize);
      for (const [h, query] of q.entries()) {
        const shared = Math.floor(h / (heads / keyHeads));
        const scores = seen.map(({ k }) => {
          const score = dot(query, k[shared]!) * scale;
          return scoreCap === undefined ? score : scoreCap * Math.tanh(score / scoreCap);
        });
        for (const [j, weight] of softmax(scores).entries()) {
          seen[j]!.v[shared]!.forEach((value, d) => (found[h * headSize + d]! += weight * value));
        }
      }
      return this.#linear(found, `${at}attn_output`);
    });
  }

  #gated(gate: Vector, up: Vector): Vector {
    const curve =
      this.#config.gate === 'silu'
        ? (x: number): number => x / (1 + Math.exp(-x))
        : (x: number): number => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
    return gate.map((value, i) => curve(value) * up[i]!);
  }

  #feed(x: Vector, at: string): Vector {
    const { experts, hidden } = this.#config;
    if (experts === undefined) {
      const isFused = !this.#weights.has(`${at}ffn_gate.weight`);
      const up = this.#linear(x, `${at}ffn_up`);
      const gate = isFused ? up.slice(0, hidden) : this.#linear(x, `${at}ffn_gate`);
      return this.#linear(this.#gated(gate, isFused ? up.slice(hidden) : up), `${at}ffn_down`);
    }
    const likely = softmax([...this.#linear(x, `${at}ffn_gate_inp`)]);
    const chosen = likely
      .map((_, i) => i)
      .sort((a, b) => likely[b]! - likely[a]!)
      .slice(0, experts.used);
    const total = experts.isNormalised ? chosen.reduce((sum, i) => sum + likely[i]!, 0) : 1;
    return chosen.reduce((sum, expert) => {
      const part = (name: string, input: Vector): Vector =>
        times(this.#get(`${at}ffn_${name}_exps.weight`), input, expert);
      const result = part('down', this.#gated(part('gate', x), part('up', x)));
      return plus(
        sum,
        result.map((value) => (value * likely[expert]!) / total),
      );
    }, new Float64Array(x.length));
  }

  /** Scores of what comes behind each token. */
  scores(tokens: readonly number[]): Vector[] {
    const { width, layers, embeddingScale, hasPostNorms, logitCap } = this.#config;
    const table = this.#get('token_embd.weight').data;
    const behind = (x: Vector, name: string): Vector => (hasPostNorms ? this.#norm(x, name) : x);
    let stream = tokens.map((token) =>
      Float64Array.from(
        table.subarray(token * width, (token + 1) * width),
        (value) => value * embeddingScale,
      ),
    );
    for (let i = 0; i < layers; i++) {
      const at = `blk.${i}.`;
      const found = this.#attention(stream, at, i);
      stream = stream.map((x, j) => plus(x, behind(found[j]!, `${at}post_attention_norm.weight`)));
      stream = stream.map((x) => {
        const fed = this.#feed(this.#norm(x, `${at}ffn_norm.weight`), at);
        return plus(x, behind(fed, `${at}post_ffw_norm.weight`));
      });
    }
    const head = this.#weights.has('output.weight') ? 'output.weight' : 'token_embd.weight';
    return stream.map((x) => {
      const raw = times(this.#get(head), this.#norm(x, 'output_norm.weight'));
      return logitCap === undefined ? raw : raw.map((value) => logitCap * Math.tanh(value / logitCap));
    });
  }
}

/** Scores behind each token of a text, of a model with room for `room` tokens. */
export function referenceScores(model: SmallModel, tokens: readonly number[], room: number): Float64Array[] {
  return new Reference(model, room).scores(tokens);
}
