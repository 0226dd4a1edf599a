// What the commands for language models have in common: the model they load, and how it writes.

import type { GenerateOptions, LanguageModel, QuantizeTo } from '../../llm/index.ts';
import { cacheTypes, isCacheType, loadModel } from '../../llm/index.ts';
import { showBytes } from '../../table.ts';
import { text, UsageError, wholeNumber, type Option, type Output, type OptionValues } from '../command.ts';

/** Options of every command that loads a model. */
export const modelOptions: Readonly<Record<string, Option>> = {
  device: { type: 'string', value: 'NAME', about: 'see `sinter devices`; the best one by default' },
  context: {
    type: 'string',
    value: 'N',
    about: 'maximal tokens of a text (default: the model’s, at most 4096)',
  },
  quantize: {
    type: 'string',
    value: 'TYPE',
    about: 'bring weights of floats into q8_0, q4_0, q4_k or q6_k as they are loaded',
  },
  cache: {
    type: 'string',
    value: 'TYPE',
    about: 'what keys and values are kept in: f32 (default), f16, or q8_0',
  },
};

/** Options of how a text is written. */
export const writingOptions: Readonly<Record<string, Option>> = {
  new: { type: 'string', value: 'N', about: 'tokens to write at most (default 128)' },
  temperature: { type: 'string', value: 'X', about: '0 takes the likeliest token (default 0.8)' },
  'top-k': { type: 'string', value: 'K', about: 'choose among the K likeliest tokens' },
  'top-p': {
    type: 'string',
    value: 'P',
    about: 'choose among the likeliest that have this probability together',
  },
  'min-p': {
    type: 'string',
    value: 'P',
    about: 'choose among those at least P times as likely as the likeliest',
  },
  'repeat-penalty': {
    type: 'string',
    value: 'X',
    about: 'divide the scores of tokens that are in the text',
  },
  seed: { type: 'string', value: 'N', about: 'the same seed writes the same text' },
  stop: { type: 'string', multiple: true, value: 'TEXT', about: 'end at this text; repeatable' },
};

/** Options of what guesses the next tokens. */
export const draftOptions: Readonly<Record<string, Option>> = {
  draft: {
    type: 'string',
    value: 'MODEL',
    about:
      'a smaller model with the same tokens, or `lookup` (the text itself), guesses the next tokens, which the\n' +
      'model checks several at a time; the text stays the same',
  },
  'draft-tokens': { type: 'string', value: 'N', about: 'tokens that are guessed at once (default 4)' },
};

/** The file or folder that the command was given. */
export function modelPath(command: string, values: OptionValues): string {
  const path = text(values, 'model');
  if (path !== undefined) return path;
  throw new UsageError(
    `${command}: expects a model\n  try: sinter ${command} model.gguf, or the folder of a model`,
  );
}

/** What guesses the next tokens, as `generate` takes it. */
export type DraftingOptions = Pick<GenerateOptions, 'draft' | 'draftTokens'>;

/** What a command needs of its model: tokens of a text, and texts at once. */
interface Needs {
  readonly most?: number | undefined;
  readonly sequences?: number;
}

/** Runs a command with the models that its line names, which are disposed of when it has ended. */
export async function withModel(
  command: string,
  values: OptionValues,
  output: Output,
  needs: Needs,
  run: (model: LanguageModel, drafting: DraftingOptions) => Promise<void>,
): Promise<void> {
  const draft = text(values, 'draft');
  const draftTokens = wholeNumber(values, 'draft-tokens', 4, 1);
  const model = await openModel(modelPath(command, values), values, output, needs);
  try {
    if (draft === undefined || draft === 'lookup') {
      await run(model, draft === undefined ? {} : { draft, draftTokens });
      return;
    }
    const drafting = await openModel(draft, values, output, { ...needs, most: model.contextLength });
    try {
      await run(model, { draft: drafting, draftTokens });
    } finally {
      drafting.dispose();
    }
  } finally {
    model.dispose();
  }
}

async function openModel(
  path: string,
  values: OptionValues,
  output: Output,
  { most, sequences = 1 }: Needs,
): Promise<LanguageModel> {
  const device = text(values, 'device');
  const cache = text(values, 'cache') ?? 'f32';
  if (!isCacheType(cache)) throw new UsageError(`--cache: expects ${cacheTypes.join(', ')}, got '${cache}'`);
  const given = text(values, 'context') === undefined ? most : wholeNumber(values, 'context', 0, 1);
  const quantize = text(values, 'quantize');
  const model = await loadModel(path, {
    cacheType: cache,
    sequences,
    ...(device === undefined ? {} : { device }),
    // Checked there.
    ...(quantize === undefined ? {} : { quantize: quantize as QuantizeTo }),
    ...(given === undefined ? {} : { contextLength: given }),
    onProgress: ({ loaded, total }) => output.live(`loading ${showBytes(loaded)} of ${showBytes(total)}`),
  });
  output.live('');
  return model;
}

/** How the text is to be written. */
export function writingOf(values: OptionValues): GenerateOptions {
  const optional = <K extends string>(option: string, name: K): Partial<Record<K, number>> => {
    const value = aNumber(values, option);
    return value === undefined ? {} : ({ [name]: value } as Partial<Record<K, number>>);
  };
  const stop = values['stop'];
  return {
    maxTokens: wholeNumber(values, 'new', 128, 1),
    temperature: aNumber(values, 'temperature') ?? 0.8,
    ...optional('top-k', 'topK'),
    ...optional('top-p', 'topP'),
    ...optional('min-p', 'minP'),
    ...optional('repeat-penalty', 'repetitionPenalty'),
    ...optional('seed', 'seed'),
    ...(Array.isArray(stop) ? { stop: stop as readonly string[] } : {}),
  };
}

function aNumber(values: OptionValues, name: string): number | undefined {
  const given = text(values, name);
  if (given === undefined) return undefined;
  const value = Number(given);
  if (given.trim() !== '' && Number.isFinite(value)) return value;
  throw new UsageError(`--${name}: expects a number, got '${given}'`);
}
