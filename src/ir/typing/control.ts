// Type rules of loops, of which what a region takes and gives must fit the inputs, and of markers with attributes.

import { isComplex, type DType } from '../dtype.ts';
import type { Attrs } from '../ops.ts';
import { sameShape } from '../shape.ts';
import { checkAxis, fail, showType, type TypeRule, type TensorType } from './check.ts';

/**
 * What lies in the memory of a loop: 8 and 16-bit integers and complex numbers have no place there,
 * for targets keep these in other types.
 */
export function isCarried(dtype: DType): boolean {
  return !isComplex(dtype) && dtype !== 'i8' && dtype !== 'u8' && dtype !== 'i16' && dtype !== 'u16';
}

/** The type of one result. Throws TensorError where the region does not fit the inputs. */
export function iterateType(inputs: readonly TensorType[], attrs: Attrs<'iterate'>): TensorType {
  const { body, carries, stacked, trips, guard, result } = attrs;
  const { parameters, outputs } = body.graph;
  const refuse = (problem: string): never => fail('iterate', 'E_SHAPE', problem, inputs);
  if (trips < 0 || carries < 0 || stacked < 0) refuse('counts are at least 0');
  if (carries + stacked > inputs.length) refuse(`${carries} carries and ${stacked} stacks are no inputs`);
  if (parameters.length !== inputs.length + 1)
    refuse(`the body has ${parameters.length} parameters for a counter and ${inputs.length} inputs`);
  if (!sameType(parameters[0] as TensorType, { dtype: 'i32', shape: [] }))
    refuse('the first parameter of the body must be the counter, i32[]');
  if (outputs.length < carries) refuse(`the body has ${outputs.length} results for ${carries} carries`);
  inputs.forEach((input, i) => {
    const inside = parameters[i + 1] as TensorType;
    const isStack = i >= carries && i < carries + stacked;
    const expected = isStack ? { dtype: inside.dtype, shape: [trips, ...inside.shape] } : inside;
    if (!isCarried(input.dtype)) refuse(`a loop keeps no ${input.dtype}`);
    if (!sameType(input, expected))
      refuse(`input ${i} must be ${showType(expected)} for ${showType(inside)} in the body`);
  });
  for (let i = 0; i < carries; i++) {
    const [before, after] = [parameters[i + 1] as TensorType, outputs[i]!];
    if (!sameType(before, after))
      refuse(`carry ${i} is ${showType(before)} before an iteration and ${showType(after)} after it`);
  }
  if (guard < -1 || guard >= carries) refuse(`the guard ${guard} is no carry`);
  if (guard >= 0 && !sameType(outputs[guard]!, { dtype: 'i32', shape: [] }))
    refuse('the guard must be a carry of i32[]');
  const found = outputs[result] ?? refuse(`the body has no result ${result}`);
  if (!isCarried(found.dtype)) refuse(`a loop keeps no ${found.dtype}`);
  return { dtype: found.dtype, shape: result < carries ? found.shape : [trips, ...found.shape] };
}

function sameType(a: TensorType, b: TensorType): boolean {
  return a.dtype === b.dtype && sameShape(a.shape, b.shape);
}

/** The value's own type, along one of its axes bounded by a number. */
export const boundedType: TypeRule<'bounded'> = (inputs, { axis }, op) => {
  const [value, n] = [inputs[0]!, inputs[1]!];
  checkAxis(op, axis, value.shape.length, inputs);
  if (n.dtype !== 'i32') fail(op, 'E_DTYPE', 'the bound must be an i32', inputs);
  if (n.shape.length !== 0) fail(op, 'E_SHAPE', 'the bound must be a single number (rank 0)', inputs);
  return value;
};
