// Operators that record a sub-graph in the midst of their own work: attention whose scores and weights
// a graph changes, and derivatives of a part of the graph. Their bodies may not wait for elements.

import { SinterError, TensorError } from '../../errors.ts';
import { vjp } from '../../tensor/derivative/transform.ts';
import * as sn from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { elementType, hostType } from '../element.ts';
import type { GraphPlan, GraphStep } from '../plan.ts';
import { GraphScope, type RunPlan } from '../scope.ts';
import { Value } from '../value.ts';

/** The body on values for its inputs. Throws E_UNSUPPORTED where it needs elements on the host. */
function recorded(body: GraphPlan, values: readonly Value[], scope: GraphScope, run: RunPlan): Value[] {
  const inner = new GraphScope(scope);
  body.inputs.forEach((name, i) => {
    const value = values[i];
    if (value !== undefined) inner.set(name, value);
  });
  const { done, value } = run(body, inner).next();
  if (done === true) return value;
  throw new SinterError(
    'E_UNSUPPORTED',
    `its body needs the elements of '${value.name}' while it is recorded`,
  );
}

/** softmax(q·kᵀ·scale)·v, with a graph on the scores and one on the weights. */
export function flexAttention(
  { attributes }: GraphStep,
  bodies: ReadonlyMap<string, GraphPlan>,
  inputs: readonly Value[],
  scope: GraphScope,
  run: RunPlan,
): Value {
  const [q, k, v] = inputs.map(({ tensor }) => tensor);
  const type = inputs[0]?.type;
  if (q?.rank !== 4 || k?.rank !== 4 || v?.rank !== 4 || type === undefined)
    throw new TensorError('E_SHAPE', 'FlexAttention', 'Q, K and V are [batch, heads, length, size]');
  const [batch, heads, queries, size] = q.shape as readonly [number, number, number, number];
  const [shared, keys] = [k.shape[1] ?? 0, k.shape[2] ?? 0];
  if (shared === 0 || heads % shared !== 0)
    throw new TensorError('E_SHAPE', 'FlexAttention', `${heads} heads do not share ${shared}`);
  const given = attributes.int('softmax_precision', 0);
  const precision = given === 0 ? (type === 'double' ? 'double' : 'float') : elementType(given);
  if (precision === undefined)
    throw new SinterError('E_UNSUPPORTED', `softmax_precision ${given} is no type of floats`);
  const wide = hostType(precision);
  const group = heads / shared;
  const inGroups = (x: Tensor, per: number): Tensor =>
    sn.cast(sn.reshape(x, [batch, shared, per, x.shape[2] ?? 0, x.shape[3] ?? 0]), wide);
  const scale = attributes.float('scale', 1 / Math.sqrt(size));
  const modified = (name: string, x: Tensor): Tensor => {
    const body = bodies.get(name);
    if (body === undefined) return x;
    const flat = sn.reshape(x, [batch, heads, queries, keys]);
    const [result] = recorded(body, [Value.of(flat, precision)], scope, run);
    if (result?.tensor.shape.join() !== flat.shape.join())
      throw new TensorError(
        'E_SHAPE',
        'FlexAttention',
        `${name} gives another shape than [${flat.shape.join(',')}]`,
      );
    return sn.reshape(sn.cast(result.tensor, wide), x.shape);
  };
  const scores = sn.mul(sn.matmul(inGroups(q, group), sn.transpose(inGroups(k, 1))), scale);
  const weights = modified('prob_mod', sn.softmax(modified('score_mod', scores), -1));
  const out = sn.reshape(sn.matmul(weights, inGroups(v, 1)), [batch, heads, queries, v.shape[3] ?? 0]);
  return Value.of(sn.cast(out, q.dtype), type);
}

/** The derivatives of the body's result, summed up, by the first inputs of it. */
export function gradient(
  body: GraphPlan,
  inputs: readonly Value[],
  scope: GraphScope,
  run: RunPlan,
): Value[] {
  const tensors = inputs.map(({ tensor }) => tensor);
  const fn = (...given: Tensor[]): Tensor => {
    const values = given.map((tensor, i) => Value.of(tensor, inputs[i]?.type));
    const [result] = recorded(body, values, scope, run);
    if (result === undefined) throw new SinterError('E_FORMAT', 'there is nothing to derive');
    return result.tensor;
  };
  const { value, vjp: pull } = vjp(fn, ...tensors);
  const derivatives = pull(sn.onesLike(value)) as Tensor[];
  return derivatives.map((tensor, i) => Value.of(tensor, inputs[i]?.type));
}
