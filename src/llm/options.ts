// What a generation may be asked for, checked.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { aSignal } from '../io/source/bytes.ts';
import type { TextCodec } from './codec.ts';
import type { ModelConfig } from './config/config.ts';
import { LookupDrafter, ModelDrafter, mostDrafts, type DraftingModel } from './engine/drafts.ts';
import type { Request } from './engine/generation.ts';
import type { Drafting } from './engine/speculation.ts';
import type { Constraint } from './engine/writer.ts';
import { samplingOf, type SamplingOptions } from './sampling/options.ts';

/** A model that drafts for another one: a `LanguageModel`. */
export interface DraftModel {
  /**
   * What opens drafts for texts of a model, which gets undefined where nothing is free to draft. Throws E_VALUE
   * where the tokens of the two differ.
   */
  draftsFor(model: DraftedModel): (prompt: readonly number[]) => DraftingModel | undefined;
}

/** What a draft model has to know of the model that it drafts for. */
export interface DraftedModel {
  readonly config: ModelConfig;
  readonly codec: TextCodec | undefined;
  /** Weights that a token is multiplied with. */
  readonly parameters: number;
}

export interface GenerateOptions extends SamplingOptions {
  /** Tokens to write at most; as many as there is room for by default. */
  readonly maxTokens?: number;
  /** Texts that end the generation, and are not a part of it; none by default. */
  readonly stop?: string | readonly string[];
  /** Whether the model's own end of text is passed over; false by default. */
  readonly ignoreEnd?: boolean;
  /** Ends the generation, with the signal's reason, within a token; none by default. */
  readonly signal?: AbortSignal;
  /** Which tokens may come; all may by default. */
  readonly constraint?: Constraint;
  /**
   * What guesses the next tokens, of which the model tries several at once: a smaller model with the same tokens,
   * or `'lookup'`: what came behind the last tokens when they stood in the text before. The text stays what it is
   * without, up to rounding. None by default; with a constraint it is not asked.
   */
  readonly draft?: 'lookup' | DraftModel;
  /** Tokens that are guessed at once, 1 to 16; 4 by default. */
  readonly draftTokens?: number;
}

/** Options that are of a kind; the rest are checked where they are read. */
const kinds: Readonly<Record<string, Pick<arg.Kind<unknown>, 'accepts' | 'refuse'>>> = {
  signal: aSignal,
  ignoreEnd: arg.flag,
  constraint: arg.kind<Constraint>("an object with 'allowed' and 'accept'", (value) => {
    const { allowed, accept } = (value ?? {}) as Partial<Constraint>;
    return arg.isCallable(allowed) && arg.isCallable(accept);
  }),
};

const known: Readonly<Record<keyof GenerateOptions, true>> = {
  temperature: true,
  topK: true,
  topP: true,
  minP: true,
  repetitionPenalty: true,
  presencePenalty: true,
  frequencyPenalty: true,
  seed: true,
  maxTokens: true,
  stop: true,
  ignoreEnd: true,
  signal: true,
  constraint: true,
  draft: true,
  draftTokens: true,
};

/** What the model brings to a request. */
interface Given {
  readonly prompt: readonly number[];
  /** Tokens that there is room for behind the prompt. */
  readonly room: number;
  readonly ahead: number;
  /** What a further token beside one costs, as a share of what that costs. */
  readonly rowCost: number;
  readonly model: DraftedModel;
}

/** A request of these options. Throws E_VALUE for one that is unknown or not what it must be. */
export function readOptions(op: string, options: GenerateOptions, given: Given): Request {
  if (!arg.isPlainObject(options)) {
    throw new TensorError('E_VALUE', op, `options must be an object, got ${showValue(options)}`);
  }
  const odd = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (odd !== undefined) {
    const names = Object.keys(known).join(', ');
    throw new TensorError('E_VALUE', op, `there is no option ${odd}`, names);
  }
  for (const [name, kind] of Object.entries(kinds)) {
    const value = options[name];
    if (value !== undefined && !kind.accepts(value)) kind.refuse(op, name, value);
  }
  const { prompt, room, ahead } = given;
  const { codec } = given.model;
  const { maxTokens = room, stop = [], ignoreEnd = false, signal, constraint } = options as GenerateOptions;
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 0) {
    const problem = `maxTokens must be a whole number of at least 0, got ${showValue(maxTokens)}`;
    throw new TensorError('E_VALUE', op, problem);
  }
  const stops: readonly unknown[] = typeof stop === 'string' ? [stop] : stop;
  if (!Array.isArray(stops) || !stops.every((one): one is string => typeof one === 'string')) {
    throw new TensorError('E_VALUE', op, `stop must be text or a list of texts, got ${showValue(stop)}`);
  }
  if (stops.length > 0 && codec === undefined) {
    throw new TensorError('E_VALUE', op, 'stop needs a tokenizer, and the model has none');
  }
  return {
    prompt,
    most: Math.min(maxTokens, room),
    sampling: samplingOf(op, options as GenerateOptions),
    stops,
    ends: new Set(ignoreEnd ? [] : codec?.eos),
    ahead,
    signal,
    constraint,
    drafting: draftingOf(op, options as GenerateOptions, given),
  };
}

function draftingOf(
  op: string,
  { draft, draftTokens: count = 4 }: GenerateOptions,
  { prompt, rowCost, model }: Given,
): Drafting | undefined {
  if (!Number.isInteger(count) || count < 1 || count > mostDrafts) {
    const problem = `draftTokens must be a whole number in [1, ${mostDrafts}], got ${showValue(count)}`;
    throw new TensorError('E_VALUE', op, problem);
  }
  if (draft === undefined) return undefined;
  if (draft === 'lookup') return { count, rowCost, open: () => new LookupDrafter() };
  if (typeof draft !== 'object' || draft === null || typeof draft.draftsFor !== 'function') {
    const problem = `draft must be 'lookup' or a model that loadModel gave, got ${showValue(draft)}`;
    throw new TensorError('E_VALUE', op, problem);
  }
  const open = draft.draftsFor(model);
  return {
    count,
    rowCost,
    open: (choice, check) => {
      const drafting = open(prompt);
      return drafting === undefined ? undefined : new ModelDrafter(drafting, choice, check);
    },
  };
}
