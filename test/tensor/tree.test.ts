import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compile, grad, noGrad, ones, type Tensor } from '../../src/index.ts';
import { Linear, Module, parameter } from '../../src/nn/index.ts';
import { flatten, matchTree, TreeNode, treeLeaves, treeMap, unflatten } from '../../src/tensor/tree.ts';
import { mul, spyDevice, vec } from './support.ts';

const tree = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null), fc.constant(undefined)),
    fc.array(tie('tree')),
    fc.dictionary(fc.string(), tie('tree')),
  ),
})).tree;

test('unflatten undoes flatten', () => {
  fc.assert(
    fc.property(tree, (value) => {
      const { leaves, paths, structure } = flatten(value);
      expect(paths.length).toBe(leaves.length);
      expect(unflatten(structure, leaves)).toEqual(value);
    }),
  );
});

describe('matchTree', () => {
  test('gives the leaves of any tree of the structure, and of no other', () => {
    fc.assert(
      fc.property(tree, tree, (a, b) => {
        const [one, other] = [flatten(a), flatten(b)];
        expect(matchTree(one.structure, a)).toEqual(one.leaves);
        const isSame = JSON.stringify(one.structure) === JSON.stringify(other.structure);
        expect(matchTree(one.structure, b)).toEqual(isSame ? other.leaves : undefined);
      }),
    );
  });

  class Scale extends TreeNode {
    factor: ReturnType<typeof vec>;
    power: number;
    seen: ReturnType<typeof vec>;
    constructor(factor: ReturnType<typeof vec>, power: number, seen: ReturnType<typeof vec>) {
      super();
      [this.factor, this.power, this.seen] = [factor, power, seen];
    }
    override buffers(): readonly string[] {
      return ['seen'];
    }
  }
  class Other extends Scale {}

  test('settings and classes are part of the structure, tensors are not', () => {
    const [a, b, seen] = [vec(1), vec(2), vec(3)];
    const { structure } = flatten(new Scale(a, 2, seen));
    expect(matchTree(structure, new Scale(b, 2, seen))).toEqual([b]);
    expect(matchTree(structure, new Scale(b, 3, seen))).toBeUndefined();
    expect(matchTree(structure, new Scale(b, 2, vec(3)))).toBeUndefined();
    expect(matchTree(structure, new Other(b, 2, seen))).toBeUndefined();
    expect(matchTree(structure, { factor: b, power: 2, seen })).toBeUndefined();
    expect(matchTree(flatten({ w: a }).structure, { w: new Map() })).toBeUndefined();
  });
});

describe('treeMap', () => {
  test('replaces tensors and keeps everything else', async () => {
    spyDevice();
    const before = { layers: [{ w: vec(1) }, { w: vec(2) }], name: 'net', size: 3 };
    const after = treeMap((x) => mul(x, 10), before);
    expect(after.name).toBe('net');
    expect(after.size).toBe(3);
    expect(await Promise.all(after.layers.map(({ w }) => w.array()))).toEqual([[10], [20]]);
  });

  test('walks trees of one structure together', async () => {
    spyDevice();
    const made = treeMap((x, y, z) => mul(mul(x, y!), z!), [vec(2)], [vec(3)], [vec(4)]);
    expect(await made[0]!.array()).toEqual([24]);
  });

  test.each([
    [
      'a missing key',
      { a: vec(1), b: vec(1) },
      { a: vec(1) },
      'the first tree has .b where tree 2 has nothing: {a:*,b:*} and {a:*}',
    ],
    ['a key too many', { a: vec(1) }, { a: vec(1), b: vec(1) }, 'tree 2 has .b besides'],
    ['a leaf for a list', { a: vec(1) }, { a: [vec(1)] }, 'the first tree has .a where tree 2 has .a[0]'],
  ])('names the first difference: %s', (_, a, b, message) => {
    expect(() => treeMap((x) => x, a, b)).toThrow(message);
  });
});

test('treeLeaves gives the tensors in order', () => {
  const [a, b] = [vec(1), vec(2)];
  expect(treeLeaves({ x: [a, 3], y: b })).toEqual([a, b]);
});

test('private members, which copies of layers cannot have, are an error that says so', () => {
  class Hidden extends Module {
    readonly scale = parameter(ones([2]));
    readonly #inner = new Linear(2, 2);
    forward(x: Tensor): Tensor {
      return this.#inner.forward(x).mul(this.scale);
    }
  }
  const net = new Hidden();
  const message = /a copy of a layer has no private members.*\n[^]*a property without #/;
  expect(() => compile((m: Hidden, x: Tensor) => m.forward(x))(net, ones([1, 2]))).toThrow(message);
  expect(() => grad((m: Hidden) => m.forward(ones([1, 2])).sum())(net)).toThrow(message);
  expect(noGrad(() => net.forward(ones([1, 2]))).shape).toEqual([1, 2]);
});
