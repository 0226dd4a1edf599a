// What a generation may be asked for, checked.

import { showValue, TensorError } from '../errors.ts';
import { isPlainObject } from '../ir/arguments.ts';
import type { TextCodec } from './codec.ts';
import type { Request } from './engine/generation.ts';
import type { Constraint } from './engine/writer.ts';
import { samplingOf, type SamplingOptions } from './sampling/options.ts';

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
}

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
};

/** What the model brings to a request. */
interface Given {
  readonly prompt: readonly number[];
  /** Tokens that there is room for behind the prompt. */
  readonly room: number;
  readonly ahead: number;
  readonly codec: TextCodec | undefined;
}

/** A request of these options. Throws E_VALUE for one that is unknown or not what it must be. */
export function readOptions(
  op: string,
  options: GenerateOptions,
  { prompt, room, ahead, codec }: Given,
): Request {
  if (!isPlainObject(options)) {
    throw new TensorError('E_VALUE', op, `options must be an object, got ${showValue(options)}`);
  }
  const odd = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (odd !== undefined) {
    const names = Object.keys(known).join(', ');
    throw new TensorError('E_VALUE', op, `there is no option ${odd}`, names);
  }
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
  };
}
