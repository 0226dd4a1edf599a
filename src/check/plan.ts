// Which kernels of a compiled graph are compared with the interpreter, when what they write is complete, and what is said of
// them. Of kernels of equal source and size the first is compared. What several kernels write together is compared when the
// last of them has run.

import type { CompiledGraph, Inside } from '../compile/compile.ts';
import { CompilerBug } from '../errors.ts';
import { dims, type Node } from '../ir/graph.ts';
import type { ProgramStep } from '../runtime/program.ts';
import type { Kernel } from '../schedule/kernel.ts';
import { membersOf } from '../schedule/memory/pack.ts';
import { roundingOf, type Rounding } from './comparison.ts';
import type { ComparedFacts } from './report.ts';

/** Kernels go by their places in the schedule. */
export class ComparisonPlan {
  readonly inside: Inside;
  readonly kernels: readonly Kernel[];
  /** Kernels behind which values are complete that are compared. */
  readonly compared: ReadonlySet<number>;
  /** Kernels whose results are compared, and when all of them have been. */
  readonly feeding: ReadonlyMap<number, number>;
  readonly #compiled: CompiledGraph;
  /** The kernels that write a node, in order. */
  readonly #writers = new Map<Node, number[]>();
  /** Equal for kernels of equal source and size. */
  readonly #signatures: readonly string[];
  readonly #firsts = new Map<string, number>();

  /** Expects a graph that was compiled with `inspect`. */
  constructor(compiled: CompiledGraph) {
    const { inside } = compiled;
    if (inside === undefined) throw new CompilerBug('check', 'the program was compiled without inspect');
    this.#compiled = compiled;
    this.inside = inside;
    this.kernels = inside.schedule.kernels;
    this.#signatures = inside.placed.steps.map((steps) => signatureOf(steps));
    for (const [at, kernel] of this.kernels.entries())
      for (const node of this.writesOf(kernel)) this.#writers.set(node, [...this.writersOf(node), at]);
    for (const [at, signature] of this.#signatures.entries())
      if (!this.#firsts.has(signature)) this.#firsts.set(signature, at);
    const compared = new Set<number>();
    const feeding = new Map<number, number>();
    for (const at of this.kernels.keys()) {
      const together = this.together(at);
      // One of them is the first of its kind.
      if (!together.some((one) => this.first(one) === one)) continue;
      compared.add(at);
      for (const part of together) feeding.set(part, at);
    }
    this.compared = compared;
    this.feeding = feeding;
  }

  /** The first kernel of the same source and size. */
  first(at: number): number {
    return this.#firsts.get(this.#signatures[at]!)!;
  }

  /** The kernels that write a node, in order. */
  writersOf(node: Node): readonly number[] {
    return this.#writers.get(node) ?? [];
  }

  /** The nodes that are complete when this kernel has run. */
  completed(at: number): readonly Node[] {
    return this.writesOf(this.kernels[at]!).filter((node) => this.writersOf(node).at(-1) === at);
  }

  /** The kernels that write what is complete when this one has run. */
  together(at: number): readonly number[] {
    return [...new Set(this.completed(at).flatMap((node) => this.writersOf(node)))];
  }

  readsOf({ reads }: Kernel): readonly Node[] {
    return reads.flatMap((node) => membersOf(node, this.inside.schedule.packs));
  }

  writesOf({ writes }: Kernel): readonly Node[] {
    return [...new Set(writes.flatMap(({ node }) => membersOf(node, this.inside.schedule.packs)))];
  }

  /** How what is complete when this kernel has run was rounded. */
  rounding(at: number, precision: 'f32' | 'tf32'): Rounding {
    const nodes = this.#kernelsOf(at).flatMap((one) => this.nodesOf(one));
    const hasBlocks = nodes.some(({ op }) => op === 'dequantize');
    return roundingOf(
      nodes.map(({ dtype }) => dtype),
      hasBlocks ? 'i8' : precision === 'tf32' ? 'tf32' : undefined,
    );
  }

  /** Everything that a kernel reads, computes and writes. */
  nodesOf(kernel: Kernel): readonly Node[] {
    return [...this.readsOf(kernel), ...this.writesOf(kernel), ...kernel.nodes];
  }

  /** Whether some of the kernels that write what is complete then compute only what a run needs. */
  isPartial(at: number): boolean {
    return this.#kernelsOf(at).some(isPartial);
  }

  /**
   * What a kernel writes in part, where it is the only one and in memory of its own: what it leaves unwritten can be told by
   * what was there before.
   */
  leftOpen(kernel: Kernel): readonly Node[] {
    const { overwrites } = this.inside.memory;
    if (!isPartial(kernel)) return [];
    return this.writesOf(kernel).filter(
      (node) => !overwrites.has(node) && this.writersOf(node).length === 1 && !kernel.reads.includes(node),
    );
  }

  /** What is said of the kernels that write what is complete when this one has run. */
  factsOf(at: number): ComparedFacts {
    const together = this.#kernelsOf(at);
    const types = (nodes: readonly Node[]): string[] =>
      nodes.map((node) => `${node.dtype}[${dims(node).join(',')}]`);
    return {
      name: together.map(({ name }) => name).join(' + '),
      kind: [...new Set(together.map(({ kind }) => kind))].join(' + '),
      schedule: this.#compiled.kernels.find(({ place }) => place === at)?.schedule ?? '',
      count: this.#signatures.filter((signature) => signature === this.#signatures[at]).length,
      reads: types([...new Set(together.flatMap((kernel) => this.readsOf(kernel)))]),
      writes: types(this.completed(at)),
    };
  }

  #kernelsOf(at: number): readonly Kernel[] {
    return this.together(at).map((one) => this.kernels[one]!);
  }
}

/** What elements hold before a kernel that writes some of them only. */
export const unwritten = 0xa5;

/** Whether a kernel computes only what a run needs of its results. */
export function isPartial({ body }: Kernel): boolean {
  return 'needed' in body && body.needed !== undefined;
}

function signatureOf(steps: readonly ProgramStep[]): string {
  return JSON.stringify(steps, (key, value: unknown) =>
    ['buffers', 'buffer', 'from', 'to', 'guard'].includes(key) ? undefined : value,
  );
}
