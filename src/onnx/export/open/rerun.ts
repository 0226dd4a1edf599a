// Whether a model computes what the function does that it was made of: both are run on the current device.

import { randomNumbers } from '../../../aot/points.ts';
import { SinterError } from '../../../errors.ts';
import { isFloat } from '../../../ir/dtype.ts';
import { sizeOf, type FixedShape } from '../../../ir/shape.ts';
import { hostArray, packBytes, unpackBytes, type HostArray, type Scalar } from '../../../ir/value.ts';
import { noGrad } from '../../../tensor/derivative/transform.ts';
import { fromBytes } from '../../../tensor/record.ts';
import { Tensor } from '../../../tensor/tensor.ts';
import { flatten, unflatten, type Flat } from '../../../tensor/tree.ts';
import { bytesOf, valueOf } from '../../../tensor/values.ts';
import { loadOnnx } from '../../load.ts';

/** How far results may lie from one another: rounding, in another order of sums. */
const tolerances = { f64: 1e-4, f32: 1e-3, f16: 2e-2, bf16: 1e-1 } as const;

/** Whether a model gives what a function gives on arguments like these, in other shapes. */
export async function computesAlike(
  fn: (...args: never[]) => unknown,
  flat: Flat,
  model: { readonly bytes: Uint8Array; readonly externalData: Readonly<Record<string, Uint8Array>> },
  shapes: ReadonlyMap<number, FixedShape>,
): Promise<boolean> {
  const random = randomNumbers(5);
  const leaves = await Promise.all(flat.leaves.map((leaf, i) => likeLeaf(leaf, shapes.get(i), random)));
  const args = unflatten(flat.structure, leaves) as never[];
  const expected = flatten(
    noGrad(() => fn(...args)),
    'exportOnnx',
  ).leaves;
  const loaded = await loadOnnx(model.bytes, { externalData: model.externalData });
  const given = leaves.filter((leaf) => leaf instanceof Tensor || typeof leaf === 'number');
  const inputs = loaded.inputs.map(({ name }, i) => {
    const leaf = given[i]!;
    return [name, typeof leaf === 'number' ? fromNumber(leaf) : (leaf as Tensor)] as const;
  });
  const found = await loaded.run(Object.fromEntries(inputs)).then(Object.values, refusedShapes);
  if (found === undefined) return false;
  const pairs = expected.map(async (tensor, i) =>
    isNear(await elementsOf(tensor as Tensor), await elementsOf(found[i]!)),
  );
  return (await Promise.all(pairs)).every(Boolean);
}

/** A model of other shapes computes something else; all other errors are thrown. */
function refusedShapes(error: unknown): undefined {
  if (!(error instanceof SinterError)) throw error;
  return undefined;
}

function fromNumber(value: number): Tensor {
  return fromBytes(packBytes(hostArray('f32', [], [value])), [], 'f32');
}

/**
 * An argument in another shape: random floats, and the example's own integers over again, which may stand for
 * classes or rows.
 */
async function likeLeaf(
  leaf: unknown,
  shape: FixedShape | undefined,
  random: () => number,
): Promise<unknown> {
  if (!(leaf instanceof Tensor)) return leaf;
  const { dtype } = leaf;
  const own = await elementsOf(leaf);
  const wanted = shape ?? own.shape;
  const elements = Array.from({ length: sizeOf(wanted) }, (_, i): Scalar => {
    if (isFloat(dtype)) return random() * 1.5 - 0.5;
    return own.data.length === 0 ? 0 : (own.data[i % own.data.length] as Scalar);
  });
  return fromBytes(packBytes(hostArray(dtype, wanted, elements)), wanted, dtype);
}

async function elementsOf(tensor: Tensor): Promise<HostArray> {
  return unpackBytes(await bytesOf(valueOf(tensor)), tensor.dtype, tensor.shape);
}

function isNear(expected: HostArray, found: HostArray): boolean {
  const { dtype, shape } = expected;
  if (dtype !== found.dtype || `${shape}` !== `${found.shape}`) return false;
  const tolerance = dtype in tolerances ? tolerances[dtype as keyof typeof tolerances] : 0;
  const numbers = Array.from(expected.data as ArrayLike<Scalar>, Number);
  const scale = numbers.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 0);
  return numbers.every((x, i) => {
    const y = Number(found.data[i]);
    return Object.is(x, y) || x === y || Math.abs(x - y) <= tolerance * scale;
  });
}
