// What a model may cost. A file of a few bytes can ask for any number of nodes and bytes: each is
// counted before it is made, and what goes beyond the budget is refused by name. Counted are the
// nodes of the file, those that functions, loops and sequences become, and the bytes of each value
// that a run computes.

import { showValue, SinterError, TensorError } from '../errors.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import { sizeOf } from '../ir/shape.ts';

export interface Limits {
  /**
   * Most bytes of a value that the model computes, also where kernels would never store it. Weights
   * are not counted. What the host computes element by element, and what windows read, is limited
   * in proportion.
   */
  readonly maxBytes: number;
  /**
   * Most nodes: those of the file with its functions written out, and those of one run with its
   * loops written out.
   */
  readonly maxNodes: number;
}

/**
 * Values of 2 GiB, which is what a WebGPU buffer and a memory of WebAssembly hold, and a hundred
 * thousand nodes.
 */
export const usualLimits: Limits = { maxBytes: 2 ** 31, maxNodes: 100_000 };

/**
 * Limits with the usual ones in place of those that are not given. Throws E_VALUE at what is no
 * limit.
 */
export function limitsOf(op: string, given: Partial<Limits>): Limits {
  const read = (name: keyof Limits): number => {
    const value = given[name] ?? usualLimits[name];
    if (typeof value === 'number' && value >= 0) return value;
    throw new TensorError(
      'E_VALUE',
      op,
      `${name} is a number from 0 on, got ${showValue(value)}`,
      'Infinity for none',
    );
  };
  return { maxBytes: read('maxBytes'), maxNodes: read('maxNodes') };
}

/**
 * How many bytes of typed arrays and of boxed numbers an element takes that the host computes one
 * by one.
 */
const hostBytes = 32;

/**
 * Elements that windows may read for each byte of the budget: with the usual one 2⁴³, hours of a
 * core.
 */
const readsPerByte = 2 ** 12;

/** What is left of a model's nodes while it is planned, or while it runs once. */
export class Budget {
  readonly limits: Limits;
  #nodes = 0;

  constructor(limits: Limits) {
    this.limits = limits;
  }

  /** Nodes so far. */
  get spent(): number {
    return this.#nodes;
  }

  /** Counts nodes that are about to be made. Throws E_LIMIT where they are too many. */
  spend(nodes: number, what: string): void {
    this.#nodes += nodes;
    const { maxNodes } = this.limits;
    // NaN is refused as well.
    if (this.#nodes <= maxNodes) return;
    const problem = `the model needs ${this.#nodes} nodes or more: the budget is ${maxNodes}`;
    throw refused(`${what}: ${problem}`, 'maxNodes: Infinity');
  }

  /** Throws E_LIMIT at a tensor that is too large. */
  room(shape: readonly number[], dtype: DType, what: string): void {
    this.#expectBytes(sizeOf(shape) * dtypeBytes(dtype), `${dtype}[${shape.join(',')}]`, what);
  }

  /** Throws E_LIMIT at a list that is too long to be computed on the host, element by element. */
  list(count: number, what: string): void {
    this.#expectBytes(count * hostBytes, `a list of ${count} elements, computed on the host,`, what);
  }

  /** Throws E_LIMIT at windows that read too many elements, one by one. */
  reads(count: number, what: string): void {
    this.#expectBytes(count / readsPerByte, `windows of ${count} elements in all,`, what);
  }

  #expectBytes(bytes: number, value: string, what: string): void {
    const { maxBytes } = this.limits;
    if (bytes <= maxBytes) return;
    throw refused(
      `${what} asks for ${value} which takes ${bytes} bytes: the budget is ${maxBytes}`,
      'maxBytes: Infinity',
    );
  }
}

function refused(problem: string, hint: string): SinterError {
  return new SinterError(
    'E_LIMIT',
    `${problem}\n  try: loadOnnx(…, { ${hint} }), if the model can be trusted`,
  );
}

let current = new Budget(usualLimits);

/** The budget of the run that is being recorded. */
export function currentBudget(): Budget {
  return current;
}

/** Runs a function whose nodes and bytes are counted against this budget. */
export function withBudget<T>(budget: Budget, run: () => T): T {
  const before = current;
  current = budget;
  try {
    return run();
  } finally {
    current = before;
  }
}
