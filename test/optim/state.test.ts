// The state of a functional optimizer belongs to one rule and one tree. One of another tree, or gradients of other shapes, are errors
// that name the place, before anything is computed.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { Linear } from '../../src/nn/index.ts';
import { adam, adagrad, sgd } from '../../src/optim/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

const optimizer = adam();
const tree = (...shapes: readonly (readonly number[])[]): sn.Tensor[] =>
  shapes.map((shape) => sn.ones(shape));

function refused(call: () => unknown, code: string, message: RegExp): void {
  let error: unknown;
  try {
    call();
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(sn.SinterError);
  expect(error).toMatchObject({ code });
  expect(String(error)).toMatch(message);
}

describe('a state', () => {
  const params = tree([2], [3]);

  test('of fewer or more parameters', () => {
    const told = /adam: the state is of 1 tensors, the tree has 2: nothing is kept for f32\[3\] at \[1\]/;
    refused(() => optimizer.update(params, params, optimizer.init([params[0]])), 'E_VALUE', told);
    refused(
      () => optimizer.update([params[0]], [params[0]], optimizer.init(params)),
      'E_VALUE',
      /of 2 tensors, the tree has 1/,
    );
  });

  test('of other shapes', () => {
    const other = optimizer.init(tree([2], [4]));
    refused(
      () => optimizer.update(params, params, other),
      'E_SHAPE',
      /the state's mean at \[1\] is f32\[4\], of a parameter f32\[3\]/,
    );
    const deep = { layer: { w: sn.ones([1]) } };
    const wrong = optimizer.init({ layer: { w: sn.ones([2]) } });
    refused(
      () => optimizer.update(deep, deep, wrong),
      'E_SHAPE',
      /mean at \.layer\.w is f32\[2\], of a parameter f32\[1\]/,
    );
  });

  test('of another rule, or none', () => {
    refused(
      () => optimizer.update(params, params, adagrad().init(params)),
      'E_VALUE',
      /the state has no mean for f32\[2\] at \[0\]/,
    );
    refused(
      () => optimizer.update(params, params, undefined as never),
      'E_VALUE',
      /a state has step and slots, got undefined/,
    );
    refused(
      () => optimizer.update(params, params, {} as never),
      'E_VALUE',
      /a state has step and slots, got/,
    );
    refused(
      () => optimizer.update(params, params, { step: 1, slots: [] } as never),
      'E_VALUE',
      /step must be i32\[\], got 1/,
    );
    const holey = { ...optimizer.init(params), slots: [undefined, undefined] } as never;
    refused(
      () => optimizer.update(params, params, holey),
      'E_VALUE',
      /the state has no mean for f32\[2\] at \[0\]/,
    );
  });

  test('from before a layer was to be trained', () => {
    const layer = new Linear(2, 2);
    layer.bias!.requiresGrad_(false);
    const state = optimizer.init(layer);
    layer.bias!.requiresGrad_();
    const g = sn.grad((at: Linear) => at.forward(sn.ones([1, 2])).sum())(layer);
    refused(
      () => optimizer.update(layer, g, state),
      'E_VALUE',
      /the state has no mean for f32\[2\] at \.bias, which is trained/,
    );
  });
});

describe('gradients', () => {
  test('of other shapes are refused: nothing is spread', () => {
    const [one, three] = [sn.ones([1]), sn.ones([3])];
    for (const rule of [adam(), sgd()]) {
      refused(
        () => rule.update([one], [three], rule.init([one])),
        'E_SHAPE',
        /the gradient at \[0\] is f32\[3\], of a parameter f32\[1\]/,
      );
      refused(
        () => rule.update([three], [one], rule.init([three])),
        'E_SHAPE',
        /the gradient at \[0\] is f32\[1\], of a parameter f32\[3\]/,
      );
      refused(
        () => rule.update(three, one, rule.init(three)),
        'E_SHAPE',
        /: the gradient is f32\[1\], of a parameter f32\[3\]/,
      );
    }
  });

  test('that are missing or no floats are refused', () => {
    const p = tree([2], [2]);
    refused(() => optimizer.update(p, [p[0]] as never, optimizer.init(p)), 'E_VALUE', /differ in structure/);
    refused(
      () => optimizer.update(p, [p[0], 3] as never, optimizer.init(p)),
      'E_VALUE',
      /the gradient at \[1\] must be a tensor of floats, got 3/,
    );
    const ids = sn.tensor(new Int32Array(2));
    refused(
      () => optimizer.update(p, [p[0]!, ids], optimizer.init(p)),
      'E_VALUE',
      /gradient at \[1\] must be a tensor of floats, got i32\[2\]/,
    );
  });

  test('may be of another float than the parameter', async () => {
    const [w, g] = [sn.ones([2], { dtype: 'f16' }), sn.ones([2])];
    const [next] = sgd({ lr: 1 }).update([w], [g], sgd({ lr: 1 }).init([w]));
    expect([next[0]!.dtype, await next[0]!.array()]).toEqual(['f16', [0, 0]]);
  });
});

test('nothing is recorded before arguments are checked: the next step works', async () => {
  const p = tree([2]);
  expect(() => optimizer.update(p, p, optimizer.init(tree([3])))).toThrow();
  const [next] = sgd({ lr: 1 }).update(p, p, sgd({ lr: 1 }).init(p));
  expect(await next[0]!.array()).toEqual([0, 0]);
});
