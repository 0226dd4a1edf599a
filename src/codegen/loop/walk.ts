// The statements of Loops in one table of facts: what each field of a statement is, which hardware it needs and who must
// reach it. Walks and rewrites over statements read the table, so that they hold for every kind; what gives a kind its
// meaning (printer, parser, verifier, interpreter, emitters) switches over kinds, and is total by type.

import type { MatrixStmt, Stmt, TileOperand, Value, WarpgroupStmt } from './loop.ts';

type Kind = Stmt['kind'];
type Of<K extends Kind> = Extract<Stmt, { readonly kind: K }>;

/** What a field that is a name refers to: a register, which is declared, counts turns, is written, or is waited for; a
 *  buffer; or something else. */
type NameRole = 'declared' | 'counter' | 'assigned' | 'awaited' | 'read' | 'written' | 'other';

/** What a field is; `setting`: nothing that a walk looks into. */
type Role<T> = T extends Value
  ? 'value'
  : T extends readonly Value[]
    ? 'values'
    : T extends TileOperand
      ? 'tile'
      : T extends readonly Stmt[]
        ? 'body'
        : T extends readonly string[]
          ? 'assigned' | 'awaited'
          : string extends T
            ? NameRole
            : 'setting';
type AnyRole = 'value' | 'values' | 'tile' | 'body' | 'setting' | NameRole;

type Unit<S extends Stmt> = S extends MatrixStmt
  ? 'matrix'
  : S extends WarpgroupStmt
    ? 'warp group'
    : 'invocation';

interface Facts<S extends Stmt> {
  /** Whose statement it is: that of matrix units, of warp groups, or of any invocation. */
  readonly unit: Unit<S>;
  /** Every field, in the order in which values are computed. */
  readonly fields: { readonly [F in Exclude<keyof S, 'kind'>]-?: Role<Exclude<S[F], undefined>> };
  /** Invocations execute it together, or in step with the others: these must all get there, or none. */
  readonly together?: 'workgroup' | 'warp group' | 'subgroup';
  /** It is about an mbarrier, for which others wait. */
  readonly signals?: true;
  /** The registers that it writes differ among the invocations of a workgroup, whatever it reads. */
  readonly differs?: true;
}

const table: { readonly [K in Kind]: Facts<Of<K>> } = {
  let: { unit: 'invocation', fields: { name: 'declared', value: 'value' } },
  var: { unit: 'invocation', fields: { name: 'declared', value: 'value' } },
  assign: { unit: 'invocation', fields: { name: 'assigned', value: 'value' } },
  store: {
    unit: 'invocation',
    fields: { buffer: 'written', index: 'value', value: 'value', owned: 'setting' },
  },
  atomic: {
    unit: 'invocation',
    fields: { op: 'setting', buffer: 'written', index: 'value', value: 'value' },
  },
  for: {
    unit: 'invocation',
    fields: { name: 'counter', start: 'value', end: 'value', step: 'setting', body: 'body' },
  },
  if: { unit: 'invocation', fields: { condition: 'value', then: 'body', else: 'body' } },
  prefetch: { unit: 'invocation', fields: { buffer: 'read', index: 'value' } },
  barrier: { unit: 'invocation', fields: {}, together: 'workgroup' },
  // One value a subgroup, and there may be several.
  subgroupReduce: {
    unit: 'invocation',
    fields: { name: 'declared', monoid: 'setting', value: 'value' },
    together: 'workgroup',
    differs: true,
  },
  // Of fragments, each invocation has its own part.
  loadMatrix: {
    unit: 'matrix',
    fields: { name: 'declared', buffer: 'read', index: 'value', transposed: 'setting' },
    together: 'subgroup',
    differs: true,
  },
  mma: {
    unit: 'matrix',
    fields: { name: 'assigned', operand: 'setting', lhs: 'value', rhs: 'value' },
    together: 'subgroup',
    differs: true,
  },
  shuffle: {
    unit: 'matrix',
    fields: { name: 'declared', value: 'value', mask: 'setting' },
    together: 'subgroup',
    differs: true,
  },
  asyncCopy: {
    unit: 'matrix',
    fields: { buffer: 'written', index: 'value', from: 'read', at: 'value', inside: 'value' },
  },
  asyncCommit: { unit: 'matrix', fields: {}, together: 'workgroup' },
  asyncWait: { unit: 'matrix', fields: { pending: 'setting' }, together: 'workgroup' },
  initBarrier: {
    unit: 'warp group',
    fields: { barrier: 'other', index: 'value', count: 'setting' },
    signals: true,
  },
  arrive: {
    unit: 'warp group',
    fields: { barrier: 'other', index: 'value', bytes: 'setting' },
    signals: true,
  },
  awaitBarrier: {
    unit: 'warp group',
    fields: { barrier: 'other', index: 'value', parity: 'value' },
    signals: true,
  },
  copyTile: {
    unit: 'warp group',
    fields: {
      buffer: 'written',
      index: 'value',
      map: 'other',
      at: 'values',
      barrier: 'other',
      slot: 'value',
    },
    signals: true,
  },
  clearTile: { unit: 'warp group', fields: { buffer: 'written', index: 'value' } },
  publishTiles: { unit: 'warp group', fields: {} },
  wgmma: {
    unit: 'warp group',
    fields: { sums: 'assigned', operand: 'setting', lhs: 'tile', words: 'value', rhs: 'tile' },
    together: 'warp group',
    differs: true,
  },
  wgmmaFence: { unit: 'warp group', fields: { sums: 'awaited' }, together: 'warp group' },
  wgmmaCommit: { unit: 'warp group', fields: {}, together: 'warp group' },
  wgmmaWait: {
    unit: 'warp group',
    fields: { pending: 'setting', sums: 'awaited' },
    together: 'warp group',
  },
  setRegisters: {
    unit: 'warp group',
    fields: { count: 'setting', grow: 'setting' },
    together: 'warp group',
  },
  comment: { unit: 'invocation', fields: { text: 'other' } },
};

/** What is so of a kind of statement. */
export function factsOf(stmt: Stmt): Omit<Facts<Stmt>, 'fields'> {
  return table[stmt.kind];
}

export function isMatrixStmt(stmt: Stmt): stmt is MatrixStmt {
  return factsOf(stmt).unit === 'matrix';
}

export function isWarpgroupStmt(stmt: Stmt): stmt is WarpgroupStmt {
  return factsOf(stmt).unit === 'warp group';
}

/** Calls a function with each field of a statement that is there, and what it is. */
function eachField(stmt: Stmt, see: (role: AnyRole, field: unknown, key: string) => void): void {
  const fields = table[stmt.kind].fields as Readonly<Record<string, AnyRole>>;
  for (const key in fields) {
    const field = (stmt as unknown as Readonly<Record<string, unknown>>)[key];
    if (field !== undefined) see(fields[key]!, field, key);
  }
}

/** The bodies that a statement has, in order. */
export function bodiesOf(stmt: Stmt): readonly (readonly Stmt[])[] {
  const found: (readonly Stmt[])[] = [];
  eachField(stmt, (role, field) => {
    if (role === 'body') found.push(field as readonly Stmt[]);
  });
  return found;
}

/** The values in a statement, but for those of statements inside it. */
export function valuesOf(stmt: Stmt): readonly Value[] {
  const found: Value[] = [];
  eachField(stmt, (role, field) => {
    if (role === 'value') found.push(field as Value);
    if (role === 'values') found.push(...(field as readonly Value[]));
    if (role === 'tile') found.push((field as TileOperand).index);
  });
  return found;
}

/** The names in a statement that are of these kinds, but for those in its values. */
export function namesIn(stmt: Stmt, ...roles: readonly NameRole[]): readonly string[] {
  const found: string[] = [];
  eachField(stmt, (role, field) => {
    if ((roles as readonly AnyRole[]).includes(role)) found.push(...[field as string | string[]].flat());
    if (role === 'tile' && roles.includes('read')) found.push((field as TileOperand).buffer);
  });
  return found;
}

/** What becomes of the parts of a statement; what is not named stays. */
export interface Rewrite {
  readonly value?: (value: Value) => Value;
  readonly body?: (body: readonly Stmt[]) => readonly Stmt[];
  /** Names of registers. */
  readonly register?: (name: string) => string;
  readonly buffer?: (name: string) => string;
}

/** The statement with its parts rewritten, in the order of its fields. */
export function rewritten<S extends Stmt>(stmt: S, by: Rewrite): S {
  const value = by.value ?? ((same: Value): Value => same);
  const register = by.register ?? ((same: string): string => same);
  const buffer = by.buffer ?? ((same: string): string => same);
  const parts: Record<string, unknown> = {};
  eachField(stmt, (role, field, key) => {
    switch (role) {
      case 'value':
        parts[key] = value(field as Value);
        return;
      case 'values':
        parts[key] = (field as readonly Value[]).map(value);
        return;
      case 'tile': {
        const tile = field as TileOperand;
        parts[key] = { ...tile, buffer: buffer(tile.buffer), index: value(tile.index) };
        return;
      }
      case 'body':
        if (by.body !== undefined) parts[key] = by.body(field as readonly Stmt[]);
        return;
      case 'declared':
      case 'counter':
      case 'assigned':
      case 'awaited':
        parts[key] = typeof field === 'string' ? register(field) : (field as readonly string[]).map(register);
        return;
      case 'read':
      case 'written':
        parts[key] = buffer(field as string);
        return;
      case 'other':
      case 'setting':
        return;
      default:
        role satisfies never;
    }
  });
  return { ...stmt, ...parts };
}

/** Every statement of a body, each before those inside it. */
export function* statementsIn(body: readonly Stmt[]): Generator<Stmt> {
  for (const stmt of body) {
    yield stmt;
    for (const inner of bodiesOf(stmt)) yield* statementsIn(inner);
  }
}

/** Whether a statement of the body, at any depth, is so. */
export function someStatement(body: readonly Stmt[], test: (stmt: Stmt) => boolean): boolean {
  return body.some((stmt) => test(stmt) || bodiesOf(stmt).some((inner) => someStatement(inner, test)));
}

/** The names of registers that a body declares, at any depth, in order. */
export function* declaredIn(body: readonly Stmt[]): Generator<string> {
  for (const stmt of statementsIn(body)) yield* namesIn(stmt, 'declared', 'counter');
}
