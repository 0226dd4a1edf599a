// Training a character model: one compiled step that draws its own batch from the text,
// differentiates, and takes an AdamW step over memory it is given; and one compiled function that
// continues a text.

import * as sn from '../../index.ts';
import { explainFor, type Explanation } from '../../explain/explain.ts';
import type { Tensor, TensorLike } from '../../index.ts';
import { adamW, warmupCosine, type OptimizerState } from '../../optim/index.ts';
import type { Target } from '../../schedule/target.ts';
import {
  decode,
  decoderLoss,
  initDecoder,
  type DecoderParameters,
  type DecoderSizes,
} from '../../workloads/transformer.ts';
import { TensorError } from '../../errors.ts';

export interface LanguageSettings extends Omit<DecoderSizes, 'vocabulary'> {
  readonly batch: number;
  readonly steps: number;
  /** The highest learning rate, reached after `warmup` steps. */
  readonly rate: number;
  readonly warmup: number;
}

/** What a step takes and gives back. */
type State = { readonly model: DecoderParameters; readonly optimizer: OptimizerState };

type Step = (state: State, text: Tensor, rate: TensorLike) => { state: State; loss: Tensor };

/** A character model in training. */
export class CharacterModel {
  readonly settings: LanguageSettings;
  readonly alphabet: Alphabet;
  /** The function that `train` runs, uncompiled, for `explain`. */
  readonly step: Step;
  readonly #text: Tensor;
  readonly #compiled: Step;
  readonly #next: (model: DecoderParameters, tokens: Tensor, last: Tensor, heat: TensorLike) => Tensor;
  readonly #schedule: (step: number) => number;
  #state: State;
  #done = 0;

  constructor(text: string, settings: LanguageSettings) {
    const { batch, context, heads, rate, steps, warmup } = settings;
    this.settings = settings;
    this.alphabet = new Alphabet(text);
    const numbers = this.alphabet.encode(text);
    this.#text = sn.tensor(numbers);
    const optimizer = adamW({ betas: [0.9, 0.99], weightDecay: 0.05 });
    const model = initDecoder({ ...settings, vocabulary: this.alphabet.size });
    this.#state = { model, optimizer: optimizer.init(model) };
    this.#schedule = warmupCosine({ lr: rate, warmup, tMax: steps - warmup, etaMin: rate / 10 });
    this.step = (state, whole, lr) => {
      const starts = sn.randint(0, numbers.length - context, [batch, 1]);
      const windows = whole.take(starts.add(sn.arange(context + 1)));
      const [tokens, targets] = [windows.narrow(1, 0, context), windows.narrow(1, 1, context)];
      const loss = (p: DecoderParameters): Tensor => decoderLoss(p, tokens, targets, heads);
      const { value, grad } = sn.valueAndGrad(loss)(state.model);
      const [next, after] = optimizer.update(state.model, grad, state.optimizer, { lr });
      return { state: { model: next, optimizer: after }, loss: value };
    };
    this.#compiled = sn.compile(this.step, { donate: [0] });
    this.#next = sn.compile((p: DecoderParameters, tokens: Tensor, last: Tensor, heat: TensorLike) => {
      const logits = decode(p, tokens, heads).reshape([context, this.alphabet.size]);
      return sn.multinomial(logits.indexSelect(0, last).div(heat).softmax(), 1, { replacement: true });
    });
  }

  /** Steps done. */
  get done(): number {
    return this.#done;
  }

  /** The number of values that are trained. */
  get size(): number {
    return sn.treeLeaves(this.#state.model).reduce((sum, { size }) => sum + size, 0);
  }

  /** One step; gives the loss before it, in nats per character, which nobody waits for. */
  train(): Tensor {
    const { state, loss } = this.#compiled(this.#state, this.#text, this.#schedule(this.#done));
    this.#state = state;
    this.#done += 1;
    return loss;
  }

  /** What a step becomes on a device's target. */
  explainStep(target: Target): Explanation {
    return explainFor(target, this.step, this.#state, this.#text, 1e-3);
  }

  /**
   * Continues a text by `length` characters, drawn from what the model expects; cooler (`heat`
   * below 1) is safer.
   */
  async continue(prompt: string, length: number, heat = 0.8): Promise<string> {
    const { context } = this.settings;
    const numbers = [...this.alphabet.encode(prompt)];
    for (let i = 0; i < length; i++) {
      const seen = numbers.slice(-context);
      // What stands to the right of the last character is never seen: attention looks back only.
      const padded = Int32Array.from({ length: context }, (_, place) => seen[place] ?? 0);
      const tokens = sn.tensor(padded, { shape: [1, context] });
      const last = sn.tensor(Int32Array.of(seen.length - 1));
      numbers.push(Number(await this.#next(this.#state.model, tokens, last, heat).item()));
    }
    return this.alphabet.decode(numbers);
  }
}

// Text as numbers: an alphabet of the characters that a text has, and back.

/** The characters of a text in code order; a character's number is its place. */
class Alphabet {
  readonly characters: readonly string[];
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(text: string) {
    this.characters = [...new Set(text)].sort();
    this.#numbers = new Map(this.characters.map((character, i) => [character, i]));
  }

  get size(): number {
    return this.characters.length;
  }

  /** The number of each character. Throws E_VALUE at one that the alphabet lacks. */
  encode(text: string): Int32Array {
    return Int32Array.from(text, (character) => {
      const number = this.#numbers.get(character);
      if (number !== undefined) return number;
      throw new TensorError('E_VALUE', 'encode', `the alphabet has no ${JSON.stringify(character)}`);
    });
  }

  /** The text of these numbers. */
  decode(numbers: Iterable<number>): string {
    return Array.from(numbers, (number) => this.characters[number] ?? '\uFFFD').join('');
  }
}
