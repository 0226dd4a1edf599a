// Loops and branches over values with an axis that varies.

import * as sn from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import { floats, other, program, type SizedProgram } from './programs.ts';

type X = sn.Tensor;

const n = sn.dim('n', { max: 200 });
const b = sn.dim('b', { max: 20 });

/** What is carried is as long as the varying axis. */
export const turned = (x: X): readonly X[] => {
  const [last, all] = sn.scan(
    (carry: X, slice: X) => [
      carry.softmax(0).add(slice.mul(1 / x.shape[1]!)),
      slice.sort()[0]!.add(carry.mean()),
    ],
    sn.zeros([x.shape[1]!]),
    x,
  );
  return [last, all];
};
export const chosen = (x: X): X =>
  sn.cond(
    x.sum().gt(0),
    (a: X) => a.sub(a.mean()),
    (a: X) => a.softmax(0).flip(0),
    x,
  );
export const halved = (x: X): X =>
  sn.whileLoop(
    (a: X) => a.abs().sum().gt(0.5),
    (a: X) => a.mul(0.5).add(a.mean().mul(0.25)),
    x,
  );
/** A loop in a loop, which reads something from outside of both. */
export const nested = (x: X): X =>
  sn.foriLoop(
    0,
    3,
    (i, a: X) =>
      sn.foriLoop(
        0,
        2,
        (k, c: X) =>
          c
            .add(x.mul(k.cast('f32')))
            .roll(1, 0)
            .tanh(),
        a.mul(i.cast('f32').add(1)),
      ),
    x,
  );
const lstm = new nn.LSTM(3, 4);

/** Each with its gradient. */
export const loops: readonly SizedProgram[] = [
  program('a scan beside the axis', [[5, n]], (s) => [floats(5, s)], turned),
  program(
    'the gradient of a scan beside the axis',
    [[5, n]],
    (s) => [floats(5, s)],
    sn.grad((x: X) => turned(x).reduce((sum: X, y) => sum.add(y.mul(y).sum()), sn.tensor(0))),
  ),
  program('a branch', [[n]], (s) => [floats(s)], chosen),
  program(
    'the gradient of a branch',
    [[n]],
    (s) => [floats(s)],
    sn.grad((x: X) => chosen(x).pow(3).sum()),
  ),
  program('a loop that ends by data', [[n]], (s) => [floats(s)], halved),
  program('a loop in a loop', [[n]], (s) => [floats(s)], nested),
  program(
    'the gradient of a loop in a loop',
    [[n]],
    (s) => [floats(s)],
    sn.grad((x: X) => nested(x).mul(x).sum()),
  ),
  program(
    'a recurrent layer over a batch',
    [[6, b, 3]],
    (s) => [floats(6, other(s), 3)],
    (x: X) => lstm.forward(x)[0],
  ),
  program(
    'the gradient of a recurrent layer over a batch',
    [[6, n, 3]],
    (s) => [floats(6, s, 3)],
    sn.grad((x: X) => lstm.forward(x)[0].square().sum()),
  ),
];
