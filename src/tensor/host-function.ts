// Computes tensor operations on host data at once, without a device: the function is traced and its graph
// is interpreted. This is for the few numbers that shapes are made of.

import { interpret } from '../ir/interpret/interpret.ts';
import { sizeOf } from '../ir/shape.ts';
import { unpackBytes, type HostArray } from '../ir/value.ts';
import { fromHost } from './record.ts';
import { handleOf, Tensor } from './tensor.ts';
import { traceFunction, type Input } from './tracing.ts';

/**
 * The results of `fn` on host arrays; undefined when they have more than `maxElements` elements in
 * all, or when the function reads tensors that the host does not hold, or draws random numbers.
 */
export function onHost(
  fn: (...inputs: Tensor[]) => readonly Tensor[],
  inputs: readonly HostArray[],
  maxElements: number,
): HostArray[] | undefined {
  const args = inputs.map(({ data, shape, dtype }) => fromHost(data, shape, dtype));
  const traced = traceFunction(fn as (...args: never[]) => unknown, args);
  const size = traced.graph.outputs.reduce((sum, { shape }) => sum + sizeOf(shape as readonly number[]), 0);
  if (size > maxElements || traced.scalars.length > 0) return undefined;
  const given = traced.inputs.map((input) => hostValue(input, args));
  if (!given.every((value) => value !== undefined)) return undefined;
  const outputs = interpret(traced.graph, given.slice(0, traced.graph.parameters.length));
  return traced.results.map((leaf) => {
    if (leaf.kind === 'static') throw new TypeError('onHost: the function gives something else than tensors');
    return leaf.kind === 'output' ? outputs[leaf.index]! : given[leaf.index]!;
  });
}

/** The value of an input of a trace, where it lies in the host's memory. */
export function hostValue({ origin, part }: Input, args: readonly Tensor[]): HostArray | undefined {
  if (part !== 'value') return undefined;
  const { storage } = origin.kind === 'captured' ? origin.handle : handleOf(args[origin.leaf]!);
  const bytes = storage?.part === undefined ? storage?.hostBytes : undefined;
  return bytes === undefined ? undefined : unpackBytes(bytes, storage!.dtype, storage!.shape);
}
