// A random graph in the making: nodes, numbers of the file, and shapes that are put together of sizes as exporters do it.

import { packBytes, type HostArray } from '../../../src/ir/value.ts';
import { codeOf, typeOf } from '../../../src/onnx/element.ts';
import { node, type Draft } from '../../support/onnx/file.ts';
import { attr, floats, ints, type Draw } from './draw.ts';

export class Maker {
  readonly draw: Draw;
  readonly nodes: Draft[] = [];
  readonly initializers: Draft[] = [];
  #count = 0;

  constructor(draw: Draw) {
    this.draw = draw;
  }

  name(): string {
    return `v${this.#count++}`;
  }

  /** Fresh names, by what they stand for. */
  names<K extends string>(...keys: readonly K[]): Readonly<Record<K, string>> {
    return Object.fromEntries(keys.map((key) => [key, this.name()])) as Readonly<Record<K, string>>;
  }

  add(op: string, inputs: readonly string[], attributes: readonly Draft[] = []): string {
    return this.many(op, inputs, 1, attributes)[0]!;
  }

  many(op: string, inputs: readonly string[], count: number, attributes: readonly Draft[] = []): string[] {
    const outputs = Array.from({ length: count }, () => this.name());
    this.nodes.push(node(op, inputs, outputs, attributes));
    return outputs;
  }

  /** Numbers of the file, as an initializer or as a node. */
  constant(array: HostArray): string {
    const { dtype, shape } = array;
    const tensor = { dataType: codeOf(typeOf(dtype)), dims: shape.map(BigInt), rawData: packBytes(array) };
    if (this.draw.coin()) return this.add('Constant', [], [{ name: 'value', type: 4, t: tensor }]);
    const name = this.name();
    this.initializers.push({ ...tensor, name });
    return name;
  }

  ints(...values: number[]): string {
    return this.constant(ints(values));
  }

  scalar(value: number): string {
    return this.constant(ints([value], []));
  }

  float(value: number): string {
    return this.constant(floats([value], []));
  }

  weight(...shape: number[]): string {
    const array = this.draw.tensor(shape);
    array.data.forEach((v, i) => (array.data[i] = Math.fround(Number(v) / 4)));
    return this.constant(array);
  }

  /** A size of a value, rank 0. */
  size(x: string, axis: number): string {
    return this.add('Gather', [this.add('Shape', [x]), this.scalar(axis)], [attr.int('axis', 0)]);
  }

  /** A shape out of sizes, rank 0 each, and numbers. */
  shape(...parts: readonly (string | number)[]): string {
    const lines = parts.map((part) =>
      typeof part === 'number' ? this.ints(part) : this.add('Unsqueeze', [part, this.ints(0)]),
    );
    return this.add('Concat', lines, [attr.int('axis', 0)]);
  }

  /** 0, 1, … below a size, in i64. */
  range(size: string): string {
    return this.add('Range', [this.scalar(0), size, this.scalar(1)]);
  }
}
