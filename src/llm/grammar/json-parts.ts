// What texts of JSON are made of, whatever their schema: strings, numbers, white space, and texts of
// a form that has a name.

import {
  characters,
  choice,
  literal,
  repeat,
  rule,
  sequence,
  without,
  type Expression,
} from './expression.ts';

const digit = characters([[0x30, 0x39]]);
const hex = characters([
  [0x30, 0x39],
  [0x41, 0x46],
  [0x61, 0x66],
]);
const whole = sequence(
  repeat(literal('-'), 0, 1),
  choice(literal('0'), sequence(characters([[0x31, 0x39]]), repeat(digit, 0, 14))),
);

/** Parts that every grammar of JSON has. */
export const shared: Readonly<Record<string, Expression>> = {
  // A space, or a new line that is set in: never so many that a text does not end.
  space: choice(
    sequence(),
    literal(' '),
    sequence(
      literal('\n'),
      repeat(
        characters([
          [0x20, 0x20],
          [0x09, 0x09],
        ]),
        0,
        20,
      ),
    ),
  ),
  // Halves of pairs of surrogates are left out: what is written is text.
  character: choice(
    characters(
      without([
        [0, 0x1f],
        [0x22, 0x22],
        [0x5c, 0x5c],
        [0xd800, 0xdfff],
      ]),
    ),
    sequence(literal('\\'), choice(...[...'"\\/bfnrt'].map(literal))),
    sequence(
      literal('\\u'),
      choice(
        sequence(
          characters([
            [0x30, 0x39],
            [0x41, 0x43],
            [0x45, 0x46],
            [0x61, 0x63],
            [0x65, 0x66],
          ]),
          hex,
          hex,
          hex,
        ),
        sequence(
          characters([
            [0x44, 0x44],
            [0x64, 0x64],
          ]),
          characters([[0x30, 0x37]]),
          hex,
          hex,
        ),
      ),
    ),
  ),
  string: sequence(literal('"'), repeat(rule('character'), 0), literal('"')),
  integer: whole,
  number: sequence(
    whole,
    repeat(sequence(literal('.'), repeat(digit, 1, 16)), 0, 1),
    repeat(
      sequence(
        characters([
          [0x45, 0x45],
          [0x65, 0x65],
        ]),
        repeat(
          characters([
            [0x2b, 0x2b],
            [0x2d, 0x2d],
          ]),
          0,
          1,
        ),
        repeat(digit, 1, 2),
      ),
      0,
      1,
    ),
  ),
  boolean: choice(literal('true'), literal('false')),
  null: literal('null'),
  value: choice(rule('any-object'), rule('any-array'), ...['string', 'number', 'boolean', 'null'].map(rule)),
  'any-object': braced('{', '}', sequence(rule('pair'), repeat(sequence(comma(), rule('pair')), 0))),
  'any-array': braced('[', ']', sequence(rule('value'), repeat(sequence(comma(), rule('value')), 0))),
  pair: sequence(rule('string'), colon(), rule('value')),
};

export function comma(): Expression {
  return sequence(literal(','), rule('space'));
}

export function colon(): Expression {
  return sequence(literal(':'), rule('space'));
}

/** Something between brackets, or nothing. */
export function braced(open: string, close: string, inside: Expression): Expression {
  return sequence(
    literal(open),
    rule('space'),
    repeat(sequence(inside, rule('space')), 0, 1),
    literal(close),
  );
}

/** Texts of a form that has a name. */
export const formats: Readonly<Record<string, Expression>> = ((): Readonly<Record<string, Expression>> => {
  const range = (low: string, high: string): Expression =>
    characters([[low.charCodeAt(0), high.charCodeAt(0)]]);
  // Days that every month has: which months have more is nothing that a pattern of digits says.
  const month = choice(sequence(literal('0'), range('1', '9')), sequence(literal('1'), range('0', '2')));
  const day = choice(
    sequence(literal('0'), range('1', '9')),
    sequence(literal('1'), digit),
    sequence(literal('2'), range('0', '8')),
  );
  const date = sequence(repeat(digit, 4, 4), literal('-'), month, literal('-'), day);
  const hour = choice(sequence(range('0', '1'), digit), sequence(literal('2'), range('0', '3')));
  const sixty = sequence(range('0', '5'), digit);
  const zone = choice(literal('Z'), sequence(choice(literal('+'), literal('-')), hour, literal(':'), sixty));
  const time = sequence(
    hour,
    literal(':'),
    sixty,
    literal(':'),
    sixty,
    repeat(sequence(literal('.'), repeat(digit, 1, 6)), 0, 1),
    zone,
  );
  const part = (count: number): Expression => repeat(hex, count, count);
  const dash = literal('-');
  return {
    date,
    time,
    'date-time': sequence(date, literal('T'), time),
    uuid: sequence(part(8), dash, part(4), dash, part(4), dash, part(4), dash, part(12)),
  };
})();
