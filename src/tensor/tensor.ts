// Tensor: the value that users hold. Operations on it record; nothing runs and nothing is allocated
// until its data is asked for. The methods of operations (`x.add(y)`) are installed by methods.ts;
// here is what every tensor can do by itself.

/// <reference lib="esnext.disposable" preserve="true" />

import { copyKey, showValue, TensorError, thisCopy } from '../errors.ts';
import { flag, options } from '../ir/arguments.ts';
import { type DType, isComplex } from '../ir/dtype.ts';
import { sizeOf } from '../ir/shape.ts';
import { unpackBytes, type ComplexNumber, type HostData } from '../ir/value.ts';
import { assignHandle } from './handle/assign.ts';
import type { DataOf, ItemOf, Known, Unknown } from './inferred.ts';
import { backward, detached, gradOf, requireGrad, requiresGrad, setGrad } from './handle/gradient.ts';
import { Handle, showHandle } from './handle/handle.ts';
import type { DeviceBuffer } from './buffer/buffer.ts';
import { disposeHandle } from './handle/memory.ts';
import { readBytes } from './evaluate/evaluate.ts';
import { offerFormatter } from './show/browser.ts';
import { showInConsoles, tensorInLine } from './show/tensor.ts';

/** What operations take where a tensor is expected: a number becomes a constant. */
export type TensorLike<D extends DType = Unknown> = Tensor<D> | number | boolean;

export interface BackwardOptions {
  /** Keeps the history, for another `backward` through it; false by default. */
  readonly retainGraph?: boolean;
}

const backwardOptions = options<BackwardOptions>({ retainGraph: flag });

let reveal: (tensor: Tensor) => Handle;

/**
 * A lazily computed array of one dtype and a fixed shape. The type parameter is the dtype where the
 * type checker knows it; a plain `Tensor` may have any.
 */
export class Tensor<out D extends DType = Unknown> {
  readonly #handle: Handle;
  /** The Tensor of the last gradient handed out, so that `x.grad === x.grad`. */
  #gradFace: Tensor<D> | undefined = undefined;

  static {
    reveal = (tensor) => tensor.#handle;
    showInConsoles(Tensor.prototype, reveal);
    offerFormatter((value) => (value instanceof Tensor ? value.#handle : undefined));
  }

  /** Not for users: tensors are made by `tensor`, `zeros`, … and by operations. */
  constructor(handle: Handle) {
    if (!(handle instanceof Handle)) {
      throw new TensorError('E_VALUE', 'Tensor', 'tensors are not made by `new`', 'tensor(…), zeros(…)');
    }
    this.#handle = handle;
  }

  get dtype(): Known<D> {
    // The type parameter is what the signatures of operations say of the handle's dtype.
    return this.#handle.dtype as Known<D>;
  }

  get shape(): readonly number[] {
    return this.#handle.shape;
  }

  get rank(): number {
    return this.#handle.shape.length;
  }

  /** Number of elements. */
  get size(): number {
    return sizeOf(this.#handle.shape);
  }

  /** Came from a JavaScript number: takes the dtype of the tensor it meets. */
  get weak(): boolean {
    return this.#handle.weak;
  }

  /** How many times `assign` has replaced the value. */
  get version(): number {
    return this.#handle.version;
  }

  get requiresGrad(): boolean {
    return requiresGrad(this.#handle);
  }

  /**
   * Makes this tensor a leaf whose `grad` `backward` fills (or, with `false`, cuts it off from its
   * history).
   */
  requiresGrad_(on: boolean = true): this {
    if (typeof on !== 'boolean') {
      throw new TensorError('E_VALUE', 'requiresGrad_', `expects true or false, got ${showValue(on)}`);
    }
    requireGrad(this.#handle, on);
    return this;
  }

  /**
   * The gradient accumulated by `backward`; undefined before the first one and after `zeroGrad`.
   */
  get grad(): Tensor<D> | undefined {
    const grad = gradOf(this.#handle);
    if (grad === undefined) return undefined;
    if (this.#gradFace === undefined || reveal(this.#gradFace) !== grad) this.#gradFace = new Tensor<D>(grad);
    return this.#gradFace;
  }

  set grad(value: Tensor<D> | undefined) {
    setGrad(this.#handle, value === undefined ? undefined : handleOf(value, 'grad'));
    this.#gradFace = value;
  }

  /** Forgets the accumulated gradient. */
  zeroGrad(): void {
    this.grad = undefined;
  }

  /**
   * Computes the value and copies it to the host: a typed array in C-order. f16 and bf16 arrive as
   * Float32Array, bool as Uint8Array of 0 and 1, 64-bit integers as BigInt64Array and
   * BigUint64Array, complex numbers as real and imaginary parts by turns.
   */
  async data(): Promise<DataOf<D>> {
    const { dtype, shape } = this.#handle;
    return unpackBytes(await readBytes(this.#handle), dtype, shape).data as DataOf<D>;
  }

  /**
   * The only element: a number, a bigint of i64 and u64, a boolean of bool, `{ re, im }` of complex
   * numbers. Throws E_SHAPE when there are more or fewer.
   */
  async item(): Promise<ItemOf<D>> {
    if (this.size !== 1) {
      throw new TensorError(
        'E_SHAPE',
        'item',
        `expects one element: ${showHandle(this.#handle)}`,
        'data() or array()',
      );
    }
    return nest(await this.data(), [], this.dtype) as ItemOf<D>;
  }

  /** The value as nested arrays, one level per axis. */
  async array(): Promise<NestedArray<ItemOf<D>>> {
    return nest(await this.data(), this.shape, this.dtype) as NestedArray<ItemOf<D>>;
  }

  /**
   * Adds d(this)/d(leaf) to `grad` of every leaf that this value depends on. `seed` (default 1, for
   * one element) is the cotangent of this value. The history is released unless `retainGraph`.
   */
  backward(seed?: Tensor, options: BackwardOptions = {}): void {
    if (!backwardOptions.accepts(options)) backwardOptions.refuse('backward', 'options', options);
    const start = seed === undefined ? undefined : handleOf(seed, 'backward');
    backward(this.#handle, start, options.retainGraph ?? false);
  }

  /** The same value without history. */
  detach(): Tensor<D> {
    return new Tensor(detached(this.#handle));
  }

  /**
   * This tensor takes the value of another of the same shape and dtype. What was recorded before
   * keeps the old value. A leaf takes no history along.
   */
  assign(value: Tensor): this {
    assignHandle(this.#handle, handleOf(value, 'assign'));
    return this;
  }

  /**
   * The memory on the device that the value lies in, computing it first: to be read by kernels of
   * your own, and released. It holds the value when work that is queued from now on runs.
   */
  async buffer(): Promise<DeviceBuffer> {
    const { borrowBuffer } = await import('./buffer/source.ts');
    return borrowBuffer(this.#handle);
  }

  /** Frees the memory now rather than when collected; any later use is an error. */
  dispose(): void {
    disposeHandle(this.#handle);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /**
   * One line: `Tensor f32[2,3] (pending)`, `Tensor f32[2] [0.1, 2]` where the values are at hand.
   * Computes nothing.
   */
  toString(): string {
    return tensorInLine(this.#handle);
  }

  /**
   * JavaScript's own operators ask here for a number, and there is none: the value is not known
   * when `x + 1`, `x > 0` or `Math.sqrt(x)` runs. They throw E_VALUE. Text is what `toString`
   * gives, but of what stands for a JavaScript number: there a template string means the number.
   */
  [Symbol.toPrimitive](hint: 'default' | 'number' | 'string'): string {
    const isText = hint === 'string';
    if (isText && !this.#handle.weak) return this.toString();
    throw noNumber(this.#handle);
  }
}

Object.defineProperty(Tensor.prototype, copyKey, { value: thisCopy });

function noNumber(handle: Handle): TensorError {
  const [what, ways] = handle.weak
    ? [
        'a number that was passed to a compiled or differentiated function is a tensor inside',
        'a number that the function captures is compiled in as it is',
      ]
    : [
        "JavaScript's operators and Math do not compute with tensors",
        'await t.item() gives a number outside',
      ];
  const problem = `${what}: the value of ${showHandle(handle)} is not known yet`;
  return new TensorError(
    'E_VALUE',
    'Tensor',
    problem,
    `.add, .mul, .gt, .where, .sqrt, … record it; ${ways}`,
  );
}

/**
 * The handle behind a tensor; for the tensor layer only. Throws E_VALUE when `op` was given
 * something else.
 */
export function handleOf(tensor: Tensor, op: string = 'operation'): Handle {
  if (tensor instanceof Tensor) return reveal(tensor);
  throw new TensorError('E_VALUE', op, `expects a tensor, got ${showValue(tensor)}`);
}

// Nested arrays: a flat C-order array as one array per axis.

/** One element, or an array per axis around the elements. */
export type NestedArray<T = HostElement> = T | NestedArray<T>[];

/** An element of any dtype on the host. */
type HostElement = number | bigint | boolean | ComplexNumber;

/** Arrays beyond which a tensor is not nested: where an axis has nothing in it, no element counts them. */
const mostArrays = 1e8;

/**
 * The elements of `data` nested by `shape`; rank 0 gives the element itself. Of bool they are
 * booleans, of complex dtypes pairs. Throws E_LIMIT at more arrays than memory holds.
 */
export function nest(data: HostData, shape: readonly number[], dtype: DType): NestedArray {
  let level: NestedArray[] = elementsOf(data, dtype);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const [inner, size] = [level, shape[axis]!];
    const count = sizeOf(shape.slice(0, axis));
    if (count > mostArrays) {
      const problem = `[${shape.join(',')}] has ${count} arrays: nested arrays are at most ${mostArrays}`;
      throw new TensorError('E_LIMIT', 'array', problem, 'data(), which has the elements alone');
    }
    level = Array.from({ length: count }, (_, i) => inner.slice(i * size, (i + 1) * size));
  }
  return level[0]!;
}

function elementsOf(data: HostData, dtype: DType): NestedArray[] {
  if (isComplex(dtype))
    return Array.from({ length: data.length / 2 }, (_, i) => ({
      re: Number(data[2 * i]),
      im: Number(data[2 * i + 1]),
    }));
  return dtype === 'bool'
    ? Array.from(data as Iterable<HostElement>, Boolean)
    : Array.from(data as Iterable<HostElement>);
}
