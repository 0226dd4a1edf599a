// `sinter generate`: continues a prompt. With `--json` the fields are those that programs which compare
// engines read: rates, the likeliest tokens after the prompt, and the generated tokens.

import type { GenerateOptions, Generation, LanguageModel } from '../../llm/index.ts';
import { device } from '../../tensor/device.ts';
import { text, UsageError, wholeNumber, type Command, type Output } from '../command.ts';
import { draftOptions, modelOptions, withModel, writingOf, writingOptions } from './options.ts';

/** What `--json` prints. */
export interface GenerateResult {
  /** Tokens of the prompt. */
  readonly prompt: number;
  readonly prefill_tok_s: number;
  readonly decode_tok_s: number;
  /** The likeliest tokens behind the prompt, with their probabilities. */
  readonly top: readonly (readonly [token: number, probability: number])[];
  readonly tokens: readonly number[];
  /** With `--draft`: how many drafts were tried, and how many of them stood. */
  readonly drafts?: Generation['drafts'];
}

/** A prompt of so many tokens that any vocabulary has. */
export function countedPrompt(length: number): number[] {
  return Array.from({ length }, (_, i) => 33 + ((i * 7919) % 90));
}

export const generateCommand: Command = {
  name: 'generate',
  about: 'continue a prompt with a language model',
  details:
    'MODEL is a GGUF file or a folder of Hugging Face. The text is printed as it is generated. --json instead prints rates in tokens per\n' +
    'second, of a second run after one that compiles, the five likeliest tokens after the prompt, and the\n' +
    'generated tokens. --prompt-tokens makes a prompt of that many tokens, and ignores the model’s end of text.',
  operand: {
    name: 'model',
    value: 'MODEL',
    about: 'a GGUF file (of several, the first), or a folder of Hugging Face',
  },
  options: {
    prompt: { type: 'string', value: 'TEXT', about: 'the beginning of the text' },
    'prompt-tokens': { type: 'string', value: 'N', about: 'a prompt of N tokens that are always the same' },
    ...writingOptions,
    ...draftOptions,
    ...modelOptions,
  },
  examples: [
    'sinter generate model.gguf --prompt "Once upon a time"',
    'sinter generate model.gguf --prompt-tokens 128 --new 64 --temperature 0 --device wasm:1 --json',
  ],
  run: async (values, output) => {
    const prompt = text(values, 'prompt');
    const counted = text(values, 'prompt-tokens');
    if ((prompt === undefined) === (counted === undefined)) {
      throw new UsageError('generate: expects --prompt TEXT or --prompt-tokens N');
    }
    const options = {
      ...writingOf(values),
      ...(counted === undefined ? {} : { ignoreEnd: true }),
    };
    const given = prompt ?? countedPrompt(wholeNumber(values, 'prompt-tokens', 0, 1));
    const most = typeof given === 'string' ? undefined : given.length + (options.maxTokens ?? 0) + 8;
    await withModel('generate', values, output, { most }, async (model, drafting) => {
      const all = { ...options, ...drafting };
      if (values['json'] === true) output.line(JSON.stringify(await measured(model, given, all)));
      else await written(model, given, all, output);
    });
  },
};

async function written(
  model: LanguageModel,
  prompt: string | readonly number[],
  options: GenerateOptions,
  output: Output,
): Promise<void> {
  const generation = model.generate(prompt, options);
  if (typeof prompt === 'string') output.part(prompt);
  for await (const piece of generation) output.part(piece);
  output.line('');
  const { prompt: before, decode } = generation.timings;
  const { length } = generation.tokens;
  const rate = decode === 0 ? '' : `, ${(((length - 1) / decode) * 1000).toFixed(1)} tokens a second`;
  const { tried, kept } = generation.drafts;
  const drafts = tried === 0 ? '' : `, ${kept} of ${tried} drafts kept`;
  output.note(`${generation.promptTokens} tokens in ${before.toFixed(0)} ms, then ${length}${rate}${drafts}`);
}

/** Rates of a run whose programs are there already, and what it writes. */
async function measured(
  model: LanguageModel,
  given: string | readonly number[],
  options: GenerateOptions,
): Promise<GenerateResult> {
  const prompt = model.tokensOf(given);
  const scores = await model.logits(prompt);
  // Whether drafts are tried depends on the text, so with them all of it is written.
  await warmed(model, prompt, options.draft === undefined ? { ...options, maxTokens: 8 } : options);
  const { tokens, timings, drafts } = await drained(model, prompt, options);
  const rate = (count: number, ms: number): number =>
    ms === 0 ? 0 : Number(((count / ms) * 1000).toFixed(2));
  return {
    prompt: prompt.length,
    prefill_tok_s: rate(prompt.length, timings.prompt),
    decode_tok_s: rate(tokens.length - 1, timings.decode),
    top: likeliest(scores, 5),
    tokens,
    ...(options.draft === undefined ? {} : { drafts }),
  };
}

/** A prompt that begins with another token, so that nothing that was computed for one is kept for the other. */
export function beginningOtherwise(
  { config }: LanguageModel,
  prompt: readonly number[],
  step: number,
): readonly number[] {
  return prompt.map((token, i) => (i === 0 ? (token + step) % config.vocabulary : token));
}

/** Writes a text like the one that is timed next, and waits until the programs are those that stay. */
export async function warmed(
  model: LanguageModel,
  prompt: readonly number[],
  options: GenerateOptions,
): Promise<void> {
  await drained(model, beginningOtherwise(model, prompt, 1), options);
  // Programs that have begun on WebAssembly are timed as what they become.
  await (await device()).settled?.();
}

/** A text, written to its end; `onToken` is told how many tokens there are. */
export async function drained(
  model: LanguageModel,
  prompt: readonly number[],
  options: GenerateOptions,
  onToken: (count: number) => void = () => undefined,
): Promise<Generation> {
  const generation = model.generate(prompt, options);
  for await (const _ of generation.pieces()) onToken(generation.tokens.length);
  return generation;
}

/** The likeliest tokens by their scores, with their probabilities. */
function likeliest(scores: Float32Array, count: number): [number, number][] {
  const top = scores.reduce((most, score) => Math.max(most, score), -Infinity);
  const powers = Float64Array.from(scores, (score) => Math.exp(score - top));
  const sum = powers.reduce((all, power) => all + power, 0);
  return Array.from(powers, (power, token): [number, number] => [token, power / sum])
    .sort((a, b) => b[1] - a[1])
    .slice(0, count)
    .map(([token, share]) => [token, Number(share.toPrecision(6))]);
}
