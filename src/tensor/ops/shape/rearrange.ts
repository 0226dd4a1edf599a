// Axes by name, after einops (Rogozhnikov, 2022): `rearrange(x, 'b (h d) t -> b h t d', { h: 4 })`.
// A pattern splits axes into named ones, drops, adds or reorders them, and merges them again:
// reshape, reduce, permute, broadcast, reshape.

import type { DType } from '../../../ir/dtype.ts';
import { ParseError, TensorError } from '../../../errors.ts';
import { broadcast, cast, permute, reduceKeep, reshape } from '../../../ir/build.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkList, sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkCount, checkInexact, show, checkNotEmpty } from '../operand.ts';
import { sumType } from '../../formula/elementwise.ts';

/** Sizes of named axes that the shape does not determine. */
export type AxisSizes = Readonly<Record<string, number>>;

/**
 * One axis of a side: the names it is made of. `1` is made of none; `...` stands for several axes.
 */
type Group = readonly string[];

const DOTS = '...';

function fail(op: string, pattern: string, at: number, problem: string): never {
  throw new ParseError('E_PARSE', `${op} '${pattern}'`, problem, { line: 1, column: at + 1 });
}

/** A group as written: `(a b)` is merged, `a` stands alone. */
interface Written {
  readonly names: Group;
  readonly merged: boolean;
}

/** The groups of one side, which starts at `offset` of the pattern. */
function parseSide(op: string, pattern: string, side: string, offset: number): Written[] {
  const groups: Written[] = [];
  const seen = new Set<string>();
  let open: string[] | undefined;
  for (const match of side.matchAll(/\s+|\(|\)|\.\.\.|[A-Za-z_]\w*|\d+|./gu)) {
    const [token] = match;
    const at = offset + match.index;
    if (/^\s/.test(token)) continue;
    if (token === '(') {
      if (open !== undefined) fail(op, pattern, at, "a '(' inside of parentheses");
      open = [];
    } else if (token === ')') {
      if (open === undefined) fail(op, pattern, at, "a ')' without '('");
      groups.push({ names: open, merged: true });
      open = undefined;
    } else if (token === DOTS || /^[A-Za-z_]/.test(token)) {
      if (seen.has(token)) fail(op, pattern, at, `'${token}' appears twice on one side`);
      seen.add(token);
      if (open === undefined) groups.push({ names: [token], merged: false });
      else open.push(token);
    } else if (token === '1') {
      if (open === undefined) groups.push({ names: [], merged: true });
    } else fail(op, pattern, at, `unexpected '${token}'`);
  }
  if (open !== undefined) fail(op, pattern, offset + side.length, "a '(' is never closed");
  return groups;
}

interface Pattern {
  readonly left: readonly Group[];
  readonly right: readonly Group[];
}

/** Both sides, with the axes of `...` named one by one. */
function parse(op: string, pattern: string, rank: number): Pattern {
  const arrow = pattern.indexOf('->');
  if (arrow < 0) fail(op, pattern, pattern.length, "expected '->'");
  const left = parseSide(op, pattern, pattern.slice(0, arrow), 0);
  const right = parseSide(op, pattern, pattern.slice(arrow + 2), arrow + 2);
  const hasDots = left.some(({ names }) => names.includes(DOTS));
  if (!hasDots && right.some(({ names }) => names.includes(DOTS))) {
    fail(op, pattern, pattern.indexOf(DOTS, arrow), "'...' must be on the left too");
  }
  if (left.some(({ names, merged }) => merged && names.includes(DOTS))) {
    fail(op, pattern, pattern.indexOf(DOTS), "'...' cannot be split");
  }
  const named = left.length - (hasDots ? 1 : 0);
  const dots = Array.from({ length: Math.max(0, rank - named) }, (_, i) => `${DOTS}${i}`);
  const spell = (groups: readonly Written[]): Group[] =>
    groups.flatMap(({ names, merged }): Group[] => {
      const spelled = names.flatMap((name) => (name === DOTS ? dots : [name]));
      return merged ? [spelled] : spelled.map((name) => [name]);
    });
  return { left: spell(left), right: spell(right) };
}

/** Sizes of all names on the left; in each group one size may follow from the axis. */
function resolve(
  op: string,
  pattern: string,
  left: readonly Group[],
  x: Tensor,
  given: AxisSizes,
): Map<string, number> {
  if (left.length !== x.rank) {
    throw new TensorError('E_SHAPE', op, `'${pattern}' names ${left.length} axes: ${show(x)}`);
  }
  const sizes = new Map<string, number>();
  left.forEach((group, axis) => {
    const size = x.shape[axis]!;
    const unknown = group.filter((name) => given[name] === undefined);
    const known = sizeOf(group.flatMap((name) => given[name] ?? []));
    if (unknown.length > 1) {
      throw new TensorError(
        'E_VALUE',
        op,
        `'${pattern}' leaves the sizes of ${unknown.join(' and ')} open`,
        `{ ${unknown[0]}: … }`,
      );
    }
    const fits = unknown.length === 0 ? known === size : known > 0 && size % known === 0;
    if (!fits) {
      throw new TensorError(
        'E_SHAPE',
        op,
        `axis ${axis} of ${show(x)} does not split into (${group.join(' ')}) of '${pattern}'`,
      );
    }
    for (const name of group) sizes.set(name, given[name] ?? size / known);
  });
  return sizes;
}

function checkSizes(op: string, pattern: string, { left, right }: Pattern, given: AxisSizes): void {
  for (const [name, size] of Object.entries(given)) {
    checkCount(op, `the size of ${name}`, size);
    if (![...left, ...right].some((group) => group.includes(name))) {
      throw new TensorError('E_VALUE', op, `'${pattern}' has no axis ${name}`);
    }
  }
}

/** Names of `from` that `to` lacks must not be there for this operation. */
function checkNames(
  op: string,
  pattern: string,
  from: readonly Group[],
  to: readonly Group[],
  where: string,
): void {
  const missing = from.flat().find((name) => !to.flat().includes(name));
  if (missing !== undefined) {
    throw new TensorError('E_VALUE', op, `'${pattern}': ${missing} is missing on the ${where}`);
  }
}

const axisSizes: arg.Kind<AxisSizes> = arg.kind(
  'an object of sizes',
  (value) => arg.isPlainObject(value) && Object.values(value).every(Number.isSafeInteger),
);
const takesRearrange = arg.takes<typeof rearrange>(
  ['x', aTensor],
  ['the pattern', arg.text],
  ['the sizes of axes', arg.optional(axisSizes)],
);

/**
 * Axes split, reordered and merged as the pattern says; every name is on both sides.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.rearrange(x, 'a b -> (b a)');
 */
export function rearrange<D extends DType>(x: Tensor<D>, pattern: string, sizes: AxisSizes = {}): Tensor<D> {
  takesRearrange('rearrange', x, pattern, sizes);
  const op = 'rearrange';
  const parsed = parse(op, pattern, x.rank);
  checkSizes(op, pattern, parsed, sizes);
  checkNames(op, pattern, parsed.left, parsed.right, 'right');
  checkNames(op, pattern, parsed.right, parsed.left, 'left');
  return compose(op, x, pattern, parsed, sizes);
}

type Fold = (b: GraphBuilder, x: Node, axes: readonly number[]) => Node;

/**
 * Split by the left side, names that the right side lacks folded, in the right side's order, names
 * that are new there repeated, merged by the right side.
 */
function compose(
  op: string,
  x: Tensor,
  pattern: string,
  { left, right }: Pattern,
  given: AxisSizes,
  fold: Fold = (_, node) => node,
): Tensor {
  const sizes = resolve(op, pattern, left, x, given);
  const from = left.flat();
  const to = right.flat();
  for (const name of to) sizes.set(name, sizes.get(name) ?? given[name]!);
  const sizesOf = (names: readonly string[]): number[] => names.map((name) => sizes.get(name)!);
  const kept = from.filter((name) => to.includes(name));
  return apply([x], (b, node) => {
    const dropped = from.flatMap((name, axis) => (to.includes(name) ? [] : [axis]));
    const folded = reshape(b, fold(b, reshape(b, node, sizesOf(from)), dropped), sizesOf(kept));
    const known = to.filter((name) => from.includes(name));
    const sorted = permute(
      b,
      folded,
      known.map((name) => kept.indexOf(name)),
    );
    const spaced = reshape(
      b,
      sorted,
      to.map((name) => (from.includes(name) ? sizes.get(name)! : 1)),
    );
    const spread = broadcast(b, spaced, sizesOf(to));
    return reshape(
      b,
      spread,
      right.map((group) => sizeOf(sizesOf(group))),
    );
  });
}

/** How `reduce` folds the axes that the right side lacks. */
export type NamedReduction = 'sum' | 'mean' | 'max' | 'min' | 'prod';

const widely =
  (monoid: 'sum' | 'prod'): Fold =>
  (b, x, axes) =>
    formula.widened(b, cast(b, x, sumType(x.dtype)), (wide) => reduceKeep(b, monoid, wide, axes));

const folds = {
  sum: widely('sum'),
  prod: widely('prod'),
  mean: (b, x, axes) => formula.widened(b, x, (wide) => formula.mean(b, wide, axes)),
  max: (b, x, axes) => reduceKeep(b, 'max', x, axes),
  min: (b, x, axes) => reduceKeep(b, 'min', x, axes),
} as const satisfies Record<NamedReduction, Fold>;

const takesReduce = arg.takes<typeof reduce>(
  ['x', aTensor],
  ['the pattern', arg.text],
  ['reduction', arg.oneOf('sum', 'mean', 'max', 'min', 'prod')],
  ['the sizes of axes', arg.optional(axisSizes)],
);

/**
 * As `rearrange`, with the names that are only on the left reduced:
 * `reduce(x, 'b (h p) -> b h', 'max', { p: 2 })`.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.reduce(x, 'a b -> a', 'sum');
 */
export function reduce(x: Tensor, pattern: string, reduction: NamedReduction, sizes: AxisSizes = {}): Tensor {
  takesReduce('reduce', x, pattern, reduction, sizes);
  const op = 'reduce';
  const fold: Fold = folds[reduction];
  if (reduction === 'mean') checkInexact(op, x);
  if (reduction === 'max' || reduction === 'min')
    checkNotEmpty(
      op,
      x,
      x.shape.map((_, axis) => axis),
    );
  const parsed = parse(op, pattern, x.rank);
  checkSizes(op, pattern, parsed, sizes);
  checkNames(op, pattern, parsed.right, parsed.left, 'left');
  return compose(op, x, pattern, parsed, sizes, fold);
}

const takesRepeat = arg.takes<typeof repeat>(
  ['x', aTensor],
  ['repeats', arg.inside()],
  ['the sizes of axes', arg.optional(axisSizes)],
);

/**
 * The whole tensor `repeats[axis]` times along each axis, or, with a pattern, as `rearrange` with
 * the names that are only on the right repeated: `repeat(x, 'h w -> h w c', { c: 3 })`.
 *
 * @jax jnp.tile
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.repeat(v, [2, 1]);
 */
export function repeat<D extends DType>(
  x: Tensor<D>,
  repeats: readonly number[] | string,
  sizes: AxisSizes = {},
): Tensor<D> {
  takesRepeat('repeat', x, repeats, sizes);
  const op = 'repeat';
  if (typeof repeats !== 'string') {
    const [name] = Object.keys(sizes);
    if (name === undefined) return repeated(op, x, repeats);
    throw new TensorError('E_VALUE', op, `a size of '${name}' is given, but the pattern does not name it`);
  }
  const parsed = parse(op, repeats, x.rank);
  checkSizes(op, repeats, parsed, sizes);
  checkNames(op, repeats, parsed.left, parsed.right, 'right');
  const fresh = parsed.right
    .flat()
    .find((name) => !parsed.left.flat().includes(name) && sizes[name] === undefined);
  if (fresh !== undefined) {
    throw new TensorError('E_VALUE', op, `'${repeats}' leaves the size of ${fresh} open`, `{ ${fresh}: … }`);
  }
  return compose(op, x, repeats, parsed, sizes);
}

/**
 * The whole tensor `repeats[axis]` times along each axis; more repeats than axes make leading axes.
 */
function repeated(op: string, x: Tensor, given: readonly number[]): Tensor {
  checkList(op, 'repeats', given);
  const repeats = [...given];
  repeats.forEach((count) => checkCount(op, 'a number of repeats', count));
  const lead = repeats.length - x.rank;
  if (lead < 0) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `expects at least ${x.rank} repeats for ${show(x)}, got [${repeats.join(',')}]`,
    );
  }
  const shape = repeats.map((_, axis) => (axis < lead ? 1 : x.shape[axis - lead]!));
  return apply([x], (b, node) => {
    const spaced = reshape(
      b,
      node,
      shape.flatMap((dim) => [1, dim]),
    );
    const spread = broadcast(
      b,
      spaced,
      shape.flatMap((dim, axis) => [repeats[axis]!, dim]),
    );
    return reshape(
      b,
      spread,
      shape.map((dim, axis) => repeats[axis]! * dim),
    );
  });
}

const takesTile = arg.takes<typeof tile>(['x', aTensor], ['repeats', arg.inside()]);

/**
 * The whole tensor repeated along its last axes (NumPy's tile).
 *
 * @method
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.tile(v, [2]);
 */
export function tile<D extends DType>(x: Tensor<D>, repeats: readonly number[]): Tensor<D> {
  takesTile('tile', x, repeats);
  checkList('tile', 'repeats', repeats);
  const missing = Math.max(0, x.rank - repeats.length);
  return repeated('tile', x, [...new Array<number>(missing).fill(1), ...repeats]);
}
