// The values of tensors, for other folders: to compute, read, upload, compare and assign them. How the
// tensor layer keeps values (`handle/`, `evaluate/`, `storage/`, `trace/`) is not visible outside it.
// `record.ts` makes tensors of host data and records operations.

import { TensorError } from '../errors.ts';
import type { DType } from '../ir/dtype.ts';
import type { FixedShape } from '../ir/shape.ts';
import type { ShardPart } from '../sharding/part.ts';
import type { Graph, Node } from '../ir/graph.ts';
import { device, synchronize } from './device.ts';
import { evaluate, evaluateAll, readBytes } from './evaluate/evaluate.ts';
import { graphKeyOf, graphOf } from './evaluate/graph-key.ts';
import { convertHandle } from './handle/assign.ts';
import { Handle } from './handle/handle.ts';
import { storageOf } from './handle/leaf.ts';
import { canonical, gradEnabled, leafHandle, nodeFor } from './handle/recording.ts';
import { nodeOf } from './record.ts';
import { StoredValue } from './storage/storage.ts';
import { handleOf, Tensor } from './tensor.ts';

export { setRetainedMemoryLimit } from './handle/memory.ts';
export { assigning } from './handle/recording.ts';

/**
 * What stands behind a tensor, and behind every other Tensor object of the same value: a key for what
 * is noted of it. Others know its type alone.
 */
export type Value = Pick<Handle, 'dtype' | 'shape'>;

/** What stands behind a tensor. Throws E_VALUE when `op` was given something else. */
export function valueOf(tensor: Tensor, op?: string): Value {
  return handleOf(tensor, op);
}

/** A tensor of the value. */
export function tensorOf(value: Value): Tensor {
  return new Tensor(handleBehind(value));
}

function handleBehind(of: Tensor | Value): Handle {
  return of instanceof Handle ? of : handleOf(of as Tensor);
}

/** The packed bytes of a value, computing it first. Throws E_STATE inside a traced function. */
export function bytesOf(of: Tensor | Value): Promise<Uint8Array> {
  return readBytes(handleBehind(of));
}

/** The packed bytes of a whole value where they lie in the host's memory; computes and copies nothing. */
export function hostBytesOf(of: Tensor | Value): Uint8Array | undefined {
  const { storage } = handleBehind(of);
  return storage?.part === undefined ? storage?.hostBytes : undefined;
}

/** Queues what these tensors wait for, and what is connected with any of them, in one program. */
export function computeAll(tensors: Iterable<Tensor>): void {
  evaluateAll(Array.from(tensors, (tensor) => handleOf(tensor)));
}

/** Computes a tensor; resolves when the device is done, and rejects when the run failed. */
export async function finished(tensor: Tensor): Promise<void> {
  const storage = evaluate(handleOf(tensor));
  await synchronize();
  if (storage.failure !== undefined) throw storage.failure;
}

/**
 * Copies what the host has of some tensors to the current device before anything is computed of them,
 * so that the copy lies beside what the device is busy with. Where that fails nothing is lost: whatever
 * is computed of them copies it then, and tells why it cannot.
 */
export async function upload(tensors: readonly Tensor[]): Promise<void> {
  try {
    const target = await device();
    for (const tensor of tensors) {
      const { storage } = handleOf(tensor);
      if (storage?.hostBytes !== undefined && storage.lost === undefined) storage.on(target);
    }
  } catch {
    // It is tried again when it has to be.
  }
}

/**
 * Moves what the host has of some tensors to the current device, which has the only copy from then on. Rejects where the
 * device cannot take them, with E_OOM or E_LIMIT.
 */
export async function moveToDevice(tensors: readonly Tensor[]): Promise<void> {
  const target = await device();
  for (const tensor of tensors) handleOf(tensor).storage?.moveTo(target);
}

/**
 * Gives a tensor another dtype: from now on it has its own value, converted, and so has its gradient.
 * Throws E_STATE inside a traced function, and for a value with a history.
 */
export function convert(tensor: Tensor, dtype: DType, op: string): void {
  convertHandle(handleOf(tensor), dtype, op);
}

/** What tells values apart. */
export interface ValueIdentity {
  /** Equal for the Tensor objects of one value. */
  readonly value: Value;
  /** How many times `assign` has replaced it. */
  readonly version: number;
  /** The node that computes it: another one once it is computed. */
  readonly node: Node;
  /** Where it lies once it is computed, which others may share. */
  readonly storage: object | undefined;
}

/** What tells the value of a tensor from others. Computes nothing. */
export function identityOf(tensor: Tensor): ValueIdentity {
  const handle = handleOf(tensor);
  const node = canonical(handle.node);
  return { value: handle, version: handle.version, node, storage: handle.storage ?? storageOf(node) };
}

/** What gradients know of a tensor. */
export interface History {
  readonly requiresGrad: boolean;
  /** Gradients end at it, where it requires them. */
  readonly isLeaf: boolean;
  /** The primitive that made it, where gradients go further. */
  readonly creator: Node | undefined;
}

/** What gradients know of a tensor. */
export function historyOf(tensor: Tensor): History {
  const handle = handleOf(tensor);
  const { requiresGrad, leaf } = handle;
  const isLeaf = leaf || !requiresGrad;
  return { requiresGrad, isLeaf, creator: isLeaf ? undefined : canonical(nodeFor(handle)) };
}

/** The graph of what a tensor waits for, over the values that are computed already. */
export function pendingGraph(tensor: Tensor): Graph {
  const graphKey = graphKeyOf([canonical(nodeOf(tensor))], (node) => {
    const storage = storageOf(node);
    return storage?.lost === undefined ? storage : undefined;
  });
  return graphOf(graphKey, graphKey.outputs, () => undefined);
}

/** What this process has of a tensor that several hold together; undefined where it has all of it. */
export function partOf(tensor: Tensor): ShardPart | undefined {
  return handleOf(tensor).storage?.part;
}

/**
 * A tensor of this shape of which this process has `part`, which is `stored` of it; all of it where that is undefined. Throws E_STATE where its values are not
 * on the host.
 */
export function tensorOfPart(part: Tensor, shape: FixedShape, stored: ShardPart | undefined): Tensor {
  const bytes = hostBytesOf(part);
  if (bytes === undefined) {
    const problem = 'the values of the part are not on the host';
    throw new TensorError('E_STATE', 'fromPart', problem, 'fromPart(tensor(await x.data()), …)');
  }
  return new Tensor(leafHandle(StoredValue.ofHost(part.dtype, shape, bytes, stored)));
}

/** Whether gradients of what is made of a tensor now would flow on from it, to what it was made of. */
export function hasHistory(tensor: Tensor): boolean {
  return gradEnabled() && handleOf(tensor).hasHistory;
}

/** This process's part of a tensor, as a tensor of its own. */
export function localPartOf(tensor: Tensor): Tensor {
  const storage = evaluate(handleOf(tensor));
  return storage.part === undefined ? tensor : new Tensor(leafHandle(storage.ownPart()));
}
