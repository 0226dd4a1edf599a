// Regular expressions as the format has them (RE2's), as those of JavaScript: what means something else
// there is written otherwise, and what RE2 does not have is refused.

import { SinterError } from '../../../errors.ts';

const classes: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7F',
  blank: '\\t ',
  cntrl: '\\x00-\\x1F\\x7F',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`\\{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
};

const whiteSpace = '\\t\\n\\f\\r ';

/** Whether a whole string matches. Throws E_UNSUPPORTED at a pattern that is not understood. */
export function fullMatcher(pattern: string): (text: string) => boolean {
  try {
    const { source, flags } = translated(pattern);
    const compiled = new RegExp(`^(?:${source})$`, `u${flags}`);
    return (text) => compiled.test(text);
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new SinterError('E_UNSUPPORTED', `pattern '${pattern}': ${problem}`, { cause });
  }
}

function translated(pattern: string): { source: string; flags: string } {
  const lead = /^\(\?([ims]+)\)/.exec(pattern);
  const flags = lead?.[1] ?? '';
  let source = '';
  let isInside = false;
  let at = lead?.[0].length ?? 0;
  while (at < pattern.length) {
    const rest = pattern.slice(at);
    const [text, length] = piece(rest, isInside, flags);
    if (rest[0] === '[' && !isInside) isInside = true;
    else if (rest[0] === ']' && isInside) isInside = false;
    source += text;
    at += length;
  }
  // Lines are those of the flag m; the ends of the whole are written around it.
  return { source, flags: [...new Set(flags)].join('') };
}

/** What the front of a pattern becomes, and how much of it that is. */
function piece(rest: string, isInside: boolean, flags: string): [text: string, length: number] {
  const named = /^\[:(\^?)(\w+):\]/.exec(rest);
  if (isInside && named !== null) {
    const own = classes[named[2] ?? ''];
    if (own === undefined || named[1] !== '') throw new SyntaxError(`no class ${named[0]}`);
    return [own, named[0].length];
  }
  if (rest.startsWith('\\')) return escape(rest, isInside);
  if (isInside) {
    if (rest.startsWith('[')) return ['\\[', 1];
    return [rest.slice(0, sizeOfFirst(rest)), sizeOfFirst(rest)];
  }
  // A bracket right behind the start of a class is one of its members.
  const start = /^\[\^?\]/.exec(rest);
  if (start !== null) return [`${start[0].slice(0, -1)}\\]`, start[0].length];
  if (rest.startsWith('(?P<')) return ['(?<', 4];
  if (/^\(\?(?:=|!|<=|<!)/.test(rest)) throw new SyntaxError('it looks ahead or behind');
  if (/^\(\?[a-zA-Z-]*[ims]/.test(rest)) throw new SyntaxError('flags stand at its front only');
  if (rest.startsWith('.') && !flags.includes('s')) return ['[^\\n]', 1];
  if (rest.startsWith('$') || rest.startsWith('^')) {
    if (flags.includes('m')) return [rest.startsWith('^') ? '(?:^|(?<=\\n))' : '(?:$|(?=\\n))', 1];
    return [rest[0] ?? '', 1];
  }
  return [rest.slice(0, sizeOfFirst(rest)), sizeOfFirst(rest)];
}

function escape(rest: string, isInside: boolean): [text: string, length: number] {
  const quoted = /^\\Q([^]*?)(?:\\E|$)/.exec(rest);
  if (quoted !== null) return [(quoted[1] ?? '').replace(/[\^$\\.*+?()[\]{}|/-]/g, plain), quoted[0].length];
  const code = /^\\x\{([0-9A-Fa-f]+)\}/.exec(rest);
  if (code !== null) return [`\\u{${code[1]}}`, code[0].length];
  const short = /^\\([pP])([A-Z])/.exec(rest);
  if (short !== null) return [`\\${short[1]}{${short[2]}}`, short[0].length];
  const script = /^\\[pP]\{(\^?)(\w+)\}/.exec(rest);
  if (script !== null) {
    const isNot = (rest[1] === 'P') !== (script[1] === '^');
    const name = script[2] ?? '';
    return [`\\${isNot ? 'P' : 'p'}{${name.length > 2 ? 'Script=' : ''}${name}}`, script[0].length];
  }
  const own = rest[1] ?? '';
  switch (own) {
    case 'A':
      return ['^', 2];
    case 'z':
      return ['$', 2];
    case 'a':
      return ['\\x07', 2];
    case 's':
      return [isInside ? whiteSpace : `[${whiteSpace}]`, 2];
    case 'S':
      if (isInside) throw new SyntaxError('\\S inside of brackets');
      return [`[^${whiteSpace}]`, 2];
    default:
      if (/[1-9]/.test(own)) throw new SyntaxError(`it refers back to a group by \\${own}`);
      return /[\w^$\\.*+?()[\]{}|/]/.test(own) ? [rest.slice(0, 2), 2] : [plain(own), 2];
  }
}

/** A character that stands for itself. */
function plain(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Units of the first code point. */
function sizeOfFirst(text: string): number {
  return (text.codePointAt(0) ?? 0) > 0xffff ? 2 : 1;
}
