// What both ways of spreading a transform share: points of lines as registers, constants of stages,
// and results that are stored.

import { CompilerBug } from '../../../errors.ts';
import type { FftPlan, Stages } from '../../../ir/fft/plan.ts';
import { fftPlan, padded, stageStarts } from '../../../ir/fft/plan.ts';
import { dtypeBytes } from '../../../ir/dtype.ts';
import type { Node } from '../../../ir/graph.ts';
import { constantIndex, offsetIndex, substitute, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Axis, Body, Kernel } from '../../../schedule/kernel.ts';
import { packsOperands } from '../../../schedule/machine.ts';
import { constant, less, type LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';
import type { AxisBinding } from '../../expression/binding.ts';
import { laneAtom, Lowering, registerOf } from '../../expression/lowering.ts';
import { countContiguous, isContiguous } from '../row-reduction/tiling.ts';
import { bufferName, type Frame } from '../shared/frame.ts';
import { storeAt } from '../shared/store-value.ts';
import { ComplexBuilder, type ComplexVector } from './butterfly.ts';

export type FftBody = Extract<Body, { readonly kind: 'fft' }>;

/** A stage: `radix` times `below` points are one line of its results. */
export interface FftStage {
  readonly radix: number;
  /** Points of the lines that it combines. */
  readonly below: number;
  /** Lines of its results in one line of the whole. */
  readonly apart: number;
  /** Where its constants begin. */
  readonly start: number;
}

export function bodyOf({ body }: Kernel): FftBody {
  if (body.kind !== 'fft') throw new CompilerBug('fft template', `got a ${body.kind} kernel`);
  return body;
}

/** Reads and stores whose elements lie side by side along an axis, in pairs where parts do. */
export function neighboursAlong({ writes }: Kernel, { re, im }: FftBody, axis: Axis): number {
  const values = [re, im, ...writes.map(({ value }) => value)];
  return [1, 2].reduce(
    (sum, step) =>
      sum +
      countContiguous(values, axis, step) +
      writes.filter(({ index }) => isContiguous(index, axis, step)).length,
    0,
  );
}

/** The plan of a kernel's transform. */
export function planOf({ position }: FftBody): Extract<FftPlan, { kind: 'one' }> {
  const plan = fftPlan(position.extent);
  if (plan.kind !== 'one') throw new CompilerBug('fft template', `${position.extent} points`);
  return plan;
}

export function stagesOf(stages: Stages, n: number): readonly FftStage[] {
  const starts = stageStarts(stages);
  let below = 1;
  return stages.radices.map((radix, s) => {
    const stage = { radix, below, apart: n / (below * radix), start: starts[s]! };
    below *= radix;
    return stage;
  });
}

/** Points of a kernel's transform, in and out. */
export class Points {
  readonly c: ComplexBuilder;
  readonly #frame: Frame;
  readonly #body: FftBody;
  readonly #b: LoopBuilder;

  constructor(frame: Frame, b: LoopBuilder) {
    this.#frame = frame;
    this.#body = bodyOf(frame.kernel);
    this.#b = b;
    this.c = new ComplexBuilder(b, registerOf(this.#body.node.dtype));
  }

  /** The operand at a point. */
  input(line: IndexExpr, position: IndexExpr, atoms: AxisBinding['atoms']): ComplexVector {
    const at = this.#at(line, position, atoms);
    return { re: at.value(this.#body.re), im: at.value(this.#body.im) };
  }

  /** The factors of a stage at j: w^(i·j) for each i from 1 on. */
  factors(
    { radix, below, start }: FftStage,
    j: IndexExpr,
    atoms: AxisBinding['atoms'],
  ): readonly ComplexVector[] {
    if (below === 1) return [];
    const entry = (at: number): Value => {
      const substitution = new Map([[this.#body.entry.atom, offsetIndex(j, at)]]);
      const lowering = new Lowering(
        this.#b,
        this.#frame.kernel.pool,
        { substitution, atoms },
        bufferName(this.#frame),
      );
      return lowering.value(this.#body.table);
    };
    return Array.from({ length: radix - 1 }, (_, i) => {
      const row = start + 2 * i * padded(below);
      return { re: entry(row), im: entry(row + padded(below)) };
    });
  }

  /** Points times their factors; the first one's is 1. */
  multiplied(points: readonly ComplexVector[], factors: readonly ComplexVector[]): readonly ComplexVector[] {
    return points.map((point, i) =>
      i === 0 || factors.length === 0 ? point : this.c.times(point, factors[i - 1]!),
    );
  }

  /** Stores what follows of a result at a point; `lanes` runs along four. */
  output(
    line: IndexExpr,
    position: IndexExpr,
    atoms: AxisBinding['atoms'],
    { re, im }: ComplexVector,
    lanes: Axis | undefined,
  ): void {
    const { kernel } = this.#frame;
    const at = this.#at(line, position, atoms);
    for (const { node, part } of this.#body.parts) at.results.set(node as Node, part === 0 ? re : im);
    const values = kernel.writes.map((write) => at.value(write.value));
    const stored = new Set<number>();
    kernel.writes.forEach((write, i) => {
      if (stored.has(i)) return;
      const partner = lanes === undefined ? -1 : this.#storePair(at, i, values, lanes);
      if (partner >= 0) {
        stored.add(partner);
        return;
      }
      // Behind the last line of one position lies the first of the next.
      const part = { ...write, isPart: true };
      const how = { unaligned: packsOperands(this.#frame.target) };
      storeAt(this.#b, at, bufferName(this.#frame)(write.node), part, values[i]!, lanes, how);
    });
  }

  /**
   * Stores a write together with another one whose elements lie between its own, as real and
   * imaginary parts do: two vectors that follow each other. Gives the other's number, or −1 where
   * there is none.
   */
  #storePair(at: Lowering, number: number, values: readonly Value[], lanes: Axis): number {
    const { writes } = this.#frame.kernel;
    const nameOf = bufferName(this.#frame);
    const buffer = nameOf(writes[number]!.node);
    const places = writes.map((write) => at.place(write.index));
    const other = writes.findIndex(
      ({ node }, i) =>
        i !== number &&
        nameOf(node) === buffer &&
        (places[i] === offsetIndex(places[number]!, 1) || places[number] === offsetIndex(places[i]!, 1)),
    );
    if (other < 0) return -1;
    const [even, odd] = places[other] === offsetIndex(places[number]!, 1) ? [number, other] : [other, number];
    const index = places[even]!;
    const at4 = (expr: IndexExpr, lane: number): IndexExpr =>
      substitute(expr, new Map([[laneAtom, constantIndex(lane)]]));
    const pair = [values[even]!, values[odd]!];
    const isWhole =
      pair.every(({ width }) => width === 4) &&
      dtypeBytes(writes[even]!.node.dtype) >= 4 &&
      at.strideOf(index) === 2;
    if (!isWhole) return -1;
    const vectors = [0, 2].map((half): Value => {
      const args = [half, half + 1].flatMap((lane) =>
        pair.map((arg): Value => ({ kind: 'lane', arg, lane, type: arg.type, width: 1 })),
      );
      return this.#b.let({ kind: 'vector', args, type: args[0]!.type, width: 4 }, 'pairs');
    });
    const inside =
      lanes.extent % 4 === 0
        ? constant(1, 'bool')
        : less(at.index(at4(at.place(lanes.atom), 3)), constant(lanes.extent));
    this.#b.if(
      inside,
      () =>
        vectors.forEach((value, half) =>
          this.#b.store(buffer, at.index(offsetIndex(at4(index, 0), 4 * half)), value, true),
        ),
      () => {
        for (const i of [even, odd]) storeAt(this.#b, at, buffer, writes[i]!, values[i]!, lanes);
      },
    );
    return other;
  }

  #at(line: IndexExpr, position: IndexExpr, atoms: AxisBinding['atoms']): Lowering {
    const { line: lines, position: positions } = this.#body;
    const substitution = new Map<IndexExpr, IndexExpr>();
    if (lines.extent > 1) substitution.set(lines.atom, line);
    if (positions.extent > 1) substitution.set(positions.atom, position);
    // Real and imaginary parts that lie in pairs are read with each other.
    const options = { shareGroups: true };
    return new Lowering(
      this.#b,
      this.#frame.kernel.pool,
      { substitution, atoms },
      bufferName(this.#frame),
      options,
    );
  }
}
