// How the next token is chosen, as users ask for it: checked, and with what they left out.

import { showValue, TensorError } from '../../errors.ts';

/** How tokens are chosen. With a temperature of 0 the likeliest is taken, whatever the rest says. */
export interface SamplingOptions {
  /** What scores are divided by; 1 by default, 0: always the likeliest. */
  readonly temperature?: number;
  /** Only the k likeliest; 0 (the default): all. */
  readonly topK?: number;
  /** Only the likeliest that together have this probability; 1 by default: all. */
  readonly topP?: number;
  /** Only those at least this times as likely as the likeliest; 0 by default: all. */
  readonly minP?: number;
  /** Scores of tokens of the text so far are divided by it where positive, else multiplied; 1 by default. */
  readonly repetitionPenalty?: number;
  /** Taken off the scores of tokens that were written already; 0 by default. */
  readonly presencePenalty?: number;
  /** Taken off for each time that a token was written; 0 by default. */
  readonly frequencyPenalty?: number;
  /** The same seed gives the same text; drawn anew by default. */
  readonly seed?: number | bigint;
}

/**
 * Numbers that a program computes sampling with, in groups: what is not asked for is not there, and
 * costs nothing. `N` is a number for whoever calls, and a tensor in the program.
 */
export interface SamplingNumbers<N> {
  /** Without it the likeliest token is taken. */
  readonly draw?: { readonly temperature: N } | undefined;
  /** What needs tokens in order. */
  readonly filter?: { readonly topK: N; readonly topP: N; readonly minP: N } | undefined;
  readonly penalty?: { readonly repetition: N; readonly presence: N; readonly frequency: N } | undefined;
}

export interface Sampling {
  readonly numbers: SamplingNumbers<number>;
  readonly seed: bigint;
}

/** One option: its default, and what it may be. */
interface Range {
  readonly usual: number;
  readonly least: number;
  readonly most: number;
  /** Whether the least itself is out. */
  readonly isOpen?: boolean;
  readonly isWhole?: boolean;
}

const ranges = {
  temperature: { usual: 1, least: 0, most: 100 },
  topK: { usual: 0, least: 0, most: 2 ** 24, isWhole: true },
  topP: { usual: 1, least: 0, most: 1, isOpen: true },
  minP: { usual: 0, least: 0, most: 1 },
  repetitionPenalty: { usual: 1, least: 0, most: 100, isOpen: true },
  presencePenalty: { usual: 0, least: -100, most: 100 },
  frequencyPenalty: { usual: 0, least: -100, most: 100 },
} as const satisfies Readonly<Record<Exclude<keyof SamplingOptions, 'seed'>, Range>>;

function read(op: string, options: SamplingOptions, name: keyof typeof ranges): number {
  const range: Range = ranges[name];
  const value: unknown = options[name] ?? range.usual;
  const fits =
    typeof value === 'number' &&
    value >= range.least &&
    value <= range.most &&
    !(range.isOpen === true && value === range.least) &&
    (range.isWhole !== true || Number.isInteger(value));
  if (fits) return value;
  const kind = range.isWhole === true ? 'a whole number' : 'a number';
  const problem = `${name} must be ${kind} in ${range.isOpen === true ? '(' : '['}${range.least}, ${range.most}], got ${showValue(value)}`;
  throw new TensorError('E_VALUE', op, problem);
}

/** What sampling is to do. Throws E_VALUE for a number out of its range. */
export function samplingOf(op: string, options: SamplingOptions): Sampling {
  const [temperature, topK, topP, minP] = (['temperature', 'topK', 'topP', 'minP'] as const).map((name) =>
    read(op, options, name),
  ) as [number, number, number, number];
  const [repetition, presence, frequency] = (
    ['repetitionPenalty', 'presencePenalty', 'frequencyPenalty'] as const
  ).map((name) => read(op, options, name)) as [number, number, number];
  const filters = topK > 0 || topP < 1 || minP > 0;
  const penalises = repetition !== 1 || presence !== 0 || frequency !== 0;
  return {
    numbers: {
      draw: temperature > 0 ? { temperature } : undefined,
      filter: temperature > 0 && filters ? { topK, topP, minP } : undefined,
      penalty: penalises ? { repetition, presence, frequency } : undefined,
    },
    seed: seedOf(op, options.seed),
  };
}

function seedOf(op: string, seed: unknown): bigint {
  if (seed === undefined) return BigInt(Math.floor(Math.random() * 2 ** 48));
  if (typeof seed === 'bigint') return BigInt.asUintN(64, seed);
  if (typeof seed === 'number' && Number.isSafeInteger(seed)) return BigInt.asUintN(64, BigInt(seed));
  throw new TensorError('E_VALUE', op, `seed must be an integer, got ${showValue(seed)}`);
}
