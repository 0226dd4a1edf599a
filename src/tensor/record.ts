// Recording: how every operation is written. `record` hands the nodes of its inputs to a function
// that builds on them and wraps the node it gives. Type errors surface here, at the user's call.

import { TensorError } from '../errors.ts';
import { madeNumber } from '../ir/build.ts';
import { isInexact, isWide, partType, scalarType, type DType } from '../ir/dtype.ts';
import type { GraphBuilder, Node } from '../ir/graph.ts';
import { showShape, sizeOf, type FixedShape } from '../ir/shape.ts';
import { fromInteger, fromReal, hostArray, packBytes, partCount, type HostData } from '../ir/value.ts';
import { evaluateLarge } from './evaluate/evaluate.ts';
import { expectOperand } from './expect.ts';
import { outerCall, strayCheck } from './handle/recorded.ts';
import {
  builder,
  gradEnabled,
  currentHandle,
  leafHandle,
  nodeAt,
  nodeFor,
  recordedHandle,
} from './handle/recording.ts';
import { showHandle, type GivenNumber, type Handle } from './handle/handle.ts';
import { answerOf } from './handle/number.ts';
import { StoredValue } from './storage/storage.ts';
import { handleOf, Tensor, type TensorLike } from './tensor.ts';

/** The node that stands for a tensor in the current recording. */
export function nodeOf(tensor: Tensor): Node {
  return nodeFor(handleOf(tensor));
}

/**
 * The nodes of an operation's inputs, and whether its results may carry a gradient back to one of
 * them.
 */
interface Inputs {
  readonly nodes: readonly Node[];
  readonly history: boolean;
}

function read(inputs: readonly Tensor[]): Inputs {
  evaluateLarge();
  const nodes: Node[] = [];
  let history = false;
  if (outerCall() !== undefined) for (const input of inputs) strayCheck.filled?.(handleOf(input));
  for (const input of inputs) {
    const handle = currentHandle(handleOf(input));
    if (handle.storage?.part !== undefined) refusePart(handle);
    history ||= handle.requiresGrad;
    nodes.push(nodeAt(handle));
  }
  return { nodes, history };
}

/** Operations on parts that processes have need the other processes, which run what is compiled. */
function refusePart(handle: Handle): never {
  const problem = `${showHandle(handle)} is split over several processes, which compute with it in compiled functions only`;
  throw new TensorError('E_STATE', 'operation', problem, 'compile(fn)(x), or gather(x) for all of it');
}

/** The tensor of a node that was made of such inputs. */
function wrap(node: Node, history: boolean): Tensor {
  const tracked = history && isInexact(node.dtype);
  if (!tracked || gradEnabled()) return new Tensor(recordedHandle(node, tracked));
  return new Tensor(recordedHandle(builder().add('stopGradient', [node], {}) as Node, false));
}

/** Records one operation: `make` builds on the inputs' nodes and gives the result's. */
export function record(
  inputs: readonly Tensor[],
  make: (b: GraphBuilder, nodes: readonly Node[]) => Node,
): Tensor {
  const { nodes, history } = read(inputs);
  return wrap(make(builder(), nodes), history);
}

/** Records an operation with several results. */
export function recordMany(
  inputs: readonly Tensor[],
  make: (b: GraphBuilder, nodes: readonly Node[]) => readonly Node[],
): Tensor[] {
  const { nodes, history } = read(inputs);
  return make(builder(), nodes).map((node) => wrap(node, history));
}

/** The number itself: the recording holds for it alone. */
export function onlyNumber(number: GivenNumber): number {
  number.is({ equals: number.value });
  return number.value;
}

/** The number that a tensor stands for, where it is an argument of the function that is recorded. */
export function numberOf(value: unknown): GivenNumber | undefined {
  return value instanceof Tensor ? handleOf(value).number : undefined;
}

/**
 * A tensor as it is; a number or boolean as a rank-0 constant of `dtype`. Throws E_VALUE at
 * anything else.
 */
export function asTensor(value: TensorLike, dtype: DType, op: string = 'operation'): Tensor {
  if (value instanceof Tensor) {
    const number = numberOf(value);
    if (number === undefined) return value;
    // What the dtype does not hold is brought to it here, so that it has to be known.
    if (!number.is({ holds: dtype })) return asTensor(onlyNumber(number), dtype, op);
    const handle = number.in(dtype);
    return new Tensor(handle);
  }
  expectOperand(op, value);
  const number = Number(value);
  const stored = Number.isSafeInteger(number) && isWide(dtype) ? BigInt(number) : number;
  const brought = typeof stored === 'bigint' ? fromInteger(dtype)(stored) : fromReal(dtype)(stored);
  const node = builder().add('constant', [], { value: brought, dtype }) as Node;
  const handle = recordedHandle(node, false);
  handle.comesFrom('number');
  return new Tensor(handle);
}

/** A number as functions that are recorded have their arguments: an f32 that takes the dtype of what it meets. */
export function numberTensor(value: number): Tensor {
  const tensor = asTensor(value, 'f32');
  const handle = handleOf(tensor);
  handle.comesFrom({
    value,
    is: (question) => answerOf(value, question),
    in: (dtype) => (dtype === 'f32' ? handle : handleOf(asTensor(value, partType(dtype)))),
  });
  return tensor;
}

/**
 * A number that is another one whenever the same operations are recorded again (a learning rate, the
 * scale of a loss), for operands of `dtype`; weak, as a plain number is. Equal numbers of one purpose
 * are one scalar of the program. Programs take no scalars of 64 bits: there it is a value in memory, so
 * that every recording has one structure.
 */
export function madeScalar(value: number, dtype: DType, purpose: string): Tensor {
  const isScalar = scalarType(dtype) !== undefined;
  if (!isScalar) return fromHost(hostArray(dtype, [], [value]).data, [], dtype);
  const handle = recordedHandle(madeNumber(value, dtype, purpose), false);
  handle.comesFrom('number');
  return new Tensor(handle);
}

/**
 * A tensor of elements in host memory (in the typed array that `data()` gives for this dtype); they
 * are copied.
 */
export function fromHost(data: HostData, shape: FixedShape, dtype: DType): Tensor {
  if (data.length !== sizeOf(shape) * partCount(dtype)) {
    throw new TensorError(
      'E_SHAPE',
      'tensor',
      `${showShape(shape, dtype)} takes ${sizeOf(shape) * partCount(dtype)} elements, got ${data.length}`,
    );
  }
  return new Tensor(leafHandle(StoredValue.ofHost(dtype, shape, packBytes({ dtype, shape, data }))));
}

/**
 * A tensor of packed elements (as files hold them), which become its own: they are not copied, and
 * must not change afterwards.
 */
export function fromBytes(bytes: Uint8Array, shape: FixedShape, dtype: DType): Tensor {
  return new Tensor(leafHandle(StoredValue.ofHost(dtype, shape, bytes)));
}
