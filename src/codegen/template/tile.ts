// What the two forms of dot and conv share: accumulators, the multiply-add, and the evaluation of operands and epilogues at
// points of a tile.

import { addIndex, scaleIndex, type IndexExpr } from '../../ir/index-expr.ts';
import type { Body } from '../../schedule/kernel.ts';
import { constant, operation, splat, type LoopBuilder } from '../builder.ts';
import { laneAtom, Lowering, quadIndex, registerOf, rounded } from '../lower.ts';
import type { Value } from '../loop.ts';
import { bufferName, type Frame } from './frame.ts';
import { storeAt } from './store-value.ts';

export type Contract = Extract<Body, { kind: 'contract' }>;

/** A register of four sums for every row and quad of columns. */
export function accumulators(b: LoopBuilder, body: Contract, rows: number, quads: number): Value[][] {
  const type = registerOf(body.node.dtype);
  return Array.from({ length: rows }, (_, i) =>
    Array.from({ length: quads }, (_, j) => b.var(`sum_${i}_${j}`, constant(0, type, 4))),
  );
}

/** a·b + sum over four lanes. */
export function multiplyAdd(a: Value, c: Value, sum: Value): Value {
  if (sum.type === 'f32') return operation('fma', [a, c, sum], 'f32');
  return operation('add', [operation('mul', [a, splat(c, 4)], sum.type), sum], sum.type);
}

/** Evaluates operands and epilogues at points of a tile: a row m, a quad of columns n = 4·quad + lane, a step k. */
export class TileLowering {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #body: Contract;
  readonly #group: Value;
  readonly quadAtom: IndexExpr;

  constructor(b: LoopBuilder, frame: Frame, body: Contract, group: Value) {
    this.#b = b;
    this.#frame = frame;
    this.#body = body;
    this.#group = group;
    this.quadAtom = quadIndex('quad', body.n.extent);
  }

  at(row: Value | undefined, quad: Value | undefined, step: Value | undefined): Lowering {
    const { batch, m, n, k } = this.#body;
    const atoms = new Map<IndexExpr, Value>([[batch.atom, this.#group]]);
    if (row !== undefined) atoms.set(m.atom, row);
    if (quad !== undefined) atoms.set(this.quadAtom, quad);
    if (step !== undefined) atoms.set(k.atom, step);
    const substitution = new Map([[n.atom, addIndex(scaleIndex(this.quadAtom, 4), laneAtom)]]);
    return new Lowering(this.#b, this.#frame.kernel.pool, { substitution, atoms }, bufferName(this.#frame));
  }

  /** The epilogue for one row and quad: every write of the kernel with the finished sum as its result. */
  write(row: Value, quad: Value, sum: Value): void {
    const { kernel } = this.#frame;
    const lowering = this.at(row, quad, undefined);
    const result = this.#b.let(rounded(sum, this.#body.node.dtype), 'result');
    lowering.results.set(this.#body.node, result);
    const values = kernel.writes.map((write) => lowering.value(write.value));
    kernel.writes.forEach((write, i) => {
      storeAt(this.#b, lowering, bufferName(this.#frame)(write.node), write, values[i]!, this.#body.n);
    });
  }
}
