// Complex tensors from real ones, their parts, and what is told of them.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  binary,
  cast,
  complex as join,
  conj as conjugate,
  fullLike,
  imag as imagPart,
  mul,
  permute,
  real as realPart,
  reshape,
  slice,
  unary,
  where,
} from '../../../ir/build.ts';
import { complexType, isComplex as isComplexType, isFloat, partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { anOperand } from '../../expect.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { isNan } from '../../formula/elementwise.ts';
import { apply, combine, show, takesOne, type Unary } from '../operand.ts';

const takesParts = arg.takes<typeof complex>(['the real part', anOperand], ['the imaginary part', anOperand]);

/**
 * re + im·i: c128 of f64, c64 of all others.
 *
 * @jax lax.complex
 * @example
 * const re = sn.tensor([1, 2]);
 * const im = sn.tensor([0.5, -1]);
 * sn.complex(re, im);
 */
export function complex(re: TensorLike, im: TensorLike): Tensor {
  takesParts('complex', re, im);
  return combine('complex', [re, im], 'realFloat', (b, x, y) => join(b, widePart(b, x), widePart(b, y)));
}

/** 16-bit floats as f32, which complex numbers are made of. */
function widePart(b: GraphBuilder, x: Node): Node {
  return cast(b, x, partType(complexType(x.dtype)));
}

const takesPolar = arg.takes<typeof polar>(['the modulus', anOperand], ['the angle', anOperand]);

/**
 * modulus·(cos angle + i·sin angle).
 *
 * @example
 * const re = sn.tensor([1, 2]);
 * const im = sn.tensor([0.5, -1]);
 * sn.polar(re, im);
 */
export function polar(modulus: TensorLike, angle: TensorLike): Tensor {
  takesPolar('polar', modulus, angle);
  return combine('polar', [modulus, angle], 'realFloat', (b, x, y) => {
    const [size, turn] = [widePart(b, x), widePart(b, y)];
    return join(b, mul(b, size, unary(b, 'cos', turn)), mul(b, size, unary(b, 'sin', turn)));
  });
}

/**
 * The real part; a real tensor itself.
 *
 * @method
 * @example
 * const z = sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]));
 * sn.real(z);
 */
export function real(x: Tensor): Tensor {
  takesOne('real', x);
  return isComplexType(x.dtype) ? apply([x], (b, z) => realPart(b, z)) : x;
}

/**
 * The imaginary part of a complex tensor.
 *
 * @method
 * @example
 * const z = sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]));
 * sn.imag(z);
 */
export function imag(x: Tensor): Tensor {
  takesOne('imag', x);
  checkComplex('imag', x);
  return apply([x], (b, z) => imagPart(b, z));
}

/**
 * The complex conjugate; a real tensor itself.
 *
 * @method
 * @jax jnp.conj, jnp.conjugate
 * @example
 * const z = sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]));
 * sn.conj(z);
 */
export const conj: Unary = conjugation('conj');
/**
 * PyTorch's name for `conj` of values: there is no lazy one here.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]));
 * sn.conjPhysical(z);
 */
export const conjPhysical: Unary = conjugation('conjPhysical');

/* @__NO_SIDE_EFFECTS__ */
function conjugation(op: string): Unary {
  return (x) => {
    takesOne(op, x);
    return isComplexType(x.dtype) ? apply([x], (b, z) => conjugate(b, z)) : x;
  };
}

/**
 * x itself: conjugation is never put off.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]));
 * sn.resolveConj(z);
 */
export function resolveConj(x: Tensor): Tensor {
  takesOne('resolveConj', x);
  return x;
}

/**
 * x itself: negation is never put off.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]));
 * sn.resolveNeg(z);
 */
export function resolveNeg(x: Tensor): Tensor {
  takesOne('resolveNeg', x);
  return x;
}

/**
 * The last two axes exchanged, and conjugated: Aᴴ.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]));
 * sn.adjoint(z);
 */
export function adjoint(x: Tensor): Tensor {
  takesOne('adjoint', x);
  if (x.rank < 2)
    throw new TensorError('E_SHAPE', 'adjoint', `expects at least two axes: ${show(x)}`, 'conj(x)');
  const order = x.shape.map((_, axis) => axis);
  order.push(...order.splice(-2).reverse());
  return apply([x], (b, z) => conjugate(b, permute(b, z, order)));
}

/**
 * The angle of each element in (−π, π]; of a real one 0 or π, and NaN of NaN.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]));
 * sn.angle(z);
 */
export function angle(x: Tensor): Tensor {
  takesOne('angle', x);
  return apply([x], (b, node) => {
    if (isComplexType(node.dtype)) return binary(b, 'atan2', imagPart(b, node), realPart(b, node));
    const z = isFloat(node.dtype) ? node : cast(b, node, 'f32');
    const side = where(b, binary(b, 'lt', z, 0), fullLike(b, z, Math.PI), fullLike(b, z, 0));
    return where(b, isNan(b, z), z, side);
  });
}

/**
 * z/|z|, and 0 at 0; the sign of real numbers.
 *
 * @family Arithmetic
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.sgn(x);
 */
export function sgn(x: Tensor): Tensor {
  takesOne('sgn', x);
  return apply([x], (b, z) => (z.dtype === 'bool' ? z : unary(b, 'sign', z)));
}

/**
 * Whether the dtype is complex.
 *
 * @family Comparisons, booleans, bits and casts
 * @jax jnp.iscomplexobj
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.isComplex(x);
 */
export function isComplex(x: Tensor): boolean {
  takesOne('isComplex', x);
  return isComplexType(x.dtype);
}

/**
 * true where the imaginary part is 0: everywhere in real tensors.
 *
 * @family Comparisons, booleans, bits and casts
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.isReal(x);
 */
export function isReal(x: Tensor): Tensor<'bool'> {
  takesOne('isReal', x);
  return apply([x], (b, z) =>
    isComplexType(z.dtype) ? binary(b, 'eq', imagPart(b, z), 0) : cast(b, fullLike(b, z, 1), 'bool'),
  );
}

/**
 * c64[…] as f32[…, 2]: real and imaginary parts along a new last axis.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]));
 * sn.viewAsReal(z);
 */
export function viewAsReal(x: Tensor): Tensor {
  takesOne('viewAsReal', x);
  checkComplex('viewAsReal', x);
  return apply([x], (b, z) => {
    const shape = [...dims(z), 1];
    const parts = [realPart(b, z), imagPart(b, z)].map((part) => reshape(b, part, shape));
    return b.add('concat', parts, { axis: shape.length - 1 }) as Node;
  });
}

/**
 * f32[…, 2] as c64[…], f64 as c128.
 *
 * @example
 * const pairs = sn.tensor([[1, 2], [3, 4]]);
 * sn.viewAsComplex(pairs);
 */
export function viewAsComplex(x: Tensor): Tensor {
  takesOne('viewAsComplex', x);
  const isPart = x.dtype === 'f32' || x.dtype === 'f64';
  if (!isPart || x.shape.at(-1) !== 2) {
    const problem = `expects f32 or f64 with a last axis of 2: ${show(x)}`;
    throw new TensorError(isPart ? 'E_SHAPE' : 'E_DTYPE', 'viewAsComplex', problem);
  }
  return apply([x], (b, pairs) => {
    const shape = dims(pairs);
    const last = shape.length - 1;
    const part = (k: number): Node => {
      const start = shape.map(() => 0).with(last, k);
      return reshape(b, slice(b, pairs, start, shape.with(last, 1)), shape.slice(0, -1));
    };
    return join(b, part(0), part(1));
  });
}

function checkComplex(op: string, x: Tensor): void {
  if (isComplexType(x.dtype)) return;
  throw new TensorError('E_DTYPE', op, `expects complex numbers: ${show(x)}`, 'complex(x, 0)');
}
