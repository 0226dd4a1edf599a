// `vmap`: a function of one example as a function of a batch, without a loop.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { moveAxis } from '../../autograd/vmap/rule.ts';
import { expectSynchronous } from '../expect.ts';
import { showHandle } from '../handle/handle.ts';
import { nodeOf } from '../record.ts';
import { builder, currentHandleUnchecked } from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import { callOnCopies, flatten, step, TreeNode, unflatten, type Flat } from '../tree.ts';
import { leading, mapOver, type Randomness } from './mapping.ts';
import { result, tensorAt } from './result.ts';

/**
 * Along which axis of each tensor the examples stand: a number, null where all examples share it,
 * or a tree of these over the arrays and objects of the arguments (or results).
 */
export type MappedAxes = number | null | readonly MappedAxes[] | { readonly [key: string]: MappedAxes };

export interface VmapOptions {
  /** For all arguments, or one entry for each of them; default 0. */
  readonly inAxes?: MappedAxes;
  /** For all results, or a tree like the result; default 0. null: no example changes it. */
  readonly outAxes?: MappedAxes;
  /**
   * Whether each example draws random numbers of its own (the default: the same that calls one
   * after the other would draw), or all of them draw the same.
   */
  readonly randomness?: Randomness;
}

const axesKind: arg.Kind<MappedAxes> = arg.kind(
  'an axis, null, or a tree of these',
  isAxes,
  () => '0, [0, null], { x: 1 }',
);

function isAxes(value: unknown): value is MappedAxes {
  if (value === null || Number.isSafeInteger(value)) return true;
  if (Array.isArray(value)) return Array.from<unknown>(value).every(isAxes);
  return arg.isPlainObject(value) && Object.values(value).every(isAxes);
}

const takesVmap = arg.takes<(fn: unknown, options?: VmapOptions) => unknown>(
  ['the function', arg.callable<unknown>()],
  [
    'options',
    arg.options<VmapOptions>({
      inAxes: axesKind,
      outAxes: axesKind,
      randomness: arg.oneOf('different', 'same'),
    }),
  ],
);

/**
 * A function that calls `fn` for each example of a batch, all at once: `fn` sees tensors without
 * the axis of the batch, and its results are stacked along `outAxes`. Values that it captures are
 * the same for every example, and computed once. Numbers and other leaves are handed through.
 * Throws E_AXIS where a tensor lacks the axis, E_SHAPE where batches differ in size, and E_STATE
 * where `fn` changes or reads a value.
 */
export function vmap<A extends unknown[], R>(
  fn: (...args: A) => R,
  options: VmapOptions = {},
): (...args: A) => R {
  takesVmap('vmap', fn, options);
  const { inAxes = 0, outAxes = 0, randomness = 'different' } = options;
  return (...args) => {
    const flat = flatten(args, 'vmap');
    const inputs = inputsOf(flat, axesFor('inAxes', 'argument', inAxes, args));
    const size = sizeOfBatch(inputs);
    let output: unknown;
    let leaves: Flat | undefined;
    const mapped = mapOver(size, inputs.map(wholeOf), randomness, (examples) => {
      const places = new Map(inputs.map(({ leaf }, i) => [leaf, examples[i]!]));
      const called = flat.leaves.map((value, i) => places.get(i) ?? value);
      output = callOnCopies('vmap', () => fn(...(unflatten(flat.structure, called) as A)));
      expectSynchronous('vmap', output);
      const found = (leaves = flatten(output, 'vmap'));
      return found.leaves.map((leaf, i) => nodeOf(tensorAt('vmap', 'result', leaf, found.paths[i]!)));
    });
    const { structure, paths } = leaves!;
    const axes = axesFor('outAxes', 'result', outAxes, output);
    const untracked = new Set<Node>();
    const results = mapped.map((each, i) => {
      const axis = axes[i]!;
      if (axis === null) {
        if (!each.isMapped) return result(each.node, untracked);
        const place = paths[i] === '' ? '' : ` at ${paths[i]}`;
        const problem = `the result${place} differs between examples, and its outAxes are null`;
        throw new TensorError('E_AXIS', 'vmap', problem, 'outAxes: 0');
      }
      const whole = leading(each, size);
      const to = axisOf('outAxes', `the result${paths[i]!}`, axis, dims(whole));
      return result(moveAxis(builder(), whole, 0, to), untracked);
    });
    return unflatten(structure, results) as R;
  };
}

/** A tensor that is mapped. */
interface Input {
  /** Its place among the leaves. */
  readonly leaf: number;
  readonly path: string;
  readonly tensor: Tensor;
  readonly axis: number;
}

function inputsOf(flat: Flat, axes: readonly (number | null)[]): Input[] {
  return flat.leaves.flatMap((tensor, leaf): Input[] => {
    const axis = axes[leaf]!;
    if (axis === null || !(tensor instanceof Tensor)) return [];
    const path = `argument ${flat.paths[leaf]!.replace(/^\[(\d+)\]/, '$1')}`;
    return [{ leaf, path, tensor, axis: axisOf('inAxes', path, axis, tensor.shape) }];
  });
}

/** An axis counted from the front. */
function axisOf(option: string, what: string, axis: number, shape: readonly number[]): number {
  const from = axis < 0 ? axis + shape.length : axis;
  if (from >= 0 && from < shape.length) return from;
  throw new TensorError(
    'E_AXIS',
    'vmap',
    `${what} has no axis ${axis} to map over: its shape is [${shape.join(',')}]`,
    option === 'inAxes' ? 'inAxes: null where all examples share it' : 'outAxes: 0',
  );
}

function sizeOfBatch(inputs: readonly Input[]): number {
  const [first, ...others] = inputs;
  if (first === undefined) {
    const problem = 'no tensor among the arguments is mapped';
    throw new TensorError('E_VALUE', 'vmap', problem, 'inAxes: 0 for at least one of them');
  }
  const sizeAt = ({ tensor, axis }: Input): number => tensor.shape[axis]!;
  const size = sizeAt(first);
  for (const other of others) {
    if (sizeAt(other) === size) continue;
    const told = (input: Input): string =>
      `${sizeAt(input)} example(s) along axis ${input.axis} of ${input.path}, ${showHandle(handleOf(input.tensor))}`;
    throw new TensorError(
      'E_SHAPE',
      'vmap',
      `batches differ in size: ${told(first)}, and ${told(other)}`,
      'inAxes: null for what all examples share',
    );
  }
  return size;
}

function wholeOf({ tensor, axis }: Input): { readonly node: Node; readonly tracked: boolean } {
  const tracked = currentHandleUnchecked(handleOf(tensor)).requiresGrad;
  return { node: moveAxis(builder(), nodeOf(tensor), axis, 0), tracked };
}

/** The axis of each leaf of a tree, by a tree of axes over its first levels. */
function axesFor(option: string, what: string, axes: MappedAxes, tree: unknown): (number | null)[] {
  const walk = (at: MappedAxes, value: unknown, path: string): (number | null)[] => {
    if (at === null || typeof at === 'number') return flatten(value, 'vmap').leaves.map(() => at);
    const isTree = typeof value === 'object' && value !== null;
    const isInside = isTree && !(value instanceof Tensor) && !(value instanceof TreeNode);
    const keys = isInside ? Object.keys(value) : [];
    const same = keys.length === Object.keys(at).length && keys.every((key) => Object.hasOwn(at, key));
    if (!isInside || Array.isArray(at) !== Array.isArray(value) || !same) {
      const place = `the ${what}${path === '' ? 's' : ` at ${path}`}`;
      const problem = `${option} must be like ${place}: got ${showValue(at)} for ${showValue(value)}`;
      throw new TensorError('E_VALUE', 'vmap', problem, `one entry for each ${what}, or one axis for all`);
    }
    return keys.flatMap((key) => {
      const name = Array.isArray(value) ? Number(key) : key;
      return walk(
        (at as { readonly [key: string]: MappedAxes })[key]!,
        (value as Record<string, unknown>)[key],
        path + step(name),
      );
    });
  };
  return walk(axes, tree, '');
}
