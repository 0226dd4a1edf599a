// Grammars as text, in the notation that llama.cpp calls GBNF: `root ::= "yes" | "no"`, classes of
// characters, groups, and how often something comes.

import { ParseError, TensorError } from '../../errors.ts';
import { Grammar } from './constraint.ts';
import {
  characters,
  choice,
  literal,
  repeat,
  rule,
  sequence,
  without,
  type CodeRange,
  type Expression,
} from './expression.ts';

/**
 * A grammar of text: rules `name ::= …`, whose `root` is what is written. Texts stand in quotes,
 * `[a-z]` and `[^"]` are classes of characters, `.` is any, `( )` groups, `|` chooses, and `* + ? {2}
 * {2,} {2,5}` say how often. `#` begins a comment. Throws ParseError with line and column.
 */
export function parseGrammar(text: string): Grammar {
  if (typeof text !== 'string')
    throw new TensorError('E_VALUE', 'parseGrammar', `expects text, got ${typeof text}`);
  return new Grammar(new Reader(text).rules());
}

const mostRepeated = 1000;
const deepest = 200;
const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  '\\': '\\',
  '"': '"',
  '[': '[',
  ']': ']',
  '-': '-',
  '^': '^',
};

class Reader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  #fail(problem: string): ParseError {
    const before = this.#text.slice(0, this.#at).split('\n');
    return new ParseError('E_PARSE', 'grammar', problem, {
      line: before.length,
      column: (before.at(-1)?.length ?? 0) + 1,
    });
  }

  /** What stands here by a pattern, which is then passed over. */
  #take(pattern: RegExp): string | undefined {
    const sticky = new RegExp(pattern.source, 'uy');
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  /** Passes over white space and comments; `lines`: new lines too. */
  #skip(lines: boolean): void {
    this.#take(lines ? /(?:\s|#[^\n]*)*/ : /(?:[ \t]|#[^\n]*)*/);
  }

  #expect(pattern: RegExp, what: string): string {
    const found = this.#take(pattern);
    if (found === undefined) throw this.#fail(`${what} is expected`);
    return found;
  }

  rules(): ReadonlyMap<string, Expression> {
    const rules = new Map<string, Expression>();
    for (this.#skip(true); this.#at < this.#text.length; this.#skip(true)) {
      const name = this.#expect(/[A-Za-z][A-Za-z0-9_-]*/, 'the name of a rule');
      if (rules.has(name)) throw this.#fail(`the rule ${name} is there twice`);
      this.#skip(true);
      this.#expect(/::=/, '::=');
      this.#skip(true);
      rules.set(name, this.#choice(false));
      if (this.#at < this.#text.length) this.#expect(/\r?\n/, 'the end of the rule');
    }
    return rules;
  }

  /** `inside`: of a group, where lines may end. */
  #choice(inside: boolean): Expression {
    const items = [this.#sequence(inside)];
    while (this.#take(/\|/) !== undefined) {
      this.#skip(true);
      items.push(this.#sequence(inside));
    }
    return choice(...items);
  }

  #sequence(inside: boolean): Expression {
    const items: Expression[] = [];
    for (;;) {
      const item = this.#item();
      if (item === undefined) break;
      items.push(this.#repeated(item));
      this.#skip(inside);
      // A new line goes on with the rule where it begins with a choice.
      if (!inside && /^(?:\s|#[^\n]*\n)*\|/u.test(this.#text.slice(this.#at, this.#at + 400)))
        this.#skip(true);
    }
    return sequence(...items);
  }

  #item(): Expression | undefined {
    if (this.#take(/"/) !== undefined) return this.#literal();
    if (this.#take(/\[/) !== undefined) return this.#class();
    if (this.#take(/\./) !== undefined) return characters([[0, 0x10ffff]]);
    if (this.#take(/\(/) === undefined) {
      const name = this.#take(/[A-Za-z][A-Za-z0-9_-]*(?!\s*::=)(?![A-Za-z0-9_-])/);
      return name === undefined ? undefined : rule(name);
    }
    if (++this.#depth > deepest) throw this.#fail(`groups nest more than ${deepest} deep`);
    this.#skip(true);
    const group = this.#choice(true);
    this.#skip(true);
    this.#expect(/\)/, ')');
    this.#depth--;
    return group;
  }

  #literal(): Expression {
    let text = '';
    while (this.#take(/"/) === undefined) text += this.#character();
    return literal(text);
  }

  #class(): Expression {
    const negated = this.#take(/\^/) !== undefined;
    const ranges: CodeRange[] = [];
    while (this.#take(/\]/) === undefined) {
      const low = this.#character().codePointAt(0) ?? 0;
      const high = this.#take(/-(?!\])/) === undefined ? low : (this.#character().codePointAt(0) ?? 0);
      if (high < low) throw this.#fail('a range ends before it begins');
      ranges.push([low, high]);
    }
    const kept = negated ? without(ranges) : ranges;
    if (kept.length === 0) throw this.#fail('a class of no characters');
    return characters(kept);
  }

  #character(): string {
    const escaped = this.#take(/\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^xuU\n])/);
    if (escaped === undefined) return this.#expect(/[^\\\n]/, 'a character');
    const [, kind = ''] = escaped;
    if (/[xuU]/.test(kind)) {
      const code = Number.parseInt(escaped.slice(2), 16);
      if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        throw this.#fail(`${escaped} is no character`);
      return String.fromCodePoint(code);
    }
    const meant = escapes[kind];
    if (meant === undefined) throw this.#fail(`there is no escape ${escaped}`);
    return meant;
  }

  #repeated(item: Expression): Expression {
    let out = item;
    for (
      let sign = this.#take(/[*+?]|\{\d*,?\d*\}/);
      sign !== undefined;
      sign = this.#take(/[*+?]|\{\d*,?\d*\}/)
    ) {
      out = this.#times(out, sign);
    }
    return out;
  }

  #times(item: Expression, sign: string): Expression {
    if (sign === '*') return repeat(item, 0);
    if (sign === '+') return repeat(item, 1);
    if (sign === '?') return repeat(item, 0, 1);
    const [low = '', high] = sign.slice(1, -1).split(',');
    if (low === '' && (high ?? '') === '') throw this.#fail(`${sign} says no number`);
    const min = Number(low);
    const max = high === undefined ? min : high === '' ? undefined : Number(high);
    if (Math.max(min, max ?? 0) > mostRepeated) throw this.#fail(`more than ${mostRepeated} repetitions`);
    if (max !== undefined && max < min) throw this.#fail(`${sign} ends before it begins`);
    return repeat(item, min, max);
  }
}
