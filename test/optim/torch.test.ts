import { beforeAll, describe, expect, test } from 'vitest';
import * as optim from '../../src/optim/index.ts';
import { compile } from '../../src/tensor/compile/compile.ts';
import { setDevice } from '../../src/tensor/device.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { torchCases, type TorchCase } from '../support/torch/figures.ts';
import { fromTorch, matches } from './support.ts';

interface Faces {
  readonly object: (params: Tensor[], options: object) => optim.Optimizer<object>;
  readonly functions: (options: object) => optim.FunctionalOptimizer;
}

const optimizers: Readonly<Record<string, Faces>> = {
  sgd: { object: (p, o) => new optim.SGD(p, o), functions: optim.sgd },
  adam: { object: (p, o) => new optim.Adam(p, o), functions: optim.adam },
  adamw: { object: (p, o) => new optim.AdamW(p, o), functions: optim.adamW },
  rmsprop: { object: (p, o) => new optim.RMSprop(p, o), functions: optim.rmsprop },
  adagrad: { object: (p, o) => new optim.Adagrad(p, o), functions: optim.adagrad },
  adadelta: { object: (p, o) => new optim.Adadelta(p, o), functions: optim.adadelta },
  adamax: { object: (p, o) => new optim.Adamax(p, o), functions: optim.adamax },
  nadam: { object: (p, o) => new optim.NAdam(p, o), functions: optim.nadam },
  radam: { object: (p, o) => new optim.RAdam(p, o), functions: optim.radam },
  rprop: { object: (p, o) => new optim.Rprop(p, o), functions: optim.rprop },
  asgd: { object: (p, o) => new optim.ASGD(p, o), functions: optim.asgd },
  lion: { object: (p, o) => new optim.Lion(p, o), functions: optim.lion },
  lamb: { object: (p, o) => new optim.Lamb(p, o), functions: optim.lamb },
  adafactor: { object: (p, o) => new optim.Adafactor(p, o), functions: optim.adafactor },
  muon: { object: (p, o) => new optim.Muon(p, o), functions: optim.muon },
};

/** Cases `[p, g1 … g5]` to `[p1 … p5]`. */
const trajectories = torchCases('optim').filter(({ op }) => op in optimizers);

beforeAll(() => setDevice('interpreter'));

test('every optimizer has trajectories', () => {
  expect(new Set(trajectories.map(({ op }) => op))).toEqual(new Set(Object.keys(optimizers)));
});

describe('trajectories agree with PyTorch', () => {
  test.each(trajectories)('$name by steps', async ({ op, args, inputs, outputs }) => {
    const [param, ...grads] = inputs.map(fromTorch);
    param!.requiresGrad_();
    const optimizer = optimizers[op]!.object([param!], args);
    for (const [i, grad] of grads.entries()) {
      param!.grad = grad;
      optimizer.step();
      await matches(param!, outputs[i]!);
      optimizer.zeroGrad();
      expect(param!.grad).toBeUndefined();
    }
  });

  test.each(trajectories)('$name by steps that are read at the end only', async (one: TorchCase) => {
    const [param, ...grads] = one.inputs.map(fromTorch);
    const optimizer = optimizers[one.op]!.object([param!.requiresGrad_()], one.args);
    for (const grad of grads) {
      param!.grad = grad;
      optimizer.step();
    }
    await matches(param!, one.outputs.at(-1)!);
  });

  test.each(trajectories)('$name as a compiled function', async ({ op, args, inputs, outputs }) => {
    const [start, ...grads] = inputs.map(fromTorch);
    const optimizer = optimizers[op]!.functions(args);
    const step = compile(
      (params: { w: Tensor }, state: ReturnType<typeof optimizer.init>, g: Tensor) =>
        optimizer.update(params, { w: g }, state),
      { donate: [0, 1] },
    );
    let params = { w: start! };
    let state = optimizer.init(params);
    for (const [i, grad] of grads.entries()) {
      [params, state] = step(params, state, grad);
      await matches(params.w, outputs[i]!);
    }
    expect(await state.step.item()).toBe(grads.length);
  });
});

describe('clipping agrees with PyTorch', () => {
  const normOf = (args: TorchCase['args']): number => (args['p'] === 'inf' ? Infinity : Number(args['p']));

  test.each(torchCases('optim', 'clipGradNorm'))('$name', async ({ args, inputs, outputs }) => {
    const max = Number(args['maxNorm']);
    const params = inputs.map((input) => fromTorch(input).requiresGrad_());
    for (const [i, param] of params.entries()) param.grad = fromTorch(inputs[i]!);
    await matches(optim.clipGradNorm(params, max, { p: normOf(args) }), outputs.at(-1)!);
    for (const [i, { grad }] of params.entries()) await matches(grad!, outputs[i]!);

    const [grads, norm] = optim.clipByNorm({ list: inputs.map(fromTorch) }, max, { p: normOf(args) });
    await matches(norm, outputs.at(-1)!);
    for (const [i, grad] of grads.list.entries()) await matches(grad, outputs[i]!);
  });

  test.each(torchCases('optim', 'clipGradValue'))('$name', async ({ args, inputs, outputs }) => {
    const param = fromTorch(inputs[0]!).requiresGrad_();
    param.grad = fromTorch(inputs[0]!);
    optim.clipGradValue([param], Number(args['value']));
    await matches(param.grad, outputs[0]!);
    await matches(optim.clipByValue([fromTorch(inputs[0]!)], Number(args['value']))[0]!, outputs[0]!);
  });
});
