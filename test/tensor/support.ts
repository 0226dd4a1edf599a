// What the tests of the tensor layer share: a device that counts what it is asked to do, and a handful of operations written
// with `record`, so that these tests do not depend on the operations proper.

import { broadcast, binary, reduce, unary } from '../../src/ir/build.ts';
import type { BinaryOp } from '../../src/ir/ops.ts';
import type { Device } from '../../src/runtime/device.ts';
import { interpreterBackend } from '../../src/runtime/interpreter/device.ts';
import { registerBackend } from '../../src/runtime/registry.ts';
import { setDevice } from '../../src/tensor/device.ts';
import { asTensor, fromHost, record } from '../../src/tensor/record.ts';
import { Tensor, type TensorLike } from '../../src/tensor/tensor.ts';

export interface Spy {
  /** Programs made ready, runs queued, buffers allocated, uploads and downloads so far. */
  readonly count: { load: number; run: number; allocate: number; write: number; read: number };
  /** Outputs of each run, in order. */
  readonly outputs: number[];
  readonly device: Promise<Device>;
}

let spies = 0;

/** Makes a fresh interpreter that counts, and chooses it. `delay` postpones its opening until the promise resolves. */
export function spyDevice(delay: Promise<void> = Promise.resolve()): Spy {
  const count = { load: 0, run: 0, allocate: 0, write: 0, read: 0 };
  const outputs: number[] = [];
  const open = async (): Promise<Device> => {
    const device = await interpreterBackend.open();
    await delay;
    return {
      facts: device.facts,
      get lost() {
        return device.lost;
      },
      allocate: (bytes) => ((count.allocate += 1), device.allocate(bytes)),
      write: (buffer, bytes) => ((count.write += 1), device.write(buffer, bytes)),
      read: (buffer, bytes) => ((count.read += 1), device.read(buffer, bytes)),
      finish: () => device.finish(),
      memory: () => device.memory(),
      destroy: () => device.destroy(),
      load: (program, host) => {
        count.load += 1;
        const loaded = device.load(program, host);
        return {
          program,
          allocateOutputs: () => {
            const made = loaded.allocateOutputs();
            count.allocate += made.length;
            return made;
          },
          run: (...args) => {
            count.run += 1;
            outputs.push(args[1].length);
            loaded.run(...args);
          },
          destroy: () => loaded.destroy(),
        };
      },
    };
  };
  let device: Promise<Device> | undefined;
  const name = `spy${spies++}`;
  registerBackend({ name, open: () => (device ??= open()) });
  setDevice(name);
  return {
    count,
    outputs,
    get device() {
      return (device ??= open());
    },
  };
}

/** A vector of f32. */
export function vec(...values: readonly number[]): Tensor {
  return fromHost(Float32Array.from(values), [values.length], 'f32');
}

function elementwise(op: BinaryOp): (x: TensorLike, y: TensorLike) => Tensor {
  return (x, y) => {
    const dtype = x instanceof Tensor ? x.dtype : (y as Tensor).dtype;
    const [a, c] = [asTensor(x, dtype), asTensor(y, dtype)];
    const shape = a.rank > c.rank ? a.shape : c.shape;
    return record([a, c], (b, [p, q]) => binary(b, op, broadcast(b, p!, shape), broadcast(b, q!, shape)));
  };
}

export const add: (x: TensorLike, y: TensorLike) => Tensor = elementwise('add');
export const sub: (x: TensorLike, y: TensorLike) => Tensor = elementwise('sub');
export const mul: (x: TensorLike, y: TensorLike) => Tensor = elementwise('mul');
export const less: (x: TensorLike, y: TensorLike) => Tensor = elementwise('lt');

export function exp(x: Tensor): Tensor {
  return record([x], (b, [node]) => unary(b, 'exp', node!));
}

/** Sum of all elements of a vector. */
export function sum(x: Tensor): Tensor {
  return record([x], (b, [node]) => reduce(b, 'sum', node!, [0]));
}

/** A vector of one value, pending. */
export function fill(size: number, value: number): Tensor {
  return record([], (b) => broadcast(b, b.add('constant', [], { value, dtype: 'f32' }) as never, [size]));
}

/** Waits for a turn of the event loop in which the engine's own tasks, such as finalizers, run as well. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
