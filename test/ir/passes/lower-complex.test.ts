// Complex numbers as pairs: what the pass gives is what the reference interpreter means by complex nodes.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { takesComplex } from '../../../src/ir/typing/complex-ops.ts';
import { add, complex, conj, fullLike, imag, mul, real, unary, where } from '../../../src/ir/build.ts';
import { isComplex, partType, type DType } from '../../../src/ir/dtype.ts';
import { topological, type GraphBuilder, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { factor, identity, productByAdjoint } from '../../../src/ir/matrix.ts';
import { opNames, type UnaryOp } from '../../../src/ir/ops.ts';
import { lowerComplex } from '../../../src/ir/passes/lower-complex.ts';
import { storedType } from '../../../src/ir/stored.ts';
import { print } from '../../../src/ir/text/print.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { verify } from '../../../src/ir/verify.ts';
import { randomNumbers } from '../../autograd/differences.ts';
import { checkLaw } from '../../support/property.ts';
import { graphOf } from '../arrays.ts';

function random(dtype: DType, shape: readonly number[], next: () => number): HostArray {
  const size = shape.reduce((n, dim) => n * dim, 1) * (isComplex(dtype) ? 2 : 1);
  return hostArray(
    dtype,
    shape,
    Array.from({ length: size }, () => 4 * next() - 2),
  );
}

/** The same bytes as they lie in memory. */
const stored = (array: HostArray): HostArray => ({ ...storedType(array), data: array.data });

function expectSame(graph: Graph, inputs: readonly HostArray[], tolerance: number): void {
  const lowered = lowerComplex(graph);
  verify(lowered, 'lowerComplex');
  expect(topological(lowered.outputs).some((node) => isComplex(node.dtype))).toBe(false);
  const expected = interpret(graph, inputs);
  interpret(lowered, inputs.map(stored)).forEach((actual, i) => {
    expect({ dtype: actual.dtype, shape: actual.shape }).toEqual(storedType(expected[i]!));
    actual.data.forEach((value: number | bigint, place: number) => {
      const [found, wanted] = [Number(value), Number(expected[i]!.data[place])];
      const error = Math.abs(found - wanted) / Math.max(1, Math.abs(wanted));
      if (!(error <= tolerance) && !Object.is(found, wanted))
        throw new Error(`${found} is not ${wanted} at ${place} of\n${print(graph)}`);
    });
  });
}

type Step = (b: GraphBuilder, x: Node, y: Node) => Node;
const attrs = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0] } as const;

/** Steps from two complex [2,2] to one. */
const steps: Readonly<Record<string, Step>> = {
  add: (b, x, y) => b.add('add', [x, y], {}) as Node,
  sub: (b, x, y) => b.add('sub', [x, y], {}) as Node,
  mul: (b, x, y) => b.add('mul', [x, y], {}) as Node,
  fma: (b, x, y) => b.add('fma', [x, y, x], {}) as Node,
  conj: (b, x) => conj(b, x),
  turn: (b, x) => complex(b, imag(b, x), real(b, x)),
  tanh: (b, x) => unary(b, 'tanh', x),
  sgn: (b, x) => unary(b, 'sign', x),
  permute: (b, x) => b.add('permute', [x], { order: [1, 0] }) as Node,
  flip: (b, x) => b.add('slice', [x], { start: [1, 0], size: [2, 2], step: [-1, 1] }) as Node,
  pad: (b, x) => {
    const padded = b.add('pad', [x], { low: [1, 0], high: [0, 0], interior: [0, 0], value: 1.5 }) as Node;
    return b.add('slice', [padded], { start: [0, 0], size: [2, 2], step: [1, 1] }) as Node;
  },
  join: (b, x, y) => {
    const joined = b.add('concat', [x, y], { axis: 1 }) as Node;
    return b.add('slice', [joined], { start: [0, 1], size: [2, 2], step: [1, 1] }) as Node;
  },
  where: (b, x, y) => where(b, b.add('eq', [x, y], {}) as Node, x, conj(b, y)),
  sum: (b, x) =>
    b.add('broadcast', [b.add('reduce', [x], { monoid: 'sum', axes: [0] }) as Node], {
      shape: [2, 2],
    }) as Node,
  prod: (b, x) =>
    b.add('broadcast', [b.add('reduce', [x], { monoid: 'prod', axes: [0, 1] }) as Node], {
      shape: [2, 2],
    }) as Node,
  cumsum: (b, x) => b.add('scan', [x], { monoid: 'sum', axis: 1, reverse: false, exclusive: true }) as Node,
  cumprod: (b, x) => b.add('scan', [x], { monoid: 'prod', axis: 0, reverse: true, exclusive: false }) as Node,
  dot: (b, x, y) => b.add('dot', [x, y], { ...attrs, dtype: x.dtype }) as Node,
};

const program = fc.array(fc.tuple(fc.constantFrom(...Object.keys(steps)), fc.nat(), fc.nat()), {
  minLength: 1,
  maxLength: 6,
});

describe('lowerComplex', () => {
  test('keeps the meaning of random programs', () => {
    checkLaw(150, fc.tuple(program, fc.nat()), ([list, seed]) => {
      const next = randomNumbers(seed);
      const inputs = [random('c128', [2, 2], next), random('c128', [2, 2], next)];
      const graph = graphOf(inputs, (b, ...nodes) => {
        for (const [name, i, j] of list)
          nodes.push(steps[name]!(b, nodes[i % nodes.length]!, nodes[j % nodes.length]!));
        return [nodes.at(-1)!, unary(b, 'abs', nodes.at(-1)!)];
      });
      expectSame(graph, inputs, 1e-9);
    });
  });

  const functions = opNames.filter(takesComplex);
  const binaries = new Set(['add', 'sub', 'mul', 'div', 'pow', 'eq', 'ne']);

  test.each(functions.filter((op) => !['where', 'cast', 'fma'].includes(op)))(
    '%s is what the interpreter means, in double and single precision',
    (op) => {
      const next = randomNumbers(7);
      for (const [dtype, tolerance] of [
        ['c128', 1e-11],
        ['c64', 2e-5],
      ] as const) {
        const inputs = [random(dtype, [40], next), random(dtype, [40], next)];
        const graph = graphOf(inputs, (b, x, y) => [
          binaries.has(op)
            ? (b.add(op as 'add', [x!, y!], {}) as Node)
            : unary(b, op as Exclude<UnaryOp, 'cast' | 'bitcast'>, x!),
        ]);
        expectSame(graph, inputs, tolerance);
      }
    },
  );

  test('casts between real and complex numbers', () => {
    const next = randomNumbers(3);
    const inputs = [random('c64', [5], next), random('f32', [5], next)];
    const graph = graphOf(inputs, (b, z, x) => [
      b.add('cast', [z!], { dtype: 'c128' }) as Node,
      b.add('cast', [z!], { dtype: 'bool' }) as Node,
      b.add('cast', [x!], { dtype: 'c128' }) as Node,
      b.add('mul', [z!, b.add('cast', [x!], { dtype: 'c64' }) as Node], {}) as Node,
    ]);
    expectSame(graph, inputs, 1e-6);
  });

  test.each([
    ['cholesky', 5, 5],
    ['cholesky', 70, 70],
    ['lowerSolve', 6, 3],
    ['lowerSolve', 40, 2],
    ['unitLowerSolve', 6, 3],
    ['lu', 5, 3],
    ['lu', 3, 5],
    ['lu', 20, 37],
    ['householder', 7, 4],
    ['householder', 3, 8],
    ['householder', 33, 20],
    ['qr', 6, 6],
    ['qr', 9, 4],
    ['qr', 18, 21],
  ] as const)('%s of %i × %i complex numbers is what the interpreter means', (kind, m, n) => {
    const next = randomNumbers(m + n);
    const isSolve = kind === 'lowerSolve' || kind === 'unitLowerSolve';
    const inputs = [random('c128', [2, m, isSolve ? m : n], next), random('c128', [2, m, n], next)];
    const graph = graphOf(inputs, (b, x, y) => {
      const one = identity(b, 2, [m, m], 'c128');
      // Far from singular.
      if (isSolve) return [factor(b, kind, add(b, x!, mul(b, one, fullLike(b, one, 3 * m))), y!)];
      if (kind !== 'cholesky') return [factor(b, kind, x!)];
      return [factor(b, kind, add(b, productByAdjoint(b, x!, x!), one))];
    });
    expectSame(graph, inputs, 1e-9);
  });

  test('convolves, in groups too', () => {
    const next = randomNumbers(5);
    const inputs = [random('c128', [2, 4, 5], next), random('c128', [6, 2, 3], next)];
    const graph = graphOf(inputs, (b, x, w) => [
      b.add('conv', [x!, w!], {
        strides: [2],
        padLow: [1],
        padHigh: [1],
        lhsDilation: [1],
        rhsDilation: [1],
        groups: 2,
      }) as Node,
    ]);
    expectSame(graph, inputs, 1e-12);
  });

  test('contracts by batches', () => {
    const next = randomNumbers(6);
    const inputs = [random('c128', [3, 2, 4], next), random('c128', [4, 3, 5], next)];
    const graph = graphOf(inputs, (b, x, w) => [
      b.add('dot', [x!, w!], {
        lhsBatch: [0],
        rhsBatch: [1],
        lhsContract: [2],
        rhsContract: [0],
        dtype: 'c128',
      }) as Node,
    ]);
    expectSame(graph, inputs, 1e-12);
  });

  test('gathers, scatters and windows part by part', () => {
    const next = randomNumbers(8);
    const places = hostArray('i32', [2, 3], [3, 0, 1, 1, 2, 7]);
    const inputs = [random('c64', [2, 4], next), random('c64', [2, 3], next)];
    const graph = graphOf([...inputs, places], (b, x, y, at) => [
      b.add('gather', [x!, at!], { axis: 1 }) as Node,
      b.add('scatter', [x!, at!, y!], { axis: 1, mode: 'add' }) as Node,
      b.add('window', [x!], { axis: 1, size: 2, stride: 1, dilation: 1 }) as Node,
    ]);
    expectSame(graph, [...inputs, places], 1e-6);
  });

  test('folds nothing to the identity', () => {
    const inputs = [random('c64', [2, 0], randomNumbers(1))];
    const graph = graphOf(inputs, (b, x) =>
      (['sum', 'prod'] as const).map((monoid) => b.add('reduce', [x!], { monoid, axes: [1] }) as Node),
    );
    expectSame(graph, inputs, 0);
  });

  test('leaves a graph without complex numbers alone', () => {
    const graph = graphOf([random('f32', [3], randomNumbers(1))], (b, x) => [unary(b, 'exp', x!)]);
    expect(lowerComplex(graph)).toBe(graph);
  });

  test('gives an input back as it lies in memory', () => {
    const inputs = [random('c64', [3], randomNumbers(2))];
    const { parameters, outputs } = lowerComplex(graphOf(inputs, (b, x) => [conj(b, conj(b, x!))]));
    expect(outputs[0]).toBe(parameters[0]);
    expect(partType('c64')).toBe('f32');
  });
});
