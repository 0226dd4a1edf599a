// Where derivatives are a matter of choice or easily go wrong: ties, zeros, NaN and infinities.

import { describe, expect, it } from 'vitest';
import { gradientGraph } from '../../src/autograd/vjp.ts';
import { add, binary, broadcast, fullLike, mul, reduce, unary, where } from '../../src/ir/build.ts';
import type { GraphBuilder, Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Attrs } from '../../src/ir/ops.ts';
import { hostArray } from '../../src/ir/value.ts';
import { checkTrial, randomNumbers, record } from './differences.ts';

/** Gradients of the sum of what `build` gives on vectors. */
function gradients(
  vectors: readonly (readonly number[])[],
  build: (b: GraphBuilder, inputs: readonly Node[]) => Node,
): number[][] {
  const inputs = vectors.map((vector) => hostArray('f64', [vector.length], vector));
  const graph = record(inputs, (b, nodes) => {
    const y = build(b, nodes);
    return reduce(b, 'sum', y, [...y.shape.keys()]);
  });
  const results = interpret(
    gradientGraph(
      graph,
      vectors.map((_, i) => i),
    ),
    inputs,
  );
  return results.slice(1).map(({ data }) => [...(data as Float64Array)]);
}

const scan =
  (attrs: Omit<Attrs<'scan'>, 'axis'>) =>
  (b: GraphBuilder, inputs: readonly Node[]): Node =>
    b.add('scan', inputs, { axis: 0, ...attrs }) as Node;

const product = (b: GraphBuilder, [x]: readonly Node[]): Node => reduce(b, 'prod', x!, [0]);

const positive = (b: GraphBuilder, x: Node): Node => binary(b, 'lt', fullLike(b, x, 0), x);

const guarded =
  (f: (b: GraphBuilder, x: Node) => Node) =>
  (b: GraphBuilder, [x]: readonly Node[]): Node =>
    where(b, positive(b, x!), f(b, x!), fullLike(b, x!, 0));

it('an operand that is spread along an axis gets the sum along it, however short that is', () => {
  for (const rows of [2, 3]) {
    const many = Array.from({ length: rows * 3 }, (_, i) => i + 1);
    const inputs = [hostArray('f64', [1, 3], [1, 2, 3]), hostArray('f64', [rows, 3], many)];
    const graph = record(inputs, (b, [x, y]) =>
      reduce(b, 'sum', mul(b, broadcast(b, x!, [rows, 3]), y!), [0, 1]),
    );
    const [, gradient] = interpret(gradientGraph(graph, [0]), inputs);
    expect([...gradient!.data]).toEqual(rows === 2 ? [5, 7, 9] : [12, 15, 18]);
  }
});

describe('ties', () => {
  it('max and min split a cotangent evenly between equal operands', () => {
    for (const [op, losing] of [
      ['max', 1],
      ['min', 3],
    ] as const) {
      const [x, y] = gradients(
        [
          [2, losing, 4 - losing],
          [2, 2, 2],
        ],
        (b, [p, q]) => binary(b, op, p!, q!),
      );
      expect([x, y]).toEqual([
        [0.5, 0, 1],
        [0.5, 1, 0],
      ]);
    }
  });

  it('reduce max and min share among all holders', () => {
    expect(gradients([[3, 1, 3, 2, 3]], (b, [x]) => reduce(b, 'max', x!, [0]))[0]).toEqual([
      1 / 3,
      0,
      1 / 3,
      0,
      1 / 3,
    ]);
    expect(gradients([[3, 1, 3, 1]], (b, [x]) => reduce(b, 'min', x!, [0]))[0]).toEqual([0, 0.5, 0, 0.5]);
  });

  it('a running maximum belongs to the latest element that equals it', () => {
    const running = { monoid: 'max', reverse: false, exclusive: false } as const;
    expect(gradients([[1, 3, 3, 2, 3]], scan(running))[0]).toEqual([1, 1, 2, 0, 1]);
    expect(gradients([[1, 3, 3, 2, 3]], scan({ ...running, reverse: true }))[0]).toEqual([0, 2, 1, 0, 2]);
  });

  it('scattered extrema share between operand and updates', () => {
    const [x, u] = gradients(
      [
        [2, 5],
        [2, 2, 1],
      ],
      (b, nodes) => {
        const at = b.add('cast', [fullLike(b, nodes[1]!, 0)], { dtype: 'i32' }) as Node;
        return b.add('scatter', [nodes[0]!, at, nodes[1]!], { axis: 0, mode: 'max' }) as Node;
      },
    );
    expect([x, u]).toEqual([
      [1 / 3, 1],
      [1 / 3, 1 / 3, 0],
    ]);
  });

  it('abs has derivative 0 at 0', () => {
    expect(gradients([[-2, 0, 2]], (b, [x]) => unary(b, 'abs', x!))[0]).toEqual([-1, 0, 1]);
  });
});

describe('zeros', () => {
  it('the derivative of a product with zeros is the product of the others', () => {
    expect(gradients([[2, 3, 4]], product)[0]).toEqual([12, 8, 6]);
    expect(gradients([[2, 0, 4]], product)[0]).toEqual([0, 8, 0]);
    expect(gradients([[0, 3, 0]], product)[0]).toEqual([0, 0, 0]);
  });

  it('a running product with zeros has exact first and second derivatives', () => {
    for (const reverse of [false, true]) {
      for (const exclusive of [false, true]) {
        const build = scan({ monoid: 'prod', reverse, exclusive });
        checkTrial({ inputs: [hostArray('f64', [6], [2, 0, 3, -1, 0, 5])], build }, randomNumbers(1));
      }
    }
  });

  it('updates multiplied into one place get the product of the others', () => {
    const [x, u] = gradients(
      [
        [3, 5],
        [2, 0, 4],
      ],
      (b, nodes) => {
        const at = b.add('cast', [fullLike(b, nodes[1]!, 0)], { dtype: 'i32' }) as Node;
        return b.add('scatter', [nodes[0]!, at, nodes[1]!], { axis: 0, mode: 'mul' }) as Node;
      },
    );
    expect([x, u]).toEqual([
      [0, 1],
      [0, 24, 0],
    ]);
  });

  it('pow at base 0 and exponent 0 gives 0 instead of NaN', () => {
    const [x, e] = gradients(
      [
        [0, 0, 0, 2, NaN],
        [0, 1, 2, 0, 0],
      ],
      (b, [p, q]) => binary(b, 'pow', p!, q!),
    );
    expect(x).toEqual([0, 1, 0, 0, 0]);
    expect(e!.slice(0, 4)).toEqual([0, 0, 0, Math.log(2)]);
  });

  it('an angle has derivative 0 at the origin, and its own next to it and far away', () => {
    const sizes = [1e-200, 1, 1e200];
    const [x, y] = gradients(
      [
        [0, ...sizes],
        [0, ...sizes],
      ],
      (b, [p, q]) => binary(b, 'atan2', p!, q!),
    );
    expect([x![0], Math.abs(y![0]!)]).toEqual([0, 0]);
    for (const [i, size] of sizes.entries()) {
      expect(x![i + 1]! * size).toBeCloseTo(0.5, 12);
      expect(y![i + 1]! * size).toBeCloseTo(-0.5, 12);
    }
  });

  it('pow by constant exponents agrees with differences', () => {
    for (const exponent of [-1, -0.5, 0, 0.5, 1, 2, 3]) {
      const input = hostArray('f64', [3], [0.5, 1.5, 2.5]);
      checkTrial(
        { inputs: [input], build: (b, [x]) => add(b, x!, binary(b, 'pow', x!, exponent)) },
        randomNumbers(1),
      );
    }
  });
});

describe('no NaN from the branch not taken', () => {
  it.each([
    ['sqrt', (b: GraphBuilder, x: Node) => unary(b, 'sqrt', x), 0.25],
    ['log', (b: GraphBuilder, x: Node) => unary(b, 'log', x), 0.25],
    ['recip', (b: GraphBuilder, x: Node) => unary(b, 'recip', x), -1 / 16],
    ['x log x', (b: GraphBuilder, x: Node) => mul(b, x, unary(b, 'log', x)), 1 + Math.log(4)],
    ['pow', (b: GraphBuilder, x: Node) => binary(b, 'pow', x, 0.5), 0.25],
    [
      'a value used twice',
      (b: GraphBuilder, x: Node) => {
        const root = unary(b, 'sqrt', x);
        return add(b, mul(b, root, x), unary(b, 'exp', root));
      },
      3 + Math.exp(2) / 4,
    ],
  ])('%s', (_, f, at4) => {
    const [g] = gradients([[-1, 0, 4]], guarded(f));
    expect(g!.slice(0, 2)).toEqual([0, 0]);
    expect(g![2]).toBeCloseTo(at4, 12);
  });

  it('nested selects', () => {
    const [g] = gradients([[-1, 0, 4]], (b, [x]) => {
      const inner = where(b, binary(b, 'lt', x!, 9), unary(b, 'sqrt', x!), fullLike(b, x!, 1));
      const outer = where(b, positive(b, x!), unary(b, 'recip', inner), fullLike(b, x!, 0));
      return where(b, binary(b, 'lt', x!, 0), x!, outer);
    });
    expect(g).toEqual([1, 0, -1 / 16]);
  });

  it('the second derivative', () => {
    const x = hostArray('f64', [3], [-1, 0, 4]);
    const first = gradientGraph(
      record([x], (b, nodes) => reduce(b, 'sum', guarded((b, x) => unary(b, 'sqrt', x))(b, nodes), [0])),
      [0],
    );
    const second = gradientGraph({ ...first, outputs: [first.outputs[1]!] }, [0]);
    const result = interpret(second, [x, hostArray('f64', [3], [1, 1, 1])])[1]!;
    expect([...result.data]).toEqual([0, 0, -1 / 32]);
  });

  it('many masks in a row become one, in a number of nodes that grows with the chain only', () => {
    const inputs = [hostArray('f64', [1], [1])];
    const size = (depth: number): number => {
      const graph = record(inputs, (b, [x]) => {
        let y = x!;
        for (let i = 1; i <= depth; i++) y = mul(b, where(b, positive(b, y), y, fullLike(b, y, -i)), i + 0.5);
        return y;
      });
      const seen = new Set<Node>(gradientGraph(graph, [0]).outputs);
      for (const node of seen) node.inputs.forEach((input) => seen.add(input));
      return seen.size;
    };
    expect(size(400) - size(200)).toBeLessThan(12 * 200);
  });
});

describe('NaN operands', () => {
  it('max passes the cotangent to both operands', () => {
    expect(
      gradients(
        [
          [NaN, 1],
          [1, NaN],
        ],
        (b, [x, y]) => binary(b, 'max', x!, y!),
      ),
    ).toEqual([
      [1, 1],
      [1, 1],
    ]);
  });

  it('a running maximum that met a NaN belongs to the latest NaN', () => {
    const running = scan({ monoid: 'max', reverse: false, exclusive: false });
    expect(gradients([[1, NaN, 9, NaN, 2]], running)[0]).toEqual([1, 2, 0, 2, 0]);
  });
});
