// Workgroup memory in CUDA: arrays of the kernel's own up to 48 KiB in all, and one block beyond, whose size the launch gives.

import { dtypeBytes } from '../../ir/dtype.ts';
import type { Loop, LoopBuffer } from '../loop.ts';
import type { Prelude } from './prelude.ts';

/** Bytes of shared memory that a kernel may declare with their size. */
const staticBytes = 49_152;

export interface SharedPlan {
  /** What the launch must ask for; 0 where the kernel declares arrays. */
  readonly dynamicBytes: number;
  /** The lines at the kernel's start; `spelled` gives a buffer's identifier. */
  declarations(spelled: (name: string) => string, prelude: Prelude): readonly string[];
}

/** Where the Loop's workgroup buffers lie: each aligned for accesses of 16 bytes. */
export function layShared(loop: Loop): SharedPlan {
  const buffers = loop.buffers.filter(({ space }) => space === 'workgroup');
  const bytes = buffers.reduce((sum, buffer) => sum + bytesOf(buffer), 0);
  if (bytes <= staticBytes) {
    return {
      dynamicBytes: 0,
      declarations: (spelled, prelude) =>
        buffers.map((buffer) => {
          const elements = bytesOf(buffer) / dtypeBytes(buffer.dtype);
          return `__shared__ __align__(16) ${prelude.element(buffer.dtype)} ${spelled(buffer.name)}[${elements}];`;
        }),
    };
  }
  return {
    dynamicBytes: bytes,
    declarations: (spelled, prelude) => {
      let offset = 0;
      const lines = buffers.map((buffer) => {
        const type = prelude.element(buffer.dtype);
        const at = offset === 0 ? 'dynamic_memory' : `dynamic_memory + ${offset}`;
        offset += bytesOf(buffer);
        return `${type} *const ${spelled(buffer.name)} = reinterpret_cast<${type} *>(${at});`;
      });
      return ['extern __shared__ __align__(16) unsigned char dynamic_memory[];', ...lines];
    },
  };
}

/** Whole groups of 16 bytes, as the limits of workgroup memory are counted. */
function bytesOf({ dtype, size }: LoopBuffer): number {
  return 16 * Math.ceil((dtypeBytes(dtype) * size) / 16);
}
