// Semantic actions of the grammar of kernels' text: takes a matched line, gives what it means. A
// line that refers to nodes, expressions or axes gives a function of the scope. parse.ts keeps the
// scope while it reads the whole text, and assembles the fields of a body by their table.

import { namesBlocks } from '../../../../src/ir/blocks/sizes.ts';
import type { Node } from '../../../../src/ir/graph.ts';
import {
  addIndex,
  constantIndex,
  divIndex,
  modIndex,
  scaleIndex,
  subIndex,
  type Guard,
  type IndexExpr,
  type IndexBound,
} from '../../../../src/ir/index-algebra/expr.ts';
import {
  listed,
  Notation,
  read,
  readNumber,
  word,
  type Tree,
  type Word,
} from '../../../../src/ir/text/notation.ts';
import type { Bare, Expr } from '../../../../src/schedule/expression/expr.ts';
import type { Axis } from '../../../../src/schedule/kernel.ts';
import { kernelGrammar } from './grammar.ts';

/** The names that a line may refer to. Lookups throw ParseError at the word. */
export interface KernelScope {
  readonly node: (name: Word) => Node;
  readonly expr: (name: Word) => Expr;
  readonly leaf: (name: Word, extent: number | undefined) => IndexExpr;
  readonly axis: (name: string, extent: number) => Axis;
  readonly stage: (name: Word) => unknown;
  readonly op: (name: Word, args: readonly Expr[], dtype: Word) => Bare;
  readonly failAt: (column: number, problem: string) => never;
}

export type Scoped<T> = (scope: KernelScope) => T;

/** A value of a field. `kind` is what it can stand for; a list and a record hold more values. */
export type ValueTree = { readonly column: number } & (
  | { readonly kind: 'list'; readonly items: readonly ValueTree[] }
  | { readonly kind: 'fields'; readonly fields: readonly FieldTree[] }
  | { readonly kind: Plain; readonly make: Scoped<unknown> }
);

export type Plain = 'axis' | 'expr' | 'node' | 'index' | 'guard' | 'word' | 'number' | 'flag' | 'stage';

export interface FieldTree {
  readonly name: Word;
  readonly value: ValueTree;
}

export interface PackMemberTree {
  readonly node: Word;
  readonly offset: number;
  readonly elements: number;
}

export type KernelLine =
  | {
      readonly kind: 'kernel';
      readonly name: string;
      readonly of: Word;
      readonly flops: number;
      readonly bytes: number;
    }
  | { readonly kind: 'close' }
  | {
      readonly kind: 'pack';
      readonly name: Word;
      readonly dtype: Word;
      readonly size: number;
      readonly members: readonly PackMemberTree[];
    }
  | { readonly kind: 'reads' | 'nodes'; readonly names: readonly Word[] }
  | { readonly kind: 'axes'; readonly make: Scoped<readonly Axis[]> }
  | {
      readonly kind: 'dynamic';
      readonly name: Word;
      readonly lo: number;
      readonly hi: number;
      readonly from: Word;
    }
  | { readonly kind: 'expr'; readonly name: Word; readonly make: Scoped<Bare> }
  | { readonly kind: 'body'; readonly of: Word }
  | {
      readonly kind: 'write';
      readonly node: Word;
      readonly index: Scoped<IndexExpr>;
      readonly value: Word;
      readonly isPart: boolean;
    }
  | ({ readonly kind: 'field' } & FieldTree);

const numberOf = (tree: Tree): number => Number(tree.sourceString);
const column = (tree: Tree): number => tree.source.startIdx + 1;
const indexOf = (tree: Tree): Scoped<IndexExpr> => read<Scoped<IndexExpr>>(tree);

/** A value that is known once the scope is. */
function plain(kind: Plain, tree: Tree, make: Scoped<unknown>): ValueTree {
  return { kind, column: column(tree), make };
}

/** A range of an index; a side that is not given is the bound of the index itself. */
function range(tree: Tree, lo: number | undefined, hi: number | undefined): Scoped<IndexBound> {
  return (scope) => {
    const expr = indexOf(tree)(scope);
    return { expr, lo: lo ?? expr.lo, hi: hi ?? expr.hi };
  };
}

/** What `Bare` gives, without the dtype that stands behind it. */
type Untyped = (scope: KernelScope, dtype: Word) => Bare;

const asDType = (dtype: Word): Bare['dtype'] => dtype.text as Bare['dtype'];

export const kernelNotation: Notation = new Notation('kernel text', kernelGrammar, {
  Line: (line) => read(line),
  Kernel: (_kernel, name, kind, _flops, flops, _bytes, bytes, _open): KernelLine => ({
    kind: 'kernel',
    name: name.sourceString === '_' ? '' : name.sourceString,
    of: word(kind),
    flops: readNumber(flops.sourceString),
    bytes: readNumber(bytes.sourceString),
  }),
  Close: (_close): KernelLine => ({ kind: 'close' }),
  Pack: (name, _equals, dtype, _open, size, _close, _brace, first, _commas, rest, _end): KernelLine => ({
    kind: 'pack',
    name: word(name),
    dtype: word(dtype),
    size: numberOf(size),
    members: listed(first, rest, read<PackMemberTree>),
  }),
  Member: (node, _at, offset, _of, elements): PackMemberTree => ({
    node: word(node),
    offset: numberOf(offset),
    elements: numberOf(elements),
  }),
  Reads: (_reads, first, _commas, rest): KernelLine => ({
    kind: 'reads',
    names: [first, ...rest.children].map(word),
  }),
  Nodes: (_nodes, first, _commas, rest): KernelLine => ({
    kind: 'nodes',
    names: [first, ...rest.children].map(word),
  }),
  Axes: (_axes, first, _commas, rest): KernelLine => ({
    kind: 'axes',
    make: (scope) => [first, ...rest.children].map((axis) => read<Scoped<Axis>>(axis)(scope)),
  }),
  Dynamic: (_dynamic, name, _colon, lo, _dots, hi, _from, from): KernelLine => ({
    kind: 'dynamic',
    name: word(name),
    lo: numberOf(lo),
    hi: numberOf(hi),
    from: word(from),
  }),
  BodyKind: (_body, kind): KernelLine => ({ kind: 'body', of: word(kind) }),
  Write: (_write, node, _open, index, _close, _equals, value, part): KernelLine => ({
    kind: 'write',
    node: word(node),
    index: indexOf(index),
    value: word(value),
    isPart: part.children.length > 0,
  }),
  Field: (name, _colon, value) => ({
    kind: 'field',
    name: word(name),
    value: read<ValueTree>(value),
  }),

  Define: (name, _equals, bare, _colon, dtype): KernelLine => ({
    kind: 'expr',
    name: word(name),
    make: (scope) => read<Untyped>(bare)(scope, word(dtype)),
  }),
  Bare_select: (_select, _open, yes, _comma, no, _close, _where, guard): Untyped => {
    return (scope, dtype) => ({
      kind: 'select',
      guard: read<Scoped<Guard>>(guard)(scope),
      yes: scope.expr(word(yes)),
      no: scope.expr(word(no)),
      dtype: asDType(dtype),
    });
  },
  Bare_index: (_index, _open, index, _close): Untyped => {
    return (scope, dtype) => ({
      kind: 'index',
      index: indexOf(index)(scope),
      dtype: asDType(dtype),
    });
  },
  Bare_result: (_result, _open, node, _close): Untyped => {
    return (scope, dtype) => ({
      kind: 'result',
      node: scope.node(word(node)),
      dtype: asDType(dtype),
    });
  },
  Bare_scalar: (_scalar, _open, slot, _close): Untyped => {
    return (_scope, dtype) => ({ kind: 'scalar', slot: numberOf(slot), dtype: asDType(dtype) });
  },
  Bare_constant: (_constant, _open, number, _close): Untyped => {
    const text = number.sourceString;
    const value = text.endsWith('n') && text !== 'nan' ? BigInt(text.slice(0, -1)) : readNumber(text);
    return (_scope, dtype) => ({ kind: 'constant', value, dtype: asDType(dtype) });
  },
  Bare_random: (_random, _open, args, _close, _at, index): Untyped => {
    return (scope, dtype) => ({
      kind: 'random',
      args: read<Word[]>(args).map(scope.expr),
      index: indexOf(index)(scope),
      dtype: asDType(dtype),
    });
  },
  Bare_decode: (_decode, format, _open, args, _close, _at, index): Untyped => {
    const name = word(format);
    return (scope, dtype) => ({
      kind: 'decode',
      format: namesBlocks(name.text)
        ? name.text
        : scope.failAt(name.column, `${name.text} is no format of blocks`),
      args: read<Word[]>(args).map(scope.expr),
      index: indexOf(index)(scope),
      dtype: asDType(dtype),
    });
  },
  Bare_read: (node, _open, index, _close): Untyped => {
    return (scope, dtype) => ({
      kind: 'read',
      node: scope.node(word(node)),
      index: indexOf(index)(scope),
      dtype: asDType(dtype),
    });
  },
  Bare_op: (name, _open, args, _close): Untyped => {
    return (scope, dtype) => scope.op(word(name), read<Word[]>(args).map(scope.expr), dtype);
  },
  Args: (first, _commas, rest): Word[] => [first, ...rest.children].map(word),

  Value: (value): ValueTree => {
    switch (value.ctorName) {
      case 'ref':
        return plain('node', value, (scope) => scope.node(word(value)));
      case 'stage':
        return plain('stage', value, (scope) => scope.stage(word(value)));
      case 'expr':
        return plain('expr', value, (scope) => scope.expr(word(value)));
      case 'Axis':
        return plain('axis', value, read<Scoped<Axis>>(value));
      case 'flag':
        return plain('flag', value, () => value.sourceString === 'true');
      case 'number':
        return plain('number', value, () => readNumber(value.sourceString));
      case 'word':
        return plain('word', value, () => value.sourceString.slice(1, -1));
      default:
        return read<ValueTree>(value);
    }
  },
  List: (open, first, _commas, rest, _close): ValueTree => ({
    kind: 'list',
    column: column(open),
    items: listed(first, rest, read<ValueTree>),
  }),
  Fields: (open, first, _commas, rest, _close): ValueTree => ({
    kind: 'fields',
    column: column(open),
    fields: listed(first, rest, read<FieldTree>),
  }),
  Axis: (name, _open, extent, _close): Scoped<Axis> => {
    return (scope) => scope.axis(name.sourceString, numberOf(extent));
  },
  Inside_guard: (open, guard, _close): ValueTree => plain('guard', open, read<Scoped<Guard>>(guard)),
  Inside_index: (open, index, _close): ValueTree => plain('index', open, indexOf(index)),

  Guard: (guard): Scoped<Guard> => (guard.ctorName === 'always' ? () => [] : read<Scoped<Guard>>(guard)),
  Ranges: (first, _ands, rest): Scoped<Guard> => {
    const ranges = [first, ...rest.children].map((each) => read<Scoped<IndexBound>>(each));
    return (scope) => ranges.map((each) => each(scope));
  },
  Range_is: (index, _is, value) => range(index, numberOf(value), numberOf(value)),
  Range_between: (lo, _least, index, _most, hi) => range(index, numberOf(lo), numberOf(hi)),
  Range_most: (index, _most, hi) => range(index, undefined, numberOf(hi)),
  Range_least: (index, _least, lo) => range(index, numberOf(lo), undefined),

  Index: (index): Scoped<IndexExpr> => indexOf(index),
  Index_plus: (a, _plus, b): Scoped<IndexExpr> => {
    return (scope) => addIndex(indexOf(a)(scope), indexOf(b)(scope));
  },
  Index_minus: (a, _minus, b): Scoped<IndexExpr> => {
    return (scope) => subIndex(indexOf(a)(scope), indexOf(b)(scope));
  },
  Index_negative: (_minus, a): Scoped<IndexExpr> => {
    return (scope) => scaleIndex(indexOf(a)(scope), -1);
  },
  Term: (term): Scoped<IndexExpr> => indexOf(term),
  Term_times: (a, _times, by): Scoped<IndexExpr> => {
    return (scope) => scaleIndex(indexOf(a)(scope), numberOf(by));
  },
  Term_over: (a, _over, by): Scoped<IndexExpr> => {
    return (scope) => divIndex(indexOf(a)(scope), numberOf(by));
  },
  Term_rest: (a, _rest, by): Scoped<IndexExpr> => {
    return (scope) => modIndex(indexOf(a)(scope), numberOf(by));
  },
  Term_inner: (_open, index, _close): Scoped<IndexExpr> => indexOf(index),
  Term_size: (size): Scoped<IndexExpr> => {
    return () => constantIndex(numberOf(size));
  },
  Term_long: (name, _open, extent, _close): Scoped<IndexExpr> => {
    return (scope) => scope.leaf(word(name), numberOf(extent));
  },
  Term_leaf: (name): Scoped<IndexExpr> => {
    return (scope) => scope.leaf(word(name), undefined);
  },
});
