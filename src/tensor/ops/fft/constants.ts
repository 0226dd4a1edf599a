// Tables that transforms take, as tensors: computed once for a length, and kept while lengths come
// back. They are leaves like any other tensor, so that devices, compiled functions and bundles have
// them once. And the dtype that transforms are computed in, which is that of their tables.

import { fftTable } from '../../../ir/fft/table.ts';
import { root } from '../../../ir/fft/roots.ts';
import { TensorError } from '../../../errors.ts';
import { complexType, partType, type DType } from '../../../ir/dtype.ts';
import { tensor } from '../creation/creation.ts';
import type { Tensor } from '../../tensor.ts';
import { show } from '../operand.ts';

/** Tables kept: those of the lengths used last. */
const most = 32;
const kept = new Map<string, Tensor>();

function constants(key: string, dtype: DType, make: () => Float64Array<ArrayBuffer>): Tensor {
  const name = `${key} ${dtype}`;
  const found = kept.get(name) ?? tensor(make(), { dtype });
  kept.delete(name);
  kept.set(name, found);
  for (const oldest of kept.keys()) {
    if (kept.size <= most) break;
    kept.delete(oldest);
  }
  return found;
}

/** What a transform of n points is given. @internal */
export function tableOf(n: number, dtype: DType): Tensor {
  return constants(`table ${n}`, dtype, () => fftTable(n));
}

/** e^(−2πi·k/n) for k up to n/2: real parts, then imaginary ones. @internal */
export function halfRoots(n: number, dtype: DType): Tensor {
  return constants(`roots ${n}`, dtype, () => {
    const count = n / 2 + 1;
    const data = new Float64Array(2 * count);
    for (let k = 0; k < count; k++) [data[k], data[count + k]] = root(k, n) as [number, number];
    return data;
  });
}

/** Floats that are transformed: f32, or f64; integers and bool as f32. @internal */
export function partsType(op: string, x: Tensor): DType {
  if (x.dtype === 'f16' || x.dtype === 'bf16')
    throw new TensorError('E_DTYPE', op, `does not support 16-bit floats: ${show(x)}`, ".cast('f32')");
  return partType(complexType(x.dtype));
}
