// A run of a program as words that the support code interprets: its operations over addresses of the
// heap, with the addresses of the kernels.

import type { Dispatch, Operation } from '../wasm/placed.ts';
import { dispatchHead, planWords } from './support.ts';

/** The words of these operations; `kernels` are the addresses of the program's. */
export function planOf(
  operations: readonly Operation<Dispatch>[],
  kernels: readonly number[],
): BigInt64Array<ArrayBuffer> {
  return BigInt64Array.from(wordsOf(operations, kernels), BigInt);
}

function wordsOf(operations: readonly Operation<Dispatch>[], kernels: readonly number[]): number[] {
  return operations.flatMap((operation) => {
    switch (operation.kind) {
      case 'dispatch': {
        const { groups, cut, scalars, scratch, buffers } = operation;
        const chunk = cut === undefined ? 0 : Math.ceil(groups / cut.pieces);
        const head = [
          planWords.dispatch,
          kernels[operation.kernel]!,
          groups,
          chunk,
          scalars ?? -1,
          scratch?.address ?? -1,
          scratch?.bytes ?? 0,
          buffers.length,
        ] as const satisfies { readonly length: typeof dispatchHead };
        return [...head, ...buffers];
      }
      case 'copy':
        return [planWords.copy, operation.from, operation.to, operation.bytes];
      case 'clear':
        return [planWords.clear, operation.at, operation.bytes];
      case 'repeat': {
        const body = wordsOf(operation.operations, kernels);
        return [planWords.repeat, operation.times, operation.guard ?? -1, body.length, ...body];
      }
      default:
        return operation satisfies never;
    }
  });
}
