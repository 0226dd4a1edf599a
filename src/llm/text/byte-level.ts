// Byte-level vocabularies (GPT-2's): each byte is spelled as a character that can be seen, so that
// tokens are text, and any text has tokens.

const spelled: string[] = [];
const bytes = new Map<string, number>();
let extra = 0;
for (let byte = 0; byte < 256; byte++) {
  const seen = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const char = String.fromCodePoint(seen ? byte : 256 + extra++);
  spelled.push(char);
  bytes.set(char, byte);
}

const encoder = new TextEncoder();

/** A text's bytes as they are spelled in tokens. */
export function spellBytes(text: string): string[] {
  return Array.from(encoder.encode(text), (byte) => spelled[byte] ?? '');
}

/** The bytes that a token spells; undefined where it has characters that spell none. */
export function bytesOfSpelling(token: string): Uint8Array | undefined {
  const out: number[] = [];
  for (const char of token) {
    const byte = bytes.get(char);
    if (byte === undefined) return undefined;
    out.push(byte);
  }
  return Uint8Array.from(out);
}

const space = String.raw`\p{White_Space}`;
const contractions = "'(?:s|t|re|ve|m|ll|d)";
const anyCase = "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])";
const spaces = String.raw`${space}+(?!\P{White_Space})`;
const gpt2 = String.raw`${contractions}| ?\p{L}+| ?\p{N}+| ?[^${space}\p{L}\p{N}]+|${spaces}|${space}+`;
const lines = String.raw` ?[^${space}\p{L}\p{N}]+[\r\n]*|${space}*[\r\n]+|${spaces}|${space}+`;
const upper = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`;
const lower = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;

/** How a vocabulary cuts text into words, within which tokens are found. */
interface Cutting {
  /** Applied one after the other: what a pattern finds stands alone, and so does what lies between. */
  readonly patterns: readonly string[];
  /** A word that is a token is one, whatever pairs would be joined. */
  readonly wholeWords?: boolean;
  /** Texts begin with the first token unless the file says otherwise. */
  readonly bos?: boolean;
}

const digitsApart: Cutting = { patterns: [String.raw`\p{N}`, gpt2] };
const llama3: Cutting = {
  patterns: [String.raw`${anyCase}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|${lines}`],
  wholeWords: true,
  bos: true,
};
const qwen2: Cutting = { patterns: [String.raw`${anyCase}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|${lines}`] };
const gpt4o: Cutting = {
  patterns: [
    String.raw`[^\r\n\p{L}\p{N}]?${upper}*${lower}+(?:${anyCase})?|[^\r\n\p{L}\p{N}]?${upper}+${lower}*(?:${anyCase})?|` +
      String.raw`\p{N}{1,3}| ?[^${space}\p{L}\p{N}]+[\r\n/]*|${space}*[\r\n]+|${spaces}|${space}+`,
  ],
};
const tekken: Cutting = {
  patterns: [
    String.raw`[^\r\n\p{L}\p{N}]?${upper}*${lower}+|[^\r\n\p{L}\p{N}]?${upper}+${lower}*|` +
      String.raw`\p{N}| ?[^${space}\p{L}\p{N}]+[\r\n/]*|${space}*[\r\n]+|${spaces}|${space}+`,
  ],
  wholeWords: true,
  bos: true,
};

/** By the name that files give in `tokenizer.ggml.pre`. */
export const cuttings: ReadonlyMap<string, Cutting> = new Map<string, Cutting>([
  ...['gpt-2', 'phi-2', 'mpt', 'olmo', 'jina-es', 'jina-de', 'roberta-bpe', 'exaone'].map(
    (name) => [name, { patterns: [gpt2] }] as const,
  ),
  ...['llama3', 'llama-v3', 'llama-bpe'].map((name) => [name, llama3] as const),
  ...['qwen2', 'stablelm2', 'deepseek-r1-qwen'].map((name) => [name, qwen2] as const),
  ...['smollm', 'starcoder', 'refact', 'command-r', 'codeshell'].map((name) => [name, digitsApart] as const),
  ['smaug-bpe', { ...llama3, wholeWords: false, bos: false }],
  ['dbrx', { ...llama3, wholeWords: false, bos: false }],
  ['gpt-4o', gpt4o],
  ['tekken', tekken],
]);

/** Cuts text into words. */
export function cutter({ patterns }: Cutting): (text: string) => string[] {
  const compiled = patterns.map((pattern) => new RegExp(pattern, 'gu'));
  return (text) => {
    let words = [text];
    for (const pattern of compiled) words = words.flatMap((word) => cut(word, pattern));
    return words;
  };
}

/** What a pattern finds in a text, and what lies between, in order. */
function cut(text: string, pattern: RegExp): string[] {
  const out: string[] = [];
  let at = 0;
  for (const found of text.matchAll(pattern)) {
    if (found[0] === '') continue;
    if (found.index > at) out.push(text.slice(at, found.index));
    out.push(found[0]);
    at = found.index + found[0].length;
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}
