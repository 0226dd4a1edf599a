// SentencePiece vocabularies with scores, as Llama 2's, Mistral's and Gemma's in GGUF files: spaces
// are spelled ▁, of all pairs the one whose token has the highest score is joined, and characters
// that no token has are bytes.

import { TensorError } from '../../errors.ts';
import { joinSymbols } from './merge.ts';
import type { Vocabulary } from './vocabulary.ts';

const mark = '▁';
const encoder = new TextEncoder();

/** What a token spells. */
export function pieceBytes(token: string): Uint8Array {
  return encoder.encode(token.replaceAll(mark, ' '));
}

/** Tokens of a text without special tokens. */
export function sentencePieces(
  vocabulary: Vocabulary,
  scores: ArrayLike<number>,
  unknown: number | undefined,
): (text: string) => number[] {
  const orderOf = (left: string, right: string): number | undefined => {
    const id = vocabulary.idOf(left + right);
    return id === undefined ? undefined : -(scores[id] ?? 0);
  };
  const byteIds = Array.from({ length: 256 }, (_, byte) =>
    vocabulary.idOf(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`),
  );
  const fallback = (symbol: string): number[] =>
    Array.from(encoder.encode(symbol), (byte) => {
      const id = byteIds[byte] ?? unknown;
      if (id === undefined) {
        throw new TensorError('E_VALUE', 'encode', `no token stands for ${JSON.stringify(symbol)}`);
      }
      return id;
    });
  return (text) =>
    joinSymbols([...text.replaceAll(' ', mark)], orderOf).flatMap((symbol) => {
      const id = vocabulary.idOf(symbol);
      return id === undefined ? fallback(symbol) : [id];
    });
}
