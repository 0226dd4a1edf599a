// Calls of PyTorch's operators as ours: activations, convolutions, norms, embeddings, attention.

import * as sn from '../../../../src/index.ts';
import type { Tensor } from '../../../../src/index.ts';
import { signature, unary, type Args, type Call, type Calls, type Result } from '../args.ts';

function activation(f: (x: Tensor) => Result): Call {
  return signature('input, inplace=False')((a) => f(a.tensor('input')));
}

/** An activation of one number. */
function shaped(f: (x: Tensor, value: number) => Tensor, name: string, fallback: number): Call {
  return signature(`input, ${name}=${fallback}, inplace=False`)((a) => f(a.tensor('input'), a.number(name)));
}

/** A list of one is for every axis, as in PyTorch. */
function perAxis(a: Args, name: string): number | number[] {
  const value = a.numbers(name)!;
  return Array.isArray(value) && value.length === 1 ? value[0]! : value;
}

type Conv = (x: Tensor, w: Tensor, bias: Tensor | undefined, options: Record<string, never>) => Tensor;

function conv(f: Conv): Call {
  return signature('input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1')((a) => {
    const padding = typeof a.raw('padding') === 'string' ? a.text('padding') : perAxis(a, 'padding');
    return f(a.tensor('input'), a.tensor('weight'), a.maybeTensor('bias'), {
      stride: perAxis(a, 'stride'),
      padding,
      dilation: perAxis(a, 'dilation'),
      groups: a.number('groups'),
    } as never);
  });
}

function convTranspose(f: Conv): Call {
  return signature('input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1')(
    (a) =>
      f(a.tensor('input'), a.tensor('weight'), a.maybeTensor('bias'), {
        stride: perAxis(a, 'stride'),
        padding: perAxis(a, 'padding'),
        outputPadding: perAxis(a, 'output_padding'),
        dilation: perAxis(a, 'dilation'),
        groups: a.number('groups'),
      } as never),
  );
}

const softmin = signature('input, dim=None, _stacklevel=3, dtype=None')((a) =>
  sn.softmin(a.tensor('input'), a.number('dim'), a.dtype()),
);

export const nn: Calls = {
  'nn.functional.relu': activation(sn.relu),
  'nn.functional.relu6': activation(sn.relu6),
  'nn.functional.selu': activation(sn.selu),
  'nn.functional.silu': activation(sn.silu),
  'nn.functional.silu.complex': activation(sn.silu),
  'nn.functional.mish': activation(sn.mish),
  'nn.functional.hardsigmoid': activation(sn.hardsigmoid),
  'nn.functional.hardswish': activation(sn.hardswish),
  'nn.functional.logsigmoid': unary(sn.logSigmoid),
  'nn.functional.softsign': unary(sn.softsign),
  'nn.functional.tanhshrink': unary(sn.tanhshrink),
  'nn.functional.celu': shaped(sn.celu, 'alpha', 1),
  'nn.functional.elu': shaped(sn.elu, 'alpha', 1),
  'nn.functional.leaky_relu': shaped(sn.leakyRelu, 'negative_slope', 0.01),
  'nn.functional.hardshrink': shaped(sn.hardshrink, 'lambd', 0.5),
  'nn.functional.softshrink': shaped(sn.softshrink, 'lambd', 0.5),
  'nn.functional.hardtanh': signature('input, min_val=-1, max_val=1, inplace=False')((a) =>
    sn.hardtanh(a.tensor('input'), a.number('min_val'), a.number('max_val')),
  ),
  'nn.functional.threshold': signature('input, threshold, value, inplace=False')((a) =>
    sn.threshold(a.tensor('input'), a.number('threshold'), a.number('value')),
  ),
  'nn.functional.gelu': signature('input, approximate=none')((a) =>
    sn.gelu(a.tensor('input'), { approximate: a.text('approximate') }),
  ),
  'nn.functional.glu': signature('input, dim=-1')((a) => sn.glu(a.tensor('input'), a.number('dim'))),
  'nn.functional.softplus': signature('input, beta=1, threshold=20')((a) =>
    sn.softplus(a.tensor('input'), a.options('beta')),
  ),
  'nn.functional.prelu': signature('input, weight')((a) => sn.prelu(a.tensor('input'), a.tensor('weight'))),
  'nn.functional.softmin': softmin,
  'nn.functional.softmin.with_dtype': softmin,
  'nn.functional.conv1d': conv(sn.conv1d),
  'nn.functional.conv2d': conv(sn.conv2d),
  'nn.functional.conv_transpose1d': convTranspose(sn.convTranspose1d),
  'nn.functional.conv_transpose2d': convTranspose(sn.convTranspose2d),
  'nn.functional.conv_transpose3d': convTranspose(sn.convTranspose3d),
  'nn.functional.linear': signature('input, weight, bias=None')((a) =>
    sn.linear(a.tensor('input'), a.tensor('weight'), a.maybeTensor('bias')),
  ),
  'nn.functional.bilinear': signature('input1, input2, weight, bias=None')((a) =>
    sn.bilinear(a.tensor('input1'), a.tensor('input2'), a.tensor('weight'), a.maybeTensor('bias')),
  ),
  'nn.functional.layer_norm': signature('input, normalized_shape, weight=None, bias=None, eps=1e-5')((a) =>
    sn.layerNorm(
      a.tensor('input'),
      a.list('normalized_shape'),
      a.maybeTensor('weight'),
      a.maybeTensor('bias'),
      a.options('eps'),
    ),
  ),
  'nn.functional.group_norm': signature('input, num_groups, weight=None, bias=None, eps=1e-5')((a) =>
    sn.groupNorm(
      a.tensor('input'),
      a.number('num_groups'),
      a.maybeTensor('weight'),
      a.maybeTensor('bias'),
      a.options('eps'),
    ),
  ),
  'nn.functional.batch_norm': signature(
    'input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5',
  )(
    (a) =>
      sn.batchNorm(
        a.tensor('input'),
        a.maybeTensor('running_mean'),
        a.maybeTensor('running_var'),
        a.maybeTensor('weight'),
        a.maybeTensor('bias'),
        a.options('training', 'eps'),
      )[0],
  ),
  'nn.functional.instance_norm': signature(
    'input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5',
  )((a) =>
    sn.instanceNorm(a.tensor('input'), a.maybeTensor('weight'), a.maybeTensor('bias'), a.options('eps')),
  ),
  'nn.functional.local_response_norm': signature('input, size, alpha=1e-4, beta=0.75, k=1.0')((a) =>
    sn.localResponseNorm(a.tensor('input'), a.number('size'), a.options('alpha', 'beta', 'k')),
  ),
  'nn.functional.normalize': signature('input, p=2.0, dim=1, eps=1e-12')((a) =>
    sn.normalize(a.tensor('input'), a.numbers('dim'), a.options('p', 'eps')),
  ),
  native_layer_norm: signature('input, normalized_shape, weight, bias, eps')((a) => {
    const x = a.tensor('input');
    const shape = a.list('normalized_shape');
    const axes = shape.map((_, i) => x.rank - shape.length + i);
    const [variance, mean] = sn.varMean(x, axes, { keepdim: true, correction: 0 });
    const y = sn.layerNorm(x, shape, a.maybeTensor('weight'), a.maybeTensor('bias'), a.options('eps'));
    return [y, mean, sn.rsqrt(sn.add(variance, a.number('eps')))];
  }),
  native_batch_norm: signature('input, weight, bias, running_mean, running_var, training, momentum, eps')(
    (a) => {
      const training = a.flag('training');
      const [y, mean, variance] = sn.batchNorm(
        a.tensor('input'),
        a.maybeTensor('running_mean'),
        a.maybeTensor('running_var'),
        a.maybeTensor('weight'),
        a.maybeTensor('bias'),
        a.options('training', 'eps'),
      );
      // Without training PyTorch gives no statistics back.
      if (!training) return [y, sn.zeros([0]), sn.zeros([0])];
      return [y, mean, sn.rsqrt(sn.add(variance, a.number('eps')))];
    },
  ),
  'nn.functional.embedding': signature(
    'input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False',
  )((a) => sn.embedding(a.tensor('weight'), a.tensor('input'), a.options('padding_idx'))),
  'nn.functional.embedding_bag': signature(
    'weight, input, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode=mean, sparse=False, ' +
      'per_sample_weights=None, include_last_offset=False, padding_idx=None',
  )((a) =>
    sn.embeddingBag(
      a.tensor('input'),
      a.tensor('weight'),
      a.options('offsets', 'mode', 'per_sample_weights', 'include_last_offset', 'padding_idx'),
    ),
  ),
  'nn.functional.one_hot': signature('input, num_classes=-1')(async (a) => {
    const x = a.tensor('input');
    const given = a.number('num_classes');
    // As many classes as there are when none are given: read from the elements.
    const classes = given >= 0 ? given : Number(await sn.amax(x).item()) + 1;
    return sn.oneHot(x, classes, { dtype: 'i64' });
  }),
  // The samples drop weights at random, by PyTorch's generator.
  'nn.functional._scaled_dot_product_attention': signature(
    'query, key, value, attn_mask=None, dropout_p=0.0, need_attn_weights=True, is_causal=False',
  )((a) =>
    sn.scaledDotProductAttention(a.tensor('query'), a.tensor('key'), a.tensor('value'), {
      ...a.options('attn_mask=mask', 'is_causal'),
      dropout: a.number('dropout_p'),
    }),
  ),
};
