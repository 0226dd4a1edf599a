// The feed-forward part of a layer: a gated product, or a mixture of experts of which the device
// chooses a few for each token.

import { CompilerBug } from '../../errors.ts';
import {
  div,
  expand,
  gelu,
  indexSelect,
  matmul,
  mul,
  reshape,
  scatter,
  silu,
  softmax,
  sum,
  topk,
  transpose,
  unsqueeze,
  zeros,
} from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { ExpertsConfig, ModelConfig } from '../config/config.ts';
import { product, products } from './linear.ts';
import { valuesOf, type DenseWeights, type ExpertWeights } from './weights.ts';

/** x [T, width] through the feed-forward part: [T, width]. */
export function feedForward(x: Tensor, weights: DenseWeights | ExpertWeights, config: ModelConfig): Tensor {
  if ('gateUp' in weights) {
    const { hidden, width } = config;
    const [gate, up] = products(x, weights.gateUp, [hidden, hidden]) as [Tensor, Tensor];
    return product(gated(gate, up, config), weights.down, width);
  }
  const { experts } = config;
  if (experts === undefined) throw new CompilerBug('llm', 'weights of experts without their configuration');
  return mixture(x, weights, config, experts);
}

function gated(gate: Tensor, up: Tensor, config: ModelConfig): Tensor {
  return mul(config.gate === 'silu' ? silu(gate) : gelu(gate, { approximate: 'tanh' }), up);
}

/**
 * A weighted sum of the experts that each token is given to. Of few tokens the weights of their
 * experts are read where they lie; of many every expert is computed, which reads each weight once.
 */
function mixture(x: Tensor, weights: ExpertWeights, config: ModelConfig, experts: ExpertsConfig): Tensor {
  const rows = x.shape[0]!;
  const { count, used } = experts;
  const likely = softmax(product(x, weights.router, count), -1);
  const [best, chosen] = topk(likely, used, -1);
  const shares = experts.isNormalised ? div(best, sum(best, -1, { keepdim: true })) : best;
  const [gate, up, down] = [weights.gate, weights.up, weights.down].map((each) => valuesOf(each));
  if (rows * used <= count) {
    const places = reshape(chosen, [rows * used]);
    // [T · used, 1, in] with the chosen [T · used, out, in].
    const through = (input: Tensor, weight: Tensor): Tensor =>
      matmul(input, transpose(indexSelect(weight, 0, places)));
    const { width } = config;
    const each = reshape(expand(unsqueeze(x, 1), [rows, used, width]), [rows * used, 1, width]);
    const inside = gated(through(each, gate!), through(each, up!), config);
    const results = reshape(through(inside, down!), [rows, used, width]);
    return sum(mul(results, unsqueeze(shares, -1)), 1);
  }
  const spread = scatter(zeros([rows, count]), 1, chosen, shares);
  const all = unsqueeze(x, 0);
  const inside = gated(matmul(all, transpose(gate!)), matmul(all, transpose(up!)), config);
  const results = matmul(inside, transpose(down!));
  return sum(mul(results, unsqueeze(transpose(spread), -1)), 0);
}
