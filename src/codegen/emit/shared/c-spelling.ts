// Spellings that CUDA C and C share. A row of their tables spells one operation on scalars.

import { CompilerBug } from '../../../errors.ts';
import type { RegisterType, Width } from '../../loop/loop.ts';
import { isLong } from '../../loop/register.ts';
import { call, infix, type BinaryOperator, type Term } from './term.ts';

/** One use of an operation. */
export interface CFamilySite {
  readonly type: RegisterType;
  readonly width: Width;
  readonly args: readonly Term[];
  /** Register types of the arguments. */
  readonly types: readonly RegisterType[];
  /** The last argument where it is a constant. */
  readonly last: number | undefined;
  /** Signed integers are known not to wrap around. */
  readonly bounded: boolean;
  /** Gives the names of functions, and has them written. */
  readonly prelude: { use(name: string): string };
}

type Spelling<Site extends CFamilySite> = (site: Site) => Term;

export const isFloat = (type: RegisterType): boolean => type === 'f32' || type === 'f64';
export const isUnsigned = (type: RegisterType): boolean => type === 'u32' || type === 'u64';

export const operator =
  (op: BinaryOperator): Spelling<CFamilySite> =>
  ({ args }) =>
    infix(op, args[0]!, args[1]!);
/** A function of the prelude. */
export const helper =
  (name: string): Spelling<CFamilySite> =>
  ({ prelude, args }) =>
    call(prelude.use(name), args);
/** A function of the prelude that there is for every type of the first argument. */
export const typed =
  (name: string): Spelling<CFamilySite> =>
  ({ types, prelude, args }) =>
    call(prelude.use(`${name}_${types[0]}`), args);

/** Separate spellings for floats, integers and bools. */
export const byKind =
  <Site extends CFamilySite>(rows: {
    readonly float?: Spelling<Site>;
    readonly integer?: Spelling<Site>;
    readonly bool?: Spelling<Site>;
  }): Spelling<Site> =>
  (site) => {
    const [type] = site.types;
    const row = isFloat(type!) ? rows.float : type === 'bool' ? rows.bool : rows.integer;
    if (row === undefined) throw new CompilerBug('emit', `there is no such operation on ${type}`);
    return row(site);
  };

/** Signed integers wrap around by a function, unless the result is known to fit. */
export const arithmetic = (op: '+' | '-' | '*', name: 'add' | 'sub' | 'mul'): Spelling<CFamilySite> =>
  byKind<CFamilySite>({
    float: operator(op),
    integer: (site) => (site.bounded || isUnsigned(site.type) ? operator(op) : typed(name))(site),
  });

/** A constant last argument that cannot go wrong takes the operator. */
export const whenConstant =
  <Site extends CFamilySite>(
    safe: (last: number, type: RegisterType) => boolean,
    plain: Spelling<Site>,
    guarded: Spelling<Site>,
  ): Spelling<Site> =>
  (site) =>
    (site.last !== undefined && safe(site.last, site.types[0]!) ? plain : guarded)(site);
export const positive = (last: number): boolean => last > 0;
export const inWord = (last: number, type: RegisterType): boolean =>
  last >= 0 && last < (isLong(type) ? 64 : 32);
