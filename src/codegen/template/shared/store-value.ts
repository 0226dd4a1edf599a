// Stores of computed values: vectors where the element index is contiguous over the lane, else lane
// by lane.

import {
  atomsOf,
  constantIndex,
  interval,
  modIndex,
  substitute,
  type IndexExpr,
} from '../../../ir/index-algebra/expr.ts';
import { dtypeBytes } from '../../../ir/dtype.ts';
import type { Axis, Write } from '../../../schedule/kernel.ts';
import { constant, less, splat, type LoopBuilder } from '../../loop/builder.ts';
import { laneAtom, paddedSize, type Lowering } from '../../expression/lowering.ts';
import type { Value } from '../../loop/loop.ts';

export interface StoreOptions {
  /** No lane lies past the end of the axis, and vectors may be stored at any index. */
  readonly anywhere?: boolean;
  /** Vectors may be stored at any index, but lanes may lie past the end of the axis. */
  readonly unaligned?: boolean;
}

/**
 * Writes `value` at the write's index. With `lanes`, the point covers four neighbours on that axis:
 * an aligned contiguous run is stored whole where no lane lies past the axis's end (or the axis is
 * the flat index itself, whose padding may be overwritten); otherwise each lane within the axis is
 * stored alone.
 */
export function storeAt(
  b: LoopBuilder,
  lowering: Lowering,
  buffer: string,
  write: Write,
  value: Value,
  lanes: Axis | undefined,
  options: StoreOptions = {},
): void {
  const index = lowering.place(write.index);
  const narrow = dtypeBytes(write.node.dtype) < 4;
  if (lanes === undefined) {
    b.store(buffer, lowering.index(index), splat(value, 1), !narrow);
    return;
  }
  const at = (expr: IndexExpr, lane: number): IndexExpr =>
    substitute(expr, new Map([[laneAtom, constantIndex(lane)]]));
  const along = lowering.place(lanes.atom);
  const whole = lanes.extent % 4 === 0 || (index === along && write.isPart !== true);
  const isRun = lowering.isRun(index);
  const aligned = isRun && modIndex(at(index, 0), 4) === constantIndex(0);
  if (whole && aligned && interval(index).hi < paddedSize(write.node)) {
    b.store(buffer, lowering.quad(at(index, 0)), splat(value, 4), true);
    return;
  }
  if (options.anywhere === true && isRun) {
    b.store(buffer, lowering.index(at(index, 0)), splat(value, 4), !narrow);
    return;
  }
  const storeLanes = (): void => {
    // Indices that are data are computed for all lanes before lanes past the end are masked.
    if (atomsOf(index).some((atom) => atom.kind === 'dynamic')) lowering.index(at(index, 0), 0);
    for (const lane of [0, 1, 2, 3]) {
      const one: Value =
        value.width === 1 ? value : { kind: 'lane', arg: value, lane, type: value.type, width: 1 };
      const store = (): void => b.store(buffer, lowering.index(at(index, lane), lane), one, !narrow);
      const inside =
        lanes.extent % 4 === 0 || options.anywhere === true
          ? constant(1, 'bool')
          : less(lowering.index(at(along, lane)), constant(lanes.extent));
      b.if(inside, store);
    }
  };
  if (options.unaligned !== true || !isRun) return storeLanes();
  const isWhole = less(lowering.index(at(along, 3)), constant(lanes.extent));
  b.if(
    lanes.extent % 4 === 0 ? constant(1, 'bool') : isWhole,
    () => b.store(buffer, lowering.index(at(index, 0)), splat(value, 4), !narrow),
    storeLanes,
  );
}
