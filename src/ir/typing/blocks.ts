// The type rule of what blocks stand for. How large blocks are comes with who makes such tensors.

import { Lazy } from '../../lazy.ts';
import type { blockValues, namesBlocks, rowWords } from '../blocks/sizes.ts';
import { fail, type Rule } from './check.ts';

interface BlockSizes {
  readonly blockValues: typeof blockValues;
  readonly namesBlocks: typeof namesBlocks;
  readonly rowWords: typeof rowWords;
}

/** How large blocks are. */
export const blockSizes: Lazy<BlockSizes> = new Lazy('sizes of blocks', () => import('../blocks/sizes.ts'));

export const dequantizeType: Rule<'dequantize'> = (inputs, { format, columns }, op) => {
  const words = inputs[0]!;
  const sizes = blockSizes.value;
  if (!sizes.namesBlocks(format)) fail(op, 'E_VALUE', `there is no format ${String(format)}`, inputs);
  if (words.dtype !== 'u32') fail(op, 'E_DTYPE', 'blocks are words of u32', inputs);
  const values = sizes.blockValues(format);
  if (columns < 0 || columns % values !== 0)
    fail(op, 'E_SHAPE', `${columns} columns are no whole blocks of ${format}, which have ${values}`, inputs);
  const each = sizes.rowWords(format, columns);
  if (words.shape.at(-1) !== each)
    fail(op, 'E_SHAPE', `a row of ${columns} columns of ${format} takes ${each} words`, inputs);
  return { dtype: 'f32', shape: [...words.shape.slice(0, -1), columns] };
};
