// Tensors over the memory of a DeviceBuffer. Kernels read the memory where it is, if it begins and ends as
// they need; otherwise the device copies it once. The tensor keeps the value that the memory has now: before
// the memory is written to through a DeviceBuffer, the tensor gets a copy.

import { showValue, TensorError } from '../errors.ts';
import { add, binary, broadcast, cast, mul, reshape, where } from '../ir/build.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import type { GraphBuilder, Node } from '../ir/graph.ts';
import { showShape, sizeOf, toShape } from '../ir/shape.ts';
import { sliceAxis } from './formula/layout.ts';
import { asStrided } from './ops/select/region.ts';
import { record } from './record.ts';
import { leafHandle } from './handle/recording.ts';
import { copied } from './evaluate/copy.ts';
import { neededByPending } from './handle/memory.ts';
import { Resident } from './storage/resident.ts';
import { StoredValue } from './storage/storage.ts';
import { Tensor } from './tensor.ts';
import type { DeviceBuffer } from './buffer/buffer.ts';
import { lendingOf, type Lending, type View } from './buffer/lent.ts';

export interface FromBufferOptions {
  /** All elements in one axis by default. */
  readonly shape?: readonly number[];
  /** The buffer's, which may be said again; q8 gives f32; by default the buffer's. */
  readonly dtype?: DType;
  /** Elements from one index to the next along each axis; those of C-order by default. */
  readonly strides?: readonly number[];
  /** Elements before the first; 0 by default. */
  readonly offset?: number;
  /**
   * `false` throws where kernels cannot read the memory where it lies, `true` always copies; by
   * default it is copied where it must be.
   */
  readonly copy?: boolean;
}

/** A DeviceBuffer that was not released. */
const aBuffer: arg.Kind<DeviceBuffer> = {
  accepts: (value) => lendingOf(value) !== undefined,
  refuse(op, what, value): never {
    const hint = "await wrapBuffer(…) of 'sinter/runtime'";
    throw new TensorError('E_VALUE', op, `${what} must be a DeviceBuffer, got ${showValue(value)}`, hint);
  },
};
const takesBuffer = arg.takes<typeof fromBuffer>(
  ['the buffer', aBuffer],
  [
    'options',
    arg.options<FromBufferOptions>({
      shape: arg.inside(),
      dtype: arg.dtype,
      strides: arg.listOf(arg.integer),
      offset: arg.count(0),
      copy: arg.flag,
    }),
  ],
);

/**
 * A tensor of the elements of a buffer. Kernels read them in place if the layout of the buffer allows it.
 * It keeps the value of now; blocks of q8 become f32 as kernels read them.
 */
export function fromBuffer(buffer: DeviceBuffer, options: FromBufferOptions = {}): Tensor {
  takesBuffer('fromBuffer', buffer, options);
  const lending = lendingOf(buffer)!;
  lending.check('fromBuffer');
  const { format, length, title } = lending;
  const { offset = 0, copy } = options;
  const shape = toShape('fromBuffer', options.shape ?? [Math.max(0, length - offset)]);
  const own = typeof format === 'string' ? format : 'f32';
  if (options.dtype !== undefined && options.dtype !== own) {
    const problem = `${title} holds ${own}, not ${options.dtype}`;
    throw new TensorError('E_DTYPE', 'fromBuffer', problem, `buffer.retype('${options.dtype}')`);
  }
  const isWhole = options.strides === undefined && typeof format === 'string';
  if (isWhole) {
    if (offset + sizeOf(shape) <= length) return placed(lending, own, shape, offset * dtypeBytes(own), copy);
    const range = `elements ${offset} to ${offset + sizeOf(shape)} do not lie in ${title}`;
    throw new TensorError('E_SHAPE', 'fromBuffer', `${showShape(shape, own)}: ${range}`);
  }
  const flat =
    typeof format === 'string'
      ? placed(lending, own, [length], 0, copy)
      : dequantised(placed(lending, 'u8', [lending.byteLength], 0, copy), length, format.blockSize);
  const strides = options.strides ?? shape.map((_, axis) => sizeOf(shape.slice(axis + 1)));
  return asStrided(flat, shape, strides, offset);
}

/** A tensor of packed elements that begin at a byte. */
function placed(
  lending: Lending,
  dtype: DType,
  shape: readonly number[],
  offset: number,
  copy: boolean | undefined,
): Tensor {
  const storage = StoredValue.promised(dtype, shape);
  const found = copy === true ? 'a copy was asked for' : lending.inPlace(offset, storage.room);
  const isInPlace = typeof found !== 'string';
  if (!isInPlace && copy === false) {
    const problem = `${showShape(shape, dtype)} cannot be read where it lies in ${lending.title}: ${found}`;
    throw new TensorError(
      'E_VALIDATION',
      'fromBuffer',
      problem,
      '{ copy: true }, or memory with room for it',
    );
  }
  const arrive = (): void => {
    const memory = isInPlace ? found : lending.copied(offset, storage.bytes, storage.room);
    storage.fulfil(new Resident(lending.device, memory, isInPlace));
  };
  const { fence } = lending;
  if (fence === undefined) arrive();
  else {
    const letGo = lending.hold();
    fence
      .wait()
      .then(arrive)
      .catch((error: unknown) => storage.fail(error))
      .finally(letGo);
  }
  if (isInPlace) watch(lending, storage);
  return new Tensor(leafHandle(storage));
}

/** Kept as long as the values they are of. */
const views = new WeakMap<StoredValue, View>();

function watch(lending: Lending, storage: StoredValue): void {
  const view: View = {
    preserve() {
      if (storage.lost !== undefined) return;
      const isWanted = storage.owners > 0 || storage.pins > 0 || neededByPending()(storage);
      if (isWanted) storage.relocate(copied);
      else storage.lose('overwritten');
    },
    lose: () => storage.lose('overwritten'),
  };
  views.set(storage, view);
  lending.watch(view);
}

/** Blocks of q8 as f32, in whatever kernel reads them: integers times the scale of their block. */
export function dequantised(bytes: Tensor, length: number, blockSize: number): Tensor {
  const stride = blockSize + 4;
  const blocks = Math.ceil(length / blockSize);
  return record([bytes], (b, [node]) => {
    const rows = reshape(b, node!, [blocks, stride]);
    const scales = broadcast(b, halves(b, rows), [blocks, blockSize]);
    const steps = b.add('bitcast', [sliceAxis(b, rows, 1, 4, blockSize)], { dtype: 'i8' }) as Node;
    const values = mul(b, cast(b, steps, 'f32'), scales);
    return sliceAxis(b, reshape(b, values, [blocks * blockSize]), 0, 0, length);
  });
}

/** The f32 of the f16 whose two bytes begin each row, which has no sign. */
function halves(b: GraphBuilder, rows: Node): Node {
  const byte = (at: number): Node => cast(b, sliceAxis(b, rows, 1, at, 1), 'u32');
  const bits = binary(b, 'or', byte(0), binary(b, 'shl', byte(1), 8));
  // The exponent of an f32 counts from 112 further below. Numbers without one are made by a
  // product, as devices may take such an f32 for 0.
  const exponent = 112 * 2 ** 23;
  const shifted = add(b, binary(b, 'shl', bits, 13), exponent);
  const normal = b.add('bitcast', [shifted], { dtype: 'f32' }) as Node;
  const small = mul(b, cast(b, bits, 'f32'), 2 ** -24);
  return where(b, binary(b, 'lt', bits, 1024), small, normal);
}
