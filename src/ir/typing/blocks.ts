// The type rule of what blocks stand for.

import { blockValues, namesBlocks, rowWords } from '../blocks/sizes.ts';
import { fail, type TypeRule } from './check.ts';

export const dequantizeType: TypeRule<'dequantize'> = (inputs, { format, columns }, op) => {
  const words = inputs[0]!;
  if (!namesBlocks(format)) fail(op, 'E_VALUE', `there is no format ${String(format)}`, inputs);
  if (words.dtype !== 'u32') fail(op, 'E_DTYPE', 'blocks are words of u32', inputs);
  const values = blockValues(format);
  if (columns < 0 || columns % values !== 0)
    fail(op, 'E_SHAPE', `${columns} columns are no whole blocks of ${format}, which have ${values}`, inputs);
  const each = rowWords(format, columns);
  if (words.shape.at(-1) !== each)
    fail(op, 'E_SHAPE', `a row of ${columns} columns of ${format} takes ${each} words`, inputs);
  return { dtype: 'f32', shape: [...words.shape.slice(0, -1), columns] };
};
