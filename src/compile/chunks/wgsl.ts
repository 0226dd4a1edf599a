// The chunk of kernels in WGSL.

import './compiler.ts';
import { languages } from '../../codegen/emit/emit.ts';
import { emitWgsl } from '../../codegen/emit/wgsl/emit.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill([languages.wgsl, emitWgsl]);
