// Products, convolutions and pools with what comes before and after them: transpositions, sums,
// activations, and images whose channels come last.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { convolve, pooledMax } from '../conv.ts';
import { gemm } from '../product.ts';
import { row } from '../row.ts';
import { activated, fastGelu } from './activation.ts';

/** [.., M, K] of an operand whose axes are turned as attributes say. */
function operand(call: Call, place: 0 | 1): Tensor {
  const side = place === 0 ? 'A' : 'B';
  const x = call.tensor(place);
  if (x.rank < 2) return x;
  const isBatch = call.attributes.int(`transBatch${side}`, 0) !== 0;
  // The first axis goes behind those of the batch.
  const rest = x.shape.map((_, axis) => axis);
  const moved = isBatch ? sn.permute(x, [...rest.slice(1, -1), 0, x.rank - 1]) : x;
  return call.attributes.int(`trans${side}`, 0) === 0 ? moved : sn.transpose(moved);
}

function fusedMatMul(call: Call): Tensor {
  const product = sn.matmul(operand(call, 0), operand(call, 1));
  const alpha = call.attributes.float('alpha', 1);
  return alpha === 1 ? product : sn.mul(product, alpha);
}

/** The numbers of an activation that is named by attributes of its own. */
function named(call: Call, x: Tensor): Tensor {
  const [alpha, beta, gamma] = ['alpha', 'beta', 'gamma'].map((letter) =>
    call.attributes.float(`activation_${letter}`),
  );
  return activated(call, x, { alpha, beta, gamma });
}

/** Those of an activation that come as a list. */
function listed(call: Call, x: Tensor): Tensor {
  const [alpha, beta] = call.attributes.floats('activation_params') ?? [];
  return activated(call, x, { alpha, beta });
}

/** A convolution, what is added to it, and an activation. */
export function fusedConv(call: Call, x: Tensor, weight: Tensor, bias?: Tensor, added?: Tensor): Tensor {
  const out = convolve(call, x, weight, bias);
  return listed(call, added === undefined ? out : sn.add(out, added));
}

/** Over images whose channels come last. */
export function channelsFirst(x: Tensor, run: (x: Tensor) => Tensor): Tensor {
  return sn.moveaxis(run(sn.moveaxis(x, -1, 1)), 1, -1);
}

function nhwcConv(call: Call): Tensor {
  const added = call.optional(3);
  const moved = added === undefined ? undefined : sn.moveaxis(added, -1, 1);
  return channelsFirst(call.tensor(0), (x) => fusedConv(call, x, call.tensor(1), call.optional(2), moved));
}

export const fused: Rows = {
  FusedConv: row([1], (call) =>
    fusedConv(call, call.tensor(0), call.tensor(1), call.optional(2), call.optional(3)),
  ),
  FusedGemm: row([1], (call) => named(call, gemm(call))),
  FusedMatMul: row([1], fusedMatMul),
  FusedMatMulActivation: row([1], (call) => named(call, fusedMatMul(call))),
  GemmFastGelu: row([1], (call) => {
    const product = sn.matmul(call.tensor(0), call.tensor(1));
    const bias = call.optional(2);
    return fastGelu(bias === undefined ? product : sn.add(product, bias));
  }),
  NhwcConv: row([1], nhwcConv),
  NhwcFusedConv: row([1], nhwcConv),
  NhwcMaxPool: row([1], (call) => channelsFirst(call.tensor(0), (x) => pooledMax(call, x))),
  TransposeMatMul: row([1], fusedMatMul),
};
