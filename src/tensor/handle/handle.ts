// Handle: the state behind a Tensor. It is *pending* (a graph node not computed yet) or *evaluated*
// (a Storage), and it may track gradients. Everything inside the tensor layer works on handles;
// `Tensor` is their public face.

import type { DType } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { showShape, type FixedShape } from '../../ir/shape.ts';
import type { IntegerRange } from './range.ts';
import { freshParameter } from './leaf.ts';
import { Storage } from '../storage/storage.ts';
import type { Question } from './number.ts';

/** Why a handle can no longer be used. */
export type Gone = 'disposed' | 'donated';

/** Key low, key high, counter low, counter high: the inputs of `randomBits`. */
export type RandomWords = readonly [Node, Node, Node, Node];

/**
 * A compiled structure of recorded operations (evaluate/cache.ts), as seen by the values that it
 * passed over.
 */
export interface Structure {
  /** From now on the value at this position is computed for its own sake. */
  want(position: number): void;
}

/** What a traced function reads of objects that it captures, as it is noted (compile/readings.ts). */
export interface Noting {
  /** A property, and what it was when it was read. */
  note(holder: object, key: PropertyKey, value: unknown): void;
  /** Which properties an object has. */
  noteKeys(holder: object): void;
}

/** Facts that the body of a loop, or a branch, found out (debug.ts): the greater ones are wrong. */
export interface Found {
  readonly facts: Handle;
  /** Takes the greatest facts of all turns, a value of the world outside. */
  readonly tell: (outside: Handle) => void;
}

/** Integers of a traced function that must lie in a range, and how far the outmost one lies (checks/range.ts). */
export interface Checked {
  readonly range: IntegerRange;
  /** The dtype of the integers. */
  readonly dtype: DType;
  /** u32[1] or u64[1]. */
  readonly distance: Handle;
}

/** A function that is being traced (trace/trace.ts), as seen by values and by the recording. */
export interface TraceScope {
  readonly builder: GraphBuilder;
  /** The trace around it, of a body within a traced function. */
  readonly around: TraceScope | undefined;
  /** Facts that its turns hand on beside its results; undefined for a function that is compiled. */
  readonly found: Found[] | undefined;
  /** Checks that become results of the program; undefined where each call makes them. */
  readonly checked: Checked[] | undefined;
  /** Whether values of that trace (or of none) are from outside of this one. */
  encloses(trace: TraceScope | undefined): boolean;
  /** What it has read of objects that it captured. */
  readonly readings: Noting;
  /** The function takes gradients itself. */
  differentiates: boolean;
  /** The tracer of a value from outside that the function captured. */
  tracer(outside: Handle): Handle;
  /** The tracer of a value from outside, where the function has met it. */
  met(outside: Handle): Handle | undefined;
  /** The words for a random draw of so many groups. */
  draw(groups: bigint): RandomWords;
  /** Whether the function made the value. */
  isOwn(value: unknown): boolean;
  /** Whether the node stands for a value from outside. */
  isInput(node: Node): boolean;
  /** Has the integers of a value from outside checked at each call; false where the node is none. */
  requires(node: Node, range: IntegerRange): boolean;
  /**
   * Whether a value depends on something outside that requires gradients, or on a leaf made inside.
   */
  requiresGrad(value: Handle): boolean;
  /** `backward` is about to start from here. */
  goesBack(root: Node): void;
  /** What is recorded next depends on whether this tracer is a leaf. */
  asksLeaf(tracer: Handle): void;
  /** The gradient slot of a tracer is about to be read. */
  readGrad(tracer: Handle): void;
  /** The gradient slot of a tracer is about to be replaced. */
  writeGrad(tracer: Handle): void;
}

/** A function that is being mapped over examples (derivative/vmap.ts), as seen by the recording. */
export interface MappingScope {
  /** Values made inside of it. */
  readonly own: WeakSet<Handle>;
  /** The words for a random draw of so many elements. */
  draw(count: number): RandomWords;

  /** Computes the node for all examples, and gives it, the batch leading, to `tell` once the function is mapped. */
  watch(node: Node, tell: (whole: Node) => void): void;
}

/** A number among the arguments, where its function is recorded. */
export interface GivenNumber {
  /** What it is at the call that is recorded, for messages: nothing else may depend on it. */
  readonly value: number;
  is(question: Question): boolean;
  /** The number in a dtype; one of integers has to hold it. Complex numbers have it in the dtype of their parts. */
  in(dtype: DType): Handle;
}

/** How a value is held while it waits aside (aside.ts). */
export interface Aside extends WeakRef<Handle> {
  /** It waits there no more. */
  leave(): void;
}

export class Handle {
  /** Only `convertHandle` changes it. */
  dtype: DType;
  readonly shape: FixedShape;
  /** The traced function this value exists in; undefined outside of `compile`. */
  readonly trace: TraceScope | undefined;
  /**
   * None yet where nothing was recorded from a computed value: most results of compiled functions
   * never need one.
   */
  #node: Node | undefined;
  /**
   * Gives the node of a value that a compiled function made, with its history, when something asks
   * for it.
   */
  #past: (() => Node) | undefined = undefined;
  /** The computed value; undefined while pending. */
  storage: Storage | undefined;
  requiresGrad = false;
  /** Gradients are accumulated here (a leaf) rather than passed further back. */
  leaf = false;
  grad: Handle | undefined = undefined;
  /** Rises with every `assign`. */
  version = 0;
  gone: Gone | undefined = undefined;
  /** An evaluation must materialise it even where other pending values consume it. */
  keep = false;
  /** Asked for again after an evaluation that did not keep it: the next evaluation computes it first. */
  late = false;
  /** `backward` has run from here: its history is dropped once it is evaluated. */
  released = false;
  /** A `vjp` of this value is held. */
  pulled = false;
  /** Came from a JavaScript number: takes the dtype of what it meets. */
  weak = false;
  /** The number itself, where it is an argument of the function that is recorded. */
  number: GivenNumber | undefined = undefined;
  /** Where an earlier evaluation computed this value without keeping it. */
  passed: { readonly entry: Structure; readonly position: number } | undefined = undefined;

  /** How it is held while it is pending and an evaluation has passed over it (handle/aside.ts). */
  aside: Aside | undefined = undefined;

  constructor(value: Node | Storage, trace: TraceScope | undefined) {
    const isComputed = value instanceof Storage;
    this.#node = isComputed ? undefined : value;
    this.dtype = value.dtype;
    // Users see this array: writing to it throws, and cannot change the tensor's shape.
    this.shape = Object.freeze(isComputed ? value.shape : dims(value));
    this.trace = trace;
    this.storage = isComputed ? value : undefined;
  }

  /** Stands for the value in recorded graphs. */
  get node(): Node {
    if (this.#node === undefined) {
      this.#node = this.#past?.() ?? freshParameter(this, this.storage);
      this.#past = undefined;
    }
    return this.#node;
  }

  set node(node: Node) {
    this.#node = node;
    this.#past = undefined;
  }

  /** A computed value gets a history: `past` makes its node when it is first asked for. */
  remember(past: () => Node): void {
    this.#past = past;
  }

  /** Whether it stands in graphs as a leaf, without a history. */
  get isParameter(): boolean {
    return this.#node === undefined ? this.#past === undefined : this.#node.op === 'parameter';
  }
}

/** `f32[8,3]`. */
export function showHandle(value: Pick<Handle, 'dtype' | 'shape'>): string {
  return showShape(value.shape, value.dtype);
}
