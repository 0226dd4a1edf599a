// Two rows of a matrix in memory: their products, and the rotation that makes them orthogonal
// (H. Rutishauser, "The Jacobi method for real symmetric matrices", 1966, for its formulas). Of two
// complex rows the second is turned first to where their product is real.

import type { Body } from '../../../schedule/kernel.ts';
import { addInts, both, constant, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { LoopOp, RegisterType, Value, Width } from '../../loop/loop.ts';

export type RowsBody = Extract<Body, { kind: 'jacobi-rows' }>;

/** When two rows count as orthogonal, and how many sums tell it. */
export interface Tolerances {
  /** The cosine of their angle, below which nothing is turned. */
  readonly cosine: number;
  /** Rows with a cosine below this, and turned by little, need no further sweep. */
  readonly last: number;
  /** A row whose square is below this counts for nothing: it is zero but for rounding. */
  readonly least: number;
  /** The least product that is told from nothing: that of such rows at the least angle. */
  readonly faint: number;
  /** x·x, y·y and the product of the two, of which a complex one has two parts. */
  readonly sums: number;
}

export function tolerances({ node, row }: RowsBody): Tolerances {
  const { width, parts } = node.attrs;
  const epsilon = node.dtype === 'f64' ? 2 ** -52 : 2 ** -23;
  const cosine = epsilon * Math.max(2, Math.sqrt(width * parts));
  return {
    cosine,
    last: cosine * Math.sqrt(row.extent),
    least: node.dtype === 'f64' ? 1e-285 : 1e-30,
    faint: node.dtype === 'f64' ? 1e-302 : 1e-37,
    sums: parts === 2 ? 4 : 3,
  };
}

export class Pair {
  readonly #b: LoopBuilder;
  readonly #body: RowsBody;
  readonly #buffer: string;
  readonly #x: Value;
  readonly #y: Value;
  /** Which vector of the rows an invocation takes first, and how many take turns. */
  readonly #first: Value;
  readonly #step: number;
  readonly #type: RegisterType;
  readonly #lanes: Width;

  constructor(
    b: LoopBuilder,
    body: RowsBody,
    buffer: string,
    x: Value,
    y: Value,
    first: Value,
    step: number,
  ) {
    const { width, parts } = body.node.attrs;
    this.#b = b;
    this.#body = body;
    this.#buffer = buffer;
    this.#x = x;
    this.#y = y;
    this.#first = first;
    this.#step = step;
    this.#type = body.node.dtype === 'f64' ? 'f64' : 'f32';
    this.#lanes = width % 4 === 0 && (body.column.extent / parts) % 4 === 0 ? 4 : 1;
  }

  /** The square of row x as a register, which `turn` keeps true. */
  square(): Value {
    const b = this.#b;
    const sum = b.var('sum', constant(0, this.#type, this.#lanes));
    this.#along(this.#body.node.attrs.width, 1, (column) => {
      const x = this.#load(this.#x, column);
      this.#gather(sum, x, x);
      if (this.#body.node.attrs.parts === 1) return;
      const xi = this.#load(this.#x, this.#behind(column));
      this.#gather(sum, xi, xi);
    });
    return b.var('square', this.#across(b.let(sum, 'whole')));
  }

  #behind(column: Value): Value {
    const { parts } = this.#body.node.attrs;
    return addInts(column, constant(this.#body.column.extent / parts));
  }

  /** This invocation's part of the sums over the columns that count; `square` is x·x where that is known. */
  products(square?: Value): Value[] {
    const b = this.#b;
    const { width, parts } = this.#body.node.attrs;
    const vectors = Math.ceil(width / this.#lanes);
    const count = this.#step === 1 ? ([4, 2].find((many) => vectors % many === 0) ?? 1) : 1;
    const sum = (): Value => b.var('sum', constant(0, this.#type, this.#lanes));
    const sums = Array.from({ length: count }, () => ({
      alpha: square === undefined ? sum() : undefined,
      beta: sum(),
      real: sum(),
      imaginary: parts === 2 ? sum() : undefined,
    }));
    this.#along(width, count, (column, turn) => {
      const { alpha, beta, real, imaginary } = sums[turn]!;
      const [x, y] = [this.#load(this.#x, column), this.#load(this.#y, column)];
      if (alpha !== undefined) this.#gather(alpha, x, x);
      this.#gather(beta, y, y);
      this.#gather(real, x, y);
      if (imaginary === undefined) return;
      const behind = this.#behind(column);
      const [xi, yi] = [this.#load(this.#x, behind), this.#load(this.#y, behind)];
      if (alpha !== undefined) this.#gather(alpha, xi, xi);
      this.#gather(beta, yi, yi);
      this.#gather(real, xi, yi);
      this.#gather(imaginary, xi, y);
      b.assign(imaginary, this.#op('sub', imaginary, this.#op('mul', x, yi)));
    });
    const total = (parts: readonly (Value | undefined)[]): Value[] => {
      const held = parts.filter((part) => part !== undefined);
      if (held.length === 0) return [];
      const whole = held.reduce((all, each) => this.#op('add', all, each));
      return [b.let(this.#across(b.let(whole, 'whole')), 'product')];
    };
    return [
      ...(square === undefined ? total(sums.map(({ alpha }) => alpha)) : [square]),
      ...total(sums.map(({ beta }) => beta)),
      ...total(sums.map(({ real }) => real)),
      ...total(sums.map(({ imaginary }) => imaginary)),
    ];
  }

  /** Rotates the rows where they are not orthogonal; `needed` runs where that may disturb other pairs. */
  turn(sums: readonly Value[], needed: () => void, square?: Value): void {
    const b = this.#b;
    const limits = tolerances(this.#body);
    const number = (value: number): Value => constant(value, this.#type);
    const [alpha, beta, real] = sums.map((sum) => b.let(sum, 'product'));
    const imaginary = sums[3] === undefined ? undefined : b.let(sums[3], 'product');
    const size = imaginary === undefined ? this.#op('abs', real!) : this.#length(real!, imaginary);
    const gamma = b.let(size, 'gamma');
    const lengths = b.let(this.#op('mul', this.#op('sqrt', alpha!), this.#op('sqrt', beta!)), 'lengths');
    const tilted = this.#compare(this.#op('mul', lengths, number(limits.cosine)), gamma);
    const shorter = this.#op('min', alpha!, beta!);
    const counts = both(
      this.#compare(number(limits.least), shorter),
      this.#compare(number(limits.faint), gamma),
    );
    b.if(both(tilted, counts), () => {
      const double = this.#op('add', gamma, gamma);
      const zeta = this.#op('abs', this.#op('div', this.#op('sub', beta!, alpha!), double));
      const steep = b.let(zeta, 'steep');
      // Of steep angles the root is the angle itself, and its square may be too large.
      const bounded = b.let(this.#op('min', steep, number(1e9)), 'bounded');
      const root = this.#op('sqrt', this.#op('add', this.#op('mul', bounded, bounded), number(1)));
      const sum = this.#op('add', steep, this.#op('max', root, steep));
      const size = b.let(this.#op('div', number(1), sum), 'tangent');
      const swap = b.let(this.#compare(alpha!, beta!), 'swap');
      const scale = this.#op('sqrt', this.#op('add', this.#op('mul', size, size), number(1)));
      const cosine = b.let(this.#op('div', number(1), scale), 'cosine');
      const slant = b.let(this.#op('mul', cosine, size), 'slant');
      const much = this.#compare(this.#op('mul', lengths, number(limits.last)), gamma);
      const moved = this.#op('mul', this.#op('mul', slant, gamma), number(this.#body.row.extent));
      const far = this.#compare(this.#op('mul', lengths, number(limits.cosine)), moved);
      b.if(operation('or', [much, far], 'bool'), needed);
      if (square !== undefined)
        b.assign(square, this.#op('add', this.#op('max', alpha!, beta!), this.#op('mul', size, gamma)));
      // tan θ has the sign of β − α: with the longer row first, what changes places has the other.
      this.#rotate(
        cosine,
        slant,
        swap,
        b.let(this.#op('div', real!, gamma), 're'),
        imaginary === undefined ? undefined : b.let(this.#op('div', imaginary, gamma), 'im'),
      );
    });
  }

  /** √(x² + y²), whose squares neither overflow nor vanish: what is divided by it keeps its length. */
  #length(x: Value, y: Value): Value {
    const b = this.#b;
    const [u, v] = [b.let(this.#op('abs', x), 'u'), b.let(this.#op('abs', y), 'v')];
    const least = constant(tolerances(this.#body).faint, this.#type);
    const more = b.let(this.#op('max', this.#op('max', u, v), least), 'more');
    const share = b.let(this.#op('div', this.#op('min', u, v), more), 'share');
    const one = constant(1, this.#type);
    return this.#op('mul', more, this.#op('sqrt', this.#op('add', this.#op('mul', share, share), one)));
  }

  /** (x, y) becomes (c·x + s·ŷ, c·ŷ − s·x), or with places changed (s·x + c·ŷ, c·x − s·ŷ): the longer one first. */
  #rotate(cosine: Value, slant: Value, swap: Value, re: Value, im: Value | undefined): void {
    const b = this.#b;
    const { parts } = this.#body.node.attrs;
    const half = this.#body.column.extent / parts;
    const pick = (yes: Value, no: Value, hint: string): Value =>
      b.let(operation('where', [swap, yes, no], this.#type), hint);
    const negative = b.let(this.#op('neg', slant), 'negative');
    const [xx, xy] = [pick(slant, cosine, 'xx'), pick(cosine, slant, 'xy')];
    const [yx, yy] = [pick(cosine, negative, 'yx'), pick(negative, cosine, 'yy')];
    const spread = (value: Value): Value =>
      this.#lanes === 1
        ? value
        : b.let({ kind: 'splat', arg: value, type: this.#type, width: this.#lanes }, 'all');
    // The turn of y is part of its factors.
    const factors = [xx, this.#op('mul', xy, re), yx, this.#op('mul', yy, re)].map(spread);
    const turned = im === undefined ? [] : [this.#op('mul', xy, im), this.#op('mul', yy, im)].map(spread);
    const [fxx, fxy, fyx, fyy] = factors as [Value, Value, Value, Value];
    const vectors = Math.ceil(half / this.#lanes);
    const count = this.#step === 1 ? ([4, 2].find((many) => vectors % many === 0) ?? 1) : 1;
    this.#along(half, count, (column) => {
      const [x, y] = [this.#load(this.#x, column), this.#load(this.#y, column)];
      const sum = (f: Value, g: Value, u: Value, v: Value): Value =>
        this.#op('add', this.#op('mul', f, u), this.#op('mul', g, v));
      if (im === undefined) {
        this.#store(this.#x, column, b.let(sum(fxx, fxy, x, y), 'one'));
        this.#store(this.#y, column, b.let(sum(fyx, fyy, x, y), 'two'));
        return;
      }
      const [ixy, iyy] = turned as [Value, Value];
      const behind = addInts(column, constant(half));
      const [xi, yi] = [this.#load(this.#x, behind), this.#load(this.#y, behind)];
      const less = (value: Value, f: Value, u: Value): Value => this.#op('sub', value, this.#op('mul', f, u));
      const more = (value: Value, f: Value, u: Value): Value => this.#op('add', value, this.#op('mul', f, u));
      this.#store(this.#x, column, b.let(less(sum(fxx, fxy, x, y), ixy, yi), 'one'));
      this.#store(this.#y, column, b.let(less(sum(fyx, fyy, x, y), iyy, yi), 'two'));
      this.#store(this.#x, behind, b.let(more(sum(fxx, fxy, xi, yi), ixy, y), 'one'));
      this.#store(this.#y, behind, b.let(more(sum(fyx, fyy, xi, yi), iyy, y), 'two'));
    });
  }

  /** Visits the columns that are this invocation's, `count` vectors a turn of the loop. */
  #along(columns: number, count: number, visit: (column: Value, turn: number) => void): void {
    const lanes = this.#lanes;
    const from = lanes === 1 ? this.#first : operation('mul', [this.#first, constant(lanes)], 'i32');
    const start = this.#first.kind === 'constant' ? constant(0) : from;
    this.#b.for('k', start, constant(columns), lanes * count * this.#step, (k) => {
      for (let turn = 0; turn < count; turn++)
        visit(this.#b.let(addInts(k, constant(turn * lanes)), 'column'), turn);
    });
  }

  #load(row: Value, column: Value): Value {
    const index = this.#b.let(addInts(row, column), 'at');
    const load: Value = {
      kind: 'load',
      buffer: this.#buffer,
      index,
      aligned: true,
      type: this.#type,
      width: this.#lanes,
    };
    return this.#b.let(load, 'element');
  }

  #store(row: Value, column: Value, value: Value): void {
    this.#b.store(this.#buffer, this.#b.let(addInts(row, column), 'at'), value, true);
  }

  #gather(sum: Value, x: Value, y: Value): void {
    this.#b.assign(sum, this.#op('add', sum, this.#op('mul', x, y)));
  }

  /** The sum of the lanes of a vector. */
  #across(value: Value): Value {
    if (value.width === 1) return value;
    const lane = (at: number): Value => ({ kind: 'lane', arg: value, lane: at, type: this.#type, width: 1 });
    return this.#op('add', this.#op('add', lane(0), lane(2)), this.#op('add', lane(1), lane(3)));
  }

  #compare(less: Value, more: Value): Value {
    return operation('lt', [less, more], 'bool');
  }

  #op(op: LoopOp, ...args: Value[]): Value {
    return operation(op, args, this.#type);
  }
}
