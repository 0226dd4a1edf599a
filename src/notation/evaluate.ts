// Index notation as operations of tensors. Every value has an axis for each index that it depends on;
// a sum of products is one contraction, which is a matrix product where it can be.

import { arange } from '../tensor/ops/creation/creation.ts';
import { logicalNot } from '../tensor/ops/elementwise/compare.ts';
import { neg } from '../tensor/ops/elementwise/elementwise.ts';
import { einsum } from '../tensor/ops/product/einsum.ts';
import { broadcastTo } from '../tensor/ops/shape/view.ts';
import { mul, where } from '../operations/index.ts';
import type { Tensor } from '../tensor/tensor.ts';
import {
  foldNames,
  foldOf,
  functionNames,
  functionOf,
  numberOperators,
  operators,
  tensorOf,
} from './functions.ts';
import { readAccess } from './read.ts';
import type { TensorAccess, Resolved, ResolvedStatement, Variable } from './resolve.ts';
import type { IndexSizes } from './sizes.ts';
import { failAt, type SourceText } from './syntax.ts';
import { aligned, allOver, overOf, type NotationValue } from './value.ts';

export class Evaluation {
  readonly #source: SourceText;
  readonly #sizes: IndexSizes;
  readonly #tensorAt: (access: TensorAccess) => Tensor;

  constructor(source: SourceText, sizes: IndexSizes, tensorAt: (access: TensorAccess) => Tensor) {
    this.#source = source;
    this.#sizes = sizes;
    this.#tensorAt = tensorAt;
  }

  /** The tensor of a statement: an axis for each of its indices. */
  statement({ over, value }: ResolvedStatement): Tensor {
    return this.#spread(this.#evaluate(value), over);
  }

  #sizeOf = (variable: Variable): number => this.#sizes.get(variable) ?? 0;

  /** The value with an axis of full size for each of these indices. */
  #spread(value: NotationValue, over: readonly Variable[]): Tensor {
    return broadcastTo(tensorOf(aligned(value, over)), over.map(this.#sizeOf));
  }

  #evaluate = (expr: Resolved): NotationValue => {
    switch (expr.kind) {
      case 'number':
        return { kind: 'number', value: expr.value };
      case 'variable': {
        const tensor = arange(0, this.#sizeOf(expr.variable), 1, { dtype: 'i32' });
        return { kind: 'tensor', tensor, over: [expr.variable] };
      }
      case 'access':
        return readAccess(this.#source, this.#tensorAt(expr), expr, this.#sizeOf, this.#evaluate);
      case 'call':
        return this.#call(expr);
      case 'reduction':
        return this.#fold(expr);
      case 'unary': {
        const x = this.#evaluate(expr.x);
        if (x.kind === 'number')
          return { kind: 'number', value: expr.op === '-' ? -x.value : Number(x.value === 0) };
        return { ...x, tensor: expr.op === '-' ? neg(x.tensor) : logicalNot(x.tensor) };
      }
      case 'binary': {
        const [x, y] = [this.#evaluate(expr.x), this.#evaluate(expr.y)];
        if (x.kind === 'number' && y.kind === 'number')
          return { kind: 'number', value: numberOperators[expr.op](x.value, y.value) };
        return elementwise([x, y], (over) => operators[expr.op](aligned(x, over), aligned(y, over)));
      }
      case 'choice': {
        const [test, yes, no] = [expr.test, expr.yes, expr.no].map(this.#evaluate) as [
          NotationValue,
          NotationValue,
          NotationValue,
        ];
        if (test.kind === 'number') return test.value === 0 ? no : yes;
        const { tensor } = test;
        if (tensor.dtype !== 'bool')
          failAt(this.#source, expr.at, 'E_DTYPE', `a condition is bool, and this is ${tensor.dtype}`);
        return elementwise([test, yes, no], (over) =>
          where(tensorOf(aligned(test, over)) as Tensor<'bool'>, aligned(yes, over), aligned(no, over)),
        );
      }
    }
  };

  #call({ name, args, at }: Extract<Resolved, { kind: 'call' }>): NotationValue {
    const row = functionOf(name);
    if (row === undefined) {
      const isFold = foldOf(name) !== undefined;
      const hint = isFold ? `${name}(k: …) folds over an index k` : `${functionNames.join(' ')}, or a dtype`;
      return failAt(this.#source, at, 'E_VALUE', `there is no function ${name}\n  try: ${hint}`);
    }
    if (row.arity !== args.length)
      failAt(this.#source, at, 'E_VALUE', `${name} takes ${row.arity} arguments, got ${args.length}`);
    const [x, y] = args.map(this.#evaluate) as [NotationValue, NotationValue];
    if (row.arity === 1) return elementwise([x], (over) => row.call(tensorOf(aligned(x, over))));
    return elementwise([x, y], (over) => row.call(tensorOf(aligned(x, over)), aligned(y, over)));
  }

  #fold({ name, over, body, at }: Extract<Resolved, { kind: 'reduction' }>): NotationValue {
    const fold = foldOf(name);
    if (fold === undefined)
      return failAt(
        this.#source,
        at,
        'E_VALUE',
        `there is no reduction ${name}\n  try: ${foldNames.join(' ')}`,
      );
    if (fold.axes === 'one' && over.length !== 1)
      failAt(this.#source, at, 'E_VALUE', `${name} runs over one index, got ${over.length}`);
    if (name === 'sum') {
      const product = this.#contraction(over, factorsOf(body));
      if (product !== undefined) return product;
    }
    const value = this.#evaluate(body);
    const outer = overOf(value).filter((variable) => !over.includes(variable));
    const all = this.#spread(value, [...outer, ...over]);
    const axes = over.map((_, i) => outer.length + i);
    const tensor = fold.axes === 'one' ? fold.call(all, outer.length) : fold.call(all, axes);
    return { kind: 'tensor', tensor, over: outer };
  }

  /** A sum over products of tensors as one contraction; undefined where it would be none. */
  #contraction(over: readonly Variable[], factors: readonly Resolved[]): NotationValue | undefined {
    if (factors.length < 2) return undefined;
    const values = factors.map(this.#evaluate);
    const tensors = values.filter((value) => value.kind === 'tensor');
    const isSummed = (variable: Variable): boolean => over.includes(variable);
    const folded = tensors.filter((value) => value.over.some(isSummed));
    const all = allOver(values);
    const isFit = over.every((variable) => all.includes(variable)) && all.length <= letters.length;
    if (folded.length < 2 || !isFit || folded.some(({ tensor }) => tensor.dtype === 'bool')) return undefined;
    const label = (variable: Variable): string => letters[all.indexOf(variable)]!;
    const outer = allOver(folded).filter((variable) => !isSummed(variable));
    const inputs = folded.map((value) => value.over.map(label).join(''));
    const sum: NotationValue = {
      kind: 'tensor',
      tensor: einsum(
        `${inputs.join(',')}->${outer.map(label).join('')}`,
        ...folded.map(({ tensor }) => tensor),
      ),
      over: outer,
    };
    const rest = values.filter((value) => value.kind === 'number' || !folded.includes(value));
    return rest.reduce<NotationValue>(
      (x, y) => elementwise([x, y], (common) => mul(aligned(x, common), aligned(y, common))),
      sum,
    );
  }
}

const letters = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'];

/** The factors of a product of products. */
function factorsOf(expr: Resolved): readonly Resolved[] {
  if (expr.kind !== 'binary' || expr.op !== '*') return [expr];
  return [...factorsOf(expr.x), ...factorsOf(expr.y)];
}

/** The result of an operation of elements, over all the indices of its operands. */
function elementwise(
  values: readonly NotationValue[],
  make: (over: readonly Variable[]) => Tensor,
): NotationValue {
  const over = allOver(values);
  return { kind: 'tensor', tensor: make(over), over };
}
