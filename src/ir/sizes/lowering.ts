// What the rules of sizes build with: nodes at the capacities of a variant, in which the true sizes are
// run-time scalars, and `boundedTo`, the only function that gives elements beyond a true size a value.

import { SinterError } from '../../errors.ts';
import { broadcast, cast, constant, mul, permute, reshape, slice, where } from '../build.ts';
import { scalarType, type DType, type ScalarDType } from '../dtype.ts';
import { dims, GraphBuilder, type Node, type NodeOf } from '../graph.ts';
import { onBehalf } from '../origin/origin.ts';
import { showShape } from '../shape.ts';
import type { Scalar } from '../value.ts';
import {
  capacityOf,
  isExact,
  merged,
  prefixAxis,
  sameFactors,
  sizeOfAxis,
  type SizeAxis,
  type Factor,
} from './layout.ts';
import type { StructurePart, SizeStructure } from './structure.ts';
import { isVarying, type Num, type VaryingSizes, type VaryingNumber } from './size.ts';

/** A value: its node at capacity, and which of its elements count. */
export interface SizedNode {
  readonly node: Node;
  readonly axes: readonly SizeAxis[];
}

/** A run-time scalar that a variant reads: the parameter, and what it is. */
export interface SizeScalar {
  readonly num: VaryingNumber;
  readonly parameter: NodeOf<'parameter'>;
  /** Of a double or a wide integer: which 32 bits of it. */
  readonly part: 'value' | `${'low' | 'high'} word of ${'double' | 'integer'}`;
}

export class SizeLowering {
  readonly b: GraphBuilder = new GraphBuilder();
  readonly sizes: VaryingSizes;
  readonly #capacities: (num: VaryingNumber) => number;
  readonly #names: (num: VaryingNumber) => string;
  readonly #first: number;
  readonly scalars: SizeScalar[] = [];

  /** Changes what lies beyond the sizes of operands, which tests do. */
  readonly #filled: (ctx: SizeLowering, operand: SizedNode) => SizedNode;

  /** Scalars are parameters from the index `first`. */
  constructor(
    sizes: VaryingSizes,
    capacities: (num: VaryingNumber) => number,
    names: (num: VaryingNumber) => string,
    first: number,
    filled: (ctx: SizeLowering, operand: SizedNode) => SizedNode = (_, operand) => operand,
  ) {
    this.#filled = filled;
    this.sizes = sizes;
    this.#capacities = capacities;
    this.#names = names;
    this.#first = first;
  }

  /** For the body of a loop, which has a graph of its own and so many parameters. */
  within(first: number): SizeLowering {
    return new SizeLowering(this.sizes, this.#capacities, this.#names, first, this.#filled);
  }

  /** The values of a structure, by a rule for each operation and one for leaves. */
  lowered(
    { parts }: SizeStructure,
    apply: (ctx: SizeLowering, part: StructurePart, inputs: readonly SizedNode[]) => SizedNode,
    leaf: (part: StructurePart) => SizedNode,
  ): readonly SizedNode[] {
    const made: SizedNode[] = [];
    for (const part of parts) {
      const value = onBehalf('rewrite', part.node, () => {
        if (part.kind === 'leaf') return leaf(part);
        if (part.kind === 'constant') return this.#constant(part);
        return apply(
          this,
          part,
          part.inputs.map((input) => this.#filled(this, made[input]!)),
        );
      });
      made.push(value);
    }
    return made;
  }

  /** A constant that kernels know, or a run-time scalar. */
  #constant({ attrs, dtype }: StructurePart): SizedNode {
    const { value } = attrs as { readonly value: Num };
    const node = isVarying(value)
      ? cast(this.b, this.scalar(value, scalarType(dtype) ?? 'f32'), dtype)
      : constant(this.b, value, dtype);
    return { node, axes: [] };
  }

  /** At most so many, in this variant. */
  capacity(num: Num): number {
    return typeof num === 'number' ? num : this.#capacities(num);
  }

  /** The run-time scalar that is this number. */
  scalar(num: VaryingNumber, dtype: ScalarDType = 'i32', part: SizeScalar['part'] = 'value'): Node {
    const known = this.scalars.find(
      ({ num: other, parameter, part: its }) => other === num && parameter.dtype === dtype && its === part,
    );
    if (known !== undefined) return known.parameter as Node;
    const index = this.#first + this.scalars.length;
    const name = `size${this.scalars.length}`;
    const parameter = this.b.add('parameter', [], { index, name, dtype, shape: [] });
    this.scalars.push({ num, parameter, part });
    return parameter as Node;
  }

  /** A whole number as a rank-0 i32. */
  whole(num: Num): Node {
    return isVarying(num) ? this.scalar(num) : constant(this.b, num, 'i32');
  }

  /** Refuses a node, naming what its size is made of. */
  refuse(part: StructurePart, problem: string, nums: readonly unknown[] = []): never {
    const names = [
      ...new Set(
        nums
          .flat()
          .filter(isVarying)
          .map((num) => this.#names(num)),
      ),
    ];
    const of = names.length === 0 ? '' : ` (${names.join(', ')})`;
    const { node } = part;
    // Nobody calls `iterate` by its name.
    const op = part.op === 'iterate' ? 'loop' : part.op;
    throw new SinterError(
      'E_UNSUPPORTED',
      `${op}: ${problem}${of}: ${showShape(node.shape, node.dtype)} at one of the sizes tried\n` +
        '  try: leave this size out of dims, so that it is compiled for each of its values',
    );
  }

  /** Counts along an axis of a shape. */
  count(shape: readonly number[], axis: number): Node {
    return this.b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node;
  }

  /** Which elements along an axis of a shape count. */
  #counting(shape: readonly number[], axis: number, factors: readonly Factor[]): Node {
    const { b } = this;
    if (factors.length === 1) {
      const size = broadcast(b, this.whole(factors[0]!.size), shape);
      return b.add('lt', [this.count(shape, axis), size], {}) as Node;
    }
    const split = [
      ...shape.slice(0, axis),
      ...factors.map(({ capacity }) => capacity),
      ...shape.slice(axis + 1),
    ];
    const conditions = factors.flatMap((factor, i) =>
      isVarying(factor.size) ? [this.#counting(split, axis + i, [factor])] : [],
    );
    const all = conditions.reduce((left, right) => b.add('and', [left, right], {}) as Node);
    return reshape(b, all, shape);
  }

  /** The same value where elements along an axis count, `value` beyond: the one place that masks. */
  boundedTo(x: SizedNode, axis: number, value: Scalar): SizedNode {
    const along = x.axes[axis]!;
    if (isExact(along)) return x;
    const { b } = this;
    const shape = dims(x.node);
    const beyond = broadcast(b, constant(b, value, x.node.dtype), shape);
    return this.boundedBy(x, axis, beyond);
  }

  /** As `boundedTo`, with a value for each element. */
  boundedBy(x: SizedNode, axis: number, beyond: Node): SizedNode {
    const along = x.axes[axis]!;
    if (isExact(along)) return x;
    const counts = this.#counting(dims(x.node), axis, merged(along, this.sizes));
    const axes = x.axes.with(axis, { ...along, uniform: false });
    return { node: where(this.b, counts, x.node, beyond), axes };
  }

  /** The value with the elements along an axis that count at its start. */
  prefixed(x: SizedNode, axis: number): SizedNode {
    const along = x.axes[axis]!;
    const factors = merged(along, this.sizes);
    if (factors.length <= 1) return x;
    const size = sizeOfAxis(along, this.sizes);
    const capacity = this.capacity(size);
    const place = this.fromTrue(this.count([capacity], 0), factors);
    return this.gathered(x, axis, place, prefixAxis(size, capacity, along.uniform));
  }

  /** Places in memory of indices along merged axes of true sizes. */
  fromTrue(index: Node, factors: readonly Factor[]): Node {
    const { b } = this;
    const shape = dims(index);
    const all = (x: Node): Node => broadcast(b, x, shape);
    let [rest, stride] = [index, 1];
    let place: Node | undefined;
    for (let i = factors.length - 1; i >= 0; i--) {
      const { size, capacity } = factors[i]!;
      const own = i === 0 ? rest : (b.add('mod', [rest, all(this.whole(size))], {}) as Node);
      const term = stride === 1 ? own : mul(b, own, stride);
      place = place === undefined ? term : (b.add('add', [term, place], {}) as Node);
      if (i > 0) rest = b.add('div', [rest, all(this.whole(size))], {}) as Node;
      stride *= capacity;
    }
    return place ?? index;
  }

  /** Elements along an axis at places that a vector of i32 names; 0 where there is none. */
  gathered(x: SizedNode, axis: number, places: Node, along: SizeAxis): SizedNode {
    const { b } = this;
    const shape = dims(x.node).with(axis, capacityOf(along));
    const line = reshape(
      b,
      places,
      shape.map((size, i) => (i === axis ? size : 1)),
    );
    const node = b.add('gather', [x.node, broadcast(b, line, shape)], { axis }) as Node;
    return { node, axes: x.axes.with(axis, along) };
  }

  /** The value with another capacity along an axis whose elements that count lie at its start. */
  resized(x: SizedNode, axis: number, capacity: number): SizedNode {
    const { b } = this;
    const along = x.axes[axis]!;
    const shape = dims(x.node);
    const now = shape[axis]!;
    if (now === capacity) return x;
    const [factor] = merged(along, this.sizes);
    const axes = x.axes.with(axis, prefixAxis(factor?.size ?? 1, capacity));
    if (capacity < now) {
      const start = shape.map(() => 0);
      return { node: slice(b, x.node, start, shape.with(axis, capacity)), axes };
    }
    const zeros = shape.map(() => 0);
    const high = zeros.with(axis, capacity - now);
    return { node: b.add('pad', [x.node], { low: zeros, high, interior: zeros, value: 0 }) as Node, axes };
  }

  /** The value with an axis laid out in this way. */
  laidOut(x: SizedNode, axis: number, to: SizeAxis): SizedNode {
    const along = x.axes[axis]!;
    const { b, sizes } = this;
    if (sameFactors(merged(along, sizes), merged(to, sizes))) {
      return { node: x.node, axes: x.axes.with(axis, { factors: to.factors, uniform: along.uniform }) };
    }
    const shape = dims(x.node);
    if (along.uniform) {
      const one = slice(
        b,
        x.node,
        shape.map(() => 0),
        shape.with(axis, 1),
      );
      const node = broadcast(b, one, shape.with(axis, capacityOf(to)));
      return { node, axes: x.axes.with(axis, { factors: to.factors, uniform: true }) };
    }
    return this.resized(this.prefixed(x, axis), axis, capacityOf(to));
  }

  /** One layout for these axes of values, which have one true size. */
  shared(axes: readonly SizeAxis[]): SizeAxis {
    const { sizes } = this;
    const own = axes.filter(({ uniform }) => !uniform);
    const first = own[0] ?? axes[0]!;
    const uniform = own.length === 0;
    const layout = merged(first, sizes);
    if (own.every((axis) => sameFactors(merged(axis, sizes), layout))) return { ...first, uniform };
    const size = sizeOfAxis(first, sizes);
    return prefixAxis(size, this.capacity(size), uniform);
  }

  /** Values of one true shape, laid out alike. */
  aligned(values: readonly SizedNode[]): {
    readonly values: readonly SizedNode[];
    readonly axes: readonly SizeAxis[];
  } {
    const axes = values[0]!.axes.map((_, axis) => this.shared(values.map((value) => value.axes[axis]!)));
    return { axes, values: values.map((value) => this.like(value, axes)) };
  }

  /** The value with all axes laid out in these ways. */
  like(x: SizedNode, axes: readonly SizeAxis[]): SizedNode {
    return axes.reduce((value, to, axis) => this.laidOut(value, axis, to), x);
  }

  /** A number spread over a shape. */
  filled(num: Num, shape: readonly number[], dtype: DType): Node {
    return broadcast(this.b, cast(this.b, this.whole(num), dtype), shape);
  }

  permuted(x: SizedNode, order: readonly number[]): SizedNode {
    return { node: permute(this.b, x.node, order), axes: order.map((axis) => x.axes[axis]!) };
  }
}
