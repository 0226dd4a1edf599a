// Tensors that are written on the command line itself.

import { tensor, type DType, type Tensor } from '../../index.ts';

/**
 * A number, or numbers between commas, as a tensor; undefined where the text is none. A lone number
 * fits shapes of one element.
 */
export function literalTensor(
  text: string,
  dtype: DType,
  shape: readonly (number | string)[] | undefined,
): Tensor | undefined {
  const parts = text.split(',').map((part) => part.trim());
  const isNumber = (part: string): boolean =>
    /^(?:[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?inf|nan|true|false)$/i.test(part);
  if (!parts.every(isNumber)) return undefined;
  const isFixed = shape?.every((size) => typeof size === 'number') ?? false;
  const sizes = isFixed ? (shape as readonly number[]) : undefined;
  const count = sizes?.reduce((product, size) => product * size, 1);
  const own = parts.length === 1 && shape?.length !== 1 ? [] : [parts.length];
  return tensor(parts.map((part) => numberOf(part, dtype)) as number[], {
    dtype,
    shape: count === parts.length ? [...sizes!] : own,
  });
}

function numberOf(part: string, dtype: DType): number | bigint | boolean {
  if (/^(?:true|false)$/i.test(part))
    return dtype === 'bool' ? /true/i.test(part) : Number(/true/i.test(part));
  if (dtype === 'bool') return Number(part) !== 0;
  if (/inf/i.test(part)) return part.startsWith('-') ? -Infinity : Infinity;
  return dtype.endsWith('64') && !dtype.startsWith('f') && /^[-+]?\d+$/.test(part)
    ? BigInt(part)
    : Number(part);
}
