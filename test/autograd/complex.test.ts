// Derivatives of complex functions against differences of their real and imaginary parts: for L = Re Σ conj(g)·f(z), the gradient
// is ∂L/∂x + i·∂L/∂y, as PyTorch has it.

import { describe, expect, test } from 'vitest';
import { cotangents } from '../../src/autograd/vjp.ts';
import { cast, complex, conj, fullLike, imag, real, unary } from '../../src/ir/build.ts';
import { isComplex } from '../../src/ir/dtype.ts';
import { GraphBuilder, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { UnaryOp } from '../../src/ir/ops.ts';
import { hostArray, partCount, type HostArray } from '../../src/ir/value.ts';
import { randomNumbers } from './differences.ts';

type Build = (b: GraphBuilder, inputs: readonly Node[]) => Node;

function values(dtype: 'c128' | 'f64', shape: readonly number[], next: () => number, around = 0): HostArray {
  const size = shape.reduce((n, dim) => n * dim, 1) * partCount(dtype);
  return hostArray(
    dtype,
    shape,
    Array.from({ length: size }, () => around + 1.2 * (next() - 0.5)),
  );
}

/** Holds the gradients of Re Σ conj(g)·f against central differences, and those of these gradients too. */
function checkGradients(inputs: readonly HostArray[], build: Build, order = 2, step = 1e-5): void {
  const b = new GraphBuilder();
  const parameters = inputs.map(({ dtype, shape }, index) =>
    b.add('parameter', [], { index, name: `p${index}`, dtype, shape }),
  );
  const nodes = parameters as readonly Node[];
  const output = build(b, nodes);
  const next = randomNumbers(99);
  const weight = values(isComplex(output.dtype) ? 'c128' : 'f64', output.shape as number[], next);
  const seedIndex = inputs.length;
  const seed = b.add('parameter', [], {
    index: seedIndex,
    name: 'g',
    dtype: weight.dtype,
    shape: weight.shape,
  });
  const all = [...inputs, weight];
  const graph = { parameters: [...parameters, seed] };
  const lossAt = (at: readonly HostArray[]): number => {
    const [value] = interpret({ ...graph, outputs: [output] }, at);
    return Array.from(value!.data as Float64Array).reduce((sum, v, i) => sum + v * Number(weight.data[i]), 0);
  };
  // A linear function's second derivative is 0, and has no node.
  const gradients = cotangents(b, [output], [seed as Node], nodes).map(
    (g, i) => g ?? fullLike(b, nodes[i]!, 0),
  );
  const found = interpret({ ...graph, outputs: gradients }, all);
  inputs.forEach((input, i) => {
    for (let place = 0; place < input.data.length; place++) {
      const moved = (by: number): HostArray[] => {
        const data = input.data.slice();
        data[place] = Number(data[place]) + by;
        return all.map((array, k) => (k === i ? { ...array, data } : array));
      };
      const slope = (lossAt(moved(step)) - lossAt(moved(-step))) / (2 * step);
      const actual = Number(found[i]!.data[place]);
      expect(Math.abs(actual - slope), `input ${i}, part ${place}: ${actual}, not ${slope}`).toBeLessThan(
        1e-6 * Math.max(1, Math.abs(slope)),
      );
    }
  });
  if (order > 1)
    checkGradients(
      inputs,
      (again, at) => {
        const seeded = again.add(
          'cast',
          [
            again.add('broadcast', [again.add('constant', [], { value: 0.7, dtype: 'f64' }) as Node], {
              shape: output.shape,
            }) as Node,
          ],
          { dtype: weight.dtype },
        ) as Node;
        const [g] = cotangents(again, [build(again, at)], [seeded], [at[0]!]);
        return g ?? fullLike(again, at[0]!, 0);
      },
      order - 1,
    );
}

const apply =
  (op: Exclude<UnaryOp, 'cast' | 'bitcast'>): Build =>
  (b, [z]) =>
    unary(b, op, z!);

describe('derivatives of complex functions', () => {
  test.each([
    'neg',
    'exp',
    'exp2',
    'expm1',
    'log',
    'log2',
    'log1p',
    'sin',
    'cos',
    'tan',
    'asin',
    'acos',
    'atan',
    'sinh',
    'cosh',
    'tanh',
    'sqrt',
    'rsqrt',
    'recip',
    'abs',
    'sign',
  ] as const)('of %s', (op) => {
    checkGradients([values('c128', [4], randomNumbers(1), 0.8)], apply(op));
  });

  test.each(['add', 'sub', 'mul', 'div', 'pow'] as const)('of %s', (op) => {
    const next = randomNumbers(2);
    const inputs = [values('c128', [4], next, 0.9), values('c128', [4], next, 0.8)];
    checkGradients(inputs, (b, [x, y]) => b.add(op, [x!, y!], {}) as Node);
  });

  test('of parts, conjugates and moduli', () => {
    const z = values('c128', [3], randomNumbers(3), 0.5);
    checkGradients([z], (b, [x]) => real(b, b.add('mul', [x!, x!], {}) as Node));
    checkGradients([z], (b, [x]) => imag(b, unary(b, 'exp', x!)));
    checkGradients([z], (b, [x]) => b.add('mul', [conj(b, x!), unary(b, 'sin', x!)], {}) as Node);
    checkGradients([z], (b, [x]) => b.add('atan2', [imag(b, x!), real(b, x!)], {}) as Node);
  });

  test('real inputs of complex functions get real gradients', () => {
    const next = randomNumbers(4);
    const inputs = [values('f64', [3], next), values('f64', [3], next, 1)];
    checkGradients(inputs, (b, [x, y]) => unary(b, 'exp', complex(b, x!, y!)));
    checkGradients(
      inputs,
      (b, [x, y]) => b.add('mul', [cast(b, x!, 'c128'), complex(b, y!, x!)], {}) as Node,
    );
  });

  test('of products, convolutions, sums and running products', () => {
    const next = randomNumbers(5);
    const square = [values('c128', [2, 2], next), values('c128', [2, 2], next)];
    const dot = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0], dtype: 'c128' } as const;
    checkGradients(square, (b, [x, y]) => b.add('dot', [x!, y!], dot) as Node);
    for (const monoid of ['sum', 'prod'] as const) {
      checkGradients([square[0]!], (b, [x]) => b.add('reduce', [x!], { monoid, axes: [0] }) as Node);
      checkGradients(
        [square[0]!],
        (b, [x]) => b.add('scan', [x!], { monoid, axis: 1, reverse: false, exclusive: false }) as Node,
      );
    }
    const conv = [values('c128', [1, 2, 4], next), values('c128', [2, 2, 2], next)];
    const along = { strides: [1], padLow: [1], padHigh: [0], lhsDilation: [1], rhsDilation: [1], groups: 1 };
    checkGradients(conv, (b, [x, y]) => b.add('conv', [x!, y!], along) as Node, 1);
  });
});
