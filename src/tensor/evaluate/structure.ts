// Why recorded operations are compiled once more: takes their structure and those compiled before;
// gives the difference in words.

import { showType } from '../../ir/infer.ts';
import { isView } from '../../ir/ops.ts';
import type { GraphKey } from './graph-key.ts';
import { differenceOf, type KnownInput } from '../report/reason.ts';

type Structure = GraphKey<unknown>;

/** What a structure is, beside others: nearest are those of the same operations. */
export function noveltyOf(structure: Structure, others: readonly Structure[]): string {
  const alike = others.filter((other) => other !== structure && isAlike(other, structure));
  const novelty = differenceOf(inputsOf(structure), alike.map(inputsOf), (input) => `input ${input}`);
  if (alike.length === 0) return `first time that ${endOf(structure)}`;
  return novelty ?? otherAttributes(structure, alike) ?? 'other results are wanted';
}

/** Operations of a structure. */
export function operationsOf({ parts }: Structure): number {
  return parts.filter(isOperation).length;
}

function isOperation({ kind }: Structure['parts'][number]): boolean {
  return kind === 'op' || kind === 'moved';
}

function isAlike(a: Structure, b: Structure): boolean {
  return (
    a.parts.length === b.parts.length &&
    a.parts.every((part, i) => {
      const other = b.parts[i]!;
      return part.kind === other.kind && (!isOperation(part) || part.node.op === other.node.op);
    })
  );
}

function inputsOf({ parts }: Structure): readonly KnownInput[] {
  return parts.flatMap(({ kind, node }): KnownInput[] =>
    kind === 'leaf' ? [{ kind: 'tensor', dtype: node.dtype, shape: node.shape as readonly number[] }] : [],
  );
}

/** `slice has start [8], was [0]`. */
function otherAttributes({ parts }: Structure, alike: readonly Structure[]): string | undefined {
  for (const [i, { kind, node }] of parts.entries()) {
    if (kind !== 'op') continue;
    const now = Object.entries(node.attrs as object);
    const was = alike[0]!.parts[i]!.node.attrs as Readonly<Record<string, unknown>>;
    const [name, value] = now.find(([key, given]) => textOf(given) !== textOf(was[key])) ?? [];
    if (name !== undefined) return `${node.op} has ${name} ${textOf(value)}, was ${textOf(was[name])}`;
  }
  return undefined;
}

function textOf(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}n` : inner)) ?? ''
  );
}

function endOf({ parts, outputs }: Structure): string {
  let last = parts[outputs.at(-1) ?? parts.length - 1];
  // What views show was computed below them.
  while (last !== undefined && isOperation(last) && isView(last.node.op) && last.inputs.length === 1) {
    const below: typeof last = parts[last.inputs[0]!]!;
    if (!isOperation(below)) break;
    last = below;
  }
  return last === undefined
    ? 'nothing is computed'
    : `${last.node.op} ${showType(last.node)} is computed like this`;
}
