// The programs of a decoder: a block of a prompt, one token of a text or of each of several, and the choice of tokens
// from scores.
// Each is one program for all positions; caches are donated, and written where they lie.

import { compile } from '../../tensor/compile/compile.ts';
import {
  add,
  arange,
  cat,
  cumprod,
  dynamicSlice,
  eq,
  indexSelect,
  minimum,
  narrow,
  ones,
  reshape,
  scatterAdd,
  stack,
  sub,
  sum,
  toInt,
} from '../../operations/index.ts';
import { vmap } from '../../tensor/derivative/vmap.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { DecoderLayerCache } from '../decoder/cache.ts';
import type { Decoder } from '../decoder/decoder.ts';
import type { SamplingNumbers } from '../sampling/options.ts';
import { chooseToken } from '../sampling/sample.ts';

/** Caches of all layers. */
export type Cache = readonly DecoderLayerCache[];

/** What choosing a token needs beside scores, as a call gives it. */
export interface TokenChoice<N> {
  /** The key of the seed. */
  readonly key: Tensor;
  readonly numbers: SamplingNumbers<N>;
  /** How often each token stands in the prompt, where tokens are penalised. */
  readonly given: Tensor | undefined;
  /** bool [vocabulary]: which tokens may come. */
  readonly allowed: Tensor | undefined;
}

/** What a program gives for the last token that it was given. */
export interface Scored {
  readonly cache: Cache;
  /** f32 [vocabulary]. */
  readonly scores: Tensor;
}

/** What the program of one token gives. */
export interface Stepped extends Scored {
  /** The next token: i32 [1]. */
  readonly token: Tensor;
  /** How often each token was written. */
  readonly written: Tensor | undefined;
}

/** What the program that tries drafts gives. */
export interface Verified {
  readonly cache: Cache;
  /**
   * i32 [drafts + 2]: the token behind the given one and behind each draft, and how many of the given token
   * and the drafts stand: a draft does if it is the token that was chosen in its place, as all before it are.
   */
  readonly found: Tensor;
  readonly written: Tensor | undefined;
}

/** What the program of one token of each of several texts gives. */
export interface SteppedTexts {
  /** Those of each text. */
  readonly caches: readonly Cache[];
  /** f32 [texts, vocabulary]. */
  readonly scores: Tensor;
}

/** A text whose token is chosen beside others. */
export interface ChoosingText<N> {
  readonly choice: TokenChoice<N>;
  /** The token whose scores these are: i32 [1]. */
  readonly token: Tensor;
  /** How often each token was written before it, where tokens are penalised. */
  readonly written: Tensor | undefined;
}

/** What choosing the tokens of several texts gives. */
export interface ChosenTexts {
  /** i32 [texts]. */
  readonly all: Tensor;
  /** The same, each by itself: i32 [1]. */
  readonly each: readonly Tensor[];
  /** How often each token was written, of each text whose tokens are penalised. */
  readonly written: readonly (Tensor | undefined)[];
}

/** The compiled programs of a decoder. */
export interface Programs {
  /**
   * Tokens from `position` on, of which the one at `last` is scored; `hidden` is its state, [width]. `turns` are
   * the rows of its rotary tables, where they follow from the length of the prompt.
   */
  readonly block: (
    cache: Cache,
    tokens: Tensor,
    position: Tensor,
    last: Tensor,
    turns: Tensor | undefined,
  ) => Scored & { readonly hidden: Tensor };
  /** One token at `position`, and the choice of the one behind it. */
  readonly step: (
    cache: Cache,
    written: Tensor | undefined,
    token: Tensor,
    position: Tensor,
    choice: TokenChoice<number>,
  ) => Stepped;
  /** A token at `position` and drafts behind it, in tensors of one or more, and the choice of the one behind each. */
  readonly verify: (
    cache: Cache,
    written: Tensor | undefined,
    token: Tensor,
    drafts: readonly Tensor[],
    position: Tensor,
    choice: TokenChoice<number>,
  ) => Verified;
  /** The choice of the token behind `position`. */
  readonly choose: (
    scores: Tensor,
    written: Tensor | undefined,
    position: Tensor,
    choice: TokenChoice<number>,
  ) => Tensor;
  /** One token (i32 [1]) of each of several texts; `Decoder.runEach` says what positions and slots are. */
  readonly stepEach: (
    caches: readonly Cache[],
    tokens: readonly Tensor[],
    positions: Tensor,
    slots: Tensor,
  ) => SteppedTexts;
  /**
   * The choice of the token behind `positions` (i32 [texts]) of each text, by its row (`rows`, i32 [texts]) of scores. All
   * texts have the same parts of a choice.
   */
  readonly chooseEach: (
    rows: Tensor,
    positions: Tensor,
    scores: Tensor,
    texts: readonly ChoosingText<number>[],
  ) => ChosenTexts;
}

/** A token by its scores, as a traced function chooses it. */
function chosen(
  scores: Tensor,
  written: Tensor | undefined,
  position: Tensor,
  { key, numbers, given, allowed }: TokenChoice<Tensor>,
): Tensor {
  const counts = given === undefined || written === undefined ? undefined : { given, written };
  return chooseToken(scores, numbers, { key, position, counts, allowed });
}

/** The programs of a decoder; nothing is compiled before its first call. */
export function programsOf(decoder: Decoder): Programs {
  const { width, vocabulary } = decoder.config;
  const block = (
    before: Cache,
    tokens: Tensor,
    position: Tensor,
    last: Tensor,
    turns: Tensor | undefined,
  ): Scored & { hidden: Tensor } => {
    const { hidden, cache } = decoder.run(tokens, position, before, turns);
    const row = dynamicSlice(hidden, [last, 0], [1, width]);
    return { cache, scores: reshape(decoder.scores(row), [vocabulary]), hidden: reshape(row, [width]) };
  };
  const step = (
    before: Cache,
    counts: Tensor | undefined,
    token: Tensor,
    position: Tensor,
    choice: TokenChoice<Tensor>,
  ): Stepped => {
    const { hidden, cache } = decoder.run(token, position, before);
    const scores = reshape(decoder.scores(hidden), [vocabulary]);
    const written = counts === undefined ? undefined : scatterAdd(counts, 0, token, ones([1]));
    return { cache, scores, token: chosen(scores, written, position, choice), written };
  };
  const verify = (
    before: Cache,
    counts: Tensor | undefined,
    token: Tensor,
    drafts: readonly Tensor[],
    position: Tensor,
    choice: TokenChoice<Tensor>,
  ): Verified => {
    // A draft model may have more tokens.
    const tokens = cat([token, ...drafts.map((each) => minimum(each, vocabulary - 1))], 0);
    const { hidden, cache } = decoder.run(tokens, position, before);
    const scores = decoder.scores(hidden);
    const places = add(position, arange(tokens.size));
    const running = counts === undefined ? undefined : runningCounts(counts, tokens);
    const each =
      running === undefined
        ? vmap((row: Tensor, at: Tensor) => chosen(row, undefined, at, choice))(scores, places)
        : vmap((row: Tensor, at: Tensor, now: Tensor) => chosen(row, now, at, choice))(
            scores,
            places,
            running,
          );
    const next = reshape(each, [tokens.size]);
    const count = tokens.size - 1;
    const stands = eq(narrow(next, 0, 0, count), narrow(tokens, 0, 1, count));
    const kept = add(sum(cumprod(toInt(stands), 0)), 1);
    const written =
      running === undefined
        ? undefined
        : reshape(dynamicSlice(running, [sub(kept, 1), 0], [1, vocabulary]), [vocabulary]);
    return { cache, found: cat([next, reshape(kept, [1])], 0), written };
  };
  const stepEach = (
    before: readonly Cache[],
    tokens: readonly Tensor[],
    positions: Tensor,
    slots: Tensor,
  ): SteppedTexts => {
    const { hidden, caches } = decoder.runEach(cat(tokens, 0), positions, slots, before);
    return { caches, scores: decoder.scores(hidden) };
  };
  return {
    block: compile(block, { donate: [0] }),
    step: compile(step, { donate: [0, 1] }),
    verify: compile(verify, { donate: [0, 1] }),
    choose: compile(chosen),
    stepEach: compile(stepEach, { donate: [0] }),
    // What is donated has a size of its own in each program, and these are made for a call.
    chooseEach: compile(chosenEach, { donate: [0, 1] }),
  };
}

/** The tokens of several texts, as a traced function chooses them. */
function chosenEach(
  rows: Tensor,
  positions: Tensor,
  scores: Tensor,
  texts: readonly ChoosingText<Tensor>[],
): ChosenTexts {
  const written = texts.map((text) => text.written && scatterAdd(text.written, 0, text.token, ones([1])));
  const inputs = {
    scores: indexSelect(scores, 0, rows),
    positions,
    written: stacked(written),
    choice: stackedChoice(texts.map(({ choice }) => choice)),
  };
  const choose = (text: typeof inputs): Tensor =>
    chosen(text.scores, text.written, text.positions, text.choice);
  const all = reshape(vmap(choose)(inputs), [texts.length]);
  return { all, each: texts.map((_, i) => narrow(all, 0, i, 1)), written };
}

/** Tensors of several texts, if they have them, as one. */
function stacked(each: readonly (Tensor | undefined)[]): Tensor | undefined {
  const found = each.filter((one) => one !== undefined);
  return found.length === 0 ? undefined : stack(found);
}

/** The choices of several texts, which have the same parts, with an axis of texts in front. */
function stackedChoice(choices: readonly TokenChoice<Tensor>[]): TokenChoice<Tensor> {
  const all = (of: (choice: TokenChoice<Tensor>) => Tensor | undefined): Tensor | undefined =>
    stacked(choices.map(of));
  const { draw, filter, penalty } = choices[0]!.numbers;
  return {
    key: stack(choices.map(({ key }) => key)),
    given: all(({ given }) => given),
    allowed: all(({ allowed }) => allowed),
    numbers: {
      draw: draw && { temperature: all(({ numbers }) => numbers.draw?.temperature)! },
      filter: filter && {
        topK: all(({ numbers }) => numbers.filter?.topK)!,
        topP: all(({ numbers }) => numbers.filter?.topP)!,
        minP: all(({ numbers }) => numbers.filter?.minP)!,
      },
      penalty: penalty && {
        repetition: all(({ numbers }) => numbers.penalty?.repetition)!,
        presence: all(({ numbers }) => numbers.penalty?.presence)!,
        frequency: all(({ numbers }) => numbers.penalty?.frequency)!,
      },
    },
  };
}

/** How often each token was written, with every further one of some: [tokens, vocabulary]. */
function runningCounts(counts: Tensor, tokens: Tensor): Tensor {
  const rows: Tensor[] = [];
  for (let i = 0; i < tokens.size; i++)
    rows.push(scatterAdd(rows.at(-1) ?? counts, 0, narrow(tokens, 0, i, 1), ones([1])));
  return stack(rows);
}
