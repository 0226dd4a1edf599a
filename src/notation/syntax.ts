// Index notation as a tree: what the grammar's rules are read as. Places are characters from the
// start of the text, so that later errors point at what was written.

import { ParseError, TensorError } from '../errors.ts';
import { Notation, read, type Tree } from '../ir/text/notation.ts';

// The grammar of index notation, in the notation of ohm-js (parsing expression grammars). A reduction
// is a name, what it runs over, a colon and what is folded; it is tried before a call, so that
// `max(k: x[k])` folds and `max(a, b)` compares.

const indexGrammar: string = String.raw`
  IndexNotation {
    Program   = Statement (";"? Statement)* ";"?
    Statement = name "[" ListOf<Binder, ","> "]" "=" Expr
    Binder    = name ("<" whole)?

    Expr    = Or "?" Expr ":" Expr             -- choice
            | Or
    Or      = Or "||" And                      -- binary
            | And
    And     = And "&&" Compare                 -- binary
            | Compare
    Compare = Sum comparison Sum               -- binary
            | Sum
    Sum     = Sum ("+" | "-") Product          -- binary
            | Product
    Product = Product ("*" | "//" | "/" | "%") Sign -- binary
            | Sign
    Sign    = ("-" | "!") Sign                 -- unary
            | Power
    Power   = Primary "**" Sign                -- binary
            | Primary
    Primary = name "(" NonemptyListOf<Binder, ","> ":" Expr ")" -- reduction
            | name "(" ListOf<Expr, ","> ")"   -- call
            | name "[" ListOf<Expr, ","> "]"   -- access
            | "(" Expr ")"                     -- group
            | number                           -- number
            | name                             -- name

    comparison (a comparison) = "==" | "!=" | "<=" | ">=" | "<" | ">"
    name   (a name)         = first rest*
    first                   = "a".."z" | "A".."Z" | "_" | "$"
    rest                    = first | "0".."9"
    whole  (a whole number) = "0".."9"+ ~rest
    number (a number)       = "0".."9"+ ("." "0".."9"+)? exponent? ~rest
    exponent                = ("e" | "E") ("+" | "-")? "0".."9"+

    space += comment
    comment = "#" (~"\n" any)*
  }
`;

/** An index as it is introduced, with its size where that is written. */
export interface Binder {
  readonly name: string;
  readonly size: number | undefined;
  readonly at: number;
}

export type NotationOperator =
  | '||'
  | '&&'
  | '=='
  | '!='
  | '<='
  | '>='
  | '<'
  | '>'
  | '+'
  | '-'
  | '*'
  | '/'
  | '//'
  | '%'
  | '**';

export type NotationExpr = { readonly at: number } & (
  | { readonly kind: 'number'; readonly value: number }
  /** An index, or a tensor of rank 0. */
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'access'; readonly name: string; readonly indices: readonly NotationExpr[] }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly NotationExpr[] }
  | {
      readonly kind: 'reduction';
      readonly name: string;
      readonly over: readonly Binder[];
      readonly body: NotationExpr;
    }
  | { readonly kind: 'unary'; readonly op: '-' | '!'; readonly x: NotationExpr }
  | {
      readonly kind: 'binary';
      readonly op: NotationOperator;
      readonly x: NotationExpr;
      readonly y: NotationExpr;
    }
  | {
      readonly kind: 'choice';
      readonly test: NotationExpr;
      readonly yes: NotationExpr;
      readonly no: NotationExpr;
    }
);

export interface Statement {
  readonly name: string;
  readonly over: readonly Binder[];
  readonly value: NotationExpr;
  readonly at: number;
}

/** The text that errors quote. */
export type SourceText = string;

/** Line and column of a place, from 1, and the line with a caret under the place. */
function locate(source: SourceText, at: number): { line: number; column: number; quoted: string } {
  const before = source.slice(0, at).split('\n');
  const [line, column] = [before.length, before.at(-1)!.length + 1];
  const text = source.split('\n')[line - 1]!;
  return { line, column, quoted: `\n  ${text}\n  ${' '.repeat(column - 1)}^` };
}

/** Throws ParseError (E_PARSE) that quotes the line. */
export function failParse(source: SourceText, at: number, problem: string): never {
  const { line, column, quoted } = locate(source, at);
  throw new ParseError('E_PARSE', 'kernel', `${problem}${quoted}`, { line, column });
}

/** Throws a TensorError that quotes the line. */
export function failAt(
  source: SourceText,
  at: number,
  code: 'E_SHAPE' | 'E_INDEX' | 'E_VALUE' | 'E_DTYPE',
  problem: string,
): never {
  const { line, column, quoted } = locate(source, at);
  throw new TensorError(code, 'kernel', `line ${line}, column ${column}: ${problem}${quoted}`);
}

const place = (tree: Tree): number => tree.source.startIdx;
const list = (tree: Tree): Tree[] => tree.asIteration().children;

/** A rule `x op y`. */
const binary = (x: Tree, op: Tree, y: Tree): NotationExpr => ({
  kind: 'binary',
  op: op.sourceString as NotationOperator,
  x: read(x),
  y: read(y),
  at: place(x),
});

const notation = new Notation('kernel', indexGrammar, {
  Program: (first, _, rest, _end): Statement[] => [first, ...rest.children].map((tree) => read(tree)),
  Statement: (name, _open, over, _close, _is, value): Statement => ({
    name: name.sourceString,
    over: list(over).map((tree) => read(tree)),
    value: read(value),
    at: place(name),
  }),
  Binder: (name, _less, size): Binder => ({
    name: name.sourceString,
    size: size.children[0] === undefined ? undefined : Number(size.children[0].sourceString),
    at: place(name),
  }),
  Expr_choice: (test, _then, yes, _else, no): NotationExpr => ({
    kind: 'choice',
    test: read(test),
    yes: read(yes),
    no: read(no),
    at: place(test),
  }),
  Or_binary: binary,
  And_binary: binary,
  Compare_binary: binary,
  Sum_binary: binary,
  Product_binary: binary,
  Power_binary: binary,
  Sign_unary: (op, x): NotationExpr => ({
    kind: 'unary',
    op: op.sourceString as '-' | '!',
    x: read(x),
    at: place(op),
  }),
  Primary_reduction: (name, _open, over, _colon, body, _close): NotationExpr => ({
    kind: 'reduction',
    name: name.sourceString,
    over: list(over).map((tree) => read(tree)),
    body: read(body),
    at: place(name),
  }),
  Primary_call: (name, _open, args, _close): NotationExpr => ({
    kind: 'call',
    name: name.sourceString,
    args: list(args).map((tree) => read(tree)),
    at: place(name),
  }),
  Primary_access: (name, _open, indices, _close): NotationExpr => ({
    kind: 'access',
    name: name.sourceString,
    indices: list(indices).map((tree) => read(tree)),
    at: place(name),
  }),
  Primary_group: (_open, value, _close): NotationExpr => read(value),
  Primary_number: (value): NotationExpr => ({
    kind: 'number',
    value: Number(value.sourceString),
    at: place(value),
  }),
  Primary_name: (name): NotationExpr => ({ kind: 'name', name: name.sourceString, at: place(name) }),
});

/** Characters of the longest text: what reads it takes some kilobytes of memory for each. */
const mostText = 2 ** 15;

/** The statements of a text. Throws ParseError (E_PARSE) where it is no index notation. */
export function parseNotation(source: SourceText): readonly Statement[] {
  if (source.length > mostText) {
    const problem = `a text has at most ${mostText} characters, got ${source.length}`;
    throw new ParseError('E_PARSE', 'kernel', problem, { line: 1, column: 1 });
  }
  return notation.readText(source, 'Program', (at, problem) => failParse(source, at, problem));
}
