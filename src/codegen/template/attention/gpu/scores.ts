// Scores of a row with four neighbouring keys: the inner dots of an attention kernel. Where both
// operands lie contiguous along the depth, four elements of it are read at once, for each key
// alone; else one step of depth is read for four keys at once.

import type { Node } from '../../../../ir/graph.ts';
import { addIndex, scaleIndex, type IndexExpr } from '../../../../ir/index-algebra/expr.ts';
import type { Axis, InnerProduct } from '../../../../schedule/kernel.ts';
import { addInts, constant, mulInts, operation, splat } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import { laneAtom, quadIndex } from '../../../expression/lowering.ts';
import type { Value } from '../../../loop/loop.ts';
import { type Attention, type AttentionRows } from '../rows.ts';
import { fewParts } from '../seats.ts';
import { contiguousReads } from '../../contract/problem.ts';
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

/** Invocations that share the depth of a product, in workgroups of one row: they read what lies side by side. */
const depthParts = 4;

/**
 * Whether invocations of a row share the depth of its products: where each alone would read keys of
 * its own, far from those of its neighbours.
 */
export function sharesDepth({ inners, key }: Attention, parts: number): boolean {
  return (
    parts > fewParts &&
    inners.every((inner) => alongDepth(inner, key) && inner.depth.extent % (4 * depthParts) === 0)
  );
}

/**
 * The same for the invocation's quad of the block that begins with the quad `first`: in rounds over
 * the block, each quad's products are computed by neighbours, every depthParts-th step of the depth by
 * one of them, and met in workgroup memory.
 */
export function sharedScores(rows: AttentionRows, first: Value, memory: string): Map<Node, Value> {
  const { b, body, parts, part, blockQuads } = rows;
  const quads = Math.ceil(body.key.extent / 4);
  const round = parts / depthParts;
  const own = body.inners.map(() => b.var('own', constant(0, 'f32', 4)));
  const share = b.let(operation('mod', [part, constant(depthParts)], 'i32'), 'share');
  const seat = b.let(operation('div', [part, constant(depthParts)], 'i32'), 'seat');
  b.for('round', constant(0), constant(depthParts), 1, (number) => {
    const asked = addInts(first, addInts(mulInts(number, constant(round)), seat));
    const quad = b.let(
      quads % blockQuads === 0 ? asked : operation('min', [asked, constant(quads - 1)], 'i32'),
      'quad',
    );
    const mine = operation('eq', [operation('div', [part, constant(round)], 'i32'), number], 'bool');
    body.inners.forEach((inner, i) => {
      const [sums] = byDepth(rows, [inner], inner.depth, quad, { share, of: depthParts });
      b.store(memory, rows.weightSlot(part), sums!, true);
      b.barrier();
      b.if(mine, () => {
        const place = mulInts(operation('mod', [part, constant(round)], 'i32'), constant(depthParts));
        const shares = Array.from({ length: depthParts }, (_, at): Value => {
          const index = rows.weightSlot(addInts(place, constant(at)));
          return { kind: 'load', buffer: memory, index, aligned: true, type: 'f32', width: 4 };
        });
        b.assign(
          own[i]!,
          shares.reduce((sum, other) => operation('add', [sum, other], 'f32')),
        );
      });
      b.barrier();
    });
  });
  return new Map(
    body.inners.map(({ node }, i) => [node as Node, b.let(rounded(own[i]!, node.dtype), 'score')]),
  );
}

function alongDepth({ depth, ofRow, ofKey }: InnerProduct, key: Axis): boolean {
  if (depth.extent % 4 !== 0) return false;
  return contiguousReads(ofKey, depth) >= contiguousReads(ofKey, key) && contiguousReads(ofRow, depth) > 0;
}

/** Products along the depth, or a share of its steps. */
function byDepth(
  rows: AttentionRows,
  inners: readonly InnerProduct[],
  depth: Axis,
  quad: Value,
  { share, of }: { readonly share: Value; readonly of: number } = { share: constant(0), of: 1 },
): Value[] {
  const { b, body } = rows;
  const keys = [0, 1, 2, 3].map((lane) => rows.keyAt(quad, constant(lane)).key);
  const sums = inners.map(() => keys.map(() => b.var('dot', constant(0, 'f32', 4))));
  const step = quadIndex('depth_quad', depth.extent);
  const spread: [IndexExpr, IndexExpr] = [depth.atom, addIndex(scaleIndex(step, 4), laneAtom)];
  b.for('d', constant(0), constant(depth.extent / 4 / of), 1, (turn) => {
    const d = of === 1 ? turn : b.let(addInts(mulInts(turn, constant(of)), share), 'depth_quad');
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
