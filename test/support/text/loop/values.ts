// What values are in Loop text: the rules of the grammar for them, read. A value means a function
// of the scope it stands in, which knows the buffers and the names; the reader of the whole text
// (parse.ts) keeps that.

import {
  read,
  readNumber,
  word,
  type Meanings,
  type Tree,
  type Word,
} from '../../../../src/ir/text/notation.ts';
import type { LoopBuffer, RegisterType, Value, Width } from '../../../../src/codegen/loop/loop.ts';
import { widened } from '../../../../src/codegen/loop/register.ts';
import { isLoopOp, resultOf } from '../../../../src/codegen/loop/verify.ts';

/** What a line may refer to. Lookups throw ParseError at the word. */
export interface Scope {
  readonly buffer: (name: Word) => LoopBuffer;
  readonly variable: (name: Word) => Value;
  readonly failAt: (column: number, problem: string) => never;
}

/** What is known once the scope is. */
export type In<T> = (scope: Scope) => T;

export interface Typed {
  readonly type: RegisterType;
  readonly width: Width;
}

export const valueOf = (tree: Tree): In<Value> => read<In<Value>>(tree);
export const numberOf = (tree: Tree): number => Number(tree.sourceString);
export const isThere = (optional: Tree): boolean => optional.children.length > 0;
export const first = (optional: Tree): Tree | undefined => optional.children[0];

/** An element of a buffer: its name and index. */
export interface Element {
  readonly buffer: Word;
  readonly index: In<Value>;
}

function call(name: Word, wraps: boolean, into: Typed | undefined, args: readonly In<Value>[]): In<Value> {
  const [, stem = '', lanes] = /^(\w*?)(?:(?<=^splat|^philox)(16|[248]))?$/.exec(name.text)!;
  return (scope) => {
    const values = args.map((arg) => arg(scope));
    const operand = values[stem === 'where' ? 1 : 0] ?? scope.failAt(name.column, `${stem} takes more`);
    if (stem === 'splat' && lanes !== undefined)
      return { kind: 'splat', arg: operand, type: operand.type, width: Number(lanes) as Width };
    if (!isLoopOp(stem)) return scope.failAt(name.column, `${name.text} is no operation`);
    const isCast = stem === 'cast' || stem === 'bitcast';
    if (isCast !== (into !== undefined))
      return scope.failAt(
        name.column,
        isCast ? `${stem} names a type: ${stem}<f32>` : `${stem} names no type`,
      );
    const width = stem === 'philox' ? ((lanes === undefined ? 1 : Number(lanes)) as Width) : operand.width;
    const type = into?.type ?? resultOf(stem, operand.type);
    return { kind: 'op', op: stem, args: values, type, width, ...(wraps && { wraps: true }) };
  };
}

/** The rules of the grammar that make values. */
export const valueMeanings: Meanings = {
  Element: (name, _open, index, _close): Element => ({ buffer: word(name), index: valueOf(index) }),
  Run: (name, _open, index, _colon, width, _close) => ({
    buffer: word(name),
    index: valueOf(index),
    width: isThere(width) ? numberOf(first(width)!) : 1,
  }),

  Value: (primary, lanes): In<Value> =>
    lanes.children.reduce<In<Value>>(
      (inner, lane) => (scope) => {
        const arg = inner(scope);
        return { kind: 'lane', arg, lane: read(lane), type: arg.type, width: 1 };
      },
      valueOf(primary),
    ),
  Primary: (one): In<Value> =>
    one.ctorName === 'name' ? (scope) => scope.variable(word(one)) : read<In<Value>>(one),
  Vector:
    (_open, args, _close): In<Value> =>
    (scope) => {
      const values = read<Tree[]>(args).map((arg) => valueOf(arg)(scope));
      const { type } = values[0]!;
      return { kind: 'vector', args: values, type, width: values.length as Width };
    },
  Call: (name, wraps, into, _open, args, _close): In<Value> =>
    call(
      word(name),
      isThere(wraps),
      isThere(into) ? read<Typed>(first(into)!) : undefined,
      read<Tree[]>(args).map(valueOf),
    ),
  Load: (name, _open, index, _colon, width, loose, _close): In<Value> => {
    const count = first(width);
    return (scope) => {
      const { name: buffer, dtype } = scope.buffer(word(name));
      return {
        kind: 'load',
        buffer,
        index: valueOf(index)(scope),
        aligned: loose.sourceString === '',
        type: widened(dtype),
        width: (count === undefined ? 1 : numberOf(count)) as Width,
      };
    };
  },
  List: (one, _commas, more): Tree[] => [one, ...more.children],

  constant_flag(flag) {
    const value = flag.sourceString === 'true' ? 1 : 0;
    return (): Value => ({ kind: 'constant', value, type: 'bool', width: 1 });
  },
  constant_special: (sign, what, _, type): In<Value> => {
    const value = readNumber(sign.sourceString + what.sourceString);
    return () => ({ kind: 'constant', value, ...read<Typed>(type) });
  },
  constant_number: (sign, digits, exact, _, type): In<Value> => {
    const text = sign.sourceString + digits.sourceString;
    const typed = isThere(type) ? read<Typed>(first(type)!) : { type: 'i32' as const, width: 1 as const };
    return () => ({
      kind: 'constant',
      value: Number(text),
      ...(isThere(exact) && { exact: BigInt(text) }),
      ...typed,
    });
  },
  place_item: (of, _dot, axis): In<Value> => {
    const place = of.sourceString as 'workgroup' | 'local';
    const at = 'xyz'.indexOf(axis.sourceString) as 0 | 1 | 2;
    return () => ({ kind: 'builtin', of: place, axis: at, type: 'i32', width: 1 });
  },
  place_subgroup: (_subgroup, _dot, of): In<Value> => {
    const place = of.sourceString as 'place' | 'number' | 'count';
    return () => ({ kind: 'subgroup', of: place, type: 'i32', width: 1 });
  },
  scalar: (_scalar, slot, _, type): In<Value> => {
    return () => ({ kind: 'scalar', slot: numberOf(slot), ...read<Typed>(type) });
  },
  lane: (_dot, digits) => numberOf(digits),
  into: (_open, type, _close) => read(type),
  type: (type, _x, width): Typed => ({
    type: type.sourceString as RegisterType,
    width: isThere(width) ? (numberOf(first(width)!) as Width) : 1,
  }),
  sizes(_first, _x, _more) {
    return this.sourceString.split('x').map(Number);
  },
};
