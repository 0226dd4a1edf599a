// A computation whose results are looked at.

import type { Node } from '../../ir/graph.ts';
import type { StoredValue } from '../storage/storage.ts';

/** A computation whose results are looked at: its nodes down to what was computed before. */
export interface Watched {
  /** Results and where they will be. */
  readonly results: ReadonlyMap<Node, StoredValue>;
  /** Values that the walk ends at. */
  readonly leaves: ReadonlyMap<Node, StoredValue>;
}
