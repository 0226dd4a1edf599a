// A run as graphs, one for each stretch of operations between collectives and waits for them. These stay outside: whether NCCL's calls
// are captured, and each launch of what was captured, has to be the same on all ranks, and a rank makes graphs by where its own buffers lie.

import type { Single, StreamOperation } from './api/marshal.ts';
import { CudaGraph, type Dependencies } from './graph.ts';
import { queueOperations, type Queue } from './operations.ts';
import { isInGraph, type RunStep } from './run-steps.ts';

/** Whether a graph can hold it. */
function isSingle(operation: StreamOperation): operation is Single {
  return isInGraph(operation);
}

/** Steps, or their operations, in stretches: what no graph can hold is one of its own. */
export function stretchesOf<Step extends Pick<RunStep | StreamOperation, 'kind'>>(
  steps: readonly Step[],
): readonly (readonly Step[])[] {
  const stretches: Step[][] = [];
  steps.forEach((step, i) => {
    const isJoined = i > 0 && isInGraph(step) && isInGraph(steps[i - 1]!);
    if (!isJoined) stretches.push([step]);
    else stretches.at(-1)!.push(step);
  });
  return stretches;
}

interface Stretch {
  operations: readonly StreamOperation[];
  /** One operation is one call either way. */
  readonly graph: CudaGraph | undefined;
}

export class RunGraphs {
  readonly #queue: Queue;
  readonly #stretches: readonly Stretch[];

  /** `dependencies` are those of each stretch; `source` is the pinned memory that uploads copy from. Operations have no loops. */
  constructor(
    queue: Queue,
    operations: readonly StreamOperation[],
    dependencies: readonly Dependencies[],
    source: number,
  ) {
    this.#queue = queue;
    const made: Stretch[] = [];
    this.#stretches = made;
    try {
      stretchesOf(operations).forEach((stretch, i) => {
        const singles = stretch.filter(isSingle);
        const graph =
          singles.length > 1
            ? new CudaGraph(queue.context, queue.marshal, singles, dependencies[i]!, source)
            : undefined;
        made.push({ operations: stretch, graph });
      });
    } catch (error) {
      this.destroy();
      throw error;
    }
  }

  /** Runs it once, its uploads from `source`. */
  launch(source: number): void {
    for (const { operations, graph } of this.#stretches)
      if (graph === undefined) queueOperations(this.#queue, operations, source);
      else graph.launch(source);
  }

  /** Replaces the operations from the next launch on; only addresses may differ. */
  update(operations: readonly StreamOperation[]): void {
    stretchesOf(operations).forEach((stretch, i) => {
      const known = this.#stretches[i]!;
      known.operations = stretch;
      known.graph?.update(stretch.filter(isSingle));
    });
  }

  /** The context must be current. Launches in flight still complete. */
  destroy(): void {
    for (const { graph } of this.#stretches) graph?.destroy();
  }
}
