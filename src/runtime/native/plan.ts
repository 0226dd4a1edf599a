// A run of a program as words that the support code interprets: its operations over addresses of the
// heap, with the addresses of the kernels.

import { CompilerBug } from '../../errors.ts';
import type { Dispatch, Exchange, Operation } from '../wasm/placed.ts';
import { dispatchHead, planWords } from './support.ts';

/** A part of a run: words, a collective, which the host does, or a loop that has some. */
export type RunPart =
  | { readonly kind: 'words'; readonly words: BigInt64Array<ArrayBuffer> }
  | Exchange
  | {
      readonly kind: 'repeat';
      readonly times: number;
      readonly guard: number | undefined;
      readonly parts: readonly RunPart[];
    };

/** The operations cut where the host has something to do. */
export function partsOfRun(
  operations: readonly Operation<Dispatch>[],
  kernels: readonly number[],
): readonly RunPart[] {
  const parts: RunPart[] = [];
  let plain: Operation<Dispatch>[] = [];
  const flush = (): void => {
    if (plain.length > 0) parts.push({ kind: 'words', words: planOf(plain, kernels) });
    plain = [];
  };
  for (const operation of operations) {
    if (!isOfHost(operation)) plain.push(operation);
    else {
      flush();
      if (operation.kind !== 'repeat') parts.push(operation);
      else parts.push({ ...operation, parts: partsOfRun(operation.operations, kernels) });
    }
  }
  flush();
  return parts;
}

type OfHost = Exchange | Extract<Operation<Dispatch>, { readonly kind: 'repeat' }>;

function isOfHost(operation: Operation<Dispatch>): operation is OfHost {
  return (
    operation.kind === 'collective' || (operation.kind === 'repeat' && operation.operations.some(isOfHost))
  );
}

/** The words of these operations, which have no collectives; `kernels` are the addresses of the program's. */
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
      case 'collective':
        throw new CompilerBug('plan', 'a collective has no words');
      default:
        return operation satisfies never;
    }
  });
}
