// What each line of Loop text means: the rules of the grammar for lines, read. A line that computes
// something means a function of the scope it stands in, as values do (values.ts).

import type { Monoid } from '../../../../src/ir/ops.ts';
import { Notation, read, word, type Tree, type Word } from '../../../../src/ir/text/notation.ts';
import { loopGrammar } from './grammar.ts';
import type {
  AtomicOp,
  BarrierArray,
  LoopBuffer,
  MatrixType,
  Stmt,
  TileMap,
  TileOperand,
  Value,
} from '../../../../src/codegen/loop/loop.ts';
import { printType } from '../../../../src/codegen/loop/print.ts';
import {
  first,
  isThere,
  numberOf,
  valueMeanings,
  valueOf,
  type Element,
  type In,
  type Scope,
  type Typed,
} from './values.ts';

export interface Header {
  readonly name: string;
  readonly kind: string;
  readonly grid: readonly [number, number, number];
  readonly workgroup: readonly [number, number, number];
  readonly usesScalars: boolean;
}

export type Declaration =
  | {
      readonly kind: 'buffer';
      readonly name: Word;
      readonly dtype: Word;
      readonly buffer: Omit<LoopBuffer, 'name' | 'dtype'>;
    }
  | { readonly kind: 'map'; readonly map: TileMap }
  | { readonly kind: 'mbarriers'; readonly array: BarrierArray };

/** A statement, and the name that is known after it. */
interface Made {
  readonly statement: Stmt;
  readonly defines?: { readonly name: string; readonly value: Value };
}

export type Line =
  | { readonly kind: 'statement'; readonly make: In<Made> }
  | {
      readonly kind: 'for';
      readonly open: In<{ readonly counter: string; readonly close: (body: readonly Stmt[]) => Stmt }>;
    }
  | { readonly kind: 'if'; readonly condition: In<Value> }
  | { readonly kind: 'else' }
  | { readonly kind: 'close' };

/** A statement that defines no name. */
function statement(make: In<Stmt>): Line {
  return { kind: 'statement', make: (scope) => ({ statement: make(scope) }) };
}

/** The type as stated must be the value's own. */
function checked(value: Value, stated: Typed, column: number, scope: Scope): void {
  if (value.type === stated.type && value.width === stated.width) return;
  const [own, other] = [printType(value.type, value.width), printType(stated.type, stated.width)];
  scope.failAt(column, `the value is ${own}, not ${other}`);
}

export const loopNotation: Notation = new Notation('Loop text', loopGrammar, {
  ...valueMeanings,
  Header: (_loop, name, _open, kind, _close, _grid, grid, _workgroup, workgroup, scalars): Header => ({
    name: name.sourceString,
    kind: kind.sourceString,
    grid: read(grid),
    workgroup: read(workgroup),
    usesScalars: isThere(scalars),
  }),
  Declaration: (one) => read(one),
  Buffer: (space, name, _colon, dtype, _open, size, _close, tiled, only): Declaration => ({
    kind: 'buffer',
    name: word(name),
    dtype: word(dtype),
    buffer: {
      space: space.sourceString as LoopBuffer['space'],
      size: numberOf(size),
      access: isThere(only) ? 'read' : 'read_write',
      ...(isThere(tiled) && { tiled: true }),
    },
  }),
  TileMap: (
    _map,
    name,
    _colon,
    buffer,
    _open,
    offset,
    _close,
    _sizes,
    sizes,
    _strides,
    strides,
    _box,
    box,
  ): Declaration => ({
    kind: 'map',
    map: {
      name: name.sourceString,
      buffer: buffer.sourceString,
      offset: numberOf(offset),
      sizes: read(sizes),
      strides: read<Tree[]>(strides).map(numberOf),
      box: read(box),
    },
  }),
  Barriers: (_mbarriers, name, _colon, size): Declaration => ({
    kind: 'mbarriers',
    array: { name: name.sourceString, size: numberOf(size) },
  }),

  Statement: (one) => read(one),
  Let: (_let, name, _colon, type, _equals, named): Line => ({
    kind: 'statement',
    make: (scope) => {
      const make = read<In<Stmt & { readonly name: string }>>(named);
      const made = { ...make(scope), name: name.sourceString } as Stmt;
      const stated = read<Typed>(type);
      const { type: own, width } = 'value' in made ? made.value : { type: 'u32' as const, width: 4 as const };
      const value: Value = { kind: 'variable', name: name.sourceString, type: own, width };
      checked(value, stated, type.source.startIdx + 1, scope);
      return { statement: made, defines: { name: name.sourceString, value } };
    },
  }),
  Named: (one) => {
    if (one.ctorName !== 'Value') return read(one);
    return (scope: Scope): Stmt => ({ kind: 'let', name: '', value: valueOf(one)(scope) });
  },
  Subgroup:
    (_subgroup, monoid, value): In<Stmt> =>
    (scope) => ({
      kind: 'subgroupReduce',
      name: '',
      monoid: monoid.sourceString as Monoid,
      value: valueOf(value)(scope),
    }),
  Matrices:
    (_matrices, element, transposed): In<Stmt> =>
    (scope) => {
      const { buffer, index } = read<Element>(element);
      return {
        kind: 'loadMatrix',
        name: '',
        buffer: scope.buffer(buffer).name,
        index: index(scope),
        transposed: isThere(transposed),
      };
    },
  Shuffle:
    (_shuffle, mask, value): In<Stmt> =>
    (scope) => ({ kind: 'shuffle', name: '', mask: numberOf(mask), value: valueOf(value)(scope) }),
  Var: (_var, name, _colon, type, _equals, value): Line => ({
    kind: 'statement',
    make: (scope) => {
      const made = valueOf(value)(scope);
      checked(made, read(type), type.source.startIdx + 1, scope);
      const variable: Value = {
        kind: 'variable',
        name: name.sourceString,
        type: made.type,
        width: made.width,
      };
      return {
        statement: { kind: 'var', name: name.sourceString, value: made },
        defines: { name: name.sourceString, value: variable },
      };
    },
  }),
  Assign: (name, _equals, value): Line =>
    statement((scope) => {
      scope.variable(word(name));
      return { kind: 'assign', name: name.sourceString, value: valueOf(value)(scope) };
    }),
  Store: (run, how, value): Line =>
    statement((scope) => {
      const { buffer, index, width } = read<Element & { readonly width: number }>(run);
      const stored = valueOf(value)(scope);
      if (stored.width !== width)
        scope.failAt(buffer.column, `${width} elements of ${buffer.text} take no value of ${stored.width}`);
      return {
        kind: 'store',
        buffer: scope.buffer(buffer).name,
        index: index(scope),
        value: stored,
        owned: how.sourceString === '=',
      };
    }),
  Atomic: (element, _atomic, op, value): Line =>
    statement((scope) => {
      const { buffer, index } = read<Element>(element);
      return {
        kind: 'atomic',
        op: op.sourceString as AtomicOp,
        buffer: scope.buffer(buffer).name,
        index: index(scope),
        value: valueOf(value)(scope),
      };
    }),
  For: (_for, name, _in, start, _dots, end, _by, step, _open): Line => ({
    kind: 'for',
    open: (scope) => {
      const [from, to] = [valueOf(start)(scope), valueOf(end)(scope)];
      const by = first(step);
      return {
        counter: name.sourceString,
        close: (body) => ({
          kind: 'for',
          name: name.sourceString,
          start: from,
          end: to,
          step: by === undefined ? 1 : numberOf(by),
          body,
        }),
      };
    },
  }),
  If: (_if, condition, _open): Line => ({ kind: 'if', condition: valueOf(condition) }),
  Else: (_close, _else, _open): Line => ({ kind: 'else' }),
  Close: (_close): Line => ({ kind: 'close' }),
  Prefetch: (_prefetch, element): Line =>
    statement((scope) => {
      const { buffer, index } = read<Element>(element);
      return { kind: 'prefetch', buffer: scope.buffer(buffer).name, index: index(scope) };
    }),
  Barrier: (_barrier): Line => statement(() => ({ kind: 'barrier' })),
  Mma: (name, _adds, _mma, operand, lhs, _comma, rhs): Line =>
    statement((scope) => {
      scope.variable(word(name));
      return {
        kind: 'mma',
        name: name.sourceString,
        operand: operand.sourceString as MatrixType,
        lhs: valueOf(lhs)(scope),
        rhs: valueOf(rhs)(scope),
      };
    }),
  Copies_commit: (_commit, _copies): Line => statement(() => ({ kind: 'asyncCommit' })),
  Copies_wait: (_wait, _for, _copies, _but, pending): Line =>
    statement(() => ({ kind: 'asyncWait', pending: numberOf(pending) })),
  AsyncCopy: (to, _arrow, from, _if, inside): Line =>
    statement((scope) => {
      const [target, source] = [read<Element>(to), read<Element>(from)];
      return {
        kind: 'asyncCopy',
        buffer: scope.buffer(target.buffer).name,
        index: target.index(scope),
        from: scope.buffer(source.buffer).name,
        at: source.index(scope),
        inside: valueOf(inside)(scope),
      };
    }),
  InitBarrier: (element, _begins, _comma, _for, count): Line =>
    statement((scope) => {
      const { buffer, index } = read<Element>(element);
      return {
        kind: 'initBarrier',
        barrier: buffer.text,
        index: index(scope),
        count: numberOf(count),
      };
    }),
  Arrive: (_arrive, element, _with, bytes, _bytes): Line =>
    statement((scope) => {
      const { buffer, index } = read<Element>(element);
      const count = first(bytes);
      return {
        kind: 'arrive',
        barrier: buffer.text,
        index: index(scope),
        bytes: count === undefined ? 0 : numberOf(count),
      };
    }),
  Await: (_await, element, _phase, parity): Line =>
    statement((scope) => {
      const { buffer, index } = read<Element>(element);
      return {
        kind: 'awaitBarrier',
        barrier: buffer.text,
        index: index(scope),
        parity: valueOf(parity)(scope),
      };
    }),
  CopyTile: (element, _arrow, map, _open, at, _close, _for, barrier): Line =>
    statement((scope) => {
      const [to, slot] = [read<Element>(element), read<Element>(barrier)];
      return {
        kind: 'copyTile',
        buffer: scope.buffer(to.buffer).name,
        index: to.index(scope),
        map: map.sourceString,
        at: read<Tree[]>(at).map((each) => valueOf(each)(scope)),
        barrier: slot.buffer.text,
        slot: slot.index(scope),
      };
    }),
  ClearTile: (_clear, element): Line =>
    statement((scope) => {
      const { buffer, index } = read<Element>(element);
      return { kind: 'clearTile', buffer: scope.buffer(buffer).name, index: index(scope) };
    }),
  PublishTiles: (_publish, _tiles): Line => statement(() => ({ kind: 'publishTiles' })),
  Wgmma: (sums, _adds, _wgmma, operand, lhs, _comma, rhs): Line =>
    statement((scope) => ({
      kind: 'wgmma',
      sums: namesOf(sums, scope),
      operand: operand.sourceString as 'f16' | 'bf16',
      ...(lhs.ctorName === 'Tile'
        ? { lhs: read<In<TileOperand>>(lhs)(scope) }
        : { words: valueOf(read<Tree>(lhs))(scope) }),
      rhs: read<In<TileOperand>>(rhs)(scope),
    })),
  Tile:
    (element, transposed, _panel, panel): In<TileOperand> =>
    (scope) => {
      const { buffer, index } = read<Element>(element);
      return {
        buffer: scope.buffer(buffer).name,
        index: index(scope),
        alongK: !isThere(transposed),
        panel: numberOf(panel),
      };
    },
  Products_commit: (_commit, _products): Line => statement(() => ({ kind: 'wgmmaCommit' })),
  Products_wait: (_wait, _for, _products, _but, pending, into): Line =>
    statement((scope) => ({
      kind: 'wgmmaWait',
      pending: numberOf(pending),
      sums: isThere(into) ? namesOf(read<Tree>(first(into)!), scope) : [],
    })),
  Products_fence: (_fence, sums): Line =>
    statement((scope) => ({ kind: 'wgmmaFence', sums: namesOf(sums, scope) })),
  Into: (_into, sums): Tree => sums,
  Registers: (how, _to, count, _registers): Line =>
    statement(() => ({
      kind: 'setRegisters',
      count: numberOf(count),
      grow: how.sourceString === 'grow',
    })),
});

function namesOf(list: Tree, scope: Scope): string[] {
  return read<Tree[]>(list).map((name) => {
    scope.variable(word(name));
    return name.sourceString;
  });
}
