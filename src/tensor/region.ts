// A part of a recording from which facts do not get out as they are: checks of integers find out something on each
// process that runs it, and are told once it is known what that is for all of them.

import type { GraphBuilder, Node } from '../ir/graph.ts';
import { drawCounter } from './generator.ts';
import type { Handle, MappingScope, RandomWords } from './handle/handle.ts';
import { builder, currentMapping, withMapping } from './handle/recording.ts';

/** What `fn` gives; facts that its checks find out are told as `whole` makes them. Random draws are those of its surroundings. */
export function inRegion<T>(fn: () => T, whole: (b: GraphBuilder, fact: Node) => Node): T {
  const region = new Region();
  const result = withMapping(region, fn);
  const b = builder();
  for (const { node, tell } of region.watched) tell(whole(b, node));
  return result;
}

class Region implements MappingScope {
  readonly own = new WeakSet<Handle>();
  readonly watched: { readonly node: Node; readonly tell: (whole: Node) => void }[] = [];
  readonly #outer = currentMapping();

  draw(count: number): RandomWords {
    return withMapping(this.#outer, () => drawCounter(count));
  }

  watch(node: Node, tell: (whole: Node) => void): void {
    this.watched.push({ node, tell });
  }
}
