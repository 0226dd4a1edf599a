// Values of 64 bits on their way to a device that has none: their bytes in 32. Takes packed bytes
// and the type that a program takes; gives packed bytes, or throws where a value does not fit.

import { DeviceError } from '../../errors.ts';
import { dtypeBytes, integerRange, type DType } from '../../ir/dtype.ts';
import { showShape, type FixedShape } from '../../ir/shape.ts';
import { castArray, packBytes, unpackBytes } from '../../ir/value.ts';
import type { Narrowing } from '../../compile.ts';

/**
 * The bytes of a value as the narrowing says; throws E_VALUE, naming the value and its place, where
 * one does not fit.
 */
export function narrowBytes(
  bytes: Uint8Array,
  { dtype, shape }: { readonly dtype: DType; readonly shape: FixedShape },
  as: Narrowing,
  device: string,
): Uint8Array {
  const value = unpackBytes(bytes, dtype, [bytes.length / dtypeBytes(dtype)]);
  if (as.isChecked) {
    const [low, high] = integerRange(as.dtype);
    const at = (value.data as BigInt64Array).findIndex((each) => each < low || each > high);
    if (at >= 0)
      throw new DeviceError(
        'E_VALUE',
        device,
        `a tensor ${showShape(shape, dtype)} is read as ${as.dtype}, for the device has no integers of 64 bits, and ` +
          `${value.data[at]} at ${placeOf(at, shape)} does not fit`,
        { hint: "setDevice('wasm'), which has every dtype" },
      );
  }
  return packBytes(castArray(value, as.dtype));
}

/** `[1,0]` for the element at a flat position. */
function placeOf(at: number, shape: FixedShape): string {
  const place: number[] = [];
  let rest = at;
  for (const dim of [...shape].reverse()) {
    place.unshift(rest % dim);
    rest = Math.floor(rest / dim);
  }
  return `[${place.join(',')}]`;
}
