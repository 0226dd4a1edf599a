// The chunk of kernels in C. Only Node compiles C, and there every chunk is loaded from the start.

import './verifiers.ts';
import './wasm.ts';
import './wgsl.ts';
import { languages } from '../../codegen/emit/emit.ts';
import { emitC } from '../../codegen/emit/c/emit.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill([languages.c, emitC]);
