// What the bodies of kernels are made of, as tables: for each kind of body its fields, in the order
// in which the text has them. Printing, parsing and walking a kernel are loops over these tables. A
// body or a field without its row is a type error.

import type {
  Body,
  ColumnFolds,
  FftResult,
  FlatTaps,
  Image,
  InnerProduct,
  KeyRange,
  Needed,
  MatrixOperand,
  Online,
  OuterProduct,
  RepeatedStage,
  RowProduct,
  RowStage,
  Scale,
  Sibling,
  SumTerm,
} from '../kernel.ts';

/** What a field holds. A `stage` is one of the body's own stages, by its place among them. */
export type FieldContent =
  | 'axis'
  | 'expr'
  | 'node'
  | 'index'
  | 'guard'
  | 'word'
  | 'number'
  | 'flag'
  | 'stage'
  | { readonly maybe: FieldContent }
  | { readonly list: FieldContent }
  | { readonly fields: Schema };

/** Fields by name. */
export type Schema = Readonly<Record<string, FieldContent>>;

/** A row for every field of `T`. */
type Row<T> = { readonly [F in Exclude<keyof T, 'kind'>]-?: FieldContent };

const stage: Row<RowStage> = {
  node: 'node',
  monoid: 'word',
  arg: 'flag',
  value: 'expr',
  pass: 'number',
  dtype: 'word',
};

const scale: Row<Scale> = { op: 'word', by: 'expr' };

const term: Row<SumTerm> = {
  core: 'expr',
  scales: { list: { fields: scale } },
  shifts: 'flag',
  guard: { maybe: 'expr' },
};

const online: Row<Online> = {
  max: 'stage',
  stages: { list: { fields: { ...term, stage: 'stage' } } },
  outers: { list: { fields: term } },
};

const rowProduct: Row<RowProduct> = { node: 'node', depth: 'axis', lhs: 'expr', rhs: 'expr' };

const inner: Row<InnerProduct> = { node: 'node', depth: 'axis', ofRow: 'expr', ofKey: 'expr' };

const outer: Row<OuterProduct> = {
  node: 'node',
  column: 'axis',
  weight: 'expr',
  value: 'expr',
  pass: 'number',
};

const range: Row<KeyRange> = {
  first: { maybe: 'number' },
  last: { maybe: 'number' },
  end: { maybe: 'expr' },
};

const need: Row<Needed> = { at: 'index', end: 'expr' };
const needed = { maybe: { list: { fields: need } } } as const;

const repeated: Row<RepeatedStage> = { column: 'axis', ...stage };

const sibling: Row<Sibling> = { node: 'node', rhs: 'expr' };

const folds: Row<ColumnFolds> = { width: 'number', stages: { list: { fields: stage } } };

const image: Row<Image> = { channel: 'axis', spatial: { list: 'axis' }, value: 'expr' };
const flatTaps: Row<FlatTaps> = {
  channel: 'axis',
  tap: 'axis',
  place: 'axis',
  weight: 'expr',
  input: 'expr',
};

const matrix: Row<MatrixOperand> = { row: 'axis', column: 'axis', value: 'expr' };
const fftResult: Row<FftResult> = { node: 'node', part: 'number' };

/** A body that is one kernel's own. */
export type OwnBody = Exclude<Body, { readonly kind: 'batched-dispatch' }>;

const keys = { node: 'node', line: 'axis', position: 'axis', key: 'expr' } as const;

/** The fields of every kind of body, those that others refer to first. */
export const bodyFields: {
  readonly [K in OwnBody['kind']]: Row<Extract<OwnBody, { readonly kind: K }>>;
} = {
  map: { axis: 'axis', shape: { maybe: { list: 'number' } }, needed },
  'row-reduction': {
    row: 'axis',
    column: 'axis',
    stages: { list: { fields: stage } },
    bound: { maybe: 'expr' },
    needed,
  },
  contract: {
    node: 'node',
    batch: 'axis',
    m: 'axis',
    n: 'axis',
    k: 'axis',
    lhs: 'expr',
    rhs: 'expr',
    bound: { maybe: 'expr' },
    image: { maybe: { fields: image } },
    flatTaps: { maybe: { fields: flatTaps } },
    stages: { maybe: { list: { fields: repeated } } },
    siblings: { maybe: { list: { fields: sibling } } },
    folds: { maybe: { fields: folds } },
    needed,
  },
  attention: {
    batch: 'axis',
    row: 'axis',
    key: 'axis',
    inners: { list: { fields: inner } },
    rowProducts: { list: { fields: rowProduct } },
    stages: { list: { fields: stage } },
    outers: { list: { fields: outer } },
    range: { fields: range },
    online: { maybe: { fields: online } },
    needed,
  },
  scan: {
    node: 'node',
    line: 'axis',
    position: 'axis',
    value: 'expr',
    monoid: 'word',
    reverse: 'flag',
    exclusive: 'flag',
  },
  fft: {
    node: 'node',
    line: 'axis',
    position: 'axis',
    entry: 'axis',
    re: 'expr',
    im: 'expr',
    table: 'expr',
    parts: { list: { fields: fftResult } },
  },
  scatter: {
    node: 'node',
    line: 'axis',
    slot: 'axis',
    update: 'axis',
    operand: 'expr',
    index: 'index',
    target: 'expr',
    value: 'expr',
    active: 'guard',
    mode: 'word',
  },
  sort: keys,
  'radix-rank': keys,
  'complete-rows': {
    node: 'node',
    matrix: 'axis',
    row: 'axis',
    column: 'axis',
    value: 'expr',
    missing: 'expr',
  },
  'jacobi-rows': { node: 'node', matrix: 'axis', row: 'axis', column: 'axis', value: 'expr' },
  'search-sorted': {
    node: 'node',
    axis: 'axis',
    element: 'axis',
    boundary: 'expr',
    value: 'expr',
  },
  'scatter-add-atomic': {
    node: 'node',
    axis: 'axis',
    inside: 'expr',
    index: 'index',
    value: 'expr',
  },
  'segment-reduce': {
    node: 'node',
    outer: 'axis',
    column: 'axis',
    entry: 'axis',
    operand: 'expr',
    first: 'expr',
    last: 'expr',
    update: 'expr',
  },
  iterate: { node: 'node', results: { list: 'node' } },
  collective: { node: 'node', operand: 'node' },
  factor: { node: 'node', batch: 'axis', operands: { list: { fields: matrix } } },
};

/** Calls `visit` with every plain value that the fields hold, and what kind of value it is. */
export function visitFields(
  held: object,
  schema: Schema,
  visit: (value: unknown, field: Extract<FieldContent, string>) => void,
): void {
  const walk = (value: unknown, field: FieldContent): void => {
    if (typeof field === 'string') visit(value, field);
    else if ('fields' in field) visitFields(value as object, field.fields, visit);
    else if ('list' in field) for (const item of value as readonly unknown[]) walk(item, field.list);
    else if (value !== undefined) walk(value, field.maybe);
  };
  for (const [name, field] of Object.entries(schema))
    walk((held as Readonly<Record<string, unknown>>)[name], field);
}
