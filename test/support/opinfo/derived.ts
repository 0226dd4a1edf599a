// Outputs that are unique only up to a sign or a phase, as the samples store them: by what is unique. In tensors, so that gradients
// go through them.

import * as sn from '../../../src/operations/index.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { adjoint } from './complex.ts';
import type { Derived } from './read.ts';

function three(outputs: readonly Tensor[]): [Tensor, Tensor, Tensor] {
  const [a, b, c] = outputs;
  if (a === undefined || b === undefined || c === undefined) throw new Error('three outputs are needed');
  return [a, b, c];
}

function two(outputs: readonly Tensor[]): [Tensor, Tensor] {
  const [a, b] = outputs;
  if (a === undefined || b === undefined) throw new Error('two outputs are needed');
  return [a, b];
}

/** U · diag(s) · Vh of the leading columns and rows. */
function scaledProduct(u: Tensor, s: Tensor, vh: Tensor): Tensor {
  const count = s.shape.at(-1)!;
  const columns = sn.narrow(u, -1, 0, count);
  return sn.matmul(sn.mul(columns, sn.unsqueeze(s, -2)), sn.narrow(vh, -2, 0, count));
}

const powerSums = (w: Tensor): Tensor[] => {
  const square = sn.mul(w, w);
  return [w, square, sn.mul(square, w)].map((x) => sn.sum(x, -1));
};

const rules: Readonly<Record<Derived, (outputs: readonly Tensor[]) => Tensor[]>> = {
  svd: (outputs) => {
    const [u, s, v] = three(outputs);
    return [s, scaledProduct(u, s, adjoint(v))];
  },
  svdh: (outputs) => {
    const [u, s, vh] = three(outputs);
    return [s, scaledProduct(u, s, vh)];
  },
  eigh: (outputs) => {
    const [w, v] = two(outputs);
    return [w, scaledProduct(v, w, adjoint(v))];
  },
  qr: (outputs) => {
    const [q, r] = two(outputs);
    // Mode 'r' gives no Q.
    return q.size === 0 ? [sn.abs(r)] : [sn.matmul(q, r), sn.abs(r)];
  },
  eig: (outputs) => powerSums(outputs[0]!),
  eigvals: (outputs) => powerSums(outputs[0]!),
};

/** What the samples store of such outputs. */
export function derivedOf(kind: Derived, outputs: readonly Tensor[]): Tensor[] {
  return rules[kind](outputs);
}

/** Σ output · weight, whose derivative the samples hold. */
export function weighted(output: Tensor, weight: Tensor): Tensor {
  return sn.sum(sn.mul(output, weight));
}
