// Byte pair vocabularies with merges, as those of GPT-2, Llama 3 and Qwen: text is cut into words by
// a pattern, the bytes of a word are joined in the order in which merges were learned.

import { TensorError } from '../../errors.ts';
import { cuttings, cutter, spellBytes } from './byte-level.ts';
import { joinSymbols } from './merge.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Words whose tokens are kept. */
const mostKept = 20_000;

/** Tokens of a text without special tokens, for a vocabulary that cuts as `pre` says. */
export function bytePairs(
  vocabulary: Vocabulary,
  merges: readonly string[],
  pre: string,
): (text: string) => number[] {
  const cutting = cuttings.get(pre);
  if (cutting === undefined) {
    const problem = `the way to cut text that is called ${JSON.stringify(pre)} is not known`;
    throw new TensorError('E_UNSUPPORTED', 'textOfGguf', problem, 'textOfJson of the model’s tokenizer.json');
  }
  const ranks = new Map(merges.map((merge, rank) => [merge, rank]));
  const orderOf = (left: string, right: string): number | undefined => ranks.get(`${left} ${right}`);
  const words = cutter(cutting);
  const kept = new Map<string, readonly number[]>();
  const tokensOf = (word: string): readonly number[] => {
    const symbols = spellBytes(word);
    const whole = cutting.wholeWords === true ? vocabulary.idOf(symbols.join('')) : undefined;
    if (whole !== undefined) return [whole];
    return joinSymbols(symbols, orderOf).flatMap((symbol) => {
      const id = vocabulary.idOf(symbol);
      return id === undefined ? [...symbol].map((char) => required(vocabulary, char)) : [id];
    });
  };
  return (text) =>
    words(text).flatMap((word) => {
      const known = kept.get(word);
      if (known !== undefined) return known;
      const tokens = tokensOf(word);
      if (kept.size >= mostKept) kept.clear();
      kept.set(word, tokens);
      return tokens;
    });
}

function required(vocabulary: Vocabulary, char: string): number {
  const id = vocabulary.idOf(char);
  if (id !== undefined) return id;
  throw new TensorError('E_VALUE', 'encode', `no token stands for the byte that is spelled ${char}`);
}
