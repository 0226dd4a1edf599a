// The index algebra by printed form, by interval, and by evaluating every point of small domains against naive integers.
//
// Runs alone: it measures time.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CompilerBug } from '../../src/errors.ts';
import {
  addIndex,
  andGuards,
  atomsOf,
  axisIndex,
  coefficientOf,
  compareIndex,
  constantIndex,
  delinearize,
  divIndex,
  dynamicIndex,
  evaluateGuard,
  evaluateIndex,
  interval,
  linearize,
  modIndex,
  offsetIndex,
  printGuard,
  printIndex,
  scaleIndex,
  subIndex,
  substitute,
  substituteGuard,
  within,
  type Guard,
  type IndexExpr,
  type Leaf,
} from '../../src/ir/index-algebra/expr.ts';
import { cpuTime } from '../support/cpu-time.ts';

const i = axisIndex('i', 6);
const j = axisIndex('j', 4);
const k = axisIndex('k', 12);
const t = dynamicIndex('t', -3, 5);
const big = axisIndex('n', 1000);

/** Σ factor·e + offset, for terse expectations. */
function sum(...parts: (readonly [number, IndexExpr] | number)[]): IndexExpr {
  return parts.reduce<IndexExpr>(
    (out, part) =>
      typeof part === 'number' ? offsetIndex(out, part) : addIndex(out, scaleIndex(part[1], part[0])),
    constantIndex(0),
  );
}

/** Calls `visit` with every assignment of the leaves. */
function forEachPoint(leaves: readonly Leaf[], visit: (env: (leaf: Leaf) => number) => void): void {
  const values = new Map<Leaf, number>();
  const assign = (depth: number): void => {
    const leaf = leaves[depth];
    if (leaf === undefined) return visit((asked) => values.get(asked)!);
    for (let value = leaf.lo; value <= leaf.hi; value++) {
      values.set(leaf, value);
      assign(depth + 1);
    }
  };
  assign(0);
}

const isLeaf = (e: IndexExpr): e is Leaf => e.kind === 'axis' || e.kind === 'dynamic';

// ---- random expressions, each with a naive evaluator that knows no law -----------------------------------------------

type Env = (leaf: Leaf) => number;
interface Case {
  readonly e: IndexExpr;
  readonly naive: (env: Env) => number;
  readonly text: string;
}

type Recipe = (leaves: readonly IndexExpr[]) => Case;

const leafRecipe: fc.Arbitrary<Recipe> = fc.nat(3).map((n) => (leaves) => {
  const e = leaves[n % leaves.length]!;
  return { e, naive: (env) => (isLeaf(e) ? env(e) : interval(e).lo), text: printIndex(e) };
});
const constRecipe: fc.Arbitrary<Recipe> = fc
  .integer({ min: -20, max: 20 })
  .map((value) => () => ({ e: constantIndex(value), naive: () => value, text: String(value) }));

const factor = fc.oneof(fc.integer({ min: -5, max: 12 }), fc.constantFrom(2, 3, 4, 6, 8, 12, 16, 24));
const divisor = fc.oneof(fc.integer({ min: 1, max: 13 }), fc.constantFrom(2, 3, 4, 6, 8, 12, 16, 24));

const { recipe } = fc.letrec<{ recipe: Recipe }>((tie) => ({
  recipe: fc.oneof(
    { maxDepth: 6, depthSize: 'small' },
    { weight: 4, arbitrary: leafRecipe },
    { weight: 1, arbitrary: constRecipe },
    {
      weight: 6,
      arbitrary: fc.tuple(tie('recipe'), tie('recipe'), factor).map(([a, b, n]): Recipe => (leaves) => {
        const x = a(leaves);
        const y = b(leaves);
        return {
          e: addIndex(scaleIndex(x.e, n), y.e),
          naive: (env) => x.naive(env) * n + y.naive(env),
          text: `(${x.text})*${n} + (${y.text})`,
        };
      }),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(tie('recipe'), tie('recipe')).map(([a, b]): Recipe => (leaves) => {
        const x = a(leaves);
        const y = b(leaves);
        return {
          e: subIndex(x.e, y.e),
          naive: (env) => x.naive(env) - y.naive(env),
          text: `(${x.text}) - (${y.text})`,
        };
      }),
    },
    {
      weight: 4,
      arbitrary: fc.tuple(tie('recipe'), divisor).map(([a, by]): Recipe => (leaves) => {
        const x = a(leaves);
        return {
          e: divIndex(x.e, by),
          naive: (env) => Math.floor(x.naive(env) / by),
          text: `(${x.text}) / ${by}`,
        };
      }),
    },
    {
      weight: 4,
      arbitrary: fc.tuple(tie('recipe'), divisor).map(([a, by]): Recipe => (leaves) => {
        const x = a(leaves);
        return {
          e: modIndex(x.e, by),
          naive: (env) => ((x.naive(env) % by) + by) % by,
          text: `(${x.text}) % ${by}`,
        };
      }),
    },
    {
      // The shape that recombination looks for, so that it is met often: (x // a % b)·c + x % a
      weight: 2,
      arbitrary: fc
        .tuple(tie('recipe'), divisor, divisor, fc.boolean())
        .map(([x, a, b, cut]): Recipe => (leaves) => {
          const inner = x(leaves);
          const high = divIndex(inner.e, a);
          return {
            e: addIndex(scaleIndex(cut ? modIndex(high, b) : high, a), modIndex(inner.e, a)),
            naive: (env) => (cut ? ((inner.naive(env) % (a * b)) + a * b) % (a * b) : inner.naive(env)),
            text: cut ? `(${inner.text}) %% ${a * b}` : `(${inner.text})`,
          };
        }),
    },
  ),
}));

const leafSets = fc
  .tuple(
    fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 2, maxLength: 3 }),
    fc.option(fc.tuple(fc.integer({ min: -4, max: 9 }), fc.nat(4)), { nil: undefined }),
  )
  .map(([extents, bounds]) => [
    ...extents.map((extent, n) => axisIndex(`x${n}`, extent)),
    ...(bounds === undefined ? [] : [dynamicIndex('d', bounds[0], bounds[0] + bounds[1])]),
  ]);

const cases: fc.Arbitrary<Case & { leaves: readonly Leaf[] }> = fc
  .tuple(leafSets, recipe)
  .map(([leaves, make]) => ({ ...make(leaves), leaves: leaves.filter(isLeaf) }));

function showCase({ e, text }: Case): string {
  return `${text}  became  ${printIndex(e)}`;
}

const smallShape = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 5 });
const axesOf = (shape: readonly number[]): IndexExpr[] => shape.map((size, n) => axisIndex(`a${n}`, size));

/** Every node inside e, e included. */
function nodesOf(e: IndexExpr): IndexExpr[] {
  if (e.kind === 'sum') return [e, ...e.terms.flatMap((term) => nodesOf(term.atom))];
  return e.kind === 'div' || e.kind === 'mod' ? [e, ...nodesOf(e.of)] : [e];
}

describe('values', () => {
  test('simplified expressions equal the naive ones at every point, within their interval', () => {
    fc.assert(
      fc.property(cases, ({ e, naive, text, leaves }) => {
        const { lo, hi } = interval(e);
        forEachPoint(leaves, (env) => {
          const value = naive(env);
          if (evaluateIndex(e, env) !== value || value < lo || value > hi)
            throw new Error(
              `${showCase({ e, naive, text })}: ${evaluateIndex(e, env)} in ${lo}..${hi}, not ${value}`,
            );
        });
      }),
      { numRuns: 4000 },
    );
  });

  test('substitution equals evaluation with the replaced values', () => {
    fc.assert(
      fc.property(cases, recipe, fc.integer({ min: 2, max: 6 }), ({ e, leaves }, make, extent) => {
        const target = leaves[0];
        if (target === undefined) return;
        const outer = [axisIndex('u', extent), axisIndex('v', 3)];
        // Any expression, brought into the bounds of the leaf it replaces.
        const size = target.hi - target.lo + 1;
        const replacement = offsetIndex(modIndex(make(outer).e, size), target.lo);
        const out = substitute(e, new Map([[target, replacement]]));
        forEachPoint([...outer.filter(isLeaf), ...leaves.slice(1)], (env) => {
          const inner: Env = (leaf) => (leaf === target ? evaluateIndex(replacement, env) : env(leaf));
          if (evaluateIndex(out, env) !== evaluateIndex(e, inner))
            throw new Error(`${printIndex(e)} with ${printIndex(replacement)} became ${printIndex(out)}`);
        });
      }),
      { numRuns: 1500 },
    );
  });

  test('sums are canonical and divisions take no negative number', () => {
    fc.assert(
      fc.property(cases, ({ e }) => {
        for (const node of nodesOf(e)) {
          if (node.kind === 'sum') {
            expect(node.terms.length).toBeGreaterThan(0);
            expect(new Set(node.terms.map((term) => term.atom)).size).toBe(node.terms.length);
            expect(node.terms.every((term) => term.factor !== 0)).toBe(true);
            expect(sum(...node.terms.map((term) => [term.factor, term.atom] as const), node.offset)).toBe(
              node,
            );
          } else if (node.kind === 'div' || node.kind === 'mod') {
            expect(node.by).toBeGreaterThan(1);
            expect(interval(node.of).lo).toBeGreaterThanOrEqual(0);
            expect(node.kind === 'div' ? divIndex(node.of, node.by) : modIndex(node.of, node.by)).toBe(node);
          }
        }
      }),
      { numRuns: 1000 },
    );
  });

  test('a quotient and remainder recombine: of linear forms, and of any digits of a flat offset', () => {
    const anyLinear = fc
      .array(fc.integer({ min: -40, max: 40 }), { minLength: 4, maxLength: 4 })
      .map(([a, b, c, offset]) => sum([a!, i], [b!, j], [c!, t], offset!));
    const digits = fc
      .tuple(smallShape, fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 40 }))
      .map(([shape, a, b]) => modIndex(divIndex(linearize(axesOf(shape), shape), a), b));
    fc.assert(
      fc.property(fc.oneof(anyLinear, digits), divisor, fc.constantFrom(1, 3, -2), (e, by, scale) => {
        const whole = addIndex(scaleIndex(divIndex(e, by), by * scale), scaleIndex(modIndex(e, by), scale));
        expect(printIndex(whole)).toBe(printIndex(scaleIndex(e, scale)));
        expect(whole).toBe(scaleIndex(e, scale));
      }),
      { numRuns: 2000 },
    );
  });

  test('coefficientOf is the difference between neighbours, or undefined inside a division', () => {
    fc.assert(
      fc.property(cases, ({ e, leaves }) => {
        for (const leaf of leaves) {
          const coefficient = coefficientOf(e, leaf);
          const inDivision = nodesOf(e).some(
            (node) => (node.kind === 'div' || node.kind === 'mod') && atomsOf(node).includes(leaf),
          );
          expect(coefficient === undefined).toBe(inDivision);
          if (coefficient === undefined) continue;
          forEachPoint(leaves, (env) => {
            const next: Env = (asked) => env(asked) + Number(asked === leaf);
            expect(evaluateIndex(e, next) - evaluateIndex(e, env)).toBe(coefficient);
          });
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('identity', () => {
  test('equal structure is the same object, whatever the order of building', () => {
    expect(axisIndex('i', 6)).toBe(i);
    expect(axisIndex('i', 7)).not.toBe(i);
    expect(dynamicIndex('t', -3, 5)).toBe(t);
    expect(dynamicIndex('t', -3, 4)).not.toBe(t);
    expect(constantIndex(-0)).toBe(constantIndex(0));
    expect(sum([4, i], [1, j], 3)).toBe(sum(3, [1, j], [2, i], [2, i]));
    expect(subIndex(addIndex(i, j), j)).toBe(i);
    expect(divIndex(sum([1, big], 1), 7)).toBe(divIndex(sum(1, [1, big]), 7));
  });

  test('an axis of extent 1 and a value with equal bounds are constants', () => {
    expect(axisIndex('one', 1)).toBe(constantIndex(0));
    expect(dynamicIndex('fixed', 7, 7)).toBe(constantIndex(7));
  });

  test('atomsOf lists each leaf once', () => {
    const e = sum([3, divIndex(sum([1, big], [1, t]), 7)], [1, modIndex(big, 5)], [1, t], 4);
    expect(new Set(atomsOf(e))).toEqual(new Set([big, t]));
    expect(atomsOf(e)).toHaveLength(2);
    expect(atomsOf(constantIndex(3))).toEqual([]);
  });

  test('compareIndex orders by structure: antisymmetric, transitive, 0 only for the same', () => {
    const pool = [constantIndex(2), i, j, k, t, sum([2, i], 1), sum([2, i], 2), sum([1, i], [1, j])];
    pool.push(divIndex(big, 3), divIndex(big, 4), modIndex(big, 3), modIndex(sum([1, big], [1, k]), 3));
    for (const a of pool) {
      for (const b of pool) {
        expect(Math.sign(compareIndex(a, b)) + Math.sign(compareIndex(b, a))).toBe(0);
        expect(compareIndex(a, b) === 0).toBe(a === b);
        for (const c of pool)
          if (compareIndex(a, b) < 0 && compareIndex(b, c) < 0) expect(compareIndex(a, c)).toBeLessThan(0);
      }
    }
  });
});

describe('printed forms', () => {
  const table: [string, IndexExpr, string][] = [
    ['an outer axis comes first', sum([1, j], [128, i], 5), 'i*128 + j + 5'],
    ['a leading minus gives way to a constant', subIndex(constantIndex(7), i), '7 - i'],
    ['a negative constant is subtracted', sum([1, i], [-1, j], -2), 'i - j - 2'],
    ['division of a sum', divIndex(sum([5, big], [1, j]), 12), '(n*5 + j) / 12'],
    ['remainder of a sum', modIndex(sum([1, big], [1, j]), 8), '(j + n) % 8'],
    [
      'scaled parts are parenthesised',
      sum([3, divIndex(big, 8)], [1, modIndex(big, 7)]),
      '(n / 8)*3 + n % 7',
    ],

    ['(4i + c) // 4 = i + c // 4', divIndex(sum([4, i], 7), 4), 'i + 1'],
    ['(4i + c) % 4 = c % 4', modIndex(sum([4, i], 7), 4), '3'],
    ['(4n + 2k) // 8 = (2n + k) // 4', divIndex(sum([4, big], [2, k]), 8), '(n*2 + k) / 4'],
    ['(4n + 2k) % 8 = 2·((2n + k) % 4)', modIndex(sum([4, big], [2, k], 1), 8), '((n*2 + k) % 4)*2 + 1'],
    ['a small low part falls out of a quotient', divIndex(sum([4, big], [1, j]), 12), 'n / 3'],
    ['and stays beside the remainder', modIndex(sum([4, big], [1, j]), 12), '(n % 3)*4 + j'],
    ['factors split towards zero', divIndex(sum([9, i], [1, j]), 8), 'i + (i + j) / 8'],
    ['a diagonal has its row', divIndex(sum([7, i]), 6), 'i'],
    ['and its column', modIndex(sum([7, i]), 6), 'i'],
    ['a reversed row stays linear', divIndex(sum(23, [-4, i], [-1, j]), 4), '5 - i'],
    ['operands are made non-negative', divIndex(sum([1, big], -1), 2), '(n + 1) / 2 - 1'],
    ['remainders too', modIndex(sum([1, big], -1), 8), '(n + 7) % 8'],
    ['within one period', modIndex(sum([1, j], 8), 4), 'j'],

    ['(x // a) // b = x // (a·b)', divIndex(divIndex(big, 4), 3), 'n / 12'],
    ['(x // a + y) // b = (x + a·y) // (a·b)', divIndex(addIndex(divIndex(big, 4), k), 5), '(k*4 + n) / 20'],
    ['(x % (a·b)) // a = (x // a) % b', divIndex(modIndex(big, 12), 4), '(n / 4) % 3'],
    ['(x % (a·b)) % a = x % a', modIndex(modIndex(big, 12), 4), 'n % 4'],
    ['a roll of a roll is a roll', modIndex(sum([1, modIndex(sum([1, big], 3), 12)], 4), 12), '(n + 7) % 12'],
    ['what does not divide stays', divIndex(modIndex(big, 12), 8), '(n % 12) / 8'],

    ['(x // a)·a + x % a = x', sum([4, divIndex(big, 4)], [1, modIndex(big, 4)]), 'n'],
    ['scaled', sum([20, divIndex(big, 4)], [5, modIndex(big, 4)], [1, j]), 'n*5 + j'],
    [
      '((x // a) % b)·a + x % a = x % (a·b)',
      sum([4, modIndex(divIndex(big, 4), 3)], [1, modIndex(big, 4)]),
      'n % 12',
    ],
    [
      'digits of three radices',
      sum([20, divIndex(big, 20)], [4, modIndex(divIndex(big, 4), 5)], [1, modIndex(big, 4)]),
      'n',
    ],
    ['x − (x // a)·a = x % a', sum([1, big], [-4, divIndex(big, 4)]), 'n % 4'],
    ['x − x % a = (x // a)·a', sum([1, big], [-1, modIndex(big, 4)]), '(n / 4)*4'],
    [
      'unequal scales do not combine',
      sum([4, divIndex(big, 4)], [2, modIndex(big, 4)]),
      '(n / 4)*4 + (n % 4)*2',
    ],
  ];
  test.each(table)('%s', (_law, e, text) => {
    expect(printIndex(e)).toBe(text);
  });
});

describe('intervals', () => {
  test('linear forms have tight bounds', () => {
    fc.assert(
      fc.property(fc.array(factor, { minLength: 3, maxLength: 3 }), factor, (factors, offset) => {
        const e = sum([factors[0]!, i], [factors[1]!, j], [factors[2]!, t], offset);
        const values: number[] = [];
        forEachPoint([i, j, t].filter(isLeaf), (env) => void values.push(evaluateIndex(e, env)));
        expect(interval(e)).toEqual({ lo: Math.min(...values), hi: Math.max(...values) });
      }),
    );
  });

  test('quotients of linear forms have tight bounds', () => {
    fc.assert(
      fc.property(fc.nat(30), fc.nat(30), factor, divisor, (a, b, offset, by) => {
        const e = divIndex(sum([a, i], [b, j], offset), by);
        const values: number[] = [];
        forEachPoint([i, j].filter(isLeaf), (env) => void values.push(evaluateIndex(e, env)));
        expect(interval(e)).toEqual({ lo: Math.min(...values), hi: Math.max(...values) });
      }),
    );
  });

  test('a remainder is below its divisor', () => {
    expect(interval(modIndex(big, 8))).toEqual({ lo: 0, hi: 7 });
  });
});

// ---- reshapes ----------------------------------------------------------------------------------------------------------

const reshape = (index: readonly IndexExpr[], from: readonly number[], to: readonly number[]): IndexExpr[] =>
  delinearize(linearize(index, from), to);

/** Another shape of as many elements: the prime factors regrouped by `cuts`. */
function regroup(shape: readonly number[], cuts: readonly number[]): number[] {
  const out: number[] = [1];
  let n = 0;
  for (const size of shape) {
    for (let rest = size, p = 2; rest > 1; rest % p === 0 ? (rest /= p) : p++) {
      if (rest % p !== 0) continue;
      if (cuts[n++ % cuts.length]! % 3 === 0) out.push(1);
      out[out.length - 1]! *= p;
    }
  }
  return out;
}

describe('reshapes', () => {
  test('delinearize undoes linearize', () => {
    fc.assert(
      fc.property(smallShape, (shape) => {
        const index = axesOf(shape);
        const back = reshape(index, shape, shape);
        expect(back.map(printIndex)).toEqual(index.map(printIndex));
        back.forEach((e, axis) => expect(e).toBe(index[axis]));
      }),
    );
  });

  test('linearize undoes delinearize, in any shape of as many elements', () => {
    fc.assert(
      fc.property(smallShape, fc.array(fc.nat(99), { minLength: 1, maxLength: 9 }), (shape, cuts) => {
        const flat = linearize(axesOf(shape), shape);
        const other = regroup(shape, cuts);
        expect(printIndex(linearize(delinearize(flat, other), other))).toBe(printIndex(flat));
      }),
      { numRuns: 500 },
    );
  });

  test('a chain of reshapes that returns gives back the axes', () => {
    const cuts = fc.array(fc.nat(99), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(smallShape, fc.array(cuts, { minLength: 1, maxLength: 4 }), (shape, steps) => {
        const axes = axesOf(shape);
        let index = axes;
        let at: readonly number[] = shape;
        for (const step of steps) {
          const next = regroup(at, step);
          index = reshape(index, at, next);
          at = next;
        }
        index = reshape(index, at, shape);
        expect(index.map(printIndex)).toEqual(axes.map(printIndex));
      }),
      { numRuns: 500 },
    );
  });

  test('shapes without common factors still return', () => {
    const axes = axesOf([35]);
    const square = reshape(axes, [35], [5, 7]);
    expect(reshape(square, [5, 7], [7, 5]).map(printIndex)).toEqual(['a0 / 5', 'a0 % 5']);
    const two = axesOf([4, 9]);
    expect(reshape(reshape(two, [4, 9], [6, 6]), [6, 6], [4, 9])).toEqual(two);
  });

  test('splitting, permuting and merging a merged axis needs only the digits that moved', () => {
    // [B·H, T, D] read through [B, T, H, D]: the attention heads.
    const [bh, row, d] = axesOf([12, 5, 8]);
    const [b, h] = delinearize(bh!, [3, 4]);
    const offset = linearize([b!, row!, h!, d!], [3, 5, 4, 8]);
    expect(printIndex(offset)).toBe('(a0 / 4)*160 + a1*32 + (a0 % 4)*8 + a2');
    const [b2, h2] = [divIndex(bh!, 4), modIndex(bh!, 4)];
    expect(linearize([b2, h2], [3, 4])).toBe(bh);
  });

  test('permuting and back within reshapes gives back the axes', () => {
    fc.assert(
      fc.property(smallShape, fc.infiniteStream(fc.nat(99)), (shape, stream) => {
        // Split every axis in two, permute the parts, undo both.
        const parts = shape.flatMap((size) => {
          const pieces = [1, 2, 3, 4].filter((piece) => size % piece === 0);
          const piece = pieces[stream.next().value % pieces.length]!;
          return [size / piece, piece];
        });
        const axes = axesOf(shape);
        const digits = reshape(axes, shape, parts);
        const order = parts.map((_, n) => ({ n, key: stream.next().value })).sort((x, y) => x.key - y.key);
        const permuted = order.map(({ n }) => digits[n]!);
        const merged = [parts.reduce((product, part) => product * part, 1)];
        const permutedShape = order.map(({ n }) => parts[n]!);
        const back = reshape(reshape(permuted, permutedShape, merged), merged, permutedShape);
        const undone = parts.map((_, n) => back[order.findIndex((entry) => entry.n === n)]!);
        expect(reshape(undone, parts, shape).map(printIndex)).toEqual(axes.map(printIndex));
      }),
      { numRuns: 500 },
    );
  });
});

describe('view chains', () => {
  test('any chain of reshape, permute, flip and roll reads what the views one by one read', () => {
    const shape = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 2, maxLength: 4 });
    const view = fc.record({
      kind: fc.constantFrom('reshape', 'permute', 'flip', 'roll'),
      draw: fc.array(fc.nat(99), { minLength: 8, maxLength: 8 }),
    });
    fc.assert(
      fc.property(shape, fc.array(view, { minLength: 1, maxLength: 6 }), (start, views) => {
        const axes = axesOf(start);
        let index = axes;
        let at: readonly number[] = start;
        let data = [...Array(start.reduce((product, size) => product * size, 1)).keys()];
        // `data` holds, for each point of the start shape, the flat offset that the views so far lead to.
        for (const { kind, draw } of views) {
          const from = at;
          const axis = draw[0]! % from.length;
          const size = from[axis]!;
          const order = from.map((_, n) => n).sort((a, b) => draw[a]! - draw[b]! || a - b);
          const [to, move] = viewOf(kind, from, axis, draw[1]! % size, order, regroup(from, draw));
          if (kind === 'reshape') index = reshape(index, from, to);
          else if (kind === 'permute') index = order.map((n) => index[n]!);
          else {
            const moved =
              kind === 'flip'
                ? subIndex(constantIndex(size - 1), index[axis]!)
                : modIndex(offsetIndex(index[axis]!, draw[1]! % size), size);
            index = index.map((e, n) => (n === axis ? moved : e));
          }
          data = data.map((flat) => flatten(move(unflatten(flat, from)), to));
          at = to;
        }
        const flat = linearize(index, at);
        let point = 0;
        forEachPoint(axes.filter(isLeaf), (env) => {
          if (evaluateIndex(flat, env) !== data[point++]) throw new Error(`wrong: ${printIndex(flat)}`);
        });
        expect(point).toBe(data.length);
      }),
      { numRuns: 1000 },
    );
  });
});

type Move = (index: readonly number[]) => readonly number[];

/** The shape after a view and what it does to an index, on plain numbers. */
function viewOf(
  kind: string,
  from: readonly number[],
  axis: number,
  by: number,
  order: readonly number[],
  to: readonly number[],
): [readonly number[], Move] {
  const change = (f: (value: number) => number): Move => {
    return (index) => index.map((value, n) => (n === axis ? f(value) : value));
  };
  if (kind === 'reshape') return [to, (index) => unflatten(flatten(index, from), to)];
  if (kind === 'permute') return [order.map((n) => from[n]!), (index) => order.map((n) => index[n]!)];
  const size = from[axis]!;
  return [
    from,
    kind === 'flip' ? change((value) => size - 1 - value) : change((value) => (value + by) % size),
  ];
}

function flatten(index: readonly number[], shape: readonly number[]): number {
  return index.reduce((flat, value, axis) => flat * shape[axis]! + value, 0);
}

function unflatten(flat: number, shape: readonly number[]): number[] {
  const out: number[] = [];
  for (let axis = shape.length - 1, rest = flat; axis >= 0; axis--) {
    out.unshift(rest % shape[axis]!);
    rest = Math.floor(rest / shape[axis]!);
  }
  return out;
}

// ---- guards --------------------------------------------------------------------------------------------------------------

const bounds = fc.tuple(fc.integer({ min: -25, max: 60 }), fc.integer({ min: -3, max: 40 }));

function agrees(guard: Guard | 'never', leaves: readonly Leaf[], truth: (env: Env) => boolean): void {
  forEachPoint(leaves, (env) => {
    if (evaluateGuard(guard, env) !== truth(env)) throw new Error(`${printGuard(guard)} is wrong`);
  });
}

describe('guards', () => {
  test('hold exactly where the ranges do, together and after substitution', () => {
    fc.assert(
      fc.property(
        leafSets,
        recipe,
        recipe,
        bounds,
        bounds,
        (leaves, makeA, makeB, [loA, spanA], [loB, spanB]) => {
          const [a, b] = [makeA(leaves), makeB(leaves)];
          const free = leaves.filter(isLeaf);
          const holds = (env: Env): boolean => {
            const [x, y] = [a.naive(env), b.naive(env)];
            return loA <= x && x <= loA + spanA && loB <= y && y <= loB + spanB;
          };
          const [guardA, guardB] = [within(a.e, loA, loA + spanA), within(b.e, loB, loB + spanB)];
          const both = andGuards(guardA, guardB);
          agrees(both, free, holds);
          expect(andGuards(guardB, guardA)).toEqual(both);
          expect(andGuards(both, both)).toEqual(both);
          const target = free[0];
          if (target === undefined) return;
          const inner = axisIndex('inner', target.hi - target.lo + 1);
          const reversed = subIndex(constantIndex(target.hi), inner);
          const rest = free.slice(1);
          agrees(
            substituteGuard(both, new Map([[target, reversed]])),
            isLeaf(inner) ? [inner, ...rest] : rest,
            (env) => holds((leaf) => (leaf === target ? evaluateIndex(reversed, env) : env(leaf))),
          );
        },
      ),
      { numRuns: 1500 },
    );
  });

  const table: [string, Guard | 'never', string][] = [
    ['what the bounds prove is true', within(sum([4, i], [1, j]), 0, 23), 'true'],
    ['what they exclude is never', within(i, 6, 9), 'never'],
    ['an empty range is never', within(i, 3, 2), 'never'],
    ['only the open side is tested', within(sum([1, i], -1), 0, 100), 'i >= 1'],
    ['both sides', within(sum([2, i], [1, j], -1), 0, 7), '1 <= i*2 + j <= 8'],
    ['one value', within(modIndex(sum([1, big], [1, j]), 2), 0, 0), '(j + n) % 2 == 0'],
    ['a common factor divides out', within(sum([4, i], 1), 6, 14), '2 <= i <= 3'],
    ['no multiple in the range', within(sum([4, i]), 5, 7), 'never'],
    ['a negative form is turned', within(sum(10, [-1, i]), 7, 9), '1 <= i <= 3'],
    ['a quotient needs no division', within(divIndex(big, 7), 2, 4), '14 <= n <= 34'],
    ['low digits that cannot matter are dropped', within(sum([4, i], [1, j]), 4, 11), '1 <= i <= 2'],
    ['and kept where they can', within(sum([4, i], [1, j]), 4, 10), '4 <= i*4 + j <= 10'],
    ['bounds in the gaps between digits too', within(sum([8, i], [1, j]), 4, 19), '1 <= i <= 2'],
    ['but not at a digit', within(sum([8, i], [1, j]), 3, 19), '3 <= i*8 + j <= 19'],
    ['an infinite side is open', within(i, 2, Infinity), 'i >= 2'],
  ];
  test.each(table)('%s', (_law, guard, text) => {
    expect(printGuard(guard)).toBe(text);
  });

  test('ranges over one expression intersect, and exclude each other', () => {
    const [low, high] = [within(i, 0, 3), within(sum([2, i], 1), 5, 100)];
    expect(printGuard(andGuards(low, high))).toBe('2 <= i <= 3');
    expect(andGuards(within(i, 0, 1), within(i, 2, 5))).toBe('never');
    expect(andGuards('never', [])).toBe('never');
    expect(printGuard(andGuards(within(j, 0, 1), within(i, 0, 1)))).toBe('i <= 1 && j <= 1');
  });
});

describe('misuse', () => {
  test.each([0, -4, 1.5, NaN])('division by %d is a compiler bug', (by) => {
    expect(() => divIndex(i, by)).toThrow(CompilerBug);
    expect(() => modIndex(i, by)).toThrow(/division by/);
  });

  test('an axis without values and swapped bounds are compiler bugs', () => {
    expect(() => axisIndex('empty', 0)).toThrow(/extent of at least 1: 0/);
    expect(() => dynamicIndex('t', 2, 1)).toThrow(/t has no value: 2\.\.1/);
    expect(() => linearize([i], [2, 3])).toThrow(/1 indices for shape \[2,3\]/);
  });

  test('values beyond the safe integers are a compiler bug', () => {
    expect(() => scaleIndex(big, 2 ** 46)).toThrow(/safe integers/);
    expect(() => constantIndex(0.5)).toThrow(/safe integers/);
  });
});

/** 130,000 constructions, most of them new in every round. */
function constructMany(round: number): void {
  for (let n = 0; n < 10_000; n++) {
    const from = [2 + (n % 7), 4, 3 + (n % 11)];
    const flat = linearize(axesOf(from), from);
    delinearize(flat, [from[0]! * 2, 2 * from[2]!]);
    for (let step = 0; step < 5; step++) offsetIndex(flat, 5 * n + step + round);
  }
}

test('more than 100,000 constructions take well under a second', () => {
  // The best of three, as other work may share the machine.
  expect(Math.min(...[0, 100_000, 200_000].map((round) => cpuTime(() => constructMany(round))))).toBeLessThan(
    1000,
  );
});
