// Householder's reflections where an invocation has a matrix for itself: a block of columns is reflected
// column by column, and its reflections then go together over the panels of columns on its right, as
// I − V·T·Vᵀ (R. Schreiber and C. Van Loan, "A storage-efficient WY representation for products of
// Householder transformations", 1989). Both products are tiles. Q is made of the reflections of all
// blocks, the last first.

import { addInts, constant, mulInts, operation, splat } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import { panelWidth, reflectionsTogether } from '../../../../schedule/factor-panels.ts';
import type { Frame } from '../../shared/frame.ts';
import { reflector } from '../householder.ts';
import { Panel, type FactorBody } from '../panel.ts';
import { PanelColumns, filled, lanesFrom, products, written } from './tile.ts';

const together = reflectionsTogether;

/** R and the vectors, above the τ. */
export function householderByPanels(frame: Frame, body: FactorBody): Loop {
  const { m, n, k, ...rest } = open(frame, body);
  const blocks = new Blocks({ m, n, k, offset: 0, ...rest });
  const { panel } = rest;
  const { b } = panel;
  blocks.begin();
  b.for('c', constant(0), constant(n), 1, (c) => panel.put(constant(m), c, panel.number(0)));
  b.for('first', constant(0), constant(k), together, (first) =>
    blocks.reduce(first, (c, tau) => panel.put(constant(m), addInts(first, c), tau)),
  );
  return panel.loop(`${together} columns at a time`);
}

/** Q beside R above zeros. */
export function qrByPanels(frame: Frame, body: FactorBody): Loop {
  const { m, n, k, ...rest } = open(frame, body);
  const blocks = new Blocks({ m, n, k, offset: k, ...rest });
  const { panel } = rest;
  const { b } = panel;
  const [zero, rows] = [constant(0), constant(m)];
  blocks.begin();
  b.for('first', zero, constant(k), together, (first) => blocks.reduce(first, () => {}));
  b.for('i', zero, rows, 1, (i) => {
    panel.along(zero, constant(k), (c, wide) => panel.put(i, c, splat(panel.number(0), wide)));
  });
  b.for('i', zero, constant(k), 1, (i) => panel.put(i, i, panel.number(1)));
  const last = together * (Math.ceil(k / together) - 1);
  b.for('behind', zero, constant(k), together, (behind) =>
    blocks.apply(b.let(operation('sub', [constant(last), behind], 'i32'), 'first')),
  );
  // Where the vectors were.
  b.for('i', constant(1), rows, 1, (i) => {
    const end = b.let(operation('min', [i, constant(n)], 'i32'), 'end');
    panel.along(constant(k), addInts(end, constant(k)), (c, wide) =>
      panel.put(i, c, splat(panel.number(0), wide)),
    );
  });
  return panel.loop(`${together} columns at a time, Q from their reflections`);
}

interface Form {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly width: number;
  readonly panel: Panel;
}

function open(frame: Frame, body: FactorBody): Form {
  const [m, n] = [body.operands[0]!.row.extent, body.operands[0]!.column.extent];
  const k = Math.min(m, n);
  const width = panelWidth(body.node.dtype);
  const memory = {
    // A pair of rows may end past the last row.
    vectors: (m + 1) * together,
    turned: m * together,
    side: (m + 1) * width,
    weights: together * width,
    shares: together * width,
    gram: together * together,
    triangles: Math.ceil(k / together) * together * together,
  };
  return { m, n, k, width, panel: new Panel(frame, body, 1, { memory }) };
}

class Blocks {
  readonly #form: Form & { readonly offset: number };
  /** The vectors of a block, from its first row on. */
  readonly #vectors: PanelColumns;
  /** Columns that a block is applied to. */
  readonly #side: PanelColumns;
  readonly #weights: PanelColumns;
  readonly #shares: PanelColumns;

  /** The matrix stands `offset` columns behind those of Q. */
  constructor(form: Form & { readonly offset: number }) {
    const { panel, width } = form;
    this.#form = form;
    this.#vectors = new PanelColumns(panel, 'vectors', together);
    this.#side = new PanelColumns(panel, 'side', width);
    this.#weights = new PanelColumns(panel, 'weights', width);
    this.#shares = new PanelColumns(panel, 'shares', width);
  }

  /** Brings the matrix to where it is worked on. */
  begin(): void {
    const { panel, m, n, offset } = this.#form;
    panel.b.for('i', constant(0), constant(m), 1, (i) =>
      panel.along(constant(0), constant(n), (c, wide) =>
        panel.put(i, addInts(c, constant(offset)), panel.operand(0, i, c, wide)),
      ),
    );
  }

  /** Rows that a block from row `first` on has. */
  #height(first: Value): Value {
    const { panel, m } = this.#form;
    return panel.b.let(operation('sub', [constant(m), first], 'i32'), 'height');
  }

  /** Columns of a block: fewer in the last one. */
  #count(first: Value): Value {
    const { panel, k } = this.#form;
    if (k % together === 0) return constant(together);
    const left = operation('sub', [constant(k), first], 'i32');
    return panel.b.let(operation('min', [left, constant(together)], 'i32'), 'count');
  }

  /** A place in the triangle T of a block, column by column. */
  #triangle(first: Value, column: Value, row: Value): Value {
    return addInts(addInts(mulInts(first, constant(together)), mulInts(column, constant(together))), row);
  }

  /** Reflects the columns from `first` on, and all on their right. */
  reduce(first: Value, tell: (column: Value, tau: Value) => void): void {
    const { panel, n } = this.#form;
    const { b } = panel;
    const [height, count] = [this.#height(first), this.#count(first)];
    const taus = (c: Value): Value => this.#triangle(first, c, c);
    this.#load(first);
    for (let q = 0; q < this.#vectors.quads; q++) {
      const end = operation('min', [count, constant(4 * q + 4)], 'i32');
      b.for('c', constant(4 * q), end, 1, (c) => {
        const tau = this.#reflect(c, q, height);
        panel.keep('triangles', taus(c), tau);
        tell(c, tau);
      });
    }
    this.#store(first);
    this.#complete(first);
    this.#join(first);
    const right = b.let(addInts(first, count), 'right');
    this.#overPanels(first, right, n, this.#form.offset, true);
  }

  /** Q of the blocks behind, and this one's reflections before it. */
  apply(first: Value): void {
    this.#load(first);
    this.#complete(first);
    this.#overPanels(first, first, this.#form.k, 0, false);
  }

  #source(first: Value) {
    const { m, k } = this.#form;
    return { first, columns: k, start: first, end: constant(m) };
  }

  #load(first: Value): void {
    const { panel, offset } = this.#form;
    filled(
      panel,
      this.#vectors,
      this.#source(first),
      (i, c, wide) => panel.at(i, addInts(c, constant(offset)), wide),
      constant(0),
    );
  }

  #store(first: Value): void {
    const { panel, offset } = this.#form;
    written(
      panel,
      this.#vectors,
      this.#source(first),
      (i, c, value) => panel.put(i, addInts(c, constant(offset)), value),
      constant(0),
    );
  }

  /** The reflection of column `c`, which is in the vectors from `quad` on, over what is right of it; its τ. */
  #reflect(c: Value, quad: number, height: Value): Value {
    const { panel } = this.#form;
    const { b, type } = panel;
    const vectors = this.#vectors;
    const next = b.let(addInts(c, constant(1)), 'next');
    const { beta, tau, divisor } = reflector(panel, (i) => vectors.at(i, c), c, next, height);
    const isRight = b.let(operation('lt', [c, lanesFrom(4 * quad)], 'bool'), 'is_right');
    const isOwn = b.let(operation('eq', [c, lanesFrom(4 * quad)], 'bool'), 'is_own');
    const quads = Array.from({ length: vectors.quads - quad }, (_, q) => quad + q);
    const sums = quads.map((q) => b.var('sum', vectors.quad(c, q)));
    b.for('i', next, height, 1, (i) => {
      const own = b.let(splat(operation('div', [vectors.at(i, c), divisor], type), 4), 'own');
      quads.forEach((q, at) => {
        const value = vectors.quad(i, q);
        b.assign(sums[at]!, operation('fma', [own, value, sums[at]!], type));
        if (at === 0) vectors.keepQuad(i, q, operation('where', [isOwn, own, value], type));
      });
    });
    const shares = sums.map((sum) => b.let(operation('mul', [sum, splat(tau, 4)], type), 'share'));
    quads.forEach((q, at) => {
      const value = vectors.quad(c, q);
      const rest = operation('sub', [value, shares[at]!], type);
      const kept = operation('where', [isOwn, splat(beta, 4), value], type);
      vectors.keepQuad(c, q, at > 0 ? rest : operation('where', [isRight, rest, kept], type));
    });
    b.for('i', next, height, 1, (i) => {
      const own = b.let(splat(vectors.at(i, c), 4), 'own');
      quads.forEach((q, at) => {
        const value = vectors.quad(i, q);
        const rest = operation('sub', [value, operation('mul', [own, shares[at]!], type)], type);
        vectors.keepQuad(i, q, at > 0 ? rest : operation('where', [isRight, rest, value], type));
      });
    });
    return tau;
  }

  /** The vectors of a block with their ones and zeros, and pair by pair with the steps of each together. */
  #complete(first: Value): void {
    const { panel, m } = this.#form;
    const { b } = panel;
    const vectors = this.#vectors;
    const [height, count] = [this.#height(first), this.#count(first)];
    const top = b.let(operation('min', [height, constant(together)], 'i32'), 'top');
    b.for('i', constant(0), top, 1, (i) => {
      vectors.keep(i, i, panel.number(1));
      b.for('c', addInts(i, constant(1)), constant(together), 1, (c) => vectors.keep(i, c, panel.number(0)));
    });
    b.if(operation('lt', [count, constant(together)], 'bool'), () =>
      b.for('i', constant(0), height, 1, (i) =>
        b.for('c', count, constant(together), 1, (c) => vectors.keep(i, c, panel.number(0))),
      ),
    );
    for (let q = 0; q < vectors.quads; q++) vectors.keepQuad(height, q, splat(panel.number(0), 4));
    b.for('i', constant(0), height, 1, (i) => {
      for (let q = 0; q < vectors.quads; q++) {
        const value = vectors.quad(i, q);
        for (const half of [0, 1]) {
          const args = [0, 1].map((lane): Value => ({
            kind: 'lane',
            arg: value,
            lane: 2 * half + lane,
            type: panel.type,
            width: 1,
          }));
          const place = addInts(constant(2 * m * (2 * q + half)), mulInts(i, constant(2)));
          panel.keep('turned', place, { kind: 'vector', args, type: panel.type, width: 2 });
        }
      }
    });
    for (let q = 0; q < this.#side.quads; q++) this.#side.keepQuad(height, q, splat(panel.number(0), 4));
  }

  /** Vᵀ times a panel of columns, rows from `pair` on. */
  #turnedBy(columns: PanelColumns, pair: Value, height: Value): readonly (readonly Value[])[] {
    const { panel, m } = this.#form;
    const line = panel.b.let(mulInts(pair, constant(2 * m)), 'line');
    return products(panel, columns, 2, height, (r, step) =>
      panel.held('turned', addInts(addInts(line, mulInts(step, constant(2))), constant(r))),
    );
  }

  /** T of a block, whose diagonal of τ is there: T(:, c) = −τ·Σ T(:, d)·(VᵀV)(d, c) over d < c. */
  #join(first: Value): void {
    const { panel, width } = this.#form;
    const { b, type } = panel;
    const [height, count] = [this.#height(first), this.#count(first)];
    const gram = new PanelColumns(panel, 'gram', together);
    for (let at = 0; at < together; at += width) {
      const columns = new PanelColumns(panel, 'vectors', width, constant(at), together);
      b.for('pair', constant(0), constant((at + width) / 2), 1, (pair) => {
        const sums = this.#turnedBy(columns, pair, height);
        const row = b.let(mulInts(pair, constant(2)), 'row');
        sums.forEach((line, r) =>
          line.forEach((sum, q) => gram.keepQuad(addInts(row, constant(r)), at / 4 + q, sum)),
        );
      });
    }
    const place = (c: Value, d: Value | number): Value =>
      this.#triangle(first, c, typeof d === 'number' ? constant(d) : d);
    const zero = splat(panel.number(0), 4);
    b.for('c', constant(0), count, 1, (c) => {
      const tau = panel.held('triangles', place(c, c));
      const sums = Array.from({ length: together / 4 }, () => b.var('sum', zero));
      b.for('d', constant(0), c, 1, (d) => {
        const by = b.let(splat(gram.at(d, c), 4), 'by');
        sums.forEach((sum, q) => {
          const column = panel.held('triangles', place(d, 4 * q), 4);
          b.assign(sum, operation('fma', [by, column, sum], type));
        });
      });
      const scale = b.let(splat(operation('neg', [tau], type), 4), 'scale');
      sums.forEach((sum, q) =>
        panel.keep('triangles', place(c, 4 * q), operation('mul', [scale, sum], type)),
      );
      panel.keep('triangles', place(c, c), tau);
    });
    b.for('c', count, constant(together), 1, (c) => {
      for (let q = 0; q < together / 4; q++) panel.keep('triangles', place(c, 4 * q), zero);
    });
  }

  /** A block's reflections over the columns from `from` up to `end`; those of its transpose where `isTransposed`. */
  #overPanels(first: Value, from: Value, end: number, offset: number, isTransposed: boolean): void {
    const { panel, m, width } = this.#form;
    const { b, type } = panel;
    const height = this.#height(first);
    const [side, weights, shares] = [this.#side, this.#weights, this.#shares];
    b.for('column', from, constant(end), width, (column) => {
      const source = { first: column, columns: end, start: first, end: constant(m) };
      const at = (c: Value): Value => addInts(c, constant(offset));
      filled(panel, side, source, (i, c, wide) => panel.at(i, at(c), wide), constant(0));
      const eachPair = (visit: (pair: Value, row: (r: number) => Value) => void): void =>
        b.for('pair', constant(0), constant(together / 2), 1, (pair) => {
          const row = b.let(mulInts(pair, constant(2)), 'row');
          visit(pair, (r) => addInts(row, constant(r)));
        });
      eachPair((pair, row) =>
        this.#turnedBy(side, pair, height).forEach((line, r) =>
          line.forEach((sum, q) => weights.keepQuad(row(r), q, sum)),
        ),
      );
      eachPair((_, row) => {
        const triangle = (r: number, step: Value): Value =>
          panel.held(
            'triangles',
            isTransposed ? this.#triangle(first, row(r), step) : this.#triangle(first, step, row(r)),
          );
        products(panel, weights, 2, constant(together), triangle).forEach((line, r) =>
          line.forEach((sum, q) => shares.keepQuad(row(r), q, sum)),
        );
      });
      b.for('i', constant(0), height, 2, (i) => {
        const rows = [i, b.let(addInts(i, constant(1)), 'lower')];
        const lost = products(panel, shares, 2, constant(together), (r, step) =>
          this.#vectors.at(rows[r]!, step),
        );
        lost.forEach((line, r) =>
          line.forEach((sum, q) =>
            side.keepQuad(rows[r]!, q, operation('sub', [side.quad(rows[r]!, q), sum], type)),
          ),
        );
      });
      written(panel, side, source, (i, c, value) => panel.put(i, at(c), value), constant(0));
    });
  }
}
