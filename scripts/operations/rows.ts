// The examples of operations as rows: one for each public name and example, in families. The documents show them, and coverage, kernel
// replay and other tests run them, so that what is shown and what is run cannot differ.

import { operations, type Operation } from './declared.ts';
import { families, type Family } from './families.ts';

/** JavaScript over `sn`: the text that a document shows. */
export type Code = string;

export interface Row {
  /** The public name, that of a namespace with it: `linalg.svd`; examples after the first have a word more: `sum/i64`. */
  readonly name: string;
  /** Inputs by name. */
  readonly given: Readonly<Record<string, Code>>;
  /** The call, over `sn` and the names of inputs. */
  readonly call: Code;
  /** What is compared of the result `y` where it is not determined: bases, signs. */
  readonly compared?: Code;
  /** The same with a size that is known: inside `compile`, what the data decides cannot have one. */
  readonly sized?: Code;
  /** Why it cannot be recorded inside `compile`. */
  readonly eager?: string;
}

/** A family of the documents with its rows. */
export interface RowFamily extends Family {
  readonly rows: readonly Row[];
}

const promised = { eager: 'it gives a promise of a boolean' };

/** What examples do not say of themselves. */
const ways: Readonly<Record<string, Pick<Row, 'compared' | 'sized' | 'eager'>>> = {
  hasInfNan: promised,
  allclose: promised,
  equal: promised,
  nonzero: { sized: 'sn.nonzero(x, { size: 6 })' },
  argwhere: { sized: 'sn.argwhere(x, { size: 6 })' },
  maskedSelect: { sized: 'sn.maskedSelect(x, mask, { size: 4 })' },
  maskedAt: { sized: 'sn.maskedAt(x, mask, { size: 4 })' },
  unique: { sized: 'sn.unique(v, { returnCounts: true, size: 3 })' },
  uniqueConsecutive: { sized: 'sn.uniqueConsecutive(v, { size: 3 })' },
  bincount: { sized: 'sn.bincount(n, { size: 4 })' },
  'sparse.fromDense': { sized: 'sn.sparse.fromDense(dense, { size: 3 })' },
  'sparse.coalesce': { sized: 'sn.sparse.coalesce(sn.sparse.coo(rows, columns, v, [2, 3]), { size: 3 })' },
  'linalg.svd': { compared: '[y[0].mul(y[1]).matmul(y[2]), y[1]]' },
  svd: { compared: '[y[0].mul(y[1]).matmul(sn.adjoint(y[2])), y[1]]' },
};

/** The call under another of the operation's public names. */
function calledAs(call: Code, names: readonly string[], name: string): Code {
  const used = names.find((each) => call.startsWith(`sn.${each}(`));
  return used === undefined ? call : `sn.${name}${call.slice(`sn.${used}`.length)}`;
}

function rowsOf(operation: Operation, name: string): Row[] {
  return operation.examples.map(({ caption, given, call }) => {
    const row = caption === '' ? name : `${name}/${caption}`;
    return { name: row, given, call: calledAs(call, operation.names, name), ...ways[row] };
  });
}

/** The names that an operation has rows of: its public ones, or that of the method that it is alone. */
function rowNames({ names, method }: Operation): readonly string[] {
  return names.length === 0 && method !== undefined ? [method] : names;
}

function titleOf(operation: Operation, name: string): string {
  const [space, short] = name.split('.');
  const own =
    short === undefined ? undefined : families.find(({ namespaces = [] }) => namespaces.includes(space!));
  if (own !== undefined) return own.title;
  const file = operation.path.replace(/^src\/tensor\/ops\/|\.ts$/g, '');
  const title = operation.family ?? families.find(({ files }) => files.includes(file))?.title;
  if (!families.some((family) => family.title === title))
    throw new Error(`${operation.path}: ${operation.own} is of no family in families.ts`);
  return title!;
}

let made: readonly RowFamily[] | undefined;

/** The families that have rows, in the order of the documents; rows stand as their files do. */
export function rowFamilies(): readonly RowFamily[] {
  if (made !== undefined) return made;
  const byTitle = new Map(families.map(({ title }): [string, Row[]] => [title, []]));
  const position = new Map(
    families.flatMap(({ files }) => files).map((file, i) => [`src/tensor/ops/${file}.ts`, i]),
  );
  const ordered = operations().toSorted((a, b) => (position.get(a.path) ?? 0) - (position.get(b.path) ?? 0));
  for (const operation of ordered)
    for (const name of rowNames(operation)) {
      const rows = rowsOf(operation, name);
      if (rows.length > 0) byTitle.get(titleOf(operation, name))!.push(...rows);
    }
  made = families
    .map((family) => ({ ...family, rows: byTitle.get(family.title)! }))
    .filter(({ rows }) => rows.length > 0);
  return made;
}

/** All rows. */
export function allRows(): readonly Row[] {
  return rowFamilies().flatMap(({ rows }) => rows);
}
