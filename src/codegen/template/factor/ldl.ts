// L·D·Lᵀ or L·D·Lᴴ of an indefinite matrix with diagonal pivots of one or two rows: one invocation a
// matrix. (J. R. Bunch and L. Kaufman, 1977.) ir/interpret/factor/ldl.ts says the same in numbers.

import { addInts, constant, less, operation } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Numbers, type ComplexRegisters } from './numbers.ts';
import { Panel, type FactorBody } from './panel.ts';

/** Growth is least where a pivot of one row has this share of what stands beside it. */
const share = (1 + Math.sqrt(17)) / 8;

/** The matrix under work: real parts before imaginary ones. */
class Ldl {
  readonly #panel: Panel;
  readonly #z: Numbers;
  readonly #n: number;
  readonly #isHermitian: boolean;

  constructor(panel: Panel, isHermitian: boolean) {
    [this.#panel, this.#z, this.#n, this.#isHermitian] = [panel, new Numbers(panel), panel.rows, isHermitian];
  }

  #at(i: Value, j: Value): ComplexRegisters {
    return this.#panel.pairAt(i, j, this.#n);
  }

  #put(i: Value, j: Value, value: ComplexRegisters): void {
    this.#panel.putPair(i, j, this.#n, value);
  }

  /** On the diagonal, where a Hermitian matrix is real. */
  #putReal(i: Value, value: ComplexRegisters): void {
    this.#put(i, i, this.#isHermitian ? [value[0], this.#z.number(0)] : value);
  }

  #conj(value: ComplexRegisters): ComplexRegisters {
    return this.#isHermitian ? this.#z.conj(value) : value;
  }

  /** |re| + |im|. */
  #size([re, im]: ComplexRegisters): Value {
    return this.#z.op('add', this.#z.op('abs', re), this.#z.op('abs', im));
  }

  #is(op: 'lt' | 'eq', x: Value, y: Value): Value {
    return this.#panel.b.let(operation(op, [x, y], 'bool'), 'is');
  }

  #next(i: Value, by = 1): Value {
    return this.#panel.b.let(addInts(i, constant(by)), 'next');
  }

  whole(): void {
    const { b } = this.#panel;
    const [first, end] = [constant(0), constant(this.#n)];
    const none: ComplexRegisters = [this.#z.number(0), this.#z.number(0)];
    b.for('i', first, end, 1, (i) => {
      b.for('j', first, i, 1, (j) => this.#put(i, j, this.#operand(i, j)));
      this.#putReal(i, this.#operand(i, i));
      b.for('j', this.#next(i), end, 1, (j) => this.#put(i, j, none));
    });
    const place = b.var('place', constant(0));
    b.for('turn', first, end, 1, () =>
      b.if(less(place, end), () => {
        const k = b.let(place, 'k');
        const below = this.#next(k);
        const [at, isTwo] = this.#pivot(k, below);
        const last = b.let(operation('where', [isTwo, below, k], 'i32'), 'last');
        this.#exchange(k, last, at, isTwo);
        const told = operation('cast', [this.#next(at)], this.#panel.type);
        const column = constant(2 * this.#n);
        b.if(
          isTwo,
          () => {
            this.#eliminateTwo(k, below);
            const pivot = b.let(operation('neg', [told], this.#panel.type), 'pivot');
            this.#panel.put(k, column, pivot);
            this.#panel.put(below, column, pivot);
          },
          () => {
            this.#eliminate(k, below);
            this.#panel.put(k, column, told);
          },
        );
        b.assign(place, addInts(last, constant(1)));
      }),
    );
  }

  #operand(i: Value, j: Value): ComplexRegisters {
    const behind = addInts(j, constant(this.#n));
    return [this.#panel.operand(0, i, j), this.#panel.operand(0, i, behind)];
  }

  /** The row that comes to the pivot's place, and whether the pivot has two rows. */
  #pivot(k: Value, below: Value): readonly [at: Value, isTwo: Value] {
    const { b, type } = this.#panel;
    const z = this.#z;
    const end = constant(this.#n);
    const own = this.#size(this.#at(k, k));
    const greatest = b.var('greatest', z.number(0));
    const where = b.var('where', k);
    b.for('i', below, end, 1, (i) => {
      const here = this.#size(this.#at(i, k));
      b.if(this.#is('lt', greatest, here), () => {
        b.assign(greatest, here);
        b.assign(where, i);
      });
    });
    const at = b.var('at', k);
    const two = b.var('two', constant(0));
    const most = b.let(greatest, 'most');
    const row = b.let(where, 'row');
    b.if(this.#is('lt', own, z.op('mul', most, z.number(share))), () => {
      const beside = b.var('beside', z.number(0));
      const widen = (value: Value): void => b.assign(beside, operation('max', [beside, value], type));
      b.for('j', k, row, 1, (j) => widen(this.#size(this.#at(row, j))));
      b.for('i', this.#next(row), end, 1, (i) => widen(this.#size(this.#at(i, row))));
      const bound = z.op('mul', z.op('mul', most, z.number(share)), z.op('div', most, beside));
      b.if(this.#is('lt', own, bound), () => {
        b.assign(at, row);
        const small = this.#is('lt', this.#size(this.#at(row, row)), z.op('mul', beside, z.number(share)));
        b.assign(two, operation('cast', [small], 'i32'));
      });
    });
    return [b.let(at, 'pivot_row'), b.let(operation('eq', [two, constant(1)], 'bool'), 'is_two')];
  }

  #swap(
    first: readonly [Value, Value],
    second: readonly [Value, Value],
    both: (value: ComplexRegisters) => ComplexRegisters = (value) => value,
  ): void {
    const [x, y] = [this.#at(...first), this.#at(...second)];
    this.#put(...first, both(y));
    this.#put(...second, both(x));
  }

  /** Rows and columns of what is left change places. */
  #exchange(k: Value, last: Value, at: Value, isTwo: Value): void {
    const { b } = this.#panel;
    b.if(less(last, at), () => {
      b.for('i', this.#next(at), constant(this.#n), 1, (i) => this.#swap([i, last], [i, at]));
      b.for('j', this.#next(last), at, 1, (j) =>
        this.#swap([j, last], [at, j], (value) => this.#conj(value)),
      );
      this.#put(at, last, this.#conj(this.#at(at, last)));
      this.#swap([last, last], [at, at]);
      b.if(isTwo, () => this.#swap([last, k], [at, k]));
    });
  }

  /** Takes `lost` from element (i, j) of what is left. */
  #lose(i: Value, j: Value, lost: ComplexRegisters): void {
    const { b } = this.#panel;
    const left = this.#z.minus(this.#at(i, j), lost);
    if (!this.#isHermitian) this.#put(i, j, left);
    else {
      b.if(
        operation('eq', [i, j], 'bool'),
        () => this.#putReal(i, left),
        () => this.#put(i, j, left),
      );
    }
  }

  #eliminate(k: Value, below: Value): void {
    const { b } = this.#panel;
    const z = this.#z;
    const end = constant(this.#n);
    const pivot = this.#at(k, k);
    b.if(this.#is('lt', z.number(0), this.#size(pivot)), () => {
      b.for('j', below, end, 1, (j) => {
        const weight = this.#conj(z.over(this.#at(j, k), pivot));
        b.for('i', j, end, 1, (i) => this.#lose(i, j, z.times(this.#at(i, k), weight)));
      });
      b.for('i', below, end, 1, (i) => this.#put(i, k, z.over(this.#at(i, k), pivot)));
    });
  }

  /** The pivot's rows are brought to about 1 by the element below the diagonal. */
  #eliminateTwo(k: Value, below: Value): void {
    const { b } = this.#panel;
    const z = this.#z;
    const side = this.#at(below, k);
    const turned = this.#conj(side);
    const [one, two] = [z.over(this.#at(below, below), side), z.over(this.#at(k, k), turned)];
    const determinant = z.minus(z.times(one, two), [z.number(1), z.number(0)]);
    b.for('j', this.#next(below), constant(this.#n), 1, (j) => {
      const [first, second] = [this.#at(j, k), this.#at(j, below)];
      const inner = z.minus(z.times(one, z.over(first, turned)), z.over(second, turned));
      const outer = z.minus(z.times(two, z.over(second, side)), z.over(first, side));
      const [left, right] = [z.over(inner, determinant), z.over(outer, determinant)];
      const weights = [this.#conj(left), this.#conj(right)] as const;
      b.for('i', j, constant(this.#n), 1, (i) => {
        const lost = z.times(this.#at(i, k), weights[0]);
        this.#lose(i, j, z.plus(lost, z.times(this.#at(i, below), weights[1])));
      });
      this.#put(j, k, left);
      this.#put(j, below, right);
    });
  }
}

export function ldlLoop(frame: Frame, body: FactorBody, isHermitian: boolean): Loop {
  const panel = new Panel(frame, body, 1);
  new Ldl(panel, isHermitian).whole();
  return panel.loop('pivots of one row or two');
}
