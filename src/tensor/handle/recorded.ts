// What a session has recorded and not computed yet, and how it records: which nodes a derivative is taken
// with respect to, and which layers are being called. A call of a method of a layer is a frame, which the
// Proxy around the layer keeps (layer/watch.ts). The outermost frame is of the layer that you called; the
// tensors that it computes with are expected to be its own (layer/held.ts). This file also counts changes of
// hooks and of the dtypes of tensors: a trace with an older count is made again.

import { GraphBuilder, type Node } from '../../ir/graph.ts';
import { Slot } from '../../slot.ts';
import { currentSession, type Session, SessionPart } from '../session.ts';
import type { StoredValue } from '../storage/storage.ts';
import type { Aside, Handle, MappingScope, TraceScope } from './handle.ts';

/** The call of a layer that no other layer made. */
export interface OuterCall {
  readonly layer: object;
  readonly args: readonly unknown[];
  /** Leaves that were made while it ran. */
  readonly made: WeakSet<Handle>;
  /** The tensors among the arguments; undefined until they are first needed. */
  given: ReadonlySet<Handle> | undefined;
}

export interface RecordingState {
  /** Operations are added to its graph where no function is being traced. */
  builder: GraphBuilder;
  /** Values recorded since the last evaluation and not computed yet, oldest first. */
  pending: Set<Handle>;
  /** Values that evaluations have passed over and that the program still holds, oldest first (aside.ts). */
  readonly aside: Set<Aside>;
  /** Values that nothing aside reads any more since this was asked last. */
  unread: StoredValue[];
  gradEnabled: boolean;
  /** The function being traced by `compile`, if one is. */
  trace: TraceScope | undefined;
  /** The function being mapped by `vmap`, if one is. */
  mapping: MappingScope | undefined;
  /** Values are being recorded that no evaluation needs to compute on their own. */
  scratch: boolean;
  /** Nodes that a derivative being taken right now is with respect to, and examples that lead to some. */
  readonly differentiated: Set<Node>;
  /** How many derivatives are being taken right now, one within another. */
  derivatives: number;
  /** The layers being called, outermost first. */
  readonly layers: object[];
  outerCall: OuterCall | undefined;
}

const part = new SessionPart((): RecordingState => ({
  builder: new GraphBuilder(),
  pending: new Set(),
  aside: new Set(),
  unread: [],
  gradEnabled: true,
  trace: undefined,
  mapping: undefined,
  scratch: false,
  differentiated: new Set(),
  derivatives: 0,
  layers: [],
  outerCall: undefined,
}));

/** What a session records: the one that code runs in, without another. */
export function recorded(session: Session = currentSession()): RecordingState {
  return part.of(session);
}

/**
 * Whether a derivative being taken right now is with respect to this node; what reaches it can be
 * differentiated again.
 */
export function isOpen(node: Node): boolean {
  return recorded().differentiated.has(node);
}

/** How many derivatives are being taken right now, one within another. */
export function derivativesTaken(): number {
  return recorded().derivatives;
}

/** Whether a derivative is being taken right now. */
export function isDifferentiating(): boolean {
  return derivativesTaken() > 0;
}

/** As `withOpen`, of the nodes that the derivative is with respect to. */
export function withDerivative<T>(nodes: readonly Node[], fn: () => T): T {
  const state = recorded();
  state.derivatives += 1;
  try {
    return withOpen(nodes, fn);
  } finally {
    state.derivatives -= 1;
  }
}

/** Runs `fn` while these nodes lead to what a derivative is taken for. */
export function withOpen<T>(nodes: readonly Node[], fn: () => T): T {
  const { differentiated } = recorded();
  // One that leads there already still does so afterwards.
  const opened = nodes.filter((node) => !differentiated.has(node));
  for (const node of opened) differentiated.add(node);
  try {
    return fn();
  } finally {
    for (const node of opened) differentiated.delete(node);
  }
}

/** The outermost call; undefined outside of layers. */
export function outerCall(): OuterCall | undefined {
  return recorded().outerCall;
}

/** The layer whose method was called last, and runs. */
export function innermostLayer(): object | undefined {
  return recorded().layers.at(-1);
}

/**
 * A method of a layer is called; gives what `leave` takes when it returns or throws. Of a method
 * that waits, what is before its first `await` belongs to the frame.
 */
export function enter(layer: object, args: readonly unknown[]): OuterCall | undefined {
  const state = recorded();
  const before = state.outerCall;
  state.outerCall ??= { layer, args, made: new WeakSet(), given: undefined };
  state.layers.push(layer);
  return before;
}

/** The method called last has ended. */
export function leave(before: OuterCall | undefined): void {
  const state = recorded();
  state.layers.pop();
  state.outerCall = before;
}

/** The value has become a leaf, which gradients are accumulated in. */
export function noteLeaf(handle: Handle): void {
  recorded().outerCall?.made.add(handle);
}

let changeCount = 0;

/** Something changed that every trace may depend on. */
export function noteChange(): void {
  changeCount += 1;
}

/** How often something changed. */
export function changes(): number {
  return changeCount;
}

/** The check of what layers read (layer/held.ts). Trees fill it, of which layers are made; other pages do without. */
export const strayCheck: Slot<(handle: Handle) => void> = new Slot('the check of what layers read');

/** A computation whose results are looked at: its nodes down to what was computed before. */
export interface Watched {
  /** Results and where they will be. */
  readonly results: ReadonlyMap<Node, StoredValue>;
  /** Values that the walk ends at. */
  readonly leaves: ReadonlyMap<Node, StoredValue>;
}

/** What evaluations ask. */
export interface AnomalySearch {
  /** Whether the computation of these nodes is to be looked at. */
  readonly isWatched: (nodes: Iterable<Node>) => boolean;
  /** Has results rejected when read, if they, or what they are computed from, are not finite. */
  readonly watch: (computation: Watched) => void;
}

/** The search for what is not finite. `detectAnomaly` fills it (tensor/anomaly.ts); other pages do without. */
export const anomalies: Slot<AnomalySearch> = new Slot('the search for anomalies');
