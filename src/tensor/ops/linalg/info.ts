// What a factorisation found out about its operand, which nobody knows before it has run: the next
// read of any tensor fails where the operand is not what the operation needs.

import { reduce, reshape } from '../../../ir/build.ts';
import type { Node } from '../../../ir/graph.ts';
import { watch } from '../../debug.ts';
import type { Tensor } from '../../tensor.ts';

/**
 * Watches i32 numbers, one a matrix, of which 0 says that all is well; `problem` words another one.
 * On every device, and in compiled functions at every call; not in bundles.
 *
 * @internal
 */
export function watchInfo(op: string, info: Tensor, problem: (info: number, matrix: string) => string): void {
  watch(
    op,
    'E_VALUE',
    [info],
    (b, [node]) => {
      const all = reshape(b, node!, [info.size]);
      return [reduce(b, 'max', all, [0]), b.add('argReduce', [all], { monoid: 'max', axis: 0 }) as Node];
    },
    ([greatest, at]) => {
      if (greatest === 0) return undefined;
      return problem(Number(greatest), info.rank === 0 ? 'the matrix' : `matrix ${at} of the stack`);
    },
    { always: true },
  );
}
