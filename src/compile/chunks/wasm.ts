// The chunk of kernels in WebAssembly.

import './compiler.ts';
import { languages } from '../../codegen/emit/emit.ts';
import { emitWasm } from '../../codegen/emit/wasm/emit.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill([languages.wasm, emitWasm]);
