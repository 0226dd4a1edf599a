// The chunk of kernels in WebAssembly, and of maps on cores. That of C imports it.

import './compiler.ts';
import { languages } from '../../codegen/emit/emit.ts';
import { emitWasm } from '../../codegen/emit/wasm/emit.ts';
import { computeRow, rowsOf } from '../../codegen/template/map/cpu/rows.ts';
import { rowsOnCores } from '../../codegen/template/map/map.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [languages.wasm, emitWasm],
  [rowsOnCores, { computeRow, rowsOf }],
);
