// `checkpoint`: a function whose derivative computes again what the function computed, instead of
// having it lie in memory from the way forward to the way back (autograd/checkpoint.ts has the rule).

import * as arg from '../../ir/arguments.ts';
import { registerCheckpoint, type Keeps } from '../../autograd/checkpoint.ts';
import { customInputs, registerRule, type CustomRule } from '../../autograd/custom.ts';
import { variable } from '../../autograd/variable.ts';
import { showValue, TensorError } from '../../errors.ts';
import { isInexact } from '../../ir/dtype.ts';
import { topological, type Node } from '../../ir/graph.ts';
import { expectSynchronous, expectTensor } from '../expect.ts';
import { nodeOf, record } from '../recording/record.ts';
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

/** Which values a list of names keeps: those named by one of these rules. */
const rulesOfNames = new Map<string, number>();

/** By policy, and by number of results: what their nodes name the rule by. */
const registered = new Map<unknown, Map<number, readonly number[]>>();

function numbersFor(policy: CheckpointPolicy, results: number): readonly number[] {
  const key = Array.isArray(policy) ? JSON.stringify(policy) : policy;
  const ofPolicy = registered.get(key) ?? new Map<number, readonly number[]>();
  registered.set(key, ofPolicy);
  const numbers = ofPolicy.get(results) ?? registerCheckpoint(results, keepsOf(policy));
  ofPolicy.set(results, numbers);
  return numbers;
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
      return (node) => node.op === 'customVjp' && policy.some((name) => ruleOfName(name) === node.attrs.rule);
  }
}

function ruleOfName(name: string): number {
  const known = rulesOfNames.get(name);
  if (known !== undefined) return known;
  const through: CustomRule = (_, __, ___, g) => [g];
  const number = registerRule(through);
  rulesOfNames.set(name, number);
  return number;
}

/**
 * The same value, by a name that a policy of `checkpoint` may keep it by. Elsewhere it means
 * nothing.
 */
export function checkpointName(x: Tensor, name: string): Tensor {
  takesName('checkpointName', x, name);
  expectTensor('checkpointName', 'the tensor', x);
  if (!isInexact(x.dtype)) return x;
  return record([x], (b, [node]) => b.add('customVjp', [node!, node!], { rule: ruleOfName(name) }) as Node);
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
    const numbers = numbersFor(policy, values.length);
    const results = values.map((value, i) => {
      if (tracked[i] !== true) return tensors[i]!;
      const inputs = customInputs(value, given, values);
      const node = builder().add('customVjp', inputs, { rule: numbers[i]! }) as Node;
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
