// The graph in which a choice of segments is computed again: readers behind the peak read copies,
// made behind barriers, which wait for what runs before the first of these readers.

import { CompilerBug } from '../../errors.ts';
import { GraphBuilder, type Graph, type Node, type NodeOf } from '../../ir/graph.ts';
import { onBehalf } from '../../ir/origin/origin.ts';
import { isRepeatable, type Segments } from './segments.ts';

/** A node as the graph has it, or as one of its segments computes it again. */
interface Task {
  readonly node: Node;
  /** The segment that it is computed again for. */
  readonly segment?: number;
  /** Read through a barrier of the segment instead of being computed. */
  readonly isBehind?: true;
}

/** The graph with the segments computed again, and the values of it that are not kept. */
export function recomputed(graph: Graph, segments: Segments): Graph {
  return new Rewrite(graph, segments).graph();
}

class Rewrite {
  readonly #graph: Graph;
  readonly #segments: Segments;
  readonly #b = new GraphBuilder();
  readonly #made = new Map<Task, Node>();
  /** Tasks by kind, segment and node, so that each is one. */
  readonly #known = new Map<string, Map<Node, Task>>();
  /** What the barriers of each segment wait for. */
  readonly #events: (Node | undefined)[];

  constructor(graph: Graph, segments: Segments) {
    this.#graph = graph;
    this.#segments = segments;
    this.#events = this.#eventsOf();
  }

  graph(): Graph {
    const { parameters, outputs } = this.#graph;
    for (const parameter of parameters) this.#make(this.#task({ node: parameter as Node }));
    for (const node of this.#segments.timeline.order) this.#make(this.#task({ node }));
    const of = (node: Node): Node => this.#made.get(this.#task({ node }))!;
    return {
      parameters: parameters.map((node) => of(node as Node) as NodeOf<'parameter'>),
      outputs: outputs.map(of),
    };
  }

  /** What runs before the first reader of each segment's copies. */
  #eventsOf(): (Node | undefined)[] {
    const { timeline, choice } = this.#segments;
    const first = choice.ends.map(() => Infinity);
    for (const node of timeline.order) {
      if (!this.#segments.isLate(node)) continue;
      for (const input of node.inputs) {
        const segment = this.#copiedFor(input);
        if (segment !== undefined) first[segment] = Math.min(first[segment]!, timeline.timeOf(node));
      }
    }
    return first.map((time) => (time === Infinity ? undefined : timeline.writtenBefore(time)));
  }

  #copiedFor(input: Node): number | undefined {
    return this.#segments.isCopied(input) ? this.#segments.segmentOf(input) : undefined;
  }

  #task({ node, segment, isBehind }: Task): Task {
    const key = segment === undefined ? '' : `${segment}${isBehind === true ? ' behind' : ''}`;
    const known = this.#known.get(key) ?? new Map<Node, Task>();
    this.#known.set(key, known);
    const task: Task = known.get(node) ?? {
      node,
      ...(segment !== undefined && { segment }),
      ...(isBehind === true && { isBehind }),
    };
    known.set(node, task);
    return task;
  }

  /** What the inputs of a task are. */
  #inputsOf({ node, segment, isBehind }: Task): Task[] {
    if (segment === undefined) {
      const isLate = this.#segments.isLate(node);
      return node.inputs.map((input) => {
        const from = isLate ? this.#copiedFor(input) : undefined;
        // Without anything to wait for, a copy would be the value itself.
        const isCopied = from !== undefined && this.#events[from] !== undefined;
        return this.#task(isCopied ? { node: input, segment: from } : { node: input });
      });
    }
    if (isBehind === true) return [this.#task({ node }), this.#task({ node: this.#events[segment]! })];
    return node.inputs.map((input) => {
      if (input.op === 'constant' || input.op === 'iota') return this.#task({ node: input });
      return this.#task(
        this.#isRepeated(input) ? { node: input, segment } : { node: input, segment, isBehind: true },
      );
    });
  }

  /** Whether a segment that needs a node computes it again as well. */
  #isRepeated(node: Node): boolean {
    if (this.#segments.isCopied(node)) return true;
    const { stored } = this.#segments.timeline;
    return node.inputs.length > 0 && !stored.has(node) && isRepeatable(node, this.#segments.choice.effort);
  }

  /** Makes what a task stands for, after its inputs. */
  #make(task: Task): void {
    const stack = [task];
    const open = new Set<Task>();
    for (let next = stack.at(-1); next !== undefined; next = stack.at(-1)) {
      const inputs = this.#inputsOf(next);
      const missing = this.#made.has(next) ? [] : inputs.filter((input) => !this.#made.has(input));
      if (missing.length > 0) {
        if (open.has(next)) throw new CompilerBug('recompute', 'a segment waits for itself');
        open.add(next);
        stack.push(...missing.reverse());
        continue;
      }
      stack.pop();
      if (this.#made.has(next)) continue;
      const { node, isBehind } = next;
      const operands = inputs.map((input) => this.#made.get(input)!);
      const made = onBehalf('rewrite', node, () =>
        isBehind === true ? (this.#b.add('barrier', operands, {}) as Node) : this.#b.copy(node, operands),
      );
      this.#made.set(next, made);
    }
  }
}
