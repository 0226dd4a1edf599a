// Scores of a row with four neighbouring keys: the inner dots of an attention kernel. Where both
// operands lie contiguous along the depth, four elements of it are read at once, for each key
// alone; else one step of depth is read for four keys at once.

import type { Node } from '../../../../ir/graph.ts';
import {
  addIndex,
  coefficientOf,
  scaleIndex,
  substitute,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import { argsOf, type Expr } from '../../../../schedule/body/expr.ts';
import type { Axis, InnerProduct } from '../../../../schedule/kernel.ts';
import { constant, operation, splat } from '../../../loop/builder.ts';
import { rounded } from '../../../lower/convert.ts';
import { laneAtom, quadIndex } from '../../../lower/expressions.ts';
import type { Value } from '../../../loop/loop.ts';
import type { AttentionRows } from './rows.ts';
import { combineLanes } from '../../shared/monoid.ts';

/** Every inner dot at this row and the keys of `quad`, by node. Dots of one depth share a loop. */
export function scoresAt(rows: AttentionRows, quad: Value): Map<Node, Value> {
  const { body, b } = rows;
  const groups = new Map<string, InnerProduct[]>();
  for (const inner of body.inners) {
    const key = `${inner.depth.extent} ${alongDepth(inner, body.key)}`;
    groups.set(key, [...(groups.get(key) ?? []), inner]);
  }
  const results = new Map<Node, Value>();
  for (const inners of groups.values()) {
    const { depth } = inners[0]!;
    const values = alongDepth(inners[0]!, body.key)
      ? byDepth(rows, inners, depth, quad)
      : byKeys(rows, inners, depth, quad);
    inners.forEach(({ node }, i) => {
      results.set(node as Node, b.let(rounded(values[i]!, node.dtype), 'score'));
    });
  }
  return results;
}

function alongDepth({ depth, ofRow, ofKey }: InnerProduct, key: Axis): boolean {
  if (depth.extent % 4 !== 0) return false;
  return contiguous(ofKey, depth) >= contiguous(ofKey, key) && contiguous(ofRow, depth) > 0;
}

function byDepth(rows: AttentionRows, inners: readonly InnerProduct[], depth: Axis, quad: Value): Value[] {
  const { b, body } = rows;
  const keys = [0, 1, 2, 3].map((lane) => rows.keyAt(quad, constant(lane)).key);
  const sums = inners.map(() => keys.map(() => b.var('dot', constant(0, 'f32', 4))));
  const step = quadIndex('depth_quad', depth.extent);
  const spread: [IndexExpr, IndexExpr] = [depth.atom, addIndex(scaleIndex(step, 4), laneAtom)];
  b.for('d', constant(0), constant(depth.extent / 4), 1, (d) => {
    inners.forEach(({ ofRow, ofKey }, i) => {
      const own = splat(rows.lowering([[step, d]], [spread]).value(ofRow), 4);
      keys.forEach((key, lane) => {
        const at = rows.lowering(
          [
            [step, d],
            [body.key.atom, key],
          ],
          [spread],
        );
        const sum = sums[i]![lane]!;
        b.assign(sum, operation('fma', [own, splat(at.value(ofKey), 4), sum], 'f32'));
      });
    });
  });
  return sums.map((lanes) => ({
    kind: 'vector',
    args: lanes.map((sum) => combineLanes(b, 'sum', sum, 'dot')),
    type: 'f32',
    width: 4,
  }));
}

function byKeys(rows: AttentionRows, inners: readonly InnerProduct[], depth: Axis, quad: Value): Value[] {
  const { b, body } = rows;
  const spread: [IndexExpr, IndexExpr] = [body.key.atom, addIndex(scaleIndex(rows.keyQuad, 4), laneAtom)];
  const sums = inners.map(() => b.var('dot', constant(0, 'f32', 4)));
  b.for('d', constant(0), constant(depth.extent), 1, (d) => {
    const at = rows.lowering(
      [
        [depth.atom, d],
        [rows.keyQuad, quad],
      ],
      [spread],
    );
    inners.forEach(({ ofRow, ofKey }, i) => {
      const product = [at.value(ofRow), splat(at.value(ofKey), 4), sums[i]!];
      b.assign(sums[i]!, operation('fma', product, 'f32'));
    });
  });
  return sums;
}

/** Reads of an expression whose element index grows by one along the axis. */
function contiguous(expr: Expr, axis: Axis): number {
  const quad = quadIndex('probe', axis.extent);
  const lane = new Map([[axis.atom, addIndex(scaleIndex(quad, 4), laneAtom)]]);
  const own = expr.kind === 'read' && coefficientOf(substitute(expr.index, lane), laneAtom) === 1 ? 1 : 0;
  return argsOf(expr).reduce((sum, arg) => sum + contiguous(arg, axis), own);
}
