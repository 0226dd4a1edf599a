// Rows of blocks that the invocations of a workgroup read along the contracted axis: each takes sixteen bytes of codes at a time,
// with all columns whose codes these bytes have, and what scales them once. Neighbours read neighbouring memory.

import type { BlockFormat } from '../../../../ir/blocks/format.ts';
import {
  addIndex,
  axisIndex,
  modIndex,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import { argsOf, type Expr } from '../../../../schedule/expression/expr.ts';
import { decodedFour } from '../../../expression/decode.ts';
import { laneAtom, Lowering, registerOf } from '../../../expression/lowering.ts';
import { laneOf } from '../../../expression/lanes.ts';
import { addInts, constant, mulInts, type LoopBuilder } from '../../../loop/builder.ts';
import { divideInts } from '../../../loop/integers.ts';
import type { Value } from '../../../loop/loop.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import type { BlockRuns } from '../blocks.ts';
import type { Contract } from '../problem.ts';
import { blockRows } from '../rows-of-blocks.ts';

/** Columns of a run: those whose codes lie in sixteen bytes, in the same bits of each. */
const runColumns = 16;

/** Of a span of so many columns, runs that begin so far apart share bytes; a span has `sides` such groups. */
interface Span {
  readonly columns: number;
  readonly runs: readonly number[];
}

const bytes: Span = { columns: 16, runs: [0] };
const nibbles: Span = { columns: 32, runs: [0, 16] };
const nibblesOf64: Span = { columns: 64, runs: [0, 32] };
const pairs: Span = { columns: 128, runs: [0, 32, 64, 96] };

const spans: Readonly<Record<BlockFormat, Span>> = {
  q4_0: nibbles,
  q4_1: nibbles,
  q5_0: nibbles,
  q5_1: nibbles,
  q8_0: bytes,
  q2_k: pairs,
  q3_k: pairs,
  q4_k: nibblesOf64,
  q5_k: nibblesOf64,
  q6_k: pairs,
  iq4_nl: nibbles,
  iq4_xs: nibbles,
  mxfp4: nibbles,
};

type Decoded = Extract<Expr, { readonly kind: 'decode' }>;

/** The walk along the right sides of products; undefined where not all are rows of blocks. */
export function blockRuns(
  b: LoopBuilder,
  frame: Frame,
  body: Contract,
  group: Value,
  rights: readonly Expr[],
): BlockRuns | undefined {
  const { batch, n, k } = body;
  const found = rights.map((right) => blockRows(right, k));
  const formats = found.flatMap((rows) => (rows === undefined ? [] : [spans[rows.format]]));
  if (formats.length < rights.length) return undefined;
  const { columns: span, runs } = formats.reduce((x, y) => (y.columns > x.columns ? y : x));
  const sides = span / runColumns / runs.length;
  const spanAtom = axisIndex('span', k.extent / span);
  const sideAtom = axisIndex('side', sides);
  const firsts = runs.flatMap((run) => [0, 4, 8, 12].map((column) => run + column));
  const stepOf = (first: number): IndexExpr =>
    offsetIndex(addIndex(scaleIndex(spanAtom, span), scaleIndex(sideAtom, runColumns)), first);

  return {
    parts: k.extent / runColumns / runs.length,
    part(part, columns) {
      const [at, side] = divideInts(b, part, sides, ['span', 'side']);
      const first = b.let(
        addInts(mulInts(at, constant(span / 4)), mulInts(side, constant(runColumns / 4))),
        'first_step',
      );
      const lowering = (column: Value, step: IndexExpr): Lowering => {
        const atoms = new Map<IndexExpr, Value>([
          [batch.atom, group],
          [n.atom, column],
          [spanAtom, at],
          [sideAtom, side],
        ]);
        const substitution = new Map([[k.atom, addIndex(step, laneAtom)]]);
        return new Lowering(b, frame.kernel.pool, { substitution, atoms }, bufferName(frame));
      };
      // All codes are asked for before the first is used.
      for (const column of columns)
        for (const right of rights)
          for (const run of runs) hold(lowering(column, stepOf(run)), argsOf(right));
      return {
        quads: firsts.map((step) => b.let(addInts(first, constant(step / 4)), 'kquad')),
        value: (product, column, quad) => {
          const step = stepOf(firsts[quad]!);
          const point = lowering(columns[column]!, step);
          const { format, args } = rights[product] as Decoded;
          hold(point, args);
          const words = args.map((arg) => point.value(arg));
          return decodedFour(format, { b, words, column: step, index: (at) => point.index(at) });
        },
      };
    },
  };

  /** Loads the words of which it is known which they are of four, with the others. */
  function hold(point: Lowering, args: readonly Expr[]): void {
    for (const word of args) {
      if (word.kind !== 'read') continue;
      const place = point.place(word.index);
      const lane = modIndex(place, 4);
      if (lane.kind !== 'const') continue;
      const index = point.quad(offsetIndex(place, -lane.value));
      const buffer = bufferName(frame)(word.node);
      const type = registerOf(word.node.dtype);
      const four = b.let({ kind: 'load', buffer, index, aligned: true, type, width: 4 }, 'words');
      point.held.set(word, b.let(laneOf(four, lane.value), 'word'));
    }
  }
}
