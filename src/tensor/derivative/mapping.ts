// Calling a function on one example and computing it for all of them: what `vmap` and Jacobians
// share. The function sees tracers of one example, in the same recording; what it records is
// batched afterwards (autograd/vmap/). Values from outside are the same for every example.

import { batched } from '../../autograd/vmap/vmap.ts';
import { lead } from '../../autograd/vmap/rule.ts';
import { firstOf } from '../../autograd/vmap/rules-random.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { drawCounter } from '../generator.ts';
import type { MappingScope, RandomWords } from '../handle/handle.ts';
import { withOpen } from '../handle/recorded.ts';
import { exampleParameter } from '../handle/leaf.ts';
import { builder, currentMapping, inScratch, unscheduledHandle, withMapping } from '../handle/recording.ts';
import { Tensor } from '../tensor.ts';

/** Whether each example draws random numbers of its own, or all draw the same. */
export type Randomness = 'different' | 'same';

/** A value that is mapped: the batch leads. */
export interface Whole {
  readonly node: Node;
  /** Whether it leads back to what gradients are taken for. */
  readonly tracked: boolean;
}

/** The nodes for all examples: whether each is mapped, the batch leading then. */
export interface Mapped {
  readonly node: Node;
  readonly isMapped: boolean;
}

/** Calls `fn` on one example of each value; its nodes are computed for all `size` of them. */
export function mapOver(
  size: number,
  wholes: readonly Whole[],
  randomness: Randomness,
  fn: (examples: readonly Tensor[]) => readonly Node[],
): Mapped[] {
  const draws = new Draws(size, randomness);
  const tracers = new Map<Node, Node>();
  const watched: { readonly node: Node; readonly tell: (whole: Node) => void }[] = [];
  const scope: MappingScope = {
    own: new WeakSet(),
    draw: (count) => draws.take(count),
    watch: (node, tell) => watched.push({ node, tell }),
  };
  const open: Node[] = [];
  const nodes = withMapping(scope, () => {
    const examples = wholes.map(({ node, tracked }) => {
      const one = exampleParameter({ dtype: node.dtype, shape: dims(node).slice(1) });
      tracers.set(one, node);
      if (tracked) open.push(one);
      const handle = unscheduledHandle(one, tracked);
      scope.own.add(handle);
      return new Tensor(handle);
    });
    return withOpen(open, () => inScratch(() => fn(examples)));
  });
  const b = builder();
  const words = draws.finish(tracers);
  const all = [...nodes, ...watched.map(({ node }) => node)];
  const mapped = batched(b, all, tracers, size, words).map((node, i) => ({
    node: node ?? all[i]!,
    isMapped: node !== undefined,
  }));
  watched.forEach(({ tell }, i) => tell(mapped[nodes.length + i]!.node));
  return mapped.slice(0, nodes.length);
}

/** The nodes with the batch in front; what is the same for all examples is repeated. */
export function leading(mapped: Mapped, size: number): Node {
  return lead({ b: builder(), size }, mapped);
}

/**
 * The random draws of one mapped function. Examples of their own draw as if they were called one
 * after the other: all draws of one example stand behind one another, and examples do too, so one
 * draw gives them all once their number is known.
 */
class Draws {
  readonly #size: number;
  readonly #randomness: Randomness;
  readonly #outer = currentMapping();
  /** Where the words of a draw begin, by the node that stands for its counter. */
  readonly #starts = new Map<Node, number>();
  #groups = 0;

  constructor(size: number, randomness: Randomness) {
    this.#size = size;
    this.#randomness = randomness;
  }

  /** The words for a draw of so many elements. */
  take(count: number): RandomWords {
    if (this.#randomness === 'same') return withMapping(this.#outer, () => drawCounter(count));
    const word = (): Node => exampleParameter({ dtype: 'u32', shape: [] });
    const words = [word(), word(), word(), word()] as const;
    this.#starts.set(words[2], this.#groups * 4);
    this.#groups += Math.ceil(count / 4);
    return words;
  }

  /** What a draw of the function is for all examples. */
  finish(tracers: Map<Node, Node>): (node: Node) => Node | undefined {
    if (this.#starts.size === 0) return () => undefined;
    const [size, each] = [this.#size, this.#groups * 4];
    const b = builder();
    const all = b.add('randomBits', drawCounter(size * each), { shape: [size, each] }) as Node;
    // Draws depend on nothing else that is mapped: a walk has to get to them.
    for (const word of this.#starts.keys()) tracers.set(word, word);
    return (node) => {
      if (node.op !== 'randomBits') return undefined;
      const start = this.#starts.get(node.inputs[2]!);
      return start === undefined ? undefined : firstOf(b, all, start, dims(node));
    };
  }
}
