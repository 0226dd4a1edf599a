// Transforms of a few points in registers: what a stage of a longer one does to every group of
// points. Radices 2, 3, 4 and 8 are written out; other odd ones pair what lies opposite each other
// on the circle, which halves the products (Rader's symmetry).

import { constant, operation, splat, type LoopBuilder } from '../../loop/builder.ts';
import type { RegisterType, Value } from '../../loop/loop.ts';
import { root } from '../../../ir/fft/roots.ts';

/** A complex number, or a vector of them. */
export interface ComplexVector {
  readonly re: Value;
  readonly im: Value;
}

/** Arithmetic on complex registers of one type. */
export class ComplexBuilder {
  readonly b: LoopBuilder;
  readonly type: RegisterType;

  constructor(b: LoopBuilder, type: RegisterType) {
    this.b = b;
    this.type = type;
  }

  add(x: Value, y: Value): Value {
    return this.b.let(operation('add', [x, y], this.type), 't');
  }

  sub(x: Value, y: Value): Value {
    return this.b.let(operation('sub', [x, y], this.type), 't');
  }

  /** x·factor + y. */
  fma(x: Value, factor: Value, y: Value): Value {
    return this.b.let(operation('fma', [x, factor, y], this.type), 't');
  }

  scaled(x: Value, factor: number): Value {
    return this.b.let(operation('mul', [x, constant(factor, this.type)], this.type), 't');
  }

  /** x·y. */
  times(x: ComplexVector, y: ComplexVector): ComplexVector {
    const { type, b } = this;
    const low = operation('mul', [x.im, y.im], type);
    const cross = operation('mul', [x.im, y.re], type);
    return {
      re: b.let(operation('sub', [operation('mul', [x.re, y.re], type), low], type), 're'),
      im: b.let(operation('add', [operation('mul', [x.re, y.im], type), cross], type), 'im'),
    };
  }

  plus(x: ComplexVector, y: ComplexVector): ComplexVector {
    return { re: this.add(x.re, y.re), im: this.add(x.im, y.im) };
  }

  minus(x: ComplexVector, y: ComplexVector): ComplexVector {
    return { re: this.sub(x.re, y.re), im: this.sub(x.im, y.im) };
  }

  /** x − i·y, and x + i·y. */
  turned(x: ComplexVector, y: ComplexVector): readonly [ComplexVector, ComplexVector] {
    return [
      { re: this.add(x.re, y.im), im: this.sub(x.im, y.re) },
      { re: this.sub(x.re, y.im), im: this.add(x.im, y.re) },
    ];
  }
}

/** Xₖ = Σᵢ xᵢ·e^(−2πi·ik/r) of r points. */
export function butterfly(c: ComplexBuilder, x: readonly ComplexVector[]): readonly ComplexVector[] {
  switch (x.length) {
    case 1:
      return x;
    case 2:
      return [c.plus(x[0]!, x[1]!), c.minus(x[0]!, x[1]!)];
    case 4:
      return four(c, x);
    case 8:
      return eight(c, x);
    default:
      return odd(c, x);
  }
}

function four(c: ComplexBuilder, [x0, x1, x2, x3]: readonly ComplexVector[]): readonly ComplexVector[] {
  const [a, b] = [c.plus(x0!, x2!), c.minus(x0!, x2!)];
  const [d, e] = [c.plus(x1!, x3!), c.minus(x1!, x3!)];
  const [first, third] = c.turned(b, e);
  return [c.plus(a, d), first, c.minus(a, d), third];
}

/** Two of four, the second one's results turned by eighths of the circle. */
function eight(c: ComplexBuilder, x: readonly ComplexVector[]): readonly ComplexVector[] {
  const even = four(c, [x[0]!, x[2]!, x[4]!, x[6]!]);
  const [o0, o1, o2, o3] = four(c, [x[1]!, x[3]!, x[5]!, x[7]!]) as [
    ComplexVector,
    ComplexVector,
    ComplexVector,
    ComplexVector,
  ];
  const half = Math.SQRT1_2;
  const first: ComplexVector = {
    re: c.scaled(c.add(o1.re, o1.im), half),
    im: c.scaled(c.sub(o1.im, o1.re), half),
  };
  const third: ComplexVector = {
    re: c.scaled(c.sub(o3.im, o3.re), half),
    // Taken away instead of added.
    im: c.scaled(c.add(o3.re, o3.im), half),
  };
  const [two, six] = c.turned(even[2]!, o2);
  return [
    c.plus(even[0]!, o0),
    c.plus(even[1]!, first),
    two,
    { re: c.add(even[3]!.re, third.re), im: c.sub(even[3]!.im, third.im) },
    c.minus(even[0]!, o0),
    c.minus(even[1]!, first),
    six,
    { re: c.sub(even[3]!.re, third.re), im: c.add(even[3]!.im, third.im) },
  ];
}

/** Xₖ and X₋ₖ are a ∓ i·b, with a of the sums xᵢ + x₋ᵢ and b of the differences. */
function odd(c: ComplexBuilder, x: readonly ComplexVector[]): readonly ComplexVector[] {
  const r = x.length;
  const pairs = Array.from({ length: (r - 1) / 2 }, (_, i) => i + 1);
  const sums = pairs.map((i) => c.plus(x[i]!, x[r - i]!));
  const differences = pairs.map((i) => c.minus(x[i]!, x[r - i]!));
  const results: ComplexVector[] = [sums.reduce((all, sum) => c.plus(all, sum), x[0]!)];
  const spread = (value: number): Value => splat(constant(value, c.type), x[0]!.re.width);
  for (const k of pairs) {
    let a = x[0]!;
    let b: ComplexVector | undefined;
    for (const i of pairs) {
      // e^(−iθ) = cos θ − i·sin θ.
      const [cos, sin] = root(i * k, r);
      const [sum, difference] = [sums[i - 1]!, differences[i - 1]!];
      const [by, across] = [spread(cos), -sin];
      a = { re: c.fma(sum.re, by, a.re), im: c.fma(sum.im, by, a.im) };
      b =
        b === undefined
          ? { re: c.scaled(difference.re, across), im: c.scaled(difference.im, across) }
          : {
              re: c.fma(difference.re, spread(across), b.re),
              im: c.fma(difference.im, spread(across), b.im),
            };
    }
    [results[k], results[r - k]] = c.turned(a, b!);
  }
  return results;
}
