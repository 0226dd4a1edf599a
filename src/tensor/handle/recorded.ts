// What a session has recorded and not computed yet, and how it records.

import { GraphBuilder, type Node } from '../../ir/graph.ts';
import { currentSession, SessionPart, type Session } from '../session.ts';
import type { Storage } from '../storage/storage.ts';
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
  unread: Storage[];
  gradEnabled: boolean;
  /** The function being traced by `compile`, if one is. */
  trace: TraceScope | undefined;
  /** The function being mapped by `vmap`, if one is. */
  mapping: MappingScope | undefined;
  /** Values are being recorded that no evaluation needs to compute on their own. */
  scratch: boolean;
  /** Nodes that a derivative being taken right now is with respect to. */
  readonly differentiated: Set<Node>;
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
  layers: [],
  outerCall: undefined,
}));

/** What a session records: the one that code runs in, without another. */
export function recorded(session: Session = currentSession()): RecordingState {
  return part.of(session);
}
