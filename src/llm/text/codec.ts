// A codec of a vocabulary: special tokens are cut out of a text, what lies between becomes tokens,
// and tokens become bytes and those characters when they are whole.

import { TensorError } from '../../errors.ts';
import type { ChatMessage, TextCodec, TextStream } from '../codec.ts';
import { ByteText, type Fragment, type Vocabulary } from './vocabulary.ts';

/** What a codec is made of. */
export interface CodecParts {
  readonly vocabulary: Vocabulary;
  readonly fragments: (text: string) => readonly Fragment[];
  /** Tokens of text that holds no special ones. */
  readonly encode: (text: string) => readonly number[];
  /** Text after a special token, and a whole text, begins with a space that is not the user's. */
  readonly spacePrefix: boolean;
  readonly bos: number | undefined;
  readonly eos: readonly number[];
  readonly addBos: boolean;
  readonly addEos: boolean;
  readonly template: (messages: readonly ChatMessage[]) => string;
}

/** Makes a codec. */
export function codecOf(parts: CodecParts): TextCodec {
  const { vocabulary, fragments, encode, spacePrefix, bos, eos, addBos, addEos, template } = parts;
  const stream = (): TextStream => {
    const text = new ByteText();
    return { push: (token) => text.push(vocabulary.bytesOf(token)), end: () => text.end() };
  };
  return {
    bos,
    eos,
    template,
    stream,
    size: vocabulary.tokens.length,
    bytesOf: (token) => vocabulary.bytesOf(token),
    encode(text) {
      checkText('encode', text);
      const tokens: number[] = [];
      let afterSpecial = true;
      for (const fragment of fragments(text)) {
        if (typeof fragment === 'number') tokens.push(fragment);
        else
          for (const token of encode(spacePrefix && afterSpecial ? ` ${fragment}` : fragment))
            tokens.push(token);
        afterSpecial = typeof fragment === 'number';
      }
      // A template may have written the first token already.
      if (addBos && bos !== undefined && tokens[0] !== bos) tokens.unshift(bos);
      const [end] = eos;
      if (addEos && end !== undefined && tokens.at(-1) !== end) tokens.push(end);
      return tokens;
    },
    decode(tokens) {
      const { push, end } = stream();
      const text = Array.from(tokens, push).join('') + end();
      return spacePrefix && text.startsWith(' ') ? text.slice(1) : text;
    },
  };
}

/** Throws E_VALUE unless a value is text. */
export function checkText(op: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw new TensorError('E_VALUE', op, `expects text, got ${typeof value}`);
}
