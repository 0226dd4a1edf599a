// A region: a closed graph that a node holds as an attribute, the body of a loop. Equal regions have
// equal texts, and are compared by them. Attributes cannot know what nodes are, which have them, so
// that here only the types of a graph's ends are known; `graphOf` (text/region.ts) gives the graph.

import type { DType } from './dtype.ts';
import type { Shape } from './shape.ts';

interface Typed {
  readonly dtype: DType;
  readonly shape: Shape;
}

/** A graph as far as its parameters and its outputs have types. */
interface Ends {
  readonly parameters: readonly Typed[];
  readonly outputs: readonly Typed[];
}

export class Region {
  /** Everything it needs is among its parameters. */
  readonly graph: Ends;
  /** Its text: equal for regions that compute the same in the same way. */
  readonly key: string;
  readonly hash: number;

  /** As `regionOf` makes it; `key` is the text of the graph. */
  constructor(graph: Ends, key: string) {
    this.graph = graph;
    this.key = key;
    let hash = key.length;
    for (let i = 0; i < key.length; i++) hash = (Math.imul(hash, 31) + key.charCodeAt(i)) | 0;
    this.hash = hash;
  }
}
