import { describe, expect, test } from 'vitest';

// The passes have all of their rules.
import '../../../src/compile/all.ts';
import { dims, type Graph } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { parse } from '../../../src/ir/text/parse.ts';
import { canonicalise, canonicalRules } from '../../../src/ir/passes/canonicalise.ts';
import { removeDeadCode } from '../../../src/ir/passes/dead-code.ts';
import { foldConstants, foldRules } from '../../../src/ir/passes/fold.ts';
import { rulePass, type RewriteRule } from '../../../src/ir/passes/rules.ts';
import { canonicalSelections, deadSelections, simplerSelections } from '../../../src/ir/passes/selections.ts';
import { simplify, simplifyRules } from '../../../src/ir/passes/simplify.ts';
import { print } from '../../../src/ir/text/print.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import { hostArray } from '../../../src/ir/value.ts';
import { verify } from '../../../src/ir/verify.ts';
import { expectClose } from '../../support/random/graph.ts';
import { specialFloats, specialIntegers } from '../../support/random/values.ts';

/**
 * A rule's name, the types of the parameters %0, %1…, the nodes that follow (the last is the output, and may be just a name)
 * and what the rule alone makes of them. F, I, U and B stand for the types below.
 */
type Example = readonly [
  rule: string,
  parameters: string,
  before: readonly string[],
  after: readonly string[],
];

const types: Readonly<Record<string, string>> = { F: 'f32[18]', I: 'i32[12]', U: 'u32[12]', B: 'bool[4]' };

function graphOf(parameters: string, body: readonly string[]): Graph {
  const lines: string[] = [];
  for (const type of parameters === '' ? [] : parameters.split(' ')) {
    lines.push(`%${lines.length} = parameter {index: ${lines.length}, name: "p${lines.length}"} : ${type}`);
  }
  let output = `%${lines.length - 1}`;
  for (const line of body) {
    if (line.includes(':')) lines.push(`%${lines.length} = ${line}`);
    output = line.includes(':') ? `%${lines.length - 1}` : line;
  }
  const text = `graph {\n${lines.join('\n')}\nreturn ${output}\n}`;
  return parse(text.replaceAll(/\b[FIUB]\b/g, (letter) => types[letter]!));
}

/** Results on special values: parameters start at different places of the list, so that all pairs meet. */
function expectSameResults(before: Graph, after: Graph): void {
  const pairs = before.parameters.length > 1 ? specialFloats.length : 1;
  for (let turn = 0; turn < pairs; turn++) {
    const inputs = before.parameters.map((parameter, index) => {
      const shape = dims(parameter);
      const list = parameter.dtype.includes('f') ? specialFloats : specialIntegers.map(BigInt);
      const values = Array.from({ length: sizeOf(shape) }, (_, i) => list[(i + index * turn) % list.length]!);
      return hostArray(parameter.dtype, shape, values);
    });
    const expected = interpret(before, inputs);
    interpret(after, inputs).forEach((actual, i) => expectClose(actual, expected[i]!, 0));
  }
}

function checkRules(rules: readonly RewriteRule[], examples: readonly Example[]): void {
  for (const rule of rules) {
    const own = examples.filter(([name]) => name === rule.name);
    test(`${rule.name}: ${rule.law}`, () => {
      expect(own, 'every rule has an example').not.toHaveLength(0);
      for (const [, parameters, before, after] of own) {
        const graph = graphOf(parameters, before);
        const changed = rulePass(rule.name, [rule])(graph);
        verify(changed, rule.name);
        expect(print(changed)).toBe(print(graphOf(parameters, after)));
        expectSameResults(graph, changed);
      }
    });
  }
  test('every example is of a rule', () => {
    const names = new Set(rules.map(({ name }) => name));
    expect(examples.map(([name]) => name).filter((name) => !names.has(name))).toEqual([]);
  });
}

/** Looks alike, and is not equal: the pass must leave it. */
type NearMiss = readonly [why: string, parameters: string, body: readonly string[]];

function checkNearMisses(pass: (graph: Graph) => Graph, misses: readonly NearMiss[]): void {
  test.each(misses)('stays: %s', (_, parameters, body) => {
    const graph = graphOf(parameters, body);
    expect(print(pass(graph))).toBe(print(graph));
  });
}

const zero = 'constant {value: 0} : f32[]';
const two = 'constant {value: 2} : f32[]';

describe('canonicalise', () => {
  checkRules(
    [...canonicalSelections, ...canonicalRules],
    [
      ['idle-view', 'F', ['reshape(%0) : F'], ['%0']],
      ['idle-view', 'F', ['broadcast(%0) : F'], ['%0']],
      ['idle-view', 'F', ['cast(%0) : F'], ['%0']],
      ['idle-bitcast', 'U', ['bitcast(%0) : U'], ['%0']],
      ['idle-permute', 'f32[2,3]', ['permute(%0) {order: [0,1]} : f32[2,3]'], ['%0']],
      ['idle-slice', 'f32[2]', ['slice(%0) {start: [0], size: [2], step: [1]} : f32[2]'], ['%0']],
      ['idle-pad', 'f32[1]', ['pad(%0) {low: [0], high: [0], interior: [3], value: 1} : f32[1]'], ['%0']],
      ['concat-empty-part', 'f32[2] f32[0]', ['concat(%0, %1) {axis: 0} : f32[2]'], ['%0']],
      ['concat-empty-part', 'f32[0] f32[0]', ['concat(%0, %1) {axis: 0} : f32[0]'], ['%0']],
      [
        'concat-empty-part',
        'f32[2] f32[0]',
        ['concat(%0, %1, %0) {axis: 0} : f32[4]'],
        ['concat(%0, %0) {axis: 0} : f32[4]'],
      ],
      [
        'constant-right',
        'F',
        [two, 'broadcast(%1) : F', 'mul(%2, %0) : F'],
        [two, 'broadcast(%1) : F', 'mul(%0, %2) : F'],
      ],
      ['older-left', 'F F', ['add(%1, %0) : F'], ['add(%0, %1) : F']],
      [
        'reshape-reshape',
        'f32[6]',
        ['reshape(%0) : f32[2,3]', 'reshape(%1) : f32[3,2]'],
        ['reshape(%0) : f32[3,2]'],
      ],
      ['reshape-reshape', 'f32[6]', ['reshape(%0) : f32[2,3]', 'reshape(%1) : f32[6]'], ['%0']],
      [
        'permute-permute',
        'f32[2,3,4]',
        ['permute(%0) {order: [1,2,0]} : f32[3,4,2]', 'permute(%1) {order: [1,0,2]} : f32[4,3,2]'],
        ['permute(%0) {order: [2,1,0]} : f32[4,3,2]'],
      ],
      [
        'broadcast-broadcast',
        'f32[3]',
        ['broadcast(%0) : f32[2,3]', 'broadcast(%1) : f32[4,2,3]'],
        ['broadcast(%0) : f32[4,2,3]'],
      ],
      [
        'slice-slice',
        'f32[20]',
        [
          'slice(%0) {start: [19], size: [9], step: [-2]} : f32[9]',
          'slice(%1) {start: [7], size: [3], step: [-3]} : f32[3]',
        ],
        ['slice(%0) {start: [5], size: [3], step: [6]} : f32[3]'],
      ],
      [
        'pad-pad',
        'f32[2]',
        [
          'pad(%0) {low: [1], high: [0], interior: [1], value: 5} : f32[4]',
          'pad(%1) {low: [2], high: [3], interior: [0], value: 5} : f32[9]',
        ],
        ['pad(%0) {low: [3], high: [3], interior: [1], value: 5} : f32[9]'],
      ],
      [
        'hoist-scalars',
        'f32[] f32[]',
        ['broadcast(%0) : F', 'broadcast(%1) : F', 'atan2(%2, %3) : F'],
        ['atan2(%0, %1) : f32[]', 'broadcast(%2) : F'],
      ],
      [
        'hoist-scalars',
        'f32[]',
        ['broadcast(%0) : F', 'cast(%1) : i32[18]'],
        ['cast(%0) : i32[]', 'broadcast(%1) : i32[18]'],
      ],
      [
        'view-of-spread',
        'f32[]',
        ['broadcast(%0) : f32[6]', 'window(%1) {axis: 0, size: 2, stride: 1, dilation: 1} : f32[5,2]'],
        ['broadcast(%0) : f32[5,2]'],
      ],
      ['view-of-spread', 'f32[]', ['reshape(%0) : f32[1,1]'], ['broadcast(%0) : f32[1,1]']],
      ['view-of-spread', 'f32[]', ['broadcast(%0) : f32[1]', 'reshape(%1) : f32[]'], ['%0']],
      [
        'pad-spread',
        '',
        [zero, 'broadcast(%0) : f32[2]', 'pad(%1) {low: [1], high: [1], interior: [1], value: 0} : f32[5]'],
        [zero, 'broadcast(%0) : f32[5]'],
      ],
      [
        'concat-spread',
        'f32[]',
        ['broadcast(%0) : f32[2]', 'broadcast(%0) : f32[3]', 'concat(%1, %2) {axis: 0} : f32[5]'],
        ['broadcast(%0) : f32[5]'],
      ],
      [
        'permute-unit-axes',
        'f32[2,1,3]',
        ['permute(%0) {order: [1,0,2]} : f32[1,2,3]'],
        ['reshape(%0) : f32[1,2,3]'],
      ],
      ['broadcast-unit-axes', 'f32[3]', ['broadcast(%0) : f32[1,1,3]'], ['reshape(%0) : f32[1,1,3]']],
      [
        'broadcast-one',
        'f32[1,1]',
        ['broadcast(%0) : f32[2,3]'],
        ['reshape(%0) : f32[]', 'broadcast(%1) : f32[2,3]'],
      ],
      [
        'broadcast-reshape',
        'f32[3,1]',
        ['reshape(%0) : f32[1,3,1]', 'broadcast(%1) : f32[2,3,4]'],
        ['broadcast(%0) : f32[2,3,4]'],
      ],
    ],
  );
  checkNearMisses(canonicalise, [
    ['sub does not commute', 'F', [two, 'broadcast(%1) : F', 'sub(%2, %0) : F']],
    ['a permute that moves data', 'f32[2,1,3]', ['permute(%0) {order: [2,1,0]} : f32[3,1,2]']],
    ['a slice that reverses', 'f32[2]', ['slice(%0) {start: [1], size: [2], step: [-1]} : f32[2]']],
    [
      'paddings of 0 and −0',
      'f32[2]',
      [
        'pad(%0) {low: [1], high: [0], interior: [0], value: 0} : f32[3]',
        'pad(%1) {low: [1], high: [0], interior: [0], value: -0} : f32[4]',
      ],
    ],
    [
      'an outer padding between padded elements',
      'f32[2]',
      [
        'pad(%0) {low: [1], high: [0], interior: [0], value: 0} : f32[3]',
        'pad(%1) {low: [0], high: [0], interior: [1], value: 0} : f32[5]',
      ],
    ],
    [
      'a reshape that moves an axis before a broadcast',
      'f32[3]',
      ['reshape(%0) : f32[3,1]', 'broadcast(%1) : f32[3,4]'],
    ],
    [
      'views of symbolic sizes',
      'f32[1,seq:1..9]',
      ['permute(%0) {order: [1,0]} : f32[seq:1..9,1]', 'broadcast(%1) : f32[1,seq:1..9,1]'],
    ],
  ]);
});

describe('foldConstants', () => {
  checkRules(foldRules, [
    ['elementwise', '', [two, 'exp2(%0) : f32[]'], ['constant {value: 4} : f32[]']],
    [
      'elementwise',
      '',
      ['constant {value: 0.1} : f32[]', 'neg(%0) : f32[]'],
      ['constant {value: -0.10000000149011612} : f32[]'],
    ],
    [
      'elementwise',
      '',
      ['constant {value: 300} : i32[]', 'cast(%0) : u8[]'],
      ['constant {value: 44} : u8[]'],
    ],
    [
      'elementwise',
      '',
      [
        'constant {value: 9223372036854775807n} : i64[]',
        'constant {value: 1n} : i64[]',
        'add(%0, %1) : i64[]',
      ],
      ['constant {value: -9223372036854775808n} : i64[]'],
    ],
    [
      'where',
      'F F',
      ['constant {value: 1} : bool[]', 'broadcast(%2) : bool[18]', 'where(%3, %0, %1) : F'],
      ['%0'],
    ],
    [
      'where',
      'F F',
      ['constant {value: 0} : bool[]', 'broadcast(%2) : bool[18]', 'where(%3, %0, %1) : F'],
      ['%1'],
    ],
    [
      'empty-reduce',
      'f32[2,0]',
      ['reduce(%0) {monoid: "max", axes: [1]} : f32[2]'],
      ['constant {value: -inf} : f32[]', 'broadcast(%1) : f32[2]'],
    ],
    [
      'empty-reduce',
      'i8[0]',
      ['reduce(%0) {monoid: "min", axes: [0]} : i8[]'],
      ['constant {value: 127} : i8[]'],
    ],
    [
      'empty-dot',
      'f32[2,0] f32[0]',
      ['dot(%0, %1) {lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0]} : f32[2]'],
      [zero, 'broadcast(%2) : f32[2]'],
    ],
    [
      'reduce-constant',
      '',
      [
        'constant {value: 3} : f32[]',
        'broadcast(%0) : f32[4,5]',
        'reduce(%1) {monoid: "sum", axes: [1]} : f32[4]',
      ],
      ['constant {value: 15} : f32[]', 'broadcast(%0) : f32[4]'],
    ],
    [
      'reduce-constant',
      '',
      [
        'constant {value: 100} : i8[]',
        'broadcast(%0) : i8[3]',
        'reduce(%1) {monoid: "sum", axes: [0]} : i8[]',
      ],
      ['constant {value: 44} : i8[]'],
    ],
    [
      'reduce-constant',
      '',
      [
        'constant {value: nan} : f32[]',
        'broadcast(%0) : f32[3]',
        'reduce(%1) {monoid: "min", axes: [0]} : f32[]',
      ],
      ['constant {value: nan} : f32[]'],
    ],
    [
      'arg-reduce-spread',
      'f32[]',
      ['broadcast(%0) : f32[3]', 'argReduce(%1) {monoid: "max", axis: 0} : i32[]'],
      ['constant {value: 0} : i32[]'],
    ],
    [
      'scan-constant',
      '',
      [
        two,
        'broadcast(%0) : f32[3]',
        'scan(%1) {monoid: "max", axis: 0, reverse: false, exclusive: false} : f32[3]',
      ],
      [two, 'broadcast(%0) : f32[3]'],
    ],
    [
      'scan-constant',
      '',
      [
        zero,
        'broadcast(%0) : f32[3]',
        'scan(%1) {monoid: "sum", axis: 0, reverse: true, exclusive: true} : f32[3]',
      ],
      [zero, 'broadcast(%0) : f32[3]'],
    ],
    [
      'iota-one',
      '',
      ['iota {axis: 1} : i32[3,1]'],
      ['constant {value: 0} : i32[]', 'broadcast(%0) : i32[3,1]'],
    ],
  ]);
  checkNearMisses(foldConstants, [
    [
      'sums that round',
      '',
      [
        'constant {value: 0.1} : f32[]',
        'broadcast(%0) : f32[3]',
        'reduce(%1) {monoid: "sum", axes: [0]} : f32[]',
      ],
    ],
    [
      'sums past the exact integers',
      '',
      [
        'constant {value: 9} : bf16[]',
        'broadcast(%0) : bf16[30]',
        'reduce(%1) {monoid: "sum", axes: [0]} : bf16[]',
      ],
    ],
    [
      'a product of −1s',
      '',
      [
        'constant {value: -1} : f32[]',
        'broadcast(%0) : f32[3]',
        'reduce(%1) {monoid: "prod", axes: [0]} : f32[]',
      ],
    ],
    ['a reduce without elements', 'f32[0,3]', ['reduce(%0) {monoid: "sum", axes: [1]} : f32[0]']],
    [
      'an exclusive scan that begins with −∞',
      '',
      [
        two,
        'broadcast(%0) : f32[3]',
        'scan(%1) {monoid: "max", axis: 0, reverse: false, exclusive: true} : f32[3]',
      ],
    ],
  ]);
});

/** A constant of a type and its spread over that type's shape. */
const spread = (value: string, type: 'F' | 'I' | 'U' | 'B', at: number): string[] => [
  `constant {value: ${value}} : ${types[type]!.replace(/\[.*/, '[]')}`,
  `broadcast(%${at}) : ${type}`,
];

describe('simplify', () => {
  checkRules(
    [...simplerSelections, ...simplifyRules],
    [
      ['add-zero', 'F', [...spread('-0', 'F', 1), 'add(%0, %2) : F'], ['%0']],
      ['add-zero', 'F', ['exp(%0) : F', ...spread('0', 'F', 2), 'add(%1, %3) : F'], ['exp(%0) : F']],
      ['add-zero', 'I', [...spread('0', 'I', 1), 'add(%0, %2) : I'], ['%0']],
      ['add-zero', 'i64[]', ['constant {value: 0n} : i64[]', 'add(%0, %1) : i64[]'], ['%0']],
      ['sub-zero', 'F', [...spread('0', 'F', 1), 'sub(%0, %2) : F'], ['%0']],
      ['mul-one', 'F', [...spread('1', 'F', 1), 'mul(%0, %2) : F'], ['%0']],
      ['div-one', 'I', [...spread('1', 'I', 1), 'div(%0, %2) : I'], ['%0']],
      ['extreme', 'F', [...spread('inf', 'F', 1), 'min(%0, %2) : F'], ['%0']],
      ['extreme', 'F', [...spread('-inf', 'F', 1), 'max(%0, %2) : F'], ['%0']],
      ['extreme', 'U', [...spread('0', 'U', 1), 'max(%0, %2) : U'], ['%0']],
      ['bits-neutral', 'I', [...spread('-1', 'I', 1), 'and(%0, %2) : I'], ['%0']],
      ['bits-neutral', 'U', [...spread('0', 'U', 1), 'xor(%0, %2) : U'], ['%0']],
      ['bits-neutral', 'B', [...spread('0', 'B', 1), 'or(%0, %2) : B'], ['%0']],
      ['shift-zero', 'I', [...spread('0', 'I', 1), 'shr(%0, %2) : I'], ['%0']],
      ['mul-zero', 'I', [...spread('0', 'I', 1), 'mul(%0, %2) : I'], spread('0', 'I', 1)],
      ['bits-absorb', 'U', [...spread('4294967295', 'U', 1), 'or(%0, %2) : U'], spread('4294967295', 'U', 1)],
      ['bits-absorb', 'B', [...spread('0', 'B', 1), 'and(%0, %2) : B'], spread('0', 'B', 1)],
      [
        'extreme-absorb',
        'I',
        [...spread('2147483647', 'I', 1), 'max(%0, %2) : I'],
        spread('2147483647', 'I', 1),
      ],
      ['neg-neg', 'F', ['neg(%0) : F', 'neg(%1) : F'], ['%0']],
      ['abs-unsigned', 'U', ['abs(%0) : U'], ['%0']],
      ['abs-neg', 'I', ['neg(%0) : I', 'abs(%1) : I'], ['abs(%0) : I']],
      ['abs-abs', 'F', ['abs(%0) : F', 'abs(%1) : F'], ['abs(%0) : F']],
      ['add-neg', 'F F', ['neg(%1) : F', 'add(%0, %2) : F'], ['sub(%0, %1) : F']],
      ['add-neg', 'F F', ['neg(%0) : F', 'add(%2, %1) : F'], ['sub(%1, %0) : F']],
      ['sub-neg', 'F F', ['neg(%1) : F', 'sub(%0, %2) : F'], ['add(%0, %1) : F']],
      ['mul-neg', 'F F', ['neg(%0) : F', 'neg(%1) : F', 'mul(%2, %3) : F'], ['mul(%0, %1) : F']],
      [
        'mul-neg',
        'U',
        ['neg(%0) : U', ...spread('3', 'U', 2), 'mul(%1, %3) : U'],
        [...spread('4294967293', 'U', 1), 'mul(%0, %2) : U'],
      ],
      ['div-neg', 'F F', ['neg(%0) : F', 'neg(%1) : F', 'div(%2, %3) : F'], ['div(%0, %1) : F']],
      ['mul-minus-one', 'F', [...spread('-1', 'F', 1), 'mul(%0, %2) : F'], ['neg(%0) : F']],
      ['sub-from-zero', 'F', [...spread('-0', 'F', 1), 'sub(%2, %0) : F'], ['neg(%0) : F']],
      ['sub-from-zero', 'I', [...spread('0', 'I', 1), 'sub(%2, %0) : I'], ['neg(%0) : I']],
      ['idempotent', 'F', ['max(%0, %0) : F'], ['%0']],
      ['self-inverse', 'I', ['sub(%0, %0) : I'], spread('0', 'I', 1)],
      ['self-inverse', 'I', ['mod(%0, %0) : I'], spread('0', 'I', 1)],
      [
        'never-less',
        'F',
        ['lt(%0, %0) : bool[18]'],
        ['constant {value: 0} : bool[]', 'broadcast(%1) : bool[18]'],
      ],
      ['self-equal', 'F', ['ne(%0, %0) : bool[18]'], ['isNan(%0) : bool[18]']],
      [
        'self-equal',
        'I',
        ['le(%0, %0) : bool[12]'],
        ['constant {value: 1} : bool[]', 'broadcast(%1) : bool[12]'],
      ],
      ['not-not', 'B', ['not(%0) : B', 'not(%1) : B'], ['%0']],
      ['not-compare', 'F F', ['eq(%0, %1) : bool[18]', 'not(%2) : bool[18]'], ['ne(%0, %1) : bool[18]']],
      ['not-compare', 'I I', ['lt(%0, %1) : bool[12]', 'not(%2) : bool[12]'], ['le(%1, %0) : bool[12]']],
      ['compare-bool', 'B', [...spread('1', 'B', 1), 'ne(%0, %2) : B'], ['not(%0) : B']],
      ['compare-bool', 'B', [...spread('1', 'B', 1), 'eq(%0, %2) : B'], ['%0']],
      [
        'mask',
        'B',
        ['cast(%0) : f32[4]', 'constant {value: 0} : f32[]', 'broadcast(%2) : f32[4]', 'ne(%1, %3) : B'],
        ['%0'],
      ],
      ['where-same', 'B f32[4]', ['where(%0, %1, %1) : f32[4]'], ['%1']],
      ['where-not', 'B B B', ['not(%0) : B', 'where(%3, %1, %2) : B'], ['where(%0, %2, %1) : B']],
      [
        'where-bool',
        'B',
        [...spread('0', 'B', 1), ...spread('1', 'B', 3), 'where(%0, %2, %4) : B'],
        ['not(%0) : B'],
      ],
      ['where-bool', 'B', [...spread('1', 'B', 1), ...spread('0', 'B', 3), 'where(%0, %2, %4) : B'], ['%0']],
      [
        'where-where',
        'B B B B',
        ['where(%0, %1, %2) : B', 'where(%0, %4, %3) : B'],
        ['where(%0, %1, %3) : B'],
      ],
      [
        'where-where',
        'B B B B',
        ['where(%0, %1, %2) : B', 'where(%0, %3, %4) : B'],
        ['where(%0, %3, %2) : B'],
      ],
      ['cast-cast', 'f16[18]', ['cast(%0) : F', 'cast(%1) : f16[18]'], ['%0']],
      ['cast-cast', 'i8[12]', ['cast(%0) : U', 'cast(%1) : u8[12]'], ['cast(%0) : u8[12]']],
      ['cast-cast', 'F', ['cast(%0) : f64[18]', 'cast(%1) : i32[18]'], ['cast(%0) : i32[18]']],
      ['bitcast-bitcast', 'U', ['bitcast(%0) : f32[12]', 'bitcast(%1) : I'], ['bitcast(%0) : I']],
      ['whole-already', 'F', ['ceil(%0) : F', 'floor(%1) : F'], ['ceil(%0) : F']],
      ['whole-already', 'I', ['cast(%0) : f32[12]', 'round(%1) : f32[12]'], ['cast(%0) : f32[12]']],
      ['sign-sign', 'F', ['sign(%0) : F', 'sign(%1) : F'], ['sign(%0) : F']],
      ['pow-constant', 'F', [...spread('0', 'F', 1), 'pow(%0, %2) : F'], spread('1', 'F', 1)],
      ['pow-constant', 'F', [...spread('1', 'F', 1), 'pow(%0, %2) : F'], ['%0']],
      ['pow-constant', 'F', [...spread('2', 'F', 1), 'pow(%0, %2) : F'], ['mul(%0, %0) : F']],
      [
        'div-power-of-two',
        'F',
        [...spread('-8', 'F', 1), 'div(%0, %2) : F'],
        [...spread('-0.125', 'F', 1), 'mul(%0, %2) : F'],
      ],
      [
        'reduce-unit-axes',
        'f32[18,1]',
        ['reduce(%0) {monoid: "sum", axes: [1]} : F'],
        ['reshape(%0) : F', ...spread('0', 'F', 2), 'add(%1, %3) : F'],
      ],
      ['reduce-unit-axes', 'f32[18,1]', ['reduce(%0) {monoid: "max", axes: [1]} : F'], ['reshape(%0) : F']],
      ['reduce-unit-axes', 'I', ['reduce(%0) {monoid: "sum", axes: []} : I'], ['%0']],
      [
        'reduce-unit-axes',
        'f32[2,1,3]',
        ['reduce(%0) {monoid: "sum", axes: [0,1]} : f32[3]'],
        ['reshape(%0) : f32[2,3]', 'reduce(%1) {monoid: "sum", axes: [0]} : f32[3]'],
      ],
      [
        'join-pads',
        'f32[2,3]',
        [
          'exp(%0) : f32[2,3]',
          'pad(%1) {low: [2,0], high: [0,0], interior: [0,0], value: 0} : f32[4,3]',
          'abs(%0) : f32[2,3]',
          'pad(%3) {low: [0,0], high: [2,0], interior: [0,0], value: 0} : f32[4,3]',
          'add(%2, %4) : f32[4,3]',
        ],
        ['exp(%0) : f32[2,3]', 'abs(%0) : f32[2,3]', 'concat(%2, %1) {axis: 0} : f32[4,3]'],
      ],
      [
        'join-pads',
        'f32[2,3]',
        [
          'pad(%0) {low: [2,0], high: [0,0], interior: [0,0], value: 0} : f32[4,3]',
          'exp(%0) : f32[2,3]',
          'pad(%2) {low: [0,0], high: [2,0], interior: [0,0], value: 0} : f32[4,3]',
          'add(%1, %3) : f32[4,3]',
        ],
        [
          'exp(%0) : f32[2,3]',
          zero,
          'broadcast(%2) : f32[2,3]',
          'add(%0, %3) : f32[2,3]',
          'concat(%1, %4) {axis: 0} : f32[4,3]',
        ],
      ],
      [
        'join-pads',
        'f32[2,3]',
        [
          'exp(%0) : f32[2,3]',
          'pad(%1) {low: [4,0], high: [0,0], interior: [0,0], value: 0} : f32[6,3]',
          'abs(%0) : f32[2,3]',
          'pad(%3) {low: [0,0], high: [4,0], interior: [0,0], value: 0} : f32[6,3]',
          'add(%2, %4) : f32[6,3]',
          'pad(%1) {low: [2,0], high: [2,0], interior: [0,0], value: 0} : f32[6,3]',
          'add(%5, %6) : f32[6,3]',
        ],
        ['exp(%0) : f32[2,3]', 'abs(%0) : f32[2,3]', 'concat(%2, %1, %1) {axis: 0} : f32[6,3]'],
      ],
      [
        'reduce-broadcast',
        'f32[2,1,3]',
        ['broadcast(%0) : f32[5,2,4,3]', 'reduce(%1) {monoid: "max", axes: [0,1,2]} : f32[3]'],
        ['reshape(%0) : f32[2,3]', 'reduce(%1) {monoid: "max", axes: [0]} : f32[3]'],
      ],
      [
        'reduce-reduce',
        'i32[2,3,4]',
        [
          'reduce(%0) {monoid: "sum", axes: [1]} : i32[2,4]',
          'reduce(%1) {monoid: "sum", axes: [1]} : i32[2]',
        ],
        ['reduce(%0) {monoid: "sum", axes: [1,2]} : i32[2]'],
      ],
      [
        'sum-extremum',
        'f32[6,3]',
        [
          'argReduce(%0) {monoid: "max", axis: 1} : i32[6]',
          'reshape(%1) : i32[6,1]',
          'broadcast(%2) : i32[6,3]',
          'iota {axis: 1} : i32[6,3]',
          'eq(%4, %3) : bool[6,3]',
          zero,
          'broadcast(%6) : f32[6,3]',
          'where(%5, %0, %7) : f32[6,3]',
          'reduce(%8) {monoid: "sum", axes: [1]} : f32[6]',
        ],
        [
          zero,
          'reduce(%0) {monoid: "max", axes: [1]} : f32[6]',
          'broadcast(%1) : f32[6]',
          'add(%2, %3) : f32[6]',
        ],
      ],
      [
        'scan-one',
        'f32[18,1]',
        ['scan(%0) {monoid: "prod", axis: 1, reverse: false, exclusive: false} : f32[18,1]'],
        ['%0'],
      ],
      [
        'scan-one',
        'f32[18,1]',
        ['scan(%0) {monoid: "sum", axis: 1, reverse: false, exclusive: false} : f32[18,1]'],
        [zero, 'broadcast(%1) : f32[18,1]', 'add(%0, %2) : f32[18,1]'],
      ],
      [
        'scan-one',
        'f32[18,1]',
        ['scan(%0) {monoid: "prod", axis: 1, reverse: false, exclusive: true} : f32[18,1]'],
        ['constant {value: 1} : f32[]', 'broadcast(%1) : f32[18,1]'],
      ],
      [
        'arg-reduce-one',
        'f32[18,1]',
        ['argReduce(%0) {monoid: "max", axis: 1} : i32[18]'],
        ['constant {value: 0} : i32[]', 'broadcast(%1) : i32[18]'],
      ],
    ],
  );
  checkNearMisses(simplify, [
    ['x + 0 turns −0 into 0', 'F', [...spread('0', 'F', 1), 'add(%0, %2) : F']],
    ['x − (−0) turns −0 into 0', 'F', [...spread('-0', 'F', 1), 'sub(%0, %2) : F']],
    ['0 − x is 0 at 0, and −x is −0', 'F', [...spread('0', 'F', 1), 'sub(%2, %0) : F']],
    ['x·0 is NaN at infinity and −0 below 0', 'F', [...spread('0', 'F', 1), 'mul(%0, %2) : F']],
    ['x − x is NaN at infinity', 'F', ['sub(%0, %0) : F']],
    ['x / x is NaN at 0', 'F', ['div(%0, %0) : F']],
    ['x = x is false for NaN', 'F', ['eq(%0, %0) : bool[18]']],
    ['¬(x < y) is true for NaN, y ≤ x is not', 'F F', ['lt(%0, %1) : bool[18]', 'not(%2) : bool[18]']],
    ['max(NaN, ∞) is NaN', 'F', [...spread('inf', 'F', 1), 'max(%0, %2) : F']],
    ['x^½ is +0 at −0 and √x is not', 'F', [...spread('0.5', 'F', 1), 'pow(%0, %2) : F']],
    ['1/3 rounds', 'F', [...spread('3', 'F', 1), 'div(%0, %2) : F']],
    [
      '2¹²⁷ has a subnormal reciprocal',
      'F',
      [...spread('1.7014118346046923e+38', 'F', 1), 'div(%0, %2) : F'],
    ],
    ['i8 → u8 wraps before it widens', 'i8[12]', ['cast(%0) : u8[12]', 'cast(%1) : I']],
    ['u8 → f32 → i8 saturates', 'u8[12]', ['cast(%0) : f32[12]', 'cast(%1) : i8[12]']],
    ['i32 → f32 rounds', 'I', ['cast(%0) : f32[12]', 'cast(%1) : I']],
    ['f32 → f16 rounds', 'F', ['cast(%0) : f16[18]', 'cast(%1) : F']],
    [
      'a float Σ Σ rounds in between',
      'f32[2,3]',
      ['reduce(%0) {monoid: "sum", axes: [1]} : f32[2]', 'reduce(%1) {monoid: "sum", axes: [0]} : f32[]'],
    ],
    [
      'Σ over repetitions adds them all',
      'f32[3]',
      ['broadcast(%0) : f32[2,3]', 'reduce(%1) {monoid: "sum", axes: [0]} : f32[3]'],
    ],
    ['1/√x and rsqrt x round differently', 'F', ['sqrt(%0) : F', 'recip(%1) : F']],
  ]);
});

describe('removeDeadCode', () => {
  checkRules(deadSelections, [
    [
      'slice-concat',
      'f32[2] f32[3] f32[4]',
      ['concat(%0, %1, %2) {axis: 0} : f32[9]', 'slice(%3) {start: [4], size: [2], step: [-1]} : f32[2]'],
      ['slice(%1) {start: [2], size: [2], step: [-1]} : f32[2]'],
    ],
    [
      'slice-concat',
      'f32[2] f32[3] f32[4]',
      ['concat(%0, %1, %2) {axis: 0} : f32[9]', 'slice(%3) {start: [3], size: [3], step: [2]} : f32[3]'],
      ['concat(%1, %2) {axis: 0} : f32[7]', 'slice(%3) {start: [1], size: [3], step: [2]} : f32[3]'],
    ],
    [
      'slice-pad',
      'f32[4]',
      [
        'pad(%0) {low: [2], high: [3], interior: [0], value: 7} : f32[9]',
        'slice(%1) {start: [2], size: [4], step: [1]} : f32[4]',
      ],
      ['%0'],
    ],
    [
      'slice-pad',
      'f32[4]',
      [
        'pad(%0) {low: [2], high: [3], interior: [0], value: 7} : f32[9]',
        'slice(%1) {start: [6], size: [2], step: [1]} : f32[2]',
      ],
      ['constant {value: 7} : f32[]', 'broadcast(%1) : f32[2]'],
    ],
  ]);
  checkNearMisses(removeDeadCode, [
    [
      'a slice across the edge of a padding',
      'f32[4]',
      [
        'pad(%0) {low: [2], high: [3], interior: [0], value: 7} : f32[9]',
        'slice(%1) {start: [1], size: [4], step: [1]} : f32[4]',
      ],
    ],
    [
      'a slice between interior padding',
      'f32[2]',
      [
        'pad(%0) {low: [0], high: [0], interior: [2], value: 7} : f32[4]',
        'slice(%1) {start: [1], size: [2], step: [1]} : f32[2]',
      ],
    ],
  ]);
  test('unused parameters stay', () => {
    const graph = graphOf('F I B', ['neg(%0) : F']);
    expect(removeDeadCode(graph).parameters.map(({ attrs }) => attrs.index)).toEqual([0, 1, 2]);
  });
});

describe('rulePass', () => {
  const swap: RewriteRule = canonicalRules.find(({ name }) => name === 'older-left')!;
  test('reports rules that undo each other', () => {
    const back: RewriteRule = {
      ...swap,
      apply: (node, b) => b.add('add', [node.inputs[1]!, node.inputs[0]!], {}) as never,
    };
    expect(() => rulePass('seesaw', [back])(graphOf('F F', ['add(%0, %1) : F']))).toThrow(
      /compiler bug in seesaw: the rules do not come to rest at %\d+ = add/,
    );
  });
  test('reports a rule that changes a type', () => {
    const wrong: RewriteRule = {
      ...swap,
      name: 'wrong',
      apply: (node, b) => b.add('isNan', [node.inputs[0]!], {}) as never,
    };
    expect(() => rulePass('p', [wrong])(graphOf('F F', ['add(%0, %1) : F']))).toThrow(
      /compiler bug in p: rule wrong changes the type: .* : f32\[18\] to .* : bool\[18\]/,
    );
  });
});
