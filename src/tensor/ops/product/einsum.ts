// Einstein summation: `einsum('bij,bjk->bik', x, y)`. Operands are contracted from left to right;
// each step is one `dot` (or a broadcast product when nothing is summed), repeated labels take
// diagonals, labels that no later step needs are summed away early.

import { ParseError, TensorError } from '../../../errors.ts';
import { broadcast, cast, mul, permute, reduce, reshape } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { expectTensor, expectText } from '../../expect.ts';
import { record } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { show } from '../operand.ts';
import { productType, contract } from './contract.ts';
import { diagonalOf } from '../../formula/layout.ts';
import { sumType } from '../../formula/elementwise.ts';

/** One operand's or the result's labels: letters, and `...` at most once. */
type Term = readonly string[];

/** A node and the label of each of its axes. */
interface Labelled {
  readonly node: Node;
  readonly labels: readonly string[];
}

function fail(equation: string, at: number, problem: string): never {
  throw new ParseError('E_PARSE', `einsum '${equation}'`, problem, { line: 1, column: at + 1 });
}

/** The terms before and after the arrow. */
function parse(equation: string): { inputs: Term[]; output: Term | undefined } {
  const inputs: string[][] = [[]];
  let output: string[] | undefined;
  for (let at = 0; at < equation.length; at++) {
    const char = equation[at]!;
    const term = output ?? inputs.at(-1)!;
    if (char === ' ') continue;
    if (char === ',') {
      if (output !== undefined) fail(equation, at, "a ',' cannot follow '->'");
      inputs.push([]);
    } else if (char === '-') {
      if (equation[at + 1] !== '>') fail(equation, at, "expected '->'");
      if (output !== undefined) fail(equation, at, "a second '->'");
      output = [];
      at += 1;
    } else if (char === '.') {
      if (equation.slice(at, at + 3) !== '...') fail(equation, at, "expected '...'");
      if (term.includes('...')) fail(equation, at, "a second '...' in one term");
      term.push('...');
      at += 2;
    } else if (/[a-zA-Z]/.test(char)) {
      if (output?.includes(char)) fail(equation, at, `the result names '${char}' twice`);
      if (output !== undefined && !inputs.some((input) => input.includes(char))) {
        fail(equation, at, `the result's '${char}' is in no operand`);
      }
      term.push(char);
    } else fail(equation, at, `unexpected '${char}'`);
  }
  return { inputs, output };
}

/**
 * Axes that `...` stands for are named by their distance from its end, so that they align from the
 * right.
 */
function dots(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `.${count - i}`);
}

/** The labels of every axis of an operand. */
function labelsOf(equation: string, term: Term, x: Tensor, position: number): string[] {
  const named = term.filter((label) => label !== '...').length;
  const open = x.rank - named;
  if (term.includes('...') ? open < 0 : open !== 0) {
    throw new TensorError(
      'E_SHAPE',
      'einsum',
      `operand ${position + 1} of '${equation}' has ${named} labels for ${show(x)}`,
    );
  }
  return term.flatMap((label) => (label === '...' ? dots(open) : [label]));
}

/** Without an arrow: the axes of `...`, then the labels that appear once, in alphabetical order. */
function implicitOutput(inputs: readonly Term[]): string[] {
  const all = inputs.flat();
  const once = all.filter((label) => label !== '...' && all.indexOf(label) === all.lastIndexOf(label));
  return [...(all.includes('...') ? ['...'] : []), ...once.toSorted()];
}

/** The size of each label; sizes of 1 stretch. */
function sizesOf(
  equation: string,
  terms: readonly (readonly string[])[],
  operands: readonly Tensor[],
): Map<string, number> {
  const sizes = new Map<string, number>();
  terms.forEach((labels, i) =>
    labels.forEach((label, axis) => {
      const size = operands[i]!.shape[axis]!;
      const seen = sizes.get(label) ?? 1;
      if (size !== 1 && seen !== 1 && size !== seen) {
        const name = label.startsWith('.') ? "an axis of '...'" : `'${label}'`;
        throw new TensorError(
          'E_SHAPE',
          'einsum',
          `${name} of '${equation}' is both ${seen} and ${size}: ${show(...operands)}`,
        );
      }
      sizes.set(label, size === 1 ? seen : size);
    }),
  );
  return sizes;
}

/** Takes the diagonal wherever a label repeats, and drops axes of size 1 that others stretch. */
function diagonalised(b: GraphBuilder, operand: Labelled, sizes: ReadonlyMap<string, number>): Labelled {
  let { node } = operand;
  let labels = [...operand.labels];
  const kept = labels.map((label, axis) => dims(node)[axis] === sizes.get(label));
  node = reshape(
    b,
    node,
    dims(node).filter((_, axis) => kept[axis]),
  );
  labels = labels.filter((_, axis) => kept[axis]);
  for (let again = labels.findIndex((label, i) => labels.indexOf(label) < i); again >= 0;) {
    const label = labels[again]!;
    const first = labels.indexOf(label);
    node = diagonalOf(b, node, first, again, 0);
    labels = [...labels.filter((_, i) => i !== first && i !== again), label];
    again = labels.findIndex((other, i) => labels.indexOf(other) < i);
  }
  return { node, labels };
}

/** Sums over the labels that are not wanted. */
function sumOut(b: GraphBuilder, { node, labels }: Labelled, wanted: (label: string) => boolean): Labelled {
  const axes = labels.flatMap((label, axis) => (wanted(label) ? [] : [axis]));
  return { node: reduce(b, 'sum', node, axes), labels: labels.filter(wanted) };
}

/** The axes in the order of `labels`, with size 1 where the operand lacks one. */
function arranged(b: GraphBuilder, { node, labels: own }: Labelled, labels: readonly string[]): Node {
  const present = labels.filter((label) => own.includes(label));
  const sorted = permute(
    b,
    node,
    present.map((label) => own.indexOf(label)),
  );
  return reshape(
    b,
    sorted,
    labels.map((label) => (own.includes(label) ? dims(node)[own.indexOf(label)]! : 1)),
  );
}

/** Two operands made one; labels that neither the result nor a later operand needs are summed. */
function pair(b: GraphBuilder, x: Labelled, y: Labelled, needed: (label: string) => boolean): Labelled {
  const left = sumOut(b, x, (label) => needed(label) || y.labels.includes(label));
  const right = sumOut(b, y, (label) => needed(label) || x.labels.includes(label));
  const shared = left.labels.filter((label) => right.labels.includes(label));
  const batch = shared.filter(needed);
  const summed = shared.filter((label) => !needed(label));
  const alone = (one: Labelled): string[] => one.labels.filter((label) => !shared.includes(label));
  const labels = [...batch, ...alone(left), ...alone(right)];
  if (summed.length === 0) {
    const [p, q] = [arranged(b, left, labels), arranged(b, right, labels)];
    const shape = dims(p).map(
      (dim, axis) => Math.max(dim, dims(q)[axis]!) * Math.min(1, dim, dims(q)[axis]!),
    );
    return { node: mul(b, broadcast(b, p, shape), broadcast(b, q, shape)), labels };
  }
  const axes = (list: readonly string[]): (readonly [number, number])[] =>
    list.map((label) => [left.labels.indexOf(label), right.labels.indexOf(label)]);
  return { node: contract(b, left.node, right.node, axes(batch), axes(summed)), labels };
}

/**
 * Σ of products of the operands' elements over all labels that the result lacks. Letters label
 * axes; `...` stands for axes that broadcast, and are summed too if the result lacks it; without
 * `->` the result has the labels that appear once, in alphabetical order.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[1, 0], [2, 1], [0, 3]]);
 * sn.einsum('ij,jk->ik', x, y);
 */
export function einsum(equation: string, ...operands: readonly Tensor[]): Tensor {
  expectText('einsum', 'the equation', equation);
  for (const operand of operands) expectTensor('einsum', 'every operand', operand);
  const { inputs, output } = parse(equation);
  if (inputs.length !== operands.length || operands.length === 0) {
    throw new TensorError(
      'E_VALUE',
      'einsum',
      `'${equation}' takes ${inputs.length} operand(s), got ${operands.length}`,
    );
  }
  const common = productType('einsum', ...operands);
  const terms = inputs.map((term, i) => labelsOf(equation, term, operands[i]!, i));
  const sizes = sizesOf(equation, terms, operands);
  const widest = Math.max(...terms.map((labels) => labels.filter((label) => label.startsWith('.')).length));
  const result = (output ?? implicitOutput(inputs)).flatMap((label) =>
    label === '...' ? dots(widest) : [label],
  );
  // Of one operand it is a sum, and no product.
  const isSum = operands.length === 1 && terms[0]!.some((label) => !result.includes(label));
  const dtype = isSum ? sumType(common) : common;
  return record(operands, (b, nodes) => {
    const tidied = nodes.map((node, i) =>
      diagonalised(b, { node: cast(b, node, dtype), labels: terms[i]! }, sizes),
    );
    const product = tidied.reduce((acc, next, i) => {
      const later = new Set([...result, ...tidied.slice(i + 1).flatMap(({ labels }) => labels)]);
      return pair(b, acc, next, (label) => later.has(label));
    });
    const summed = sumOut(b, product, (label) => result.includes(label));
    return broadcast(
      b,
      arranged(b, summed, result),
      result.map((label) => sizes.get(label)!),
    );
  });
}
