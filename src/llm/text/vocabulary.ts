// A vocabulary: what each token stands for in bytes, and the tokens that are told apart before a
// text is cut, such as the ends of turns.

import { TensorError } from '../../errors.ts';

/** What a token is for. */
export type TokenKind = 'normal' | 'unknown' | 'control' | 'added' | 'unused' | 'byte';

/** In the order of the numbers that GGUF files use, from 1 on. */
export const tokenKinds: readonly TokenKind[] = ['normal', 'unknown', 'control', 'added', 'unused', 'byte'];

/** What a codec needs to know of its tokens. */
export interface Vocabulary {
  readonly tokens: readonly string[];
  kindOf(token: number): TokenKind;
  idOf(text: string): number | undefined;
  /** What a token stands for; nothing for those that only steer. */
  bytesOf(token: number): Uint8Array;
}

const nothing = new Uint8Array(0);
const encoder = new TextEncoder();

/** A vocabulary of texts and kinds. `spelling` says what a normal token stands for. */
export function vocabularyOf(
  tokens: readonly string[],
  kinds: readonly TokenKind[],
  spelling: (token: string) => Uint8Array,
): Vocabulary {
  const ids = new Map<string, number>();
  // Of tokens that are spelled alike the first counts.
  tokens.forEach((token, id) => ids.has(token) || ids.set(token, id));
  const known: (Uint8Array | undefined)[] = [];
  const kindOf = (token: number): TokenKind => kinds[token] ?? 'normal';
  const find = (token: number): Uint8Array => {
    const text = tokens[token];
    if (text === undefined) {
      throw new TensorError('E_INDEX', 'decode', `there is no token ${token}; there are ${tokens.length}`);
    }
    switch (kindOf(token)) {
      case 'control':
        return nothing;
      case 'added':
        return encoder.encode(text);
      case 'byte':
        return byteToken(text) ?? spelling(text);
      case 'normal':
      case 'unknown':
      case 'unused':
        return spelling(text);
      default:
        return kindOf(token) as never;
    }
  };
  return {
    tokens,
    kindOf,
    idOf: (text) => ids.get(text),
    bytesOf: (token) => (known[token] ??= find(token)),
  };
}

/** The byte of a token such as <0x0A>. */
export function byteToken(text: string): Uint8Array | undefined {
  const found = /^<0x([0-9A-Fa-f]{2})>$/.exec(text);
  return found === null ? undefined : Uint8Array.of(Number.parseInt(found[1] ?? '', 16));
}

/** Text between tokens that are told apart, or such a token. */
export type Fragment = string | number;

/**
 * Cuts a text at its special tokens, longer ones first; `strips` says behind which of them white space
 * is left out.
 */
export function fragmenter(
  vocabulary: Vocabulary,
  strips: (token: number) => boolean = () => false,
): (text: string) => Fragment[] {
  const special = vocabulary.tokens
    .flatMap((text, id) => {
      const kind = vocabulary.kindOf(id);
      const apart = kind === 'control' || kind === 'added' || kind === 'unknown';
      return apart && text !== '' && vocabulary.idOf(text) === id ? [{ text, id }] : [];
    })
    .toSorted((a, b) => b.text.length - a.text.length);
  return (text) => {
    let fragments: Fragment[] = text === '' ? [] : [text];
    for (const each of special) {
      if (!text.includes(each.text)) continue;
      fragments = fragments.flatMap((fragment) =>
        typeof fragment === 'number' ? [fragment] : between(fragment, each, strips(each.id)),
      );
    }
    return fragments;
  };
}

function between(fragment: string, { text, id }: { text: string; id: number }, strip: boolean): Fragment[] {
  return fragment.split(text).flatMap((part, i): Fragment[] => {
    const kept = i > 0 && strip ? part.trimStart() : part;
    return [...(i > 0 ? [id] : []), ...(kept === '' ? [] : [kept])];
  });
}

/** Text of bytes that come in pieces: characters come out when they are whole. */
export class ByteText {
  readonly #decoder: TextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

  push(bytes: Uint8Array): string {
    return bytes.length === 0 ? '' : this.#decoder.decode(bytes, { stream: true });
  }

  /** What is left: a character that was not finished, as one that stands for any. */
  end(): string {
    return this.#decoder.decode();
  }
}
