// Workgroup memory in CUDA: arrays of the kernel's own up to 48 KiB in all, and one block beyond,
// whose size the launch gives.

import { dtypeBytes } from '../../../ir/dtype.ts';
import type { Loop } from '../../loop/loop.ts';
import type { CudaPrelude } from './prelude.ts';

/** Bytes of shared memory that a kernel may declare with their size. */
const staticBytes = 49_152;
/** Bytes after which the order in copied tiles repeats: eight lines of 128. */
const tileBytes = 1024;

export interface SharedPlan {
  /** What the launch must ask for; 0 where the kernel declares arrays. */
  readonly dynamicBytes: number;
  /** The lines at the kernel's start; `spelled` gives a buffer's identifier. */
  declarations(spelled: (name: string) => string, prelude: CudaPrelude): readonly string[];
}

/** What is declared: an array, and at which multiple of bytes it begins. */
interface Region {
  readonly name: string;
  readonly type: (prelude: CudaPrelude) => string;
  readonly elements: number;
  readonly bytes: number;
  readonly alignment: number;
}

/**
 * Where the Loop's workgroup buffers and mbarriers lie: buffers aligned for accesses of 16 bytes,
 * tiles for how they are copied.
 */
export function layShared(loop: Loop): SharedPlan {
  const regions = regionsOf(loop);
  const bytes = regions.reduce((sum, region) => sum + region.bytes, 0);
  // Tiles begin where descriptors can say it: in the block whose start is known.
  if (bytes <= staticBytes && !loop.buffers.some(({ tiled }) => tiled)) {
    return {
      dynamicBytes: 0,
      declarations: (spelled, prelude) =>
        regions.map(
          ({ name, type, elements, alignment }) =>
            `__shared__ __align__(${alignment}) ${type(prelude)} ${spelled(name)}[${elements}];`,
        ),
    };
  }
  const alignment = Math.max(...regions.map((region) => region.alignment));
  // A name of the kernel's own: block-scope declarations of one name are one symbol for all kernels
  // that are compiled together, with the alignment of the first declaration.
  const block = `${loop.name}_memory`;
  return {
    dynamicBytes: bytes,
    declarations: (spelled, prelude) => {
      let offset = 0;
      const lines = regions.map(({ name, type, bytes: taken }) => {
        const spelling = type(prelude);
        const at = offset === 0 ? block : `${block} + ${offset}`;
        offset += taken;
        return `${spelling} *const ${spelled(name)} = reinterpret_cast<${spelling} *>(${at});`;
      });
      const declared = `extern __shared__ __align__(${alignment}) unsigned char ${block}[];`;
      if (alignment < tileBytes) return [declared, ...lines];
      // Copies and products take the order in tiles from addresses: where the block begins at
      // another alignment, elements would be read from wrong places.
      const check = `if (!${prelude.use('begins_at')}(${block}, ${tileBytes}u)) __trap();`;
      return [declared, check, ...lines];
    },
  };
}

/** In descending order of alignment; the size of each is rounded up to its alignment. */
function regionsOf({ buffers, mbarriers = [] }: Loop): readonly Region[] {
  const arrays = buffers
    .filter(({ space }) => space === 'workgroup')
    .map(({ name, dtype, size, tiled }): Region => {
      // As the limits of workgroup memory are counted.
      const bytes = 16 * Math.ceil((dtypeBytes(dtype) * size) / 16);
      return {
        name,
        type: (prelude) => prelude.element(dtype),
        elements: bytes / dtypeBytes(dtype),
        bytes,
        alignment: tiled ? tileBytes : 16,
      };
    });
  const barriers = mbarriers.map(({ name, size }): Region => ({
    name,
    type: () => 'unsigned long long',
    elements: size,
    bytes: 8 * size,
    alignment: 8,
  }));
  return [...arrays, ...barriers].toSorted((a, b) => b.alignment - a.alignment);
}
