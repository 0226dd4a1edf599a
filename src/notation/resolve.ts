// Names made plain: which names are indices, and of which statement or reduction; which are tensors.
// Goes in: a statement. Comes out: its tree with a Variable for each index, so that two reductions
// over `k` have two of them.

import {
  failAt,
  type NotationOperator,
  type Binder,
  type NotationExpr,
  type SourceText,
  type Statement,
} from './syntax.ts';

/** An index of a statement or of a reduction. */
export interface Variable {
  readonly name: string;
  /** As it is written; otherwise what is read at it says so. */
  readonly written: number | undefined;
  readonly at: number;
}

export type Resolved = { readonly at: number } & (
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'variable'; readonly variable: Variable }
  /** `isGuarded`: a condition decides whether what is read counts, so that it may lie outside. */
  | {
      readonly kind: 'access';
      readonly name: string;
      readonly indices: readonly Resolved[];
      readonly isGuarded: boolean;
    }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Resolved[] }
  | {
      readonly kind: 'reduction';
      readonly name: string;
      readonly over: readonly Variable[];
      readonly body: Resolved;
    }
  | { readonly kind: 'unary'; readonly op: '-' | '!'; readonly x: Resolved }
  | { readonly kind: 'binary'; readonly op: NotationOperator; readonly x: Resolved; readonly y: Resolved }
  | { readonly kind: 'choice'; readonly test: Resolved; readonly yes: Resolved; readonly no: Resolved }
);

export type TensorAccess = Extract<Resolved, { kind: 'access' }>;

export interface ResolvedStatement {
  readonly name: string;
  readonly over: readonly Variable[];
  readonly value: Resolved;
  readonly at: number;
}

type Scope = ReadonlyMap<string, Variable>;

function bind(source: SourceText, binders: readonly Binder[]): Variable[] {
  const seen = new Set<string>();
  return binders.map(({ name, size, at }) => {
    if (seen.has(name)) failAt(source, at, 'E_VALUE', `the index ${name} is there twice`);
    seen.add(name);
    return { name, written: size, at };
  });
}

const within = (scope: Scope, variables: readonly Variable[]): Scope =>
  new Map([...scope, ...variables.map((variable) => [variable.name, variable] as const)]);

function resolveExpr(source: SourceText, expr: NotationExpr, scope: Scope, isGuarded: boolean): Resolved {
  const inner = (part: NotationExpr): Resolved => resolveExpr(source, part, scope, isGuarded);
  const { at } = expr;
  switch (expr.kind) {
    case 'number':
      return expr;
    case 'name': {
      const variable = scope.get(expr.name);
      if (variable !== undefined) return { kind: 'variable', variable, at };
      return { kind: 'access', name: expr.name, indices: [], isGuarded, at };
    }
    case 'access':
      if (scope.has(expr.name))
        failAt(source, at, 'E_VALUE', `${expr.name} is an index, but is read as a tensor`);
      return { kind: 'access', name: expr.name, indices: expr.indices.map(inner), isGuarded, at };
    case 'call':
      return { kind: 'call', name: expr.name, args: expr.args.map(inner), at };
    case 'reduction': {
      const over = bind(source, expr.over);
      const body = resolveExpr(source, expr.body, within(scope, over), isGuarded);
      return { kind: 'reduction', name: expr.name, over, body, at };
    }
    case 'unary':
      return { kind: 'unary', op: expr.op, x: inner(expr.x), at };
    case 'binary':
      return { kind: 'binary', op: expr.op, x: inner(expr.x), y: inner(expr.y), at };
    case 'choice': {
      const branch = (part: NotationExpr): Resolved => resolveExpr(source, part, scope, true);
      return { kind: 'choice', test: inner(expr.test), yes: branch(expr.yes), no: branch(expr.no), at };
    }
  }
}

export function resolve(source: SourceText, statement: Statement): ResolvedStatement {
  const over = bind(source, statement.over);
  const scope = within(new Map(), over);
  const value = resolveExpr(source, statement.value, scope, false);
  return { name: statement.name, over, value, at: statement.at };
}

/** The parts that an expression is made of. */
export function partsOf(expr: Resolved): readonly Resolved[] {
  switch (expr.kind) {
    case 'number':
    case 'variable':
      return [];
    case 'access':
      return expr.indices;
    case 'call':
      return expr.args;
    case 'reduction':
      return [expr.body];
    case 'unary':
      return [expr.x];
    case 'binary':
      return [expr.x, expr.y];
    case 'choice':
      return [expr.test, expr.yes, expr.no];
  }
}

/** The expression and all that it is made of, parts behind what they belong to. */
export function* walk(expr: Resolved): Generator<Resolved> {
  yield expr;
  for (const part of partsOf(expr)) yield* walk(part);
}
