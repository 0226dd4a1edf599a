// A notation for text that is read line by line, or as a whole: a grammar of ohm-js and what each of
// its rules is read as. In: a line and the rule it must match. Out: what the line means, or a
// ParseError (E_PARSE) that names line and column. The texts of all levels (graphs, kernels, loops)
// and index notation are read with it, so this is the one file that needs ohm-js.

import type { FailedMatchResult, Grammar, Node as Tree, Semantics } from 'ohm-js';
import { ohm } from '../../packages/ohm.ts';

import { ParseError } from '../../errors.ts';

export type { Node as Tree } from 'ohm-js';

/** A piece of text and its column, counted from 1. */
export interface Word {
  readonly text: string;
  readonly column: number;
}

/** The name or other word that a rule matched. */
export const word = (tree: Tree): Word => ({
  text: tree.sourceString,
  column: tree.source.startIdx + 1,
});

/** What a part of a line means. */
export const read = <T>(tree: Tree): T => tree['read']() as T;

/** The items of `(item ("," item)*)?`, given its three iterations. */
export const listed = <T>(first: Tree, rest: Tree, each: (tree: Tree) => T): T[] => [
  ...first.children.map(each),
  ...rest.children.flatMap((more) => more.children).map(each),
];

/** A number as texts have it: `nan`, `inf` and `-inf` too. */
export function readNumber(text: string): number {
  return text === 'nan' ? NaN : Number(text.replace('inf', 'Infinity'));
}

/** The column of the first character that is no space. */
export function firstColumn(line: string): number {
  return line.search(/\S/) + 1;
}

/** Whether a line says nothing. */
export function isBlank(line: string): boolean {
  return /^\s*$/.test(line);
}

/** How the rules of a grammar are read. */
export type Meanings = Parameters<Semantics['addOperation']>[1];

export class Notation {
  /** What errors call the text: `IR text`. */
  readonly what: string;
  readonly #source: string;
  readonly #meanings: Meanings;
  #compiled: { readonly grammar: Grammar; readonly semantics: Semantics } | undefined;

  constructor(what: string, source: string, meanings: Meanings) {
    this.what = what;
    this.#source = source;
    this.#meanings = meanings;
  }

  /** What a line means as `rule`. Throws ParseError where it does not match. */
  readLine<T>(line: string, number: number, rule: string): T {
    return this.#read<T>(line, rule, 'line', (at, problem) => this.fail(number, at + 1, problem));
  }

  /**
   * What a text of any number of lines means as `rule`. Where it does not match, `fail` gets the place
   * (characters from 0) and the problem.
   */
  readText<T>(text: string, rule: string, fail: (at: number, problem: string) => never): T {
    return this.#read<T>(text, rule, 'text', fail);
  }

  #read<T>(
    text: string,
    rule: string,
    what: 'line' | 'text',
    fail: (at: number, problem: string) => never,
  ): T {
    try {
      return this.#matched<T>(text, rule, what, fail);
    } catch (error) {
      // The parser goes as deep as the text nests: what has run out is the stack.
      if (!(error instanceof RangeError)) throw error;
      return fail(0, `the ${what} nests too deeply`);
    }
  }

  #matched<T>(
    text: string,
    rule: string,
    what: 'line' | 'text',
    fail: (at: number, problem: string) => never,
  ): T {
    const { grammar: rules, semantics } = this.#compile();
    const match = rules.match(text, rule);
    if (match.succeeded()) return read<T>(semantics(match) as unknown as Tree);
    const failed = match as FailedMatchResult;
    const at = failed.getRightmostFailurePosition();
    const found = /^(\w+|.)/u.exec(text.slice(at).trimStart())?.[0];
    const expected = failed.getExpectedText().replace('end of input', `end of ${what}`);
    const instead = found === undefined ? `but the ${what} ends` : `found ${found}`;
    return fail(at, `expected ${expected}, ${instead}`);
  }

  fail(line: number, column: number, problem: string): never {
    throw new ParseError('E_PARSE', this.what, problem, { line, column });
  }

  /** Compiled at first use, because importing a notation should cost nothing. */
  #compile(): { readonly grammar: Grammar; readonly semantics: Semantics } {
    if (this.#compiled !== undefined) return this.#compiled;
    const compiled = ohm().grammar(this.#source);
    const semantics = compiled.createSemantics().addOperation<unknown>('read', this.#meanings);
    this.#compiled = { grammar: compiled, semantics };
    return this.#compiled;
  }
}
