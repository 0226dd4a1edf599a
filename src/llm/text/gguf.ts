// The codec of a GGUF file, made of the file's own tables: tokens, their kinds, merges or scores.

import { SinterError, TensorError } from '../../errors.ts';
import type { GgufFile, GgufMetadata } from '../../io/index.ts';
import type { TextCodec } from '../codec.ts';
import { bytesOfSpelling, cuttings } from './byte-level.ts';
import { bytePairs } from './byte-pairs.ts';
import { codecOf } from './codec.ts';
import { packagesOf, type TextOptions } from './packages.ts';
import { pieceBytes, sentencePieces } from './sentence-piece.ts';
import { templateOf } from './template.ts';
import { fragmenter, tokenKinds, vocabularyOf, type TokenKind, type Vocabulary } from './vocabulary.ts';

const encoder = new TextEncoder();

/** What makers call the tokens that end a turn or a text, beside the one that files name. */
const ends: readonly string[] = [
  '<|eot_id|>',
  '<|eom_id|>',
  '<|im_end|>',
  '<|end|>',
  '<|endoftext|>',
  '<|end_of_text|>',
  '<end_of_turn>',
  '<|end_of_turn|>',
  '<|return|>',
  '<|call|>',
  '<EOT>',
];

/**
 * The codec of a model in a GGUF file: byte pairs (`gpt2`) or SentencePiece with scores (`llama`).
 * Rejects with E_UNSUPPORTED for other kinds, E_FORMAT where tables are missing, E_VALUE for unknown options.
 */
export async function textOfGguf(
  file: Pick<GgufFile, 'metadata' | 'name'>,
  options: TextOptions = {},
): Promise<TextCodec> {
  const packages = packagesOf('textOfGguf', options);
  const { metadata, name } = file;
  const key = (end: string): string => `tokenizer.ggml.${end}`;
  const model = metadata.text(key('model'));
  const tokens = metadata.texts(key('tokens'));
  if (model === undefined || tokens === undefined) {
    throw new SinterError('E_FORMAT', `textOfGguf: ${name}: has no tokenizer`);
  }
  if (model !== 'gpt2' && model !== 'llama') {
    const problem = `tokenizers of the kind ${JSON.stringify(model)} are not supported`;
    throw new TensorError('E_UNSUPPORTED', 'textOfGguf', problem, 'textOfJson of the model’s tokenizer.json');
  }
  const spelling =
    model === 'llama' ? pieceBytes : (text: string) => bytesOfSpelling(text) ?? encoder.encode(text);
  const vocabulary = vocabularyOf(tokens, kindsOf(metadata, tokens.length, name), spelling);
  const id = (end: string): number | undefined =>
    tokenId(metadata, key(`${end}_token_id`), tokens.length, name);
  const pre = metadata.text(key('pre')) ?? 'gpt-2';
  const [bos, eos] = model === 'llama' ? [id('bos') ?? 1, id('eos') ?? 2] : [id('bos'), id('eos')];
  const encode =
    model === 'llama'
      ? sentencePieces(vocabulary, required(metadata.numbers(key('scores')), 'scores', name), id('unknown'))
      : bytePairs(vocabulary, required(metadata.texts(key('merges')), 'merges', name), pre);
  const strips = stripsAfter(metadata, vocabulary);
  const text = (token: number | undefined): string => (token === undefined ? '' : (tokens[token] ?? ''));
  return codecOf({
    vocabulary,
    fragments: fragmenter(vocabulary, strips),
    encode,
    spacePrefix: model === 'llama' && (metadata.flag(key('add_space_prefix')) ?? true),
    bos,
    eos: endsOf(vocabulary, [eos, id('eot'), id('eom')]),
    addBos: metadata.flag(key('add_bos_token')) ?? (model === 'llama' || cuttings.get(pre)?.bos === true),
    addEos: metadata.flag(key('add_eos_token')) ?? false,
    template: await templateOf(
      metadata.text('tokenizer.chat_template'),
      { bos: text(bos), eos: text(eos) },
      packages,
    ),
  });
}

function required<T>(table: T | undefined, what: string, name: string): T {
  if (table !== undefined) return table;
  throw new SinterError('E_FORMAT', `textOfGguf: ${name}: its tokenizer has no ${what}`);
}

function kindsOf(metadata: GgufMetadata, count: number, name: string): readonly TokenKind[] {
  const numbers = metadata.numbers('tokenizer.ggml.token_type');
  if (numbers === undefined) return [];
  return Array.from({ length: count }, (_, i) => {
    const kind = tokenKinds[(numbers[i] ?? 1) - 1];
    if (kind !== undefined) return kind;
    throw new SinterError('E_FORMAT', `textOfGguf: ${name}: token ${i} is of the kind ${numbers[i]}`);
  });
}

function tokenId(metadata: GgufMetadata, key: string, count: number, name: string): number | undefined {
  const id = metadata.count(key);
  if (id === undefined || id < count) return id;
  // Some files name a token past the last one where there is none.
  if (id === 2 ** 32 - 1) return undefined;
  throw new SinterError('E_FORMAT', `textOfGguf: ${name}: ${key} is ${id}, there are ${count} tokens`);
}

/** Every token that ends a text, the file's own first. */
export function endsOf(vocabulary: Vocabulary, named: readonly (number | undefined)[]): readonly number[] {
  const known = ends.flatMap((text) => {
    const id = vocabulary.idOf(text);
    return id !== undefined && vocabulary.kindOf(id) !== 'normal' ? [id] : [];
  });
  return [...new Set([...named.filter((id) => id !== undefined), ...known])];
}

/** Phi-3 was taught without the white space behind its special tokens, but for three of them. */
function stripsAfter(metadata: GgufMetadata, vocabulary: Vocabulary): (token: number) => boolean {
  if (!/phi-?3/i.test(metadata.text('general.name') ?? '')) return () => false;
  const kept = new Set(['<unk>', '<s>', '<|endoftext|>'].map((text) => vocabulary.idOf(text)));
  return (token) => !kept.has(token);
}
