// The chunk of kernels in CUDA C. It imports that of WGSL, so that what the two languages share lies there and not in a file of its own.

import './compiler.ts';
import './wgsl.ts';
import { languages } from '../../codegen/emit/emit.ts';
import { emitCuda } from '../../codegen/emit/cuda/emit.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill([languages.cuda, emitCuda]);
