// The gradient of a softmax needs Σ P ∘ dP over the keys of each row. In attention, where O = P·V and dP = dO·Vᵀ, that is
// Σ O ∘ dO over the columns (Dao, FlashAttention-2, 2023): a product of two rows that lie in memory, instead of a sweep over all
// keys that computes their scores once more. The kernel that needs such a sum computes it first (fusion/attention.ts).

import { broadcast, cast, div, isZero, mul, neg, purposeOf, reshape } from '../../ir/build.ts';
import { isFloat } from '../../ir/dtype.ts';
import { dims, rebuild, rewrite, topological, usersOf } from '../../ir/graph.ts';
import type { Graph, GraphBuilder, Node, NodeOf } from '../../ir/graph.ts';
import { boundaryOf } from '../fusion/boundary.ts';
import { findAttention } from '../fusion/attention.ts';
import { sharesWork } from '../machine.ts';
import type { Target } from '../target.ts';

/**
 * Buffers that a kernel of dQ binds at most: queries, keys, values, a mask, two statistics of the softmax, O, dO, the sums and dQ.
 * With less room, the sums might need a kernel of their own.
 */
const bindings = 10;

/** Factors that a term is followed to, at most. */
const mostFactors = 48;

/** Takes sums of weights and their gradients over the keys from the results of attention. */
export function takeRowSums(graph: Graph, target: Target): Graph {
  // A core keeps the scores of its rows.
  if (!sharesWork(target) || target.limits.storageBuffers < bindings) return graph;
  const order = topological(graph.outputs);
  const products = productsByValues(order);
  const users = usersOf(order);
  const sums = new Map<Node, RowSum>();
  for (const node of order) {
    const sum = node.op === 'reduce' ? rowSumOf(node, products, users) : undefined;
    if (sum !== undefined) sums.set(node, sum);
  }
  if (sums.size === 0) return graph;
  const groups = findAttention(order, users, boundaryOf(graph, order), new Map(), target.matrixUnits);
  const stages = new Set<Node>(groups.flatMap((group) => group.stages as readonly Node[]));
  const made = new Map<Node, Node>();
  return rewrite(graph, (node, inputs, b) => {
    const sum = stages.has(node) ? sums.get(node) : undefined;
    const next = sum === undefined ? rebuild(node, inputs, b) : sumOfResults(b, dims(node), sum, made);
    made.set(node, next);
    return next;
  });
}

/** A sum over keys as a product of rows: Σ result ∘ gradient over the columns, times factors of the row. */
interface RowSum {
  readonly result: Node;
  readonly gradient: Node;
  /** Axes of both: of the batch and the rows, and columns, in pairs. */
  readonly rows: readonly [readonly number[], readonly number[]];
  readonly columns: readonly [readonly number[], readonly number[]];
  readonly factor: number;
  /** The same for all keys, with their axes. */
  readonly multipliers: readonly Node[];
  readonly divisors: readonly Node[];
  readonly keys: readonly number[];
}

/** What casts between floats are made of. */
function uncast(node: Node): Node {
  let at = node;
  while (at.op === 'cast' && isFloat(at.dtype) && isFloat(at.inputs[0]!.dtype)) at = at.inputs[0]!;
  return at;
}

/** The products whose right operands are these values. */
function productsByValues(order: readonly Node[]): ReadonlyMap<Node, readonly NodeOf<'dot'>[]> {
  const products = new Map<Node, NodeOf<'dot'>[]>();
  for (const node of order) {
    if (node.op !== 'dot') continue;
    const values = uncast(node.inputs[1]!);
    products.set(values, [...(products.get(values) ?? []), node]);
  }
  return products;
}

function rowSumOf(
  node: NodeOf<'reduce'>,
  products: ReadonlyMap<Node, readonly NodeOf<'dot'>[]>,
  users: ReadonlyMap<Node, readonly Node[]>,
): RowSum | undefined {
  if (node.attrs.monoid !== 'sum' || node.dtype !== 'f32') return undefined;
  const keys = node.attrs.axes;
  const term = factorsOf(node.inputs[0]!, keys);
  if (term === undefined) return undefined;
  for (const gradients of term.atoms) {
    if (gradients.op !== 'dot') continue;
    const others = { ...term, atoms: without(term.atoms, [gradients])! };
    for (const product of products.get(uncast(gradients.inputs[1]!)) ?? []) {
      const axes = axesOf(gradients, product, keys);
      const weights = axes && factorsOf(product.inputs[0]!, keys);
      const rest = weights && quotient(others, weights);
      const pair = rest && operandsOf(product, gradients.inputs[0]!, users);
      if (axes !== undefined && rest !== undefined && pair !== undefined && pair.result.id < node.id)
        return { ...pair, ...axes, ...rest, keys };
    }
  }
  return undefined;
}

/** A term as a product. */
interface Factors {
  readonly atoms: readonly Node[];
  readonly factor: number;
  readonly multipliers: readonly Node[];
  readonly divisors: readonly Node[];
  /** Conditions, with whether they have to hold: elsewhere the term is 0. */
  readonly guards: readonly (readonly [Node, boolean])[];
}

/** The factors of a term over the keys; undefined where there are too many. Rounding to another float is none. */
function factorsOf(node: Node, keys: readonly number[]): Factors | undefined {
  const [atoms, multipliers, divisors]: Node[][] = [[], [], []];
  const guards: [Node, boolean][] = [];
  let factor = 1;
  const stack: Node[] = [node];
  let visits = 0;
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    visits += 1;
    if (visits > mostFactors) return undefined;
    const number = numberOf(at);
    const [x, y, z] = at.inputs;
    if (number !== undefined) factor *= number;
    else if (isSpread(at, keys)) multipliers!.push(at);
    else if (at.op === 'neg') {
      factor = -factor;
      stack.push(x!);
    } else if (at.op === 'mul') stack.push(x!, y!);
    else if (at.op === 'div' && isSpread(y!, keys)) {
      divisors!.push(y!);
      stack.push(x!);
    } else if (at.op === 'cast' && isFloat(at.dtype) && isFloat(x!.dtype)) stack.push(x!);
    else if (at.op === 'where' && (isZero(y!) || isZero(z!))) {
      guards.push([x!, isZero(z!)]);
      stack.push(isZero(z!) ? y! : z!);
    } else atoms!.push(at);
  }
  return { atoms: atoms!, factor, multipliers: multipliers!, divisors: divisors!, guards };
}

/** The number that all elements are. */
function numberOf(node: Node): number | undefined {
  const of = node.op === 'broadcast' ? node.inputs[0]! : node;
  return of.op === 'constant' && of.shape.length === 0 && purposeOf(of) === undefined
    ? Number(of.attrs.value)
    : undefined;
}

/** Whether a value is repeated along the keys. */
function isSpread(node: Node, keys: readonly number[]): boolean {
  if (node.op !== 'broadcast') return false;
  const shape = dims(node.inputs[0]!);
  const lead = dims(node).length - shape.length;
  return keys.every((axis) => axis < lead || shape[axis - lead] === 1);
}

/** A product divided by another; undefined where that is none of numbers and of factors of the row. */
function quotient(a: Factors, b: Factors): Pick<RowSum, 'factor' | 'multipliers' | 'divisors'> | undefined {
  const multipliers = without(a.multipliers, b.multipliers);
  const divisors = without(a.divisors, b.divisors);
  const factor = a.factor / b.factor;
  const covers = (one: Factors, other: Factors): boolean =>
    one.guards.every(([when, holds]) => other.guards.some(([also, is]) => also === when && is === holds));
  const isSame = a.atoms.length === b.atoms.length && without(a.atoms, b.atoms) !== undefined;
  if (!isSame || !covers(a, b) || !covers(b, a) || !Number.isFinite(1 / factor)) return undefined;
  return multipliers && divisors && { factor, multipliers, divisors };
}

/** A list without these, each of which it has; undefined where it lacks one. */
function without(list: readonly Node[], these: readonly Node[]): Node[] | undefined {
  const rest = [...list];
  for (const one of these) {
    const at = rest.indexOf(one);
    if (at < 0) return undefined;
    rest.splice(at, 1);
  }
  return rest;
}

/**
 * The axes of O = P·V and of dO in dP = dO·Vᵀ that belong together, if P and dP have the same axes, whose last ones are the keys.
 */
function axesOf(
  gradients: NodeOf<'dot'>,
  product: NodeOf<'dot'>,
  keys: readonly number[],
): Pick<RowSum, 'rows' | 'columns'> | undefined {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = gradients.attrs;
  const [own, values] = gradients.inputs as readonly [Node, Node];
  const shape = dims(gradients as Node);
  const isFree = (axis: number, ...used: readonly (readonly number[])[]): boolean =>
    !used.some((axes) => axes.includes(axis));
  const axesOfRank = (node: Node): number[] => dims(node).map((_, axis) => axis);
  const freeValues = axesOfRank(values).filter((axis) => isFree(axis, rhsBatch, rhsContract));
  const freeOwn = axesOfRank(own).filter((axis) => isFree(axis, lhsBatch, lhsContract));
  // Where an axis of V lies in dP; columns are none of it.
  const inGradients = new Map<number, number>([
    ...rhsBatch.map((axis, i) => [axis, i] as const),
    ...freeValues.map((axis, i) => [axis, shape.length - freeValues.length + i] as const),
  ]);
  const isKeys =
    keys.length === freeValues.length && freeValues.every((axis) => keys.includes(inGradients.get(axis)!));
  if (!isKeys) return undefined;
  const of = product.attrs;
  const weights = product.inputs[0]!;
  const pairs = [
    ...of.rhsBatch.map((axis, i) => [axis, of.lhsBatch[i]!] as const),
    ...of.rhsContract.map((axis, i) => [axis, of.lhsContract[i]!] as const),
  ];
  const isSame =
    pairs.length === inGradients.size &&
    pairs.every(([axis, at]) => inGradients.get(axis) === at) &&
    of.rhsContract.length === keys.length &&
    of.lhsContract.every((axis) => keys.includes(axis)) &&
    of.lhsBatch.every((axis, i) => axis === i) &&
    String(dims(weights)) === String(shape);
  if (!isSame) return undefined;
  // Rows of O are in the order of those of P, and columns behind them in the order of V's.
  const rows = shape.length - keys.length;
  const columns = [...rhsContract].sort((a, b) => a - b);
  return {
    rows: [Array.from({ length: rows }, (_, axis) => axis), [...lhsBatch, ...freeOwn]],
    columns: [
      columns.map((_, i) => rows + i),
      columns.map((axis) => lhsContract[rhsContract.indexOf(axis)]!),
    ],
  };
}

/** O and dO in one dtype: as narrow as O is read by all its readers, if there is dO so. */
function operandsOf(
  product: NodeOf<'dot'>,
  gradient: Node,
  users: ReadonlyMap<Node, readonly Node[]>,
): Pick<RowSum, 'result' | 'gradient'> | undefined {
  const readers = users.get(product as Node) ?? [];
  const [first] = readers;
  const isRounded = readers.every(({ op, dtype }) => op === 'cast' && dtype === first!.dtype);
  const result = isRounded && first !== undefined && isFloat(first.dtype) ? first : (product as Node);
  if (result.dtype === gradient.dtype) return { result, gradient };
  const wide = uncast(gradient);
  return result.dtype === wide.dtype ? { result, gradient: wide } : undefined;
}

/** Σ O ∘ dO of each row, times the factors of the row. */
function sumOfResults(
  b: GraphBuilder,
  shape: readonly number[],
  { result, gradient, rows, columns, factor, multipliers, divisors, keys }: RowSum,
  made: ReadonlyMap<Node, Node>,
): Node {
  const sum = b.add('dot', [made.get(result)!, made.get(gradient)!], {
    lhsBatch: rows[0],
    rhsBatch: rows[1],
    lhsContract: columns[0],
    rhsContract: columns[1],
    dtype: 'f32',
  }) as Node;
  const scaled = Math.abs(factor) === 1 ? sum : mul(b, sum, Math.abs(factor));
  const ofRow = (spread: Node): Node => cast(b, withoutKeys(b, made.get(spread)!, keys, shape), 'f32');
  const multiplied = multipliers.reduce((so, by) => mul(b, so, ofRow(by)), scaled);
  const divided = divisors.reduce((so, by) => div(b, so, ofRow(by)), multiplied);
  return factor < 0 ? neg(b, divided) : divided;
}

/** What is repeated along the keys, once for each row. */
function withoutKeys(b: GraphBuilder, spread: Node, keys: readonly number[], shape: readonly number[]): Node {
  const source = spread.op === 'broadcast' ? spread.inputs[0]! : spread;
  const missing = dims(spread).length - dims(source).length;
  const whole = [...Array.from({ length: missing }, () => 1), ...dims(source)];
  const row = reshape(
    b,
    source,
    whole.filter((_, axis) => !keys.includes(axis)),
  );
  return broadcast(b, row, shape);
}
