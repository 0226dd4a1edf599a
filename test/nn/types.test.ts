// What the type checker knows of what layers, losses, loaders and transforms give, and that it is so: the types are checked by
// `npm run check`, and the tests hold them against the dtypes of what runs. A line under `@ts-expect-error` fails `npm run check`
// when it type-checks after all.

import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { dtypes, isComplex, isFloat } from '../../src/ir/dtype.ts';
import * as nn from '../../src/nn/index.ts';
import { AdamW, SGD } from '../../src/optim/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

type Floats = sn.Tensor<sn.FloatDType>;

class Net extends nn.Module {
  readonly first = new nn.Linear(3, 2);
  readonly norm = new nn.LayerNorm(2);
  // What it gives is inferred.
  // oxlint-disable-next-line typescript/explicit-function-return-type
  override forward(x: sn.Tensor) {
    return sn.relu(this.norm.forward(this.first.forward(x)));
  }
}

describe('layers with weights', () => {
  test('give f32 of f32, whose data can be mapped and whose elements are numbers', async () => {
    let y = sn.ones([1, 3]);
    y = new nn.Linear(3, 2).forward(y);
    expectTypeOf(y).toEqualTypeOf<sn.Tensor<'f32'>>();
    const data = await y.data();
    expectTypeOf(data).toEqualTypeOf<Float32Array>();
    expect(data.map(() => 1)).toEqual(Float32Array.of(1, 1));
    expectTypeOf(await y.sum().item()).toEqualTypeOf<number>();
  });

  test('give floats of what is not known, or of half precision', () => {
    const unknown: sn.Tensor = sn.ones([1, 3]);
    expectTypeOf(new nn.Linear(3, 2).forward(unknown)).toEqualTypeOf<Floats>();
    const wrong = (): sn.Tensor<'f32'> =>
      // @ts-expect-error: it may be f64
      new nn.Linear(3, 2).forward(unknown);
    expect(wrong().dtype).toBe('f32');
    const doubles = nn.to(new nn.Linear(3, 2), 'f64').forward(sn.ones([1, 3], { dtype: 'f64' }));
    expectTypeOf(doubles.dtype).toEqualTypeOf<'f64'>();
    expect(doubles.dtype).toBe('f64');
    const halves = new nn.Conv1d(3, 2, 1, { dtype: 'f16' }).forward(sn.ones([1, 3, 4], { dtype: 'f16' }));
    expectTypeOf(halves).toEqualTypeOf<Floats>();
    expect(halves.dtype).toBe('f16');
  });

  test('keep complex numbers complex', () => {
    const y = new nn.Linear(3, 2).forward(sn.ones([1, 3], { dtype: 'c64' }));
    expectTypeOf(y.dtype).toEqualTypeOf<'c64' | 'c128'>();
    expect(y.dtype).toBe('c64');
  });

  test('recurrent cells keep what the input and the state are in', () => {
    const cell = new nn.GRUCell(3, 2, { dtype: 'f64' });
    let state = sn.zeros([1, 2]);
    for (let i = 0; i < 2; i++) state = cell.forward(sn.ones([1, 3]), state);
    expect(state.dtype).toBe('f32');
    const [output] = new nn.LSTM(3, 2).forward(sn.ones([4, 1, 3]));
    expectTypeOf(output).toEqualTypeOf<sn.Tensor<'f32'>>();
  });
});

describe('layers without weights', () => {
  test('give what they take, or floats of it', () => {
    const x = sn.ones([1, 2, 4]);
    expectTypeOf(new nn.ReLU().forward(x)).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(new nn.GELU().forward(x.cast('i32'))).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(new nn.ReLU6().forward(x.cast('i32'))).toEqualTypeOf<sn.Tensor<'i32'>>();
    expectTypeOf(new nn.ReLU6().forward(x.cast('bool'))).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(new nn.MaxPool1d(2).forward(x.cast('f16'))).toEqualTypeOf<sn.Tensor<'f16'>>();
    expectTypeOf(new nn.Flatten().forward(x.cast('bool'))).toEqualTypeOf<sn.Tensor<'bool'>>();
    expect(new nn.ReLU6().forward(x.cast('i32')).dtype).toBe('i32');
  });

  /** What the types say of a layer: the dtype that comes, of the dtype that goes in. */
  type Says = (dtype: sn.DType) => sn.DType;
  const keeps: Says = (dtype) => dtype;
  const floats: Says = (dtype) => (isFloat(dtype) || isComplex(dtype) ? dtype : 'f32');
  const limits: Says = (dtype) => (dtype === 'bool' ? 'f32' : dtype);
  const layers: readonly (readonly [Says, readonly nn.Layer[]])[] = [
    [
      keeps,
      [
        new nn.ReLU(),
        new nn.Identity(),
        new nn.Threshold(0, 0),
        new nn.Flatten(),
        new nn.Dropout(),
        new nn.AlphaDropout(),
        new nn.FeatureAlphaDropout(),
        new nn.Dropout2d(),
        new nn.Unfold(1),
        new nn.Unflatten(1, [2, 2]),
        new nn.ChannelShuffle(2),
        new nn.PixelShuffle(2),
        new nn.PixelUnshuffle(2),
        new nn.MaxPool2d(2),
        new nn.AvgPool2d(2),
        new nn.LPPool2d(2),
        new nn.AdaptiveAvgPool2d(2),
        new nn.AdaptiveMaxPool2d(2),
        new nn.ConstantPad2d(1, 2),
        new nn.ReflectionPad2d(1),
        new nn.ReplicationPad2d(1),
        new nn.CircularPad2d(1),
        new nn.Upsample({ scaleFactor: 2 }),
        new nn.FractionalMaxPool2d(2, { outputSize: [2, 2] }),
      ],
    ],
    [
      floats,
      [
        new nn.LeakyReLU(),
        new nn.GELU(),
        new nn.SiLU(),
        new nn.Tanh(),
        new nn.Sigmoid(),
        new nn.Softmax(),
        new nn.Mish(),
        new nn.SELU(),
        new nn.Hardswish(),
        new nn.Hardsigmoid(),
        new nn.LogSigmoid(),
        new nn.Softsign(),
        new nn.Tanhshrink(),
        new nn.ELU(),
        new nn.CELU(),
        new nn.Softplus(),
        new nn.Softshrink(),
        new nn.Hardshrink(),
        new nn.LogSoftmax(),
        new nn.Softmin(),
        new nn.GLU(),
        new nn.RReLU(),
        new nn.LocalResponseNorm(2),
        new nn.Softmax2d(),
      ],
    ],
    [limits, [new nn.ReLU6(), new nn.Hardtanh()]],
  ];

  test('in every dtype that they take', () => {
    let count = 0;
    for (const [says, list] of layers) {
      for (const layer of list) {
        for (const dtype of dtypes) {
          const x = sn.ones([2, 4, 4, 4]).cast(dtype);
          const y = ((): sn.Tensor | undefined => {
            try {
              return typeof layer === 'function' ? layer(x) : layer.forward(x);
            } catch {
              return undefined;
            }
          })();
          if (dtype === 'f32') expect(y, layer.constructor.name).toBeDefined();
          if (y !== undefined) expect([layer.constructor.name, dtype, y.dtype]).toEqual([layer.constructor.name, dtype, says(dtype)]); // prettier-ignore
          count += y === undefined ? 0 : 1;
        }
      }
    }
    expect(count).toBeGreaterThan(300);
  });
});

describe('containers', () => {
  const x = sn.ones([1, 3]);
  test('give what their last layers give', () => {
    const net = new nn.Sequential(new nn.Linear(3, 2), sn.relu, new nn.GELU(), new nn.Dropout());
    expectTypeOf(net.forward(x)).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(new nn.Sequential(new Net(), sn.softmax).forward(x)).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(new nn.Sequential(new nn.ReLU(), new nn.Flatten()).forward(x)).toEqualTypeOf<
      sn.Tensor<'f32'>
    >();
    const chooses = new nn.Sequential(net, (y: sn.Tensor) => y.argmax(1)).forward(x);
    expectTypeOf(chooses).toEqualTypeOf<sn.Tensor<'i32'>>();
    expect([net.forward(x).dtype, chooses.dtype]).toEqual(['f32', 'i32']);
  });

  test('say nothing where a layer says nothing, or where the layers are a list', () => {
    const unknown: sn.Tensor<'i64'> = new nn.Sequential((y: sn.Tensor): sn.Tensor => y.cast('i64')).forward(
      x,
    );
    const list: readonly nn.Layer[] = [new Net()];
    const any: sn.Tensor<'f32'> = new nn.Sequential(...list).forward(x);
    expect([unknown.dtype, any.dtype]).toEqual(['i64', 'f32']);
  });

  test('go where any is expected', () => {
    const net: nn.Sequential = new nn.Sequential(new nn.Linear(3, 2), sn.relu);
    expect(net.layers.length).toBe(2);
  });
});

describe('models of your own, compiled and differentiated', () => {
  test('give floats without saying so', async () => {
    const net = new Net();
    const x: sn.Tensor = sn.ones([1, 3]);
    expectTypeOf(net.forward(x)).toEqualTypeOf<Floats>();
    const run = sn.compile((of: Net, at: sn.Tensor) => of.forward(at));
    expectTypeOf(run(net, x)).toEqualTypeOf<Floats>();
    expectTypeOf(sn.vmap((at: sn.Tensor) => net.forward(at))(x)).toEqualTypeOf<Floats>();
    expect((await run(net, x).data()).map(Math.abs).length).toBe(2);
  });

  test('losses are numbers, of functions and of modules, and steps keep the model', async () => {
    const [net, x, labels] = [new Net(), sn.ones([1, 3]), sn.tensor(new Int32Array(1))];
    expectTypeOf(labels).toEqualTypeOf<sn.Tensor<'i32'>>();
    const loss = sn.crossEntropy(net.forward(x), labels);
    expectTypeOf(await loss.item()).toEqualTypeOf<number>();
    expectTypeOf(await new nn.MSELoss().forward(net.forward(x), 0).item()).toEqualTypeOf<number>();
    const { value, grad } = sn.valueAndGrad((of: Net) => sn.crossEntropy(of.forward(x), labels))(net);
    expectTypeOf(value).toEqualTypeOf<Floats>();
    expectTypeOf(grad.first.forward(x)).toEqualTypeOf<sn.Tensor<'f32'>>();
    new AdamW(net).step();
    const optimizer = new SGD(net, { lr: 0.1 });
    expect(optimizer).toBeInstanceOf(SGD);
    expect(await value.item()).toBeGreaterThan(0);
  });
});
