// `checkpoint`: a function whose derivative computes its values again, instead of keeping them in memory
// from the forward to the backward pass. The rule is in autograd/checkpoint.ts.

import * as arg from '../../ir/arguments.ts';
import { checkpointDerivative, type Keeps } from '../../autograd/checkpoint.ts';
import { customInputs, derivativeBy, type CustomRule, type Derivative } from '../../autograd/custom.ts';
import { variable } from '../../autograd/variable.ts';
import { showValue, TensorError } from '../../errors.ts';
import { isInexact } from '../../ir/dtype.ts';
import { topological, type Node } from '../../ir/graph.ts';
import { WeakValues } from '../../ir/named/weak-values.ts';
import { expectSynchronous, expectTensor } from '../expect.ts';
import { nodeOf, record } from '../record.ts';
import {
  builder,
  currentHandleUnchecked,
  dropPending,
  gradEnabled,
  leafOf,
  recordedHandle,
} from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import { flatten, unflatten } from '../tree.ts';
import { tensorAt } from './result.ts';

/**
 * What a derivative keeps of what the function computed: nothing but its arguments; results of
 * products (`matmul`, `linear`, convolutions), or of those without batch axes, which leaves out
 * the scores of attention; values that `checkpointName` gave one of these names; or the results of
 * the primitives that a function says so of.
 */
export type CheckpointPolicy =
  | 'nothing'
  | 'products'
  | 'unbatchedProducts'
  | readonly string[]
  | ((node: Node) => boolean);

export interface CheckpointOptions {
  /** What is kept instead of being computed again; default `nothing`. */
  readonly policy?: CheckpointPolicy;
}

const words = ['nothing', 'products', 'unbatchedProducts'] as const;

const aPolicy: arg.Kind<CheckpointPolicy> = {
  accepts: (value) =>
    (words as readonly unknown[]).includes(value) ||
    arg.isCallable(value) ||
    (Array.isArray(value) && value.every((name) => typeof name === 'string')),
  refuse(op, what, value): never {
    const near = typeof value === 'string' ? arg.nearest(value, words) : undefined;
    throw new TensorError(
      'E_VALUE',
      op,
      `${what} must be ${words.map((word) => `'${word}'`).join(', ')}, a list of names or a function of nodes, got ${showValue(value)}`,
      near === undefined ? "policy: 'products'" : `policy: '${near}'`,
    );
  },
};

const takesCheckpoint = arg.takes<
  (fn: (...args: never[]) => unknown, options?: CheckpointOptions) => unknown
>(['the function', arg.callable()], ['options', arg.options<CheckpointOptions>({ policy: aPolicy })]);
const takesName = arg.takes<(x: unknown, name: string) => unknown>(
  ['the tensor', arg.inside()],
  ['the name', arg.text],
);

/** What marks a value that `checkpointName` was given, by its name. */
const marks = new WeakValues<string, Derivative>();

/** Derivatives of policies that are words or names, with the number of results. */
const ofWords = new WeakValues<string, Derivative>();
/** Of policies that are functions, by number of results. */
const ofFunctions = new WeakMap<Keeps, WeakValues<number, Derivative>>();

function derivativeFor(policy: CheckpointPolicy, results: number): Derivative {
  const make = (): Derivative => checkpointDerivative(results, keepsOf(policy));
  if (typeof policy !== 'function') return ofWords.getOrMake(JSON.stringify([policy, results]), make);
  const known = ofFunctions.get(policy) ?? new WeakValues<number, Derivative>();
  ofFunctions.set(policy, known);
  return known.getOrMake(results, make);
}

function keepsOf(policy: CheckpointPolicy): Keeps {
  if (typeof policy === 'function') return policy;
  switch (policy) {
    case 'nothing':
      return () => false;
    case 'products':
      return ({ op }) => op === 'dot' || op === 'conv';
    case 'unbatchedProducts':
      return (node) => node.op === 'conv' || (node.op === 'dot' && node.attrs.lhsBatch.length === 0);
    default:
      return (node) =>
        node.op === 'customVjp' && policy.some((name) => marks.get(name)?.numbers[0] === node.attrs.rule);
  }
}

function markOf(name: string): Derivative {
  return marks.getOrMake(name, () => {
    const through: CustomRule = (_, __, ___, g) => [g];
    return derivativeBy(through);
  });
}

/**
 * The same value, by a name that a policy of `checkpoint` may keep it by. Elsewhere it means
 * nothing.
 */
export function checkpointName(x: Tensor, name: string): Tensor {
  takesName('checkpointName', x, name);
  expectTensor('checkpointName', 'the tensor', x);
  if (!isInexact(x.dtype)) return x;
  return record([x], (b, [node]) => markOf(name).node(b, [node!, node!]));
}

/**
 * `fn`, in whose derivatives what it computed is computed again from its arguments and what it
 * captures, instead of being stored (Chen et al., 2016): less memory for more arithmetic. Values
 * and gradients are the same; random draws are the same draws. The result is a tensor or a tree of
 * tensors. What `fn` assigns to tensors it assigns once.
 */
export function checkpoint<A extends unknown[], R>(
  fn: (...args: A) => R,
  options: CheckpointOptions = {},
): (...args: A) => R {
  takesCheckpoint('checkpoint', fn as (...args: never[]) => unknown, options);
  const { policy = 'nothing' } = options;
  return (...args) => {
    // Whatever is recorded in the call is younger than this.
    const start = variable({ dtype: 'f32', shape: [] }).id;
    const output = fn(...args);
    expectSynchronous('checkpoint', output);
    const flat = flatten(output, 'checkpoint');
    const tensors = flat.leaves.map((leaf, i) => tensorAt('checkpoint', 'result', leaf, flat.paths[i]!));
    const tracked = tensors.map((tensor) => currentHandleUnchecked(handleOf(tensor)).requiresGrad);
    if (!gradEnabled() || !tracked.includes(true)) return output;
    const values = tensors.map(nodeOf);
    const given = readBy(values, start);
    const derivative = derivativeFor(policy, values.length);
    const results = values.map((value, i) => {
      if (tracked[i] !== true) return tensors[i]!;
      const node = derivative.node(builder(), customInputs(value, given, values), i);
      dropPending(handleOf(tensors[i]!));
      return new Tensor(recordedHandle(node, true));
    });
    return unflatten(flat.structure, results) as R;
  };
}

/** What values were computed from that was there before: arguments, and what the function captured. */
function readBy(values: readonly Node[], start: number): readonly Node[] {
  const isOutside = (node: Node): boolean =>
    node.op === 'parameter' || leafOf(node) !== undefined || (node.id < start && node.inputs.length > 0);
  return topological(values, isOutside).filter(isOutside);
}
