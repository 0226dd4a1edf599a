// Loop → C11.

import { CompilerBug } from '../../../errors.ts';
import type { Loop } from '../../loop/loop.ts';

/** A kernel's text, and what its launch needs. */
export interface CKernel {
  readonly source: string;
  /** Bytes of workgroup memory. */
  readonly sharedBytes?: number;
  /** Workgroups run in order, on one thread. */
  readonly serial?: boolean;
}

/** The C of one kernel. */
export function emitC(loop: Loop): CKernel {
  throw new CompilerBug('emit-c', `${loop.name}: not written yet`);
}
