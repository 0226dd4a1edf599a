// The chunk of folds over the rows of products, which GPUs make of their tiles.

import './products-gpu.ts';
import './selections.ts';
import { ColumnFolder } from '../../codegen/template/contract/gpu/column-folds.ts';
import { columnFolder } from '../../codegen/template/contract/gpu/staged.ts';
import { foldColumns } from '../../schedule/passes/fold-columns.ts';
import { rarePasses } from '../../schedule/passes/pipeline.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [columnFolder, ColumnFolder],
  [rarePasses.foldColumns, foldColumns],
);
