// The Schur form of a complex matrix and the eigenvectors of its triangle: one invocation a matrix,
// which turns rows and columns in the result itself. (J. Francis, 1961; J. Wilkinson, "The
// Algebraic Eigenvalue Problem", 1965.) ir/interpret/factor/schur.ts says the same in numbers.

import { addInts, constant, less, operation } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Numbers, type ComplexRegisters } from './numbers.ts';
import { Panel, type FactorBody } from './panel.ts';

/** Steps to one eigenvalue at most; two or three do. */
const stepsPerValue = 30;

/** The matrix under work: T and Qᴴ beside each other, real parts of each before imaginary ones. */
class Schur {
  readonly #panel: Panel;
  readonly #z: Numbers;
  readonly #n: number;

  constructor(panel: Panel) {
    this.#panel = panel;
    this.#z = new Numbers(panel);
    this.#n = panel.rows;
  }

  at(i: Value, j: Value): ComplexRegisters {
    const behind = addInts(j, constant(this.#n));
    return [this.#panel.at(i, j), this.#panel.at(i, behind)];
  }

  put(i: Value, j: Value, [re, im]: ComplexRegisters): void {
    this.#panel.put(i, j, re);
    this.#panel.put(i, addInts(j, constant(this.#n)), im);
  }

  copyIn(): void {
    const { b } = this.#panel;
    const n = this.#n;
    const [first, end] = [constant(0), constant(n)];
    const [zero, one] = [this.#z.number(0), this.#z.number(1)];
    b.for('i', first, end, 1, (i) => {
      b.for('j', first, constant(2 * n), 1, (j) => this.#panel.put(i, j, this.#panel.operand(0, i, j)));
      b.for('j', first, end, 1, (j) => {
        const isOne = operation('eq', [i, j], 'bool');
        this.put(i, addInts(j, constant(2 * n)), [this.#z.choose(isOne, one, zero), zero]);
      });
    });
  }

  /** Turns rows i and i + 1 from column `from` on, and columns down to row `to`: (a, b) becomes (r, 0). */
  turn(i: Value, a: ComplexRegisters, c: ComplexRegisters, from: Value, to: Value): void {
    const { b } = this.#panel;
    const z = this.#z;
    const [zero, one] = [z.number(0), z.number(1)];
    const [sizeA, sizeB] = [z.size(a), z.size(c)];
    const r = z.length(sizeA, sizeB);
    b.if(operation('lt', [zero, r], 'bool'), () => {
      const none = b.let(operation('eq', [sizeA, zero], 'bool'), 'none');
      const divisor = z.choose(none, one, sizeA);
      const direction: ComplexRegisters = [z.op('div', a[0], divisor), z.op('div', a[1], divisor)];
      const other = z.conj([z.op('div', c[0], r), z.op('div', c[1], r)]);
      const own = z.op('div', sizeA, r);
      const s = z.either(none, [one, zero], z.times(direction, other));
      const next = b.let(addInts(i, constant(1)), 'next');
      const rows = (j: Value): void => this.#mix(own, s, [i, j], [next, j]);
      b.for('j', from, constant(this.#n), 1, rows);
      b.for('j', constant(2 * this.#n), constant(3 * this.#n), 1, rows);
      const back = z.conj(s);
      b.for('k', constant(0), addInts(to, constant(1)), 1, (k) => this.#mix(own, back, [k, i], [k, next]));
    });
  }

  /** (x, y) becomes (c·x + s·y, c·y − s*·x). */
  #mix(
    own: Value,
    s: ComplexRegisters,
    first: readonly [Value, Value],
    second: readonly [Value, Value],
  ): void {
    const z = this.#z;
    const [x, y] = [this.at(...first), this.at(...second)];
    const one = z.plus(z.scaled(x, own), z.times(s, y));
    const two = z.minus(z.scaled(y, own), z.times(z.conj(s), x));
    this.put(...first, one);
    this.put(...second, two);
  }

  hessenberg(): void {
    const { b } = this.#panel;
    const n = this.#n;
    b.for('k', constant(0), constant(n - 2), 1, (k) =>
      b.for('down', constant(0), operation('sub', [constant(n - 2), k], 'i32'), 1, (down) => {
        const i = b.let(operation('sub', [constant(n - 2), down], 'i32'), 'i');
        const below = b.let(addInts(i, constant(1)), 'below');
        this.turn(i, this.at(i, k), this.at(below, k), k, constant(n - 1));
        this.put(below, k, [this.#z.number(0), this.#z.number(0)]);
      }),
    );
  }

  /** Of the last two rows the eigenvalue that is nearer to the last element. */
  #shift(last: Value): ComplexRegisters {
    const z = this.#z;
    const before = this.#panel.b.let(operation('sub', [last, constant(1)], 'i32'), 'before');
    const [a, c, e, d] = [
      this.at(before, before),
      this.at(before, last),
      this.at(last, before),
      this.at(last, last),
    ];
    const half = z.scaled(z.minus(a, d), z.number(0.5));
    const product = z.times(c, e);
    const radical = z.root(z.plus(z.times(half, half), product));
    const [sum, difference] = [z.plus(half, radical), z.minus(half, radical)];
    const divisor = z.either(operation('lt', [z.size(sum), z.size(difference)], 'bool'), difference, sum);
    const none = this.#panel.b.let(operation('eq', [z.size(divisor), z.number(0)], 'bool'), 'none');
    const safe = z.either(none, [z.number(1), z.number(0)], divisor);
    return z.either(none, d, z.minus(d, z.over(product, safe)));
  }

  /** Below the diagonal all vanishes, or is NaN on it. */
  triangular(): void {
    const { b } = this.#panel;
    const z = this.#z;
    const n = this.#n;
    const epsilon = z.number(this.#panel.type === 'f64' ? 2 ** -52 : 2 ** -23);
    const zero: ComplexRegisters = [z.number(0), z.number(0)];
    const last = b.var('last', constant(n - 1));
    const steps = b.var('steps', constant(0));
    b.for('turn', constant(0), constant(stepsPerValue * n), 1, () =>
      b.if(less(constant(0), last), () => {
        const end = b.let(last, 'end');
        const first = b.var('first', constant(0));
        b.for('l', constant(1), addInts(end, constant(1)), 1, (l) => {
          const before = b.let(operation('sub', [l, constant(1)], 'i32'), 'before');
          const beside = z.op('add', z.size(this.at(before, before)), z.size(this.at(l, l)));
          const none = operation('eq', [beside, z.number(0)], 'bool');
          const scale = z.choose(none, z.number(1), beside);
          const small = operation('le', [z.size(this.at(l, before)), z.op('mul', scale, epsilon)], 'bool');
          b.if(small, () => b.assign(first, l));
        });
        const top = b.let(first, 'top');
        b.if(less(constant(0), top), () => this.put(top, operation('sub', [top, constant(1)], 'i32'), zero));
        b.if(
          operation('eq', [top, end], 'bool'),
          () => {
            b.assign(last, operation('sub', [end, constant(1)], 'i32'));
            b.assign(steps, constant(0));
          },
          () => {
            b.assign(steps, addInts(steps, constant(1)));
            this.#step(top, end, steps);
          },
        );
      }),
    );
    b.if(less(constant(0), last), () =>
      b.for('i', constant(0), constant(n), 1, (i) => this.put(i, i, [z.number(NaN), z.number(NaN)])),
    );
  }

  /** One step of the QR algorithm on the rows from `top` to `end`. */
  #step(top: Value, end: Value, steps: Value): void {
    const { b } = this.#panel;
    const z = this.#z;
    const zero: ComplexRegisters = [z.number(0), z.number(0)];
    const before = b.let(operation('sub', [end, constant(1)], 'i32'), 'before');
    // Now and then a shift of another kind, where the usual one goes in circles.
    const strange = operation('eq', [operation('mod', [steps, constant(10)], 'i32'), constant(0)], 'bool');
    const aside = z.plus(this.at(end, end), [z.size(this.at(end, before)), z.number(0)]);
    const shift = z.either(b.let(strange, 'strange'), aside, this.#shift(end));
    const least = (x: Value, y: Value): Value => b.let(operation('min', [x, y], 'i32'), 'to');
    const below = b.let(addInts(top, constant(1)), 'below');
    const start = z.minus(this.at(top, top), shift);
    this.turn(top, start, this.at(below, top), top, least(addInts(top, constant(2)), end));
    b.for('k', below, end, 1, (k) => {
      const left = b.let(operation('sub', [k, constant(1)], 'i32'), 'left');
      const under = b.let(addInts(k, constant(1)), 'under');
      this.turn(k, this.at(k, left), this.at(under, left), left, least(addInts(k, constant(2)), end));
      this.put(under, left, zero);
    });
  }

  /** Above the diagonal the triangle's eigenvectors; what stands on their diagonal in column 0. */
  vectors(): void {
    const { b, type } = this.#panel;
    const z = this.#z;
    const n = this.#n;
    const [epsilon, large] = type === 'f64' ? [2 ** -52, 1e100] : [2 ** -23, 1e12];
    b.for('across', constant(0), constant(n - 1), 1, (across) => {
      const j = b.let(operation('sub', [constant(n - 1), across], 'i32'), 'j');
      const one = b.var('one', z.number(1));
      const value = this.at(j, j);
      const least = z.op('mul', z.op('max', z.size(value), z.number(epsilon)), z.number(epsilon));
      b.for('up', constant(0), j, 1, (up) => {
        const i = b.let(operation('sub', [operation('sub', [j, constant(1)], 'i32'), up], 'i32'), 'i');
        const own = z.scaled(this.at(i, j), one);
        const sum = [b.var('re', own[0]), b.var('im', own[1])] as const;
        b.for('k', addInts(i, constant(1)), j, 1, (k) => {
          const term = z.times(this.at(i, k), this.at(k, j));
          b.assign(sum[0], operation('add', [sum[0], term[0]], type));
          b.assign(sum[1], operation('add', [sum[1], term[1]], type));
        });
        const gap = z.minus(value, this.at(i, i));
        const close = b.let(operation('lt', [z.size(gap), least], 'bool'), 'close');
        const found = z.over(z.pair(sum[0], sum[1]), z.either(close, [least, z.number(0)], gap));
        this.put(i, j, found);
        const size = z.size(found);
        b.if(operation('lt', [z.number(large), size], 'bool'), () => {
          b.assign(one, operation('div', [one, size], type));
          b.for('k', i, j, 1, (k) => {
            const [re, im] = this.at(k, j);
            this.put(k, j, [z.op('div', re, size), z.op('div', im, size)]);
          });
        });
      });
      this.put(j, constant(0), [one, z.number(0)]);
    });
  }
}

export function schurLoop(frame: Frame, body: FactorBody): Loop {
  const panel = new Panel(frame, body, 1);
  const form = new Schur(panel);
  form.copyIn();
  form.hessenberg();
  form.triangular();
  form.vectors();
  return panel.loop('by rotations');
}
