// The chunk of kernels in CUDA C.

import './compiler.ts';
import { languages } from '../../codegen/emit/emit.ts';
import { emitCuda } from '../../codegen/emit/cuda/emit.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill([languages.cuda, emitCuda]);
