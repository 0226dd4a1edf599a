// The codec of a tokenizer.json, as folders of Hugging Face have it: the optional package
// @huggingface/tokenizers finds the tokens of a text; what tokens stand for is read from the file.

import { TensorError } from '../../errors.ts';
import type { TextCodec } from '../codec.ts';
import { bytesOfSpelling } from './byte-level.ts';
import { checkText, codecOf } from './codec.ts';
import { endsOf } from './gguf.ts';
import { optionalPackage, packagesOf, type TextOptions } from './packages.ts';
import { pieceBytes } from './sentence-piece.ts';
import { templateOf } from './template.ts';
import { vocabularyOf, type TokenKind } from './vocabulary.ts';

/** The files of a folder that say how its text is made, as JSON. */
export interface TokenizerFiles {
  /** tokenizer.json. */
  readonly tokenizer: unknown;
  /** tokenizer_config.json. */
  readonly config?: unknown;
  /** generation_config.json, or config.json: which tokens end a text. */
  readonly generation?: unknown;
  /** chat_template.jinja, where it is a file of its own. */
  readonly chatTemplate?: string | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

const encoder = new TextEncoder();

/**
 * The codec of a tokenizer.json. Rejects with E_VALUE where it is none and for unknown options, E_UNSUPPORTED for
 * kinds whose tokens are no bytes.
 */
export async function textOfJson(files: TokenizerFiles, options: TextOptions = {}): Promise<TextCodec> {
  const packages = packagesOf('textOfJson', options);
  const json = fields(files.tokenizer);
  if (fields(json['model'])['vocab'] === undefined) {
    throw new TensorError('E_VALUE', 'textOfJson', 'the file is no tokenizer.json: it has no model.vocab');
  }
  const config = fields(files.config);
  const { Tokenizer } = await optionalPackage('@huggingface/tokenizers', packages.tokenizers);
  const tokenizer = new Tokenizer(json, config);
  const tokens: string[] = [];
  for (const [text, id] of tokenizer.get_vocab(true)) tokens[id] = text;
  for (let id = 0; id < tokens.length; id++) tokens[id] ??= '';
  const kinds: TokenKind[] = tokens.map((text) => (/^<0x[0-9A-F]{2}>$/.test(text) ? 'byte' : 'normal'));
  for (const given of Array.isArray(json['added_tokens']) ? json['added_tokens'] : []) {
    const { id, special } = fields(given);
    if (typeof id === 'number') kinds[id] = special === true ? 'control' : 'added';
  }
  const spelling = spellingOf(json['decoder']);
  const vocabulary = vocabularyOf(tokens, kinds, spelling);
  const bosText = tokenText(config['bos_token']);
  const bos = bosText === '' ? undefined : vocabulary.idOf(bosText);
  const eosText = tokenText(config['eos_token']);
  const named = [fields(files.generation)['eos_token_id']].flat().filter((id) => typeof id === 'number');
  const encode = (text: string): readonly number[] => {
    checkText('encode', text);
    const written = bosText !== '' && text.startsWith(bosText);
    return tokenizer.encode(text, { add_special_tokens: !written }).ids;
  };
  return codecOf({
    vocabulary,
    // The package cuts special tokens out by itself, and adds the first one.
    fragments: (text) => [text],
    encode,
    spacePrefix: false,
    bos,
    eos: endsOf(vocabulary, [vocabulary.idOf(eosText), ...named]),
    addBos: false,
    addEos: false,
    template: await templateOf(
      templateText(files.chatTemplate ?? config['chat_template']),
      { bos: bosText, eos: eosText },
      packages,
    ),
  });
}

function tokenText(given: unknown): string {
  const text = typeof given === 'string' ? given : fields(given)['content'];
  return typeof text === 'string' ? text : '';
}

/** One template, or the default one of several. */
function templateText(given: unknown): string | undefined {
  if (typeof given === 'string') return given;
  if (!Array.isArray(given)) return undefined;
  const found = given.map(fields).find(({ name }) => name === 'default')?.['template'];
  return typeof found === 'string' ? found : undefined;
}

/** What tokens spell, by the decoder that the file names. */
function spellingOf(decoder: unknown): (token: string) => Uint8Array {
  const kinds = new Set<unknown>();
  const visit = (value: unknown): void => {
    const { type, decoders } = fields(value);
    kinds.add(type);
    if (Array.isArray(decoders)) decoders.forEach(visit);
  };
  visit(decoder);
  if (kinds.has('ByteLevel')) return (token) => bytesOfSpelling(token) ?? encoder.encode(token);
  if (kinds.has('ByteFallback') || kinds.has('Metaspace')) return pieceBytes;
  const told = [...kinds].filter((kind) => kind !== undefined).join(', ') || 'none';
  const problem = `tokens are not bytes one by one under the decoder ${told}`;
  throw new TensorError(
    'E_UNSUPPORTED',
    'textOfJson',
    problem,
    'a model whose decoder is ByteLevel or ByteFallback',
  );
}
