// What a tensor knows of gradients, as data: whether it carries them, what made it, and how many
// gradients come back to it from a result.

import * as arg from '../ir/arguments.ts';
import { topological } from '../ir/graph.ts';
import type { Op } from '../ir/ops.ts';
import { aTensor } from '../tensor/expect.ts';
import { nodeOf } from '../tensor/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { historyOf, valueOf } from '../tensor/values.ts';
import { Numbered, type GradId, type OpId, type ParamId } from './ids.ts';

/** What a tensor knows of gradients. */
export interface GradMeta {
  readonly requiresGrad: boolean;
  /** As PyTorch: made by the user, or carrying no gradients. */
  readonly isLeaf: boolean;
  /** Where it carries gradients. */
  readonly gradId?: GradId;
  /** Where it is a leaf that carries gradients. */
  readonly paramId?: ParamId;
  /** The primitive that made it, and its number, where it has a history. */
  readonly creator?: Op;
  readonly opId?: OpId;
  /** Whether `grad` is filled: of leaves alone. */
  readonly retainsGrad: boolean;
}

const grads = new Numbered<'grad'>();
const parameters = new Numbered<'param'>();
const takesMeta = arg.takes<typeof gradMeta>(['the tensor', aTensor]);

/** What a tensor knows of gradients; equal for tensors of one value. */
export function gradMeta(tensor: Tensor): GradMeta {
  takesMeta('gradMeta', tensor);
  const { requiresGrad, creator } = historyOf(tensor);
  if (!requiresGrad) return { requiresGrad, isLeaf: true, retainsGrad: false };
  const value = valueOf(tensor);
  const gradId = grads.of(value);
  if (creator === undefined) {
    return { requiresGrad, isLeaf: true, gradId, paramId: parameters.of(value), retainsGrad: true };
  }
  return {
    requiresGrad,
    isLeaf: false,
    gradId,
    creator: creator.op,
    opId: creator.id as OpId,
    retainsGrad: false,
  };
}

const takesIncoming = arg.takes<typeof incomingGrads>(['the result', aTensor], ['the tensor', aTensor]);

/** How many recorded operations under a result read a tensor: as many gradients come back to it. */
export function incomingGrads(result: Tensor, tensor: Tensor): number {
  takesIncoming('incomingGrads', result, tensor);
  const target = nodeOf(tensor);
  const nodes = topological([nodeOf(result)], (node) => node === target);
  return nodes.reduce((count, node) => count + node.inputs.filter((input) => input === target).length, 0);
}
