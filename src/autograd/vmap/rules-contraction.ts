// Products and convolutions of a batch. A dot takes the batch as an axis that is not contracted,
// or, where both operands have it, as a pair of batch axes. A convolution takes it among the
// examples, the output channels, or the groups, according to which operands have it.

import { permute, reshape } from '../../ir/build.ts';
import { dims } from '../../ir/graph.ts';
import { lead, moveAxis, unfoldFrom, type BatchRule } from './rule.ts';

const further = (axes: readonly number[], by: boolean): number[] => axes.map((axis) => axis + (by ? 1 : 0));

export const dotRule: BatchRule<'dot'> = ({ b }, { attrs }, [lhs, rhs]) => {
  const [x, y] = [lhs!, rhs!];
  const both = x.isMapped && y.isMapped;
  const result = b.add('dot', [x.node, y.node], {
    ...attrs,
    lhsBatch: [...(both ? [0] : []), ...further(attrs.lhsBatch, x.isMapped)],
    rhsBatch: [...(both ? [0] : []), ...further(attrs.rhsBatch, y.isMapped)],
    lhsContract: further(attrs.lhsContract, x.isMapped),
    rhsContract: further(attrs.rhsContract, y.isMapped),
  });
  if (both) return result;
  // The first of the free axes of the operand that has it.
  const freeOfX = x.node.shape.length - attrs.lhsBatch.length - attrs.lhsContract.length;
  const at = attrs.lhsBatch.length + (x.isMapped ? 0 : freeOfX);
  return moveAxis(b, result, at, 0);
};

export const convRule: BatchRule<'conv'> = (batch, { attrs }, [input, kernel]) => {
  const { b, size } = batch;
  const [x, w] = [input!, kernel!];
  if (!w.isMapped) {
    const [, examples, ...rest] = dims(x.node) as [number, number, ...number[]];
    const folded = reshape(b, x.node, [size * examples, ...rest]);
    return unfoldFrom(b, b.add('conv', [folded, w.node], attrs), 0, size);
  }
  const [, outputs, ...rest] = dims(w.node) as [number, number, ...number[]];
  const { groups } = attrs;
  if (!x.isMapped) {
    // Output channels of a group stand together: [groups, size, per group].
    const apart = reshape(b, w.node, [size, groups, outputs / groups, ...rest]);
    const joined = reshape(b, moveAxis(b, apart, 0, 1), [groups * size * (outputs / groups), ...rest]);
    const y = b.add('conv', [x.node, joined], attrs);
    const [examples, , ...placed] = dims(y) as [number, number, ...number[]];
    const parts = reshape(b, y, [examples, groups, size, outputs / groups, ...placed]);
    const spatial = placed.map((_, i) => i + 4);
    return reshape(b, permute(b, parts, [2, 0, 1, 3, ...spatial]), [size, examples, outputs, ...placed]);
  }
  const [, examples, channels, ...spatial] = dims(lead(batch, x)) as [number, number, number, ...number[]];
  const beside = reshape(b, moveAxis(b, x.node, 0, 1), [examples, size * channels, ...spatial]);
  const stacked = reshape(b, w.node, [size * outputs, ...rest]);
  const y = b.add('conv', [beside, stacked], { ...attrs, groups: size * groups });
  return unfoldFrom(b, y, 1, size);
};
