// Handle: what stands behind a Tensor, which is its public face. Everything inside the tensor layer
// works on handles. A handle has a life (pending, evaluated, …: state.ts), what gradients do at it, and
// what it was made of; the three are independent, and only the methods of Handle change them.
//
// To know this folder, read in this order:
//   state.ts      the states of a value and the transitions between them
//   handle.ts     the value itself, and what it sees of a function that is traced or mapped
//   leaf.ts       parameters of graphs that stand for values, and which nodes are computed
//   recorded.ts   what a session has recorded and not computed, and the layers being called
//   recording.ts  how values get into the recording, and how they are computed at most once
//   aside.ts      pending values that evaluations have passed over, held weakly
//   gradient.ts   requiresGrad_, backward, and the walk along a history
//   assign.ts     a tensor takes the value or the dtype of another
//   memory.ts     values that are given up, and when their memory goes back
//   number.ts     numbers that a recording does not know: what it may ask of them

import { CompilerBug } from '../../errors.ts';
import type { DType } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { showShape, type FixedShape } from '../../ir/shape.ts';
import type { IntegerRange, Question } from './number.ts';
import { freshParameter } from './leaf.ts';
import { StoredValue } from '../storage/storage.ts';
import {
  disposed,
  donated,
  donating,
  moved,
  pending,
  type Ended,
  type Hold,
  type HandleState,
  type Structure,
  type Keeping,
} from './state.ts';

/** Key low, key high, counter low, counter high: the inputs of `randomBits`. */
export type RandomWords = readonly [Node, Node, Node, Node];

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

/** Integers of a traced function that must lie in a range, and how far the outmost one lies (range-checks.ts). */
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
  /** For messages: the function that its values exist inside of, and how to have them outside. */
  readonly home: readonly [where: string, hint: string];
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
  /** What is recorded next depends on whether a derivative is being taken. */
  asksDerivative(): void;
  /** Whether a derivative that is being taken may lead through this value from outside. */
  leadsOn(input: Node): boolean;
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

/** A pending value that an evaluation has set aside (aside.ts). */
export interface Aside extends Hold, WeakRef<Handle> {}

/**
 * What gradients do at a value: they pass it by, flow on through its history, find that `backward` has
 * released the history, or are accumulated in it (a leaf).
 */
export type Tracking = 'none' | 'history' | 'released' | 'leaf';

/** What a value was made of; one of a JavaScript number is weak: it takes the dtype of what it meets. */
export type MadeOf = 'tensor' | 'number' | GivenNumber;

export class Handle {
  #dtype: DType;
  readonly shape: FixedShape;
  /** The traced function this value exists in; undefined outside of `compile`. */
  readonly trace: TraceScope | undefined;
  /**
   * Stands for the value in recorded graphs; a function makes it when something asks for it. None yet
   * where nothing was recorded from a computed value: most results of compiled functions never need one.
   */
  #node: Node | (() => Node) | undefined;
  #state: HandleState;
  #tracking: Tracking;
  #grad: Handle | undefined = undefined;
  #version = 0;
  #isPulled = false;
  #madeOf: MadeOf = 'tensor';

  constructor(value: Node | StoredValue, trace: TraceScope | undefined, tracking: Tracking = 'none') {
    const isComputed = value instanceof StoredValue;
    this.#node = isComputed ? undefined : value;
    this.#state = isComputed ? { kind: 'evaluated', storage: value } : pending.fusible;
    this.#dtype = value.dtype;
    // Users see this array: writing to it throws, and cannot change the tensor's shape.
    this.shape = Object.freeze(isComputed ? value.shape : dims(value));
    this.trace = trace;
    this.#tracking = tracking;
  }

  get dtype(): DType {
    return this.#dtype;
  }

  /** Rises with every `assign`. */
  get version(): number {
    return this.#version;
  }

  // Its life.

  get state(): HandleState {
    return this.#state;
  }

  /** The computed value; undefined while there is none. */
  get storage(): StoredValue | undefined {
    const state = this.#state;
    return state.kind === 'evaluated' ? state.storage : undefined;
  }

  /** Why it can no longer be used. */
  get gone(): Ended['kind'] | undefined {
    const { kind } = this.#state;
    return kind === 'disposed' || kind === 'donated' ? kind : undefined;
  }

  /** Whether an evaluation has to materialise it even where other pending values consume it. */
  get isKept(): boolean {
    return this.#wanted !== 'fusible';
  }

  /** Whether the next evaluation computes it first. */
  get isLate(): boolean {
    return this.#wanted === 'late';
  }

  get #wanted(): Keeping {
    const state = this.#state;
    return state.kind === 'pending' || state.kind === 'aside' ? state.wanted : 'fusible';
  }

  /** Whatever computes it keeps it. */
  keep(): void {
    this.#state = moved('keep', this.#state, this.isLate ? pending.late : pending.kept);
  }

  /** An evaluation computed it without keeping it. */
  passOver(structure: Structure, position: number): void {
    this.#state = moved('passOver', this.#state, { kind: 'passed', structure, position });
  }

  /**
   * It is used after an evaluation that passed it over. Where it costs something to compute, evaluations of that
   * structure keep it from now on, and the next one computes it first.
   */
  askAgain(isFree: boolean): void {
    const before = this.#state;
    this.#state = moved('askAgain', before, isFree ? pending.fusible : pending.late);
    if (before.kind === 'passed' && !isFree) before.structure.want(before.position);
  }

  /** An evaluation computed nothing that it is connected with. */
  setAside(held: Hold): void {
    this.#state = moved('setAside', this.#state, { kind: 'aside', held, wanted: this.#wanted });
  }

  /** It is to be computed, or nothing needs to compute it on its own. */
  takeBack(): void {
    this.#state = moved('takeBack', this.#state, pending[this.#wanted]);
  }

  /** It is computed. */
  evaluate(storage: StoredValue): void {
    this.#state = moved('evaluate', this.#state, { kind: 'evaluated', storage });
  }

  /** It takes another value, maybe of another dtype, and gives the one before. */
  renew(node: Node): StoredValue | undefined {
    const before = this.storage;
    this.#state = moved('renew', this.#state, pending.fusible);
    this.#node = node;
    this.#dtype = node.dtype;
    this.#version += 1;
    this.forgetNumber();
    return before;
  }

  /** A call of a compiled function takes its value, which this gives, and assigns another to it or ends with `donate`. */
  give(): StoredValue | undefined {
    const { storage } = this;
    this.#state = moved('give', this.#state, donating);
    return storage;
  }

  /** The call that took its value gave it no other. */
  donate(): void {
    this.#state = moved('donate', this.#state, donated);
  }

  /** The program gives it up; gives the value that it had. */
  dispose(): StoredValue | undefined {
    const { storage } = this;
    this.#state = moved('dispose', this.#state, disposed);
    return storage;
  }

  // Its gradient.

  get requiresGrad(): boolean {
    return this.#tracking !== 'none';
  }

  /** Gradients are accumulated here rather than passed further back. */
  get leaf(): boolean {
    return this.#tracking === 'leaf';
  }

  /** `backward` has run from here: its history is dropped once it is evaluated. */
  get released(): boolean {
    return this.#tracking === 'released';
  }

  /** Gradients flow on from here. */
  get hasHistory(): boolean {
    return this.#tracking === 'history';
  }

  get tracking(): Tracking {
    return this.#tracking;
  }

  /** From now on gradients do this at the value. */
  track(tracking: Tracking): void {
    if (tracking === 'released' && !this.hasHistory)
      throw new CompilerBug('handle', `a value without a history (${this.#tracking}) cannot release it`);
    this.#tracking = tracking;
  }

  /** What was accumulated. */
  get grad(): Handle | undefined {
    return this.#grad;
  }

  replaceGrad(grad: Handle | undefined): void {
    this.#grad = grad;
  }

  /** A `vjp` of this value is held: what it was computed from may be read later. */
  get isPulled(): boolean {
    return this.#isPulled;
  }

  pull(): void {
    this.#isPulled = true;
  }

  // What stands for it in graphs, and what it was made of.

  get node(): Node {
    const node = this.#node;
    if (typeof node === 'object') return node;
    return (this.#node = node === undefined ? freshParameter(this, this.storage) : node());
  }

  /** Another node stands for the same value. */
  represent(node: Node): void {
    this.#node = node;
  }

  /** A computed value gets a history: `past` makes its node when it is first asked for. */
  remember(past: () => Node): void {
    this.#node = past;
    this.#tracking = 'history';
  }

  /** Whether it stands in graphs as a leaf, without a history. */
  get isParameter(): boolean {
    const node = this.#node;
    return node === undefined || (typeof node === 'object' && node.op === 'parameter');
  }

  get madeOf(): MadeOf {
    return this.#madeOf;
  }

  /** Came from a JavaScript number: takes the dtype of what it meets. */
  get weak(): boolean {
    return this.#madeOf !== 'tensor';
  }

  /** The number itself, where it is an argument of the function that is recorded. */
  get number(): GivenNumber | undefined {
    return typeof this.#madeOf === 'object' ? this.#madeOf : undefined;
  }

  /** It has another value or another history than the argument: only its node tells them. */
  forgetNumber(): void {
    if (this.weak) this.#madeOf = 'number';
  }

  comesFrom(madeOf: MadeOf): void {
    this.#madeOf = madeOf;
  }
}

/** `f32[8,3]`. */
export function showHandle(value: Pick<Handle, 'dtype' | 'shape'>): string {
  return showShape(value.shape, value.dtype);
}
