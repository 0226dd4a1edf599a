// What a specialisation of a compiled function depends on in its arguments: the structure of the
// tree, dtypes and shapes of its tensors, and values that are neither tensors nor numbers. Whether
// tensors require gradients counts only where the function asks (`Traced.asked`). It is compared at
// each call, so comparing allocates nothing.

import { TensorError } from '../../errors.ts';
import type { DType } from '../../ir/dtype.ts';
import { sameShape, type FixedShape } from '../../ir/shape.ts';
import type { Handle } from '../handle/handle.ts';
import { currentHandle } from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import { matchTree, type Flat, type TreeStructure } from '../tree.ts';

/** What a leaf of the arguments has to be; a number may be any. */
type Leaf =
  | {
      readonly kind: 'tensor';
      readonly dtype: DType;
      readonly shape: FixedShape;
      readonly weak: boolean;
    }
  | { readonly kind: 'number' }
  | { readonly kind: 'static'; readonly value: unknown };

export interface Face {
  readonly structure: TreeStructure;
  readonly leaves: readonly Leaf[];
}

/** The handles behind the tensors among leaves. Throws E_STATE at one that is gone. */
export function handlesOf(leaves: readonly unknown[]): (Handle | undefined)[] {
  return leaves.map((leaf) =>
    leaf instanceof Tensor ? currentHandle(handleOf(leaf), 'compile') : undefined,
  );
}

/** What these arguments are. Throws E_VALUE at functions and symbols. */
export function faceOf(flat: Flat, handles: readonly (Handle | undefined)[]): Face {
  const leaves = flat.leaves.map((value, i): Leaf => {
    const handle = handles[i];
    if (handle !== undefined) {
      const { dtype, shape, weak } = handle;
      return { kind: 'tensor', dtype, shape, weak };
    }
    if (typeof value === 'number') return { kind: 'number' };
    if (typeof value === 'function' || typeof value === 'symbol') {
      throw new TensorError('E_VALUE', 'compile', `a ${typeof value} cannot be an argument${flat.paths[i]}`);
    }
    return { kind: 'static', value };
  });
  return { structure: flat.structure, leaves };
}

/** The leaves of arguments that are such; undefined of others. */
export function leavesLike(face: Face, args: readonly unknown[]): unknown[] | undefined {
  const leaves = matchTree(face.structure, args);
  return leaves?.every((leaf, i) => isLike(face.leaves[i]!, leaf)) === true ? leaves : undefined;
}

function isLike(expected: Leaf, value: unknown): boolean {
  switch (expected.kind) {
    case 'tensor': {
      if (!(value instanceof Tensor)) return false;
      const handle = handleOf(value);
      return (
        handle.dtype === expected.dtype &&
        sameShape(handle.shape, expected.shape) &&
        handle.weak === expected.weak
      );
    }
    case 'number':
      return typeof value === 'number';
    case 'static':
      return Object.is(value, expected.value);
    default:
      return expected satisfies never;
  }
}
