// A codec of fifty characters, a token each, of which the last one ends a text.

import type { TextCodec } from '../../../src/llm/index.ts';

const alphabet = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV .';
const shown = (token: number): string => alphabet[token] ?? '';

export const letters: TextCodec = {
  encode: (text) => Array.from(text, (letter) => Math.max(0, alphabet.indexOf(letter))),
  decode: (tokens) => tokens.map(shown).join(''),
  stream: () => ({ push: shown, end: () => '' }),
  template: (messages) => messages.map(({ role, content }) => `${role} ${content}.`).join(''),
  eos: [49],
};
