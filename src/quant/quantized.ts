// QuantizedTensor: a tree of one tensor, the words that hold blocks, which gives the tensor that they
// stand for as an operation: whatever reads that decodes blocks where it reads them, and no copy of
// the values comes to memory.

import * as arg from '../ir/arguments.ts';
import { blockFacts, type BlockFormat } from '../ir/blocks/format.ts';
import { cast } from '../ir/build.ts';
import type { Node } from '../ir/graph.ts';
import { wordsToRows } from '../ir/blocks/layout.ts';
import { record } from '../tensor/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { TreeNode } from '../tensor/tree.ts';

/** What values of blocks are computed in. */
export type DequantizedType = 'f32' | 'f16' | 'bf16';

const takes = arg.takes<(dtype?: DequantizedType) => Tensor>([
  'the dtype',
  arg.optional(arg.oneOf('f32', 'f16', 'bf16')),
]);

/**
 * Values that are kept as blocks of a few bits. Made by `fromBlocks` and `quantize`; a tree, so that
 * layers hold it, and compiled functions take it, as they do tensors.
 */
export class QuantizedTensor extends TreeNode {
  /** Rows of blocks as they lie on devices: u32 `[.., words a row]`. */
  readonly words: Tensor<'u32'>;
  readonly format: BlockFormat;
  /** Values a row. */
  readonly columns: number;

  /** Not for users: `fromBlocks` and `quantize` make these. */
  constructor(words: Tensor<'u32'>, format: BlockFormat, columns: number) {
    super();
    this.words = words;
    this.format = format;
    this.columns = columns;
  }

  /** The values' shape. */
  get shape(): readonly number[] {
    return [...this.words.shape.slice(0, -1), this.columns];
  }

  /** Number of values. */
  get size(): number {
    return this.shape.reduce((size, extent) => size * extent, 1);
  }

  /** Bytes that it takes on a device. */
  get nbytes(): number {
    return 4 * this.words.size;
  }

  /**
   * The values, as any other tensor. Products, gathers and element-by-element operations decode the
   * blocks as they go; only where the tensor itself is read or kept do all values come to memory.
   */
  dequantize<T extends DequantizedType = 'f32'>(dtype?: T): Tensor<T> {
    takes('dequantize', dtype);
    const { format, columns } = this;
    const to = dtype ?? 'f32';
    const values = record([this.words], (b, [words]) => {
      const node = b.add('dequantize', [words!], { format, columns }) as Node;
      return to === 'f32' ? node : cast(b, node, to);
    });
    return values as Tensor<T>;
  }

  /** The blocks as files hold them. */
  async blocks(): Promise<Uint8Array> {
    const words = await this.words.data();
    return wordsToRows(this.format, this.columns, words as Uint32Array);
  }

  /** Gives back the memory, as `Tensor.dispose` does. */
  dispose(): void {
    this.words.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  override toString(): string {
    const { values, bytes } = blockFacts[this.format];
    return `${this.format}[${this.shape.join(',')}] (${bytes} bytes for ${values} values)`;
  }
}
