// A piece of expression text that knows how tightly it binds, so that parentheses go only where the
// grammar asks. The grammar is WGSL's, which is stricter than C's: shift and bit operators take
// unary operands, `&&` and `||` do not mix. So the same text means the same in both.

/** How tightly a text binds; operands are parenthesised below the level their operator asks for. */
export const level = {
  /** C's `condition ? a : b`. */
  choice: 0,
  logic: 1,
  relational: 2,
  shift: 3,
  additive: 4,
  multiplicative: 5,
  unary: 6,
  primary: 7,
} as const;
export type Level = (typeof level)[keyof typeof level];

export interface Term {
  readonly text: string;
  readonly level: Level;
  /** The operator of a chain that may be continued without parentheses: `a && b && c`. */
  readonly chain?: string;
}

/** A name, literal, call, access: never needs parentheses. */
export function primary(text: string): Term {
  return { text, level: level.primary };
}

/** The text, in parentheses when it binds looser than `minimum`. */
export function atLeast(term: Term, minimum: Level): string {
  return term.level >= minimum ? term.text : `(${term.text})`;
}

export function call(callee: string, args: readonly Term[]): Term {
  return primary(`${callee}(${args.map(argument).join(', ')})`);
}

/**
 * A text in a comma list. `a < b, c >> d` would be read as a template list, so shifts are enclosed.
 */
function argument(term: Term): string {
  return term.level === level.shift ? `(${term.text})` : term.text;
}

/** `array[index]`, `vector.x`: the base must bind as a name does. */
export function subscript(base: Term, index: string): Term {
  return primary(`${atLeast(base, level.primary)}[${index}]`);
}

export function component(base: Term, lane: number): Term {
  return primary(`${atLeast(base, level.primary)}.${'xyzw'[lane]}`);
}

/** `condition ? yes : no`, as C has it. */
export function choice(condition: Term, yes: Term, no: Term): Term {
  const [test, first, second] = [condition, yes, no].map((term) => atLeast(term, level.logic));
  return { text: `${test} ? ${first} : ${second}`, level: level.choice };
}

export type UnaryOperator = '-' | '!' | '~';

export function prefix(operator: UnaryOperator, operand: Term): Term {
  return { text: `${operator}${atLeast(operand, level.primary)}`, level: level.unary };
}

export type BinaryOperator =
  | '+'
  | '-'
  | '*'
  | '/'
  | '%'
  | '<<'
  | '>>'
  | '&'
  | '|'
  | '^'
  | '<'
  | '<='
  | '=='
  | '!='
  | '&&'
  | '||';

export function infix(operator: BinaryOperator, a: Term, b: Term): Term {
  const join = (own: Level, left: Level, right: Level, chain?: string): Term => {
    const first = chain !== undefined && a.chain === chain ? a.text : atLeast(a, left);
    const text = `${first} ${operator} ${atLeast(b, right)}`;
    return chain === undefined ? { text, level: own } : { text, level: own, chain };
  };
  switch (operator) {
    case '*':
    case '/':
    case '%':
      return join(level.multiplicative, level.multiplicative, level.unary);
    case '+':
    case '-':
      return join(level.additive, level.additive, level.multiplicative);
    case '<<':
    case '>>':
      return join(level.shift, level.unary, level.unary);
    case '<':
    case '<=':
    case '==':
    case '!=':
      return join(level.relational, level.shift, level.shift);
    case '&&':
    case '||':
      return join(level.logic, level.relational, level.relational, operator);
    case '&':
    case '|':
    case '^':
      return join(level.logic, level.unary, level.unary, operator);
    default:
      return operator satisfies never;
  }
}
