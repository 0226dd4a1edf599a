// Identifiers of C for names of TypeScript, ONNX and state trees.

import { uniqueName } from '../names.ts';

/** Keywords of C and C++. */
export const cKeywords: ReadonlySet<string> = new Set(
  (
    'alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const const_cast constexpr ' +
    'continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit export extern false ' +
    'float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private ' +
    'protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast ' +
    'struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void ' +
    'volatile wchar_t while xor xor_eq'
  ).split(' '),
);

/** Those, names that the written code uses itself, and keywords of Rust. */
const taken: ReadonlySet<string> = new Set([
  ...cKeywords,
  ...(
    'main errno NULL ctx scalars scratch counter seed memcpy memset ' +
    'as crate dyn fn impl in let loop match mod move mut pub ref self Self super trait type unsafe use where async await box ' +
    'final override abstract become do macro priv unsized yield gen'
  ).split(' '),
]);

/** Letters, digits and single underscores, beginning with a letter. */
export function word(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9]+/g, '_').replaceAll(/^_+|_+$/g, '');
  return /^[A-Za-z]/.test(plain) ? plain : `x${plain}`;
}

/** Whether a name can be the prefix of all that a bundle in C declares. */
export function isPrefix(name: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_]*$/.test(name) && !taken.has(name) && name.length <= 40;
}

/**
 * Different names of parameters, none of which is a keyword, a type of the standard headers or of Swift, a constant of the model,
 * or in `others`.
 */
export function parameterNames(
  names: readonly string[],
  prefix: string,
  others: readonly string[],
): string[] {
  const used = new Set([...taken, ...others]);
  return names.map((name) => {
    const own = word(name);
    return uniqueName(standard.test(own) || isConstant(own, prefix) ? `${own}_` : own, used);
  });
}

/** Whether a name could be that of a constant of a model with this prefix. */
function isConstant(name: string, prefix: string): boolean {
  return name.startsWith(`${macro(prefix)}_`) && name === macro(name);
}

/** What functions that take sizes call their own variables, and what they call, in C and C++. */
const beside =
  'far drawn count inputs i argc argv context weights error check sized std whole zeros number report read_file ' +
  'printf fputs fputc free floor fmin fmax sqrt log';

/** Different names of sizes, which lines of functions compute with: of none of their variables either. */
export function sizeNames(names: readonly string[], prefix: string, others: readonly string[]): string[] {
  const numbered = names.map((name) => name.replace(/^(?:in|out|turn|guard)\d+$/, 'size_$&'));
  return parameterNames(numbered, prefix, [...beside.split(' '), ...others]);
}

/** Names of types and macros of the headers that are included, and of Swift. */
const standard =
  /_t$|^(?:U?INT|SIZE|PTRDIFF|WCHAR|WINT|SIG)[A-Z0-9_]*$|^(?:linux|unix|i386)$|^(?:Swift|Float|Double|U?Int\d*)$/;

/** Different words behind a prefix. */
export function distinctWords(names: readonly string[], used: Set<string>): string[] {
  return names.map((name) => uniqueName(word(name), used));
}

/** Different names of functions behind a prefix, none of which is in `own`, a constant of the model, or a name of Rust's module. */
export function functionWords(names: readonly string[], prefix: string, own: readonly string[]): string[] {
  const used = new Set([...own, ...(prefix === 'threads' ? ['bytes'] : [])]);
  // No constant ends in a number and an underscore before it.
  const wished = names
    .map(word)
    .map((name) => (isConstant(`${prefix}_${name}`, prefix) ? `${name}_1` : name));
  return distinctWords(wished, used);
}

/** What a class calls a function of a model, and the type of what it gives. */
export interface MemberNames {
  readonly method: string;
  readonly results: string;
}

/**
 * Names for functions with these words as members of a class. All of them are different: names of methods come first, and are
 * none of `others`.
 */
export function memberNames(
  words: readonly string[],
  others: ReadonlySet<string>,
  resultsOf: (method: string) => string,
): MemberNames[] {
  const used = new Set(others);
  const methods = words.map((own) => uniqueName(others.has(own) ? `${own}_` : own, used));
  return methods.map((method) => ({ method, results: uniqueName(resultsOf(method), used) }));
}

/** The name of a macro; `meanSquare` is `MEAN_SQUARE`. */
export function macro(...parts: readonly string[]): string {
  return parts
    .map((part) =>
      word(part)
        .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, '_')
        .toUpperCase(),
    )
    .join('_');
}

/** Text in one line inside a comment, which must not end it. */
export function remark(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\u2028\u2029\\]/gu, (letter) => JSON.stringify(letter).slice(1, -1))
    .replaceAll('*/', '* /')
    .replaceAll('/*', '/ *')
    .replaceAll('??', '? ?');
}

/** A literal string. */
export function literal(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const letters = Array.from(bytes, (byte) => {
    const letter = String.fromCharCode(byte);
    // Three digits end an octal escape; a question mark may begin a trigraph.
    return byte < 32 || byte > 126 || '"\\?'.includes(letter)
      ? `\\${byte.toString(8).padStart(3, '0')}`
      : letter;
  });
  return `"${letters.join('')}"`;
}
