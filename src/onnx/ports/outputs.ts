// What a model gives, held to what its file declares. As in ONNX Runtime, other elements are an error, and another
// shape is only told: exporters write sizes of their examples into files whose sizes are open.

import { SinterError } from '../../errors.ts';
import { hostType } from '../element.ts';
import type { Value } from '../value.ts';
import type { Port } from './port.ts';

/**
 * Throws E_DTYPE where the result for an output has other elements than its declaration. Warns of another shape, once for
 * each output: `warned` are those that were told.
 */
export function holdToDeclared(port: Port, value: Value, warned: Set<string>): void {
  const { name, kind, isOptional, type, shape } = port;
  if (kind !== 'tensor' || isOptional || type === undefined || !value.isTensor) return;
  if ((value.type === 'string') !== (type === 'string') || hostType(value.type) !== hostType(type)) {
    const problem = `the file declares ${type} elements, and its nodes give ${value.type}`;
    throw new SinterError(
      'E_DTYPE',
      `onnx: output '${name}': ${problem}\n  try: a Cast to ${type} before the output, or ${value.type} in its declaration`,
    );
  }
  const isAlike =
    shape === undefined ||
    (shape.length === value.shape.length &&
      shape.every((size, axis) => typeof size === 'string' || size === value.shape[axis]));
  if (isAlike || warned.has(name)) return;
  warned.add(name);
  const problem = `the file declares [${shape.join()}], and its nodes give [${value.shape.join()}]`;
  console.warn(`sinter: onnx: output '${name}': ${problem}, which is what you get`);
}
