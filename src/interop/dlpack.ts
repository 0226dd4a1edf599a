// Descriptors of tensors as DLPack has them (github.com/dmlc/dlpack, version 1.1), as plain data: the
// device by its number, the dtype by code and bits, sizes, strides, the byte of the first element,
// and what the device's API calls the memory. In: tensors and buffers; out: descriptors, and back.

import { DeviceError, showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, dtypeKind, dtypes, type DType, type DTypeKind } from '../ir/dtype.ts';
import { checkList, checkShape, sizeOf, stridesOf } from '../ir/shape.ts';
import type { NativeMemory } from '../runtime/sharing.ts';
import { DeviceBuffer } from '../tensor/buffer/buffer.ts';
import { fromBuffer } from '../tensor/from-buffer.ts';
import { wrapBuffer } from '../tensor/buffer/source.ts';
import { asStrided } from '../tensor/ops/select/region.ts';
import { aTensor } from '../tensor/expect.ts';
import { fromBytes } from '../tensor/record.ts';
import { device as currentDevice } from '../tensor/device.ts';
import { Tensor } from '../tensor/tensor.ts';
import { Layout } from './layout.ts';

/** DLDeviceType's numbers. */
export const dlDevices = { cpu: 1, cuda: 2, webgpu: 15 } as const;

/** DLDataTypeCode's numbers. */
const codes = { int: 0, uint: 1, float: 2, bfloat: 4, complex: 5, bool: 6 } as const;

/** A tensor that somebody holds, as data. */
export interface DLTensor {
  readonly version: { readonly major: number; readonly minor: number };
  /** DLDevice: its type and its number. */
  readonly device: { readonly type: number; readonly id: number };
  /** DLDataType. */
  readonly dtype: { readonly code: number; readonly bits: number; readonly lanes: number };
  readonly shape: readonly number[];
  /** In elements. */
  readonly strides: readonly number[];
  /** Bytes from the start of `data` to the first element. */
  readonly byteOffset: number;
  /** The memory, from its own start on. */
  readonly data: NativeMemory;
  /** DLPACK_FLAG_BITMASK_READ_ONLY: nobody may write to it. */
  readonly isReadonly: boolean;
  /** Called once when the consumer is done. */
  readonly deleter: () => void;
}

const codeOf: Readonly<Record<DTypeKind, number>> = codes;

function typeOf(dtype: DType): DLTensor['dtype'] {
  const code = dtype === 'bf16' ? codes.bfloat : codeOf[dtypeKind(dtype)];
  return { code, bits: 8 * dtypeBytes(dtype), lanes: 1 };
}

/** The dtype of a code and bits. Throws E_DTYPE where there is none. */
function dtypeOf({ code, bits, lanes }: DLTensor['dtype']): DType {
  const found = dtypes.find((dtype) => {
    const own = typeOf(dtype);
    return own.code === code && own.bits === bits && lanes === 1;
  });
  if (found !== undefined) return found;
  const problem = `no dtype is code ${String(code)} of ${String(bits)} bits in ${String(lanes)} lanes`;
  throw new TensorError('E_DTYPE', 'fromDlpack', problem);
}

const aSource: arg.Kind<Tensor | DeviceBuffer> = {
  accepts: (value) => value instanceof DeviceBuffer || aTensor.accepts(value),
  refuse: (op, what, value) => aTensor.refuse(op, what, value),
};
const takesSource = arg.takes<typeof toDlpack>(['the tensor', aSource]);

/**
 * A descriptor of a tensor's computed value, or of a buffer: the memory is held until `deleter` is
 * called. Values of tensors are read only.
 */
export async function toDlpack(source: Tensor | DeviceBuffer): Promise<DLTensor> {
  takesSource('toDlpack', source);
  const buffer = source instanceof DeviceBuffer ? source.retain() : await source.buffer();
  const shape = source instanceof DeviceBuffer ? [source.length] : source.shape;
  try {
    const { dtype } = buffer;
    if (typeof dtype !== 'string')
      throw new TensorError('E_DTYPE', 'toDlpack', `${String(buffer)}: DLPack has no blocks`, "retype('u8')");
    const place = buffer.handle();
    let isHeld = true;
    return {
      version: { major: 1, minor: 1 },
      device: { type: deviceOf(place), id: buffer.ordinal },
      dtype: typeOf(dtype),
      shape: [...shape],
      strides: stridesOf(shape),
      byteOffset: place.api === 'webgpu' ? place.offset : 0,
      data: place.api === 'webgpu' ? { ...place, offset: 0, size: place.buffer.size } : place,
      isReadonly: buffer.isReadonly,
      deleter: () => {
        if (isHeld) buffer.release();
        isHeld = false;
      },
    };
  } catch (error) {
    buffer.release();
    throw error;
  }
}

function deviceOf({ api }: NativeMemory): number {
  return api === 'cuda' ? dlDevices.cuda : api === 'webgpu' ? dlDevices.webgpu : dlDevices.cpu;
}

const aDescriptor: arg.Kind<DLTensor> = arg.kind(
  'a DLPack descriptor { device, dtype, shape, data }',
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    ['device', 'dtype', 'shape', 'data'].every(
      (name) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'object',
    ),
  () => 'await toDlpack(…)',
);
const takesDescriptor = arg.takes<typeof fromDlpack>(['the descriptor', aDescriptor]);

/**
 * A tensor over the memory of a descriptor, whose `deleter` is called when nothing uses it any more;
 * memory of a processor is copied, unless the interpreter computes.
 */
export async function fromDlpack(descriptor: DLTensor): Promise<Tensor> {
  takesDescriptor('fromDlpack', descriptor);
  const { device, data, byteOffset = 0, deleter } = descriptor;
  const dtype = dtypeOf(descriptor.dtype);
  checkShape('fromDlpack', descriptor.shape);
  const shape = [...descriptor.shape];
  const given = (descriptor.strides as readonly number[] | null | undefined) ?? stridesOf(shape);
  checkList('fromDlpack', 'strides', given);
  const width = dtypeBytes(dtype);
  if (!Number.isSafeInteger(byteOffset) || byteOffset < 0) {
    const problem = `the byte offset must be an integer of at least 0, got ${showValue(byteOffset)}`;
    throw new TensorError('E_VALUE', 'fromDlpack', problem);
  }
  if (deviceOf(data) !== device.type) {
    const problem = `fromDlpack: memory of ${showValue(data.api)} is not of a device of type ${showValue(device.type)}`;
    throw new DeviceError('E_VALIDATION', 'DLPack', problem);
  }
  // Negative strides count down to the first byte that is used.
  const layout = layoutIn(shape, given, byteOffset, width);
  const { strides, offset } = layout;
  const release = (): void => void (deleter as (() => void) | undefined)?.();
  const start = byteOffset - offset * width;
  const length = layout.extent;
  if (sizeOf(shape) === 0) {
    release();
    return fromBytes(new Uint8Array(0), shape, dtype);
  }
  if (
    data.api === 'wasm' ||
    (data.api === 'host' && (await currentDevice()).facts.target !== 'interpreter')
  ) {
    const bytes =
      data.api === 'wasm' ? new Uint8Array(data.memory.buffer, data.pointer, data.size) : data.bytes;
    const taken = bytes.slice(start, start + length * width);
    release();
    if (taken.length < length * width) throw tooShort(layout, bytes.length);
    if (layout.isContiguous()) return fromBytes(taken, shape, dtype);
    return asStrided(fromBytes(taken, [length], dtype), shape, strides, offset);
  }
  const memory = data.api === 'webgpu' ? data.buffer : data.api === 'cuda' ? data.pointer : data.bytes;
  const name = data.api === 'cuda' && device.id > 0 ? { device: `cuda:${device.id}` } : {};
  const whole = data.api === 'cuda' ? { byteLength: Math.ceil((length * width) / 4) * 4 } : {};
  const buffer = await wrapBuffer(memory, { dtype, length, byteOffset: start, ...whole, ...name, release });
  const made = layout.isContiguous()
    ? fromBuffer(buffer, { shape })
    : fromBuffer(buffer, { shape, strides, offset });
  buffer.release();
  return made;
}

/** The layout, counted from the lowest element on. */
function layoutIn(
  shape: readonly number[],
  strides: readonly number[],
  byteOffset: number,
  width: number,
): Layout {
  const below = shape.reduce(
    (sum, size, axis) => sum + Math.max(0, size - 1) * Math.max(0, -strides[axis]!),
    0,
  );
  if (below * width > byteOffset) {
    const problem = `strides [${strides.join(',')}] of [${shape.join(',')}] begin before the memory`;
    throw new TensorError('E_INDEX', 'fromDlpack', problem);
  }
  return new Layout(shape, strides, below);
}

function tooShort(layout: Layout, bytes: number): TensorError {
  const problem = `${String(layout)} does not lie in a memory of ${bytes} bytes`;
  return new TensorError('E_INDEX', 'fromDlpack', problem);
}
