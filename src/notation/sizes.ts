// How far each index of a statement runs: as is written, as long as the axes that are read at it
// alone, or as long as sums with it stay inside of their axes (the rule of Tensor Comprehensions,
// Vasilache et al., 2018). What is read outside is refused here, unless a condition guards it.

import { affineOf, reach, type AffineIndex } from './affine.ts';
import { walk, type TensorAccess, type ResolvedStatement, type Variable } from './resolve.ts';
import { failAt, type SourceText } from './syntax.ts';

/** A sum at which an axis of this length is read. */
interface Read {
  readonly access: TensorAccess;
  readonly axis: number;
  readonly length: number;
  readonly index: AffineIndex;
  readonly at: number;
}

export type IndexSizes = ReadonlyMap<Variable, number>;

/** The sizes of all indices of a statement that reads tensors of these shapes. */
export function inferSizes(
  source: SourceText,
  statement: ResolvedStatement,
  shapeOf: (access: TensorAccess) => readonly number[],
): IndexSizes {
  const variables = [...statement.over];
  const reads: Read[] = [];
  for (const expr of walk(statement.value)) {
    if (expr.kind === 'reduction') variables.push(...expr.over);
    if (expr.kind !== 'access') continue;
    const shape = shapeOf(expr);
    if (shape.length !== expr.indices.length) {
      const problem = `${expr.name} has ${shape.length} axes, [${shape.join(',')}], and is read at ${expr.indices.length}`;
      failAt(source, expr.at, 'E_SHAPE', problem);
    }
    expr.indices.forEach((part, axis) => {
      const index = affineOf(part);
      if (index !== undefined) reads.push({ access: expr, axis, length: shape[axis]!, index, at: part.at });
    });
  }
  const sizes = new Map<Variable, number>();
  for (const variable of variables) if (variable.written !== undefined) sizes.set(variable, variable.written);
  takeWholeAxes(source, reads, sizes);
  takeRest(reads, sizes);
  for (const { name, at } of variables.filter((variable) => !sizes.has(variable))) {
    failAt(
      source,
      at,
      'E_SHAPE',
      `the range of ${name} is not known\n  try: ${name} < a number, where it is introduced`,
    );
  }
  for (const each of reads) checkInside(source, each, sizes);
  return sizes;
}

/** The one variable that the sum is. */
function aloneIn({ terms, constant }: AffineIndex): Variable | undefined {
  const [first] = terms;
  return terms.size === 1 && constant === 0 && first?.[1] === 1 ? first[0] : undefined;
}

/** An index by itself runs along the whole axis, and so along all that it is read at. */
function takeWholeAxes(source: SourceText, reads: readonly Read[], sizes: Map<Variable, number>): void {
  const from = new Map<Variable, Read>();
  for (const each of reads) {
    const variable = aloneIn(each.index);
    if (variable === undefined || variable.written !== undefined || each.access.isGuarded) continue;
    const before = from.get(variable);
    if (before === undefined) {
      from.set(variable, each);
      sizes.set(variable, each.length);
    } else if (before.length !== each.length) {
      const where = ({ access, axis, length }: Read): string =>
        `axis ${axis} of ${access.name} has ${length}`;
      failAt(
        source,
        each.at,
        'E_SHAPE',
        `${variable.name} has two lengths: ${where(before)}, ${where(each)}`,
      );
    }
  }
  // What a condition guards counts where nothing else says a length.
  for (const { index, length } of reads) {
    const variable = aloneIn(index);
    if (variable !== undefined && !sizes.has(variable)) sizes.set(variable, length);
  }
}

/** An index whose sums have no other unknown index runs as far as all of them stay inside. */
function takeRest(reads: readonly Read[], sizes: Map<Variable, number>): void {
  for (let isDone = false; !isDone;) {
    isDone = true;
    const found = new Map<Variable, number>();
    for (const { index, length } of reads) {
      const unknown = [...index.terms].filter(([variable]) => !sizes.has(variable));
      const [only] = unknown;
      if (unknown.length !== 1 || only === undefined || only[1] < 0) continue;
      const [variable, factor] = only;
      const others = { ...index, terms: new Map([...index.terms].filter(([at]) => at !== variable)) };
      const high = reach(others, (at) => sizes.get(at) ?? 0)?.[1] ?? 0;
      const size = Math.max(0, Math.floor((length - 1 - high) / factor) + 1);
      found.set(variable, Math.min(size, found.get(variable) ?? size));
    }
    for (const [variable, size] of found) {
      sizes.set(variable, size);
      isDone = false;
    }
  }
}

function checkInside(source: SourceText, { access, axis, length, index, at }: Read, sizes: IndexSizes): void {
  if (access.isGuarded) return;
  const found = reach(index, (variable) => sizes.get(variable) ?? 0);
  if (found === undefined || (found[0] >= 0 && found[1] < length)) return;
  const problem = `reads ${found[0]} to ${found[1]} of axis ${axis} of ${access.name}, which has ${length}`;
  const hint = 'fewer steps (i < a number), or a condition: i < 3 ? x[i] : 0';
  failAt(source, at, 'E_INDEX', `${problem}\n  try: ${hint}`);
}
