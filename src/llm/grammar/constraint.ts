// Which tokens may come next under a grammar: all tokens are read in the order of their bytes, what
// two neighbours begin with alike only once, and a set that was found is kept with its state.

import { SinterError, TensorError } from '../../errors.ts';
import type { TextCodec } from '../codec.ts';
import type { Constraint } from '../engine/writer.ts';
import { Automaton, type AutomatonState } from './automaton.ts';
import type { Rules } from './expression.ts';

/** Texts that a model may write; made by `jsonGrammar` or `parseGrammar`, for any number of models. */
export class Grammar {
  readonly rules: Rules;
  readonly automaton: Automaton;

  constructor(rules: Rules) {
    this.rules = rules;
    this.automaton = new Automaton(rules);
  }

  /** Whether a text is one of the grammar, as a whole. */
  matches(text: string): boolean {
    return this.automaton.read(this.automaton.start, new TextEncoder().encode(text))?.accepts === true;
  }
}

/** Tokens in the order of their bytes. */
interface SortedTokens {
  readonly ids: Int32Array;
  /** Bytes that each has in common with the one before. */
  readonly common: Int32Array;
  readonly bytes: readonly Uint8Array[];
}

const sortedOf = new WeakMap<TextCodec, SortedTokens>();
/** Sets of tokens that are kept for each text that is written. */
const mostKept = 64;

function compare(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const off = (a[i] ?? 0) - (b[i] ?? 0);
    if (off !== 0) return off;
  }
  return a.length - b.length;
}

function sorted(codec: TextCodec): SortedTokens {
  const known = sortedOf.get(codec);
  if (known !== undefined) return known;
  const { size, bytesOf } = codec;
  if (size === undefined || bytesOf === undefined) {
    throw new TensorError(
      'E_UNSUPPORTED',
      'grammar',
      'the model’s codec does not say which text its tokens stand for',
    );
  }
  const tokens = Array.from({ length: size }, (_, id) => ({ id, bytes: bytesOf(id) }))
    .filter(({ bytes }) => bytes.length > 0)
    .toSorted((a, b) => compare(a.bytes, b.bytes));
  const common = Int32Array.from(tokens, ({ bytes }, i) => {
    const before = tokens[i - 1]?.bytes ?? new Uint8Array(0);
    let at = 0;
    while (at < bytes.length && bytes[at] === before[at]) at++;
    return at;
  });
  const found = {
    ids: Int32Array.from(tokens, ({ id }) => id),
    common,
    bytes: tokens.map(({ bytes }) => bytes),
  };
  sortedOf.set(codec, found);
  return found;
}

/**
 * What keeps a text to a grammar, for one generation. `vocabulary`: the number of the model’s scores,
 * where it is more than that of its tokens. The model may end where a text of the grammar is complete,
 * and must where nothing goes on.
 */
export function constraintOf(grammar: Grammar, codec: TextCodec, vocabulary?: number): Constraint {
  const { automaton } = grammar;
  const tokens = sorted(codec);
  const length = vocabulary ?? codec.size ?? 0;
  const masks = new Map<AutomatonState, Uint8Array>();
  let state = automaton.start;
  let ended = false;
  return {
    allowed() {
      if (ended) throw new SinterError('E_STATE', 'grammar: the text has ended');
      const known = masks.get(state);
      if (known !== undefined) return known;
      const mask = maskOf(automaton, state, tokens, codec.eos, length);
      const [oldest] = masks.keys();
      if (masks.size >= mostKept && oldest !== undefined) masks.delete(oldest);
      masks.set(state, mask);
      return mask;
    },
    accept(token) {
      if (codec.eos.includes(token) && state.accepts) {
        ended = true;
        return;
      }
      const bytes = codec.bytesOf?.(token);
      const next = bytes === undefined || bytes.length === 0 ? null : automaton.read(state, bytes);
      if (next !== null) {
        state = next;
        return;
      }
      throw new SinterError('E_STATE', `grammar: token ${token} may not come here`);
    },
  };
}

function maskOf(
  automaton: Automaton,
  state: AutomatonState,
  { ids, common, bytes }: SortedTokens,
  eos: readonly number[],
  length: number,
): Uint8Array {
  const mask = new Uint8Array(length);
  // States behind the bytes of the token at hand; `dead`: so many of them lead nowhere.
  const trail: AutomatonState[] = [state];
  let dead = Infinity;
  let goesOn = false;
  for (let i = 0; i < ids.length; i++) {
    const shared = common[i] ?? 0;
    if (shared >= dead) continue;
    dead = Infinity;
    const text = bytes[i] ?? new Uint8Array(0);
    let at = Math.min(shared, trail.length - 1);
    for (; at < text.length; at++) {
      const next = automaton.step(trail[at] ?? state, text[at] ?? 0);
      if (next === null) break;
      trail[at + 1] = next;
    }
    if (at < text.length) dead = at + 1;
    else {
      mask[ids[i] ?? 0] = 1;
      goesOn = true;
    }
    trail.length = at + 1;
  }
  if (state.accepts) {
    for (const id of eos) mask[id] = 1;
    goesOn ||= eos.length > 0;
  }
  if (goesOn) return mask;
  throw new SinterError('E_STATE', 'grammar: no token of the model can continue the text here');
}
