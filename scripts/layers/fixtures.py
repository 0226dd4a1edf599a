#!/usr/bin/env python3
"""Writes test/fixtures/layers.json: PyTorch's layers and losses as modules, what they give, and gradients.

Run with any Python that has torch: python3 scripts/layers/fixtures.py

A case: the name of the class here and what it is made with, PyTorch's state dictionary, whether it trains, the inputs of one
call, its output, weights of that, the gradients of Σ (output · weight) by name, and the state afterwards. Tensors are
{shape, data} of f64, or {shape, data, dtype}.
"""

import json
import pathlib

import torch
from torch import nn

cases = []
F64 = {'dtype': 'f64'}


def tensor(value):
    kind = {} if value.is_floating_point() else {'dtype': 'bool' if value.dtype == torch.bool else 'i32'}
    data = [round(v, 12) for v in value.detach().reshape(-1).tolist()]
    return {'shape': list(value.shape), 'data': data, **kind}


def rand(*shape):
    return torch.randn(shape, dtype=torch.float64)


def classes(count, *shape):
    return torch.randint(count, shape)


def signs(*shape):
    return torch.randint(2, shape).double() * 2 - 1


def case(layer, inputs, *args, name=None, train=True, options=None, grads=1, theirs=None, method='forward', member=None):
    """`grads`: how many leading inputs have gradients; `theirs`: PyTorch's options, where they are others; `method` is called,
    and `member` of what it gives is the output."""
    layer = layer.double().train(train)
    options = options or {}
    state = {k: tensor(v) for k, v in layer.state_dict().items() if not k.endswith('num_batches_tracked')}
    inputs = [x.clone().requires_grad_() if i < grads else x for i, x in enumerate(inputs)]
    keywords = {'offsets': 'offsets', 'perSampleWeights': 'per_sample_weights'}
    theirs = theirs or {keywords[k]: v for k, v in options.items()}
    output = getattr(layer, method)(*inputs, **theirs)
    output = output if member is None else getattr(output, member)
    weight = torch.rand_like(output) - 0.5
    wanted = {**{f'input{i}': x for i, x in enumerate(inputs[:grads])}, **dict(layer.named_parameters())}
    found = torch.autograd.grad((output * weight).sum(), list(wanted.values()), allow_unused=True) if wanted else []
    found = [torch.zeros_like(x) if g is None else g for x, g in zip(wanted.values(), found)]
    after = {k: tensor(v) for k, v in layer.state_dict().items() if 'running' in k}
    cases.append({
        'kind': name or type(layer).__name__, 'args': list(args), 'state': state, 'train': train,
        'inputs': [tensor(x) for x in inputs], 'options': {k: tensor(v) for k, v in options.items()},
        'output': tensor(output), 'weight': tensor(weight),
        'grads': {k: tensor(g) for k, g in zip(wanted, found)}, 'after': after,
        **({} if method == 'forward' else {'method': method}), **({} if member is None else {'member': member}),
    })


def losses():
    x, y, z = rand(4, 3), rand(4, 3), rand(4, 3)
    for reduction in ['mean', 'sum', 'none']:
        told = {'reduction': reduction}
        for kind in ['MSELoss', 'L1Loss', 'SoftMarginLoss']:
            target = signs(4, 3) if kind == 'SoftMarginLoss' else y
            case(getattr(nn, kind)(**told), [x, target], told)
        case(nn.CrossEntropyLoss(**told), [x, classes(3, 4)], told)
        case(nn.NLLLoss(**told), [x.log_softmax(1), classes(3, 4)], told)
    case(nn.SmoothL1Loss(beta=0.5), [x, y], {'beta': 0.5})
    case(nn.HuberLoss(delta=0.7), [x, y], {'delta': 0.7})
    weight = torch.rand(3, dtype=torch.float64) + 0.5
    stored = tensor(weight)
    share = torch.rand(4, 3, dtype=torch.float64)
    case(nn.BCELoss(weight=weight), [x.sigmoid(), share], {'weight': stored})
    case(nn.BCEWithLogitsLoss(pos_weight=weight), [x, share], {'posWeight': stored})
    case(nn.BCEWithLogitsLoss(weight=weight, pos_weight=weight), [x, share], {'weight': stored, 'posWeight': stored})
    case(nn.KLDivLoss(reduction='batchmean'), [x.log_softmax(1), y.softmax(1)], {'reduction': 'batchmean'})
    case(nn.HingeEmbeddingLoss(margin=0.8), [x, signs(4, 3)], {'margin': 0.8})
    case(nn.PoissonNLLLoss(full=True), [x, classes(6, 4, 3).double()], {'full': True})
    case(nn.GaussianNLLLoss(full=True), [x, y, share + 0.1], {'full': True})
    case(nn.CrossEntropyLoss(weight=weight, label_smoothing=0.1, ignore_index=1), [x, torch.tensor([0, 2, 1, 2])],
         {'weight': stored, 'labelSmoothing': 0.1, 'ignoreIndex': 1})
    case(nn.CrossEntropyLoss(), [x, y.softmax(1)])
    case(nn.NLLLoss(weight=weight), [rand(2, 3, 2).log_softmax(1), classes(3, 2, 2)], {'weight': stored})
    case(nn.MultiMarginLoss(p=2, weight=weight), [x, classes(3, 4)], {'p': 2, 'weight': stored})
    case(nn.MultiLabelMarginLoss(), [x, torch.tensor([[0, 2, -1], [1, -1, 0], [2, 1, 0], [0, -1, -1]])])
    case(nn.MultiLabelSoftMarginLoss(weight=weight), [x, classes(2, 4, 3).double()], {'weight': stored})
    case(nn.CTCLoss(blank=0), [rand(6, 2, 4).log_softmax(2), torch.tensor([[1, 2, 3], [3, 3, 1]]), torch.tensor([6, 5]),
                               torch.tensor([3, 2])])
    case(nn.MarginRankingLoss(margin=0.3), [x[:, 0], y[:, 0], signs(4)], {'margin': 0.3}, grads=2)
    case(nn.CosineEmbeddingLoss(margin=0.1), [x, y, signs(4)], {'margin': 0.1}, grads=2)
    case(nn.TripletMarginLoss(swap=True, p=3), [x, y, z], {'swap': True, 'p': 3}, grads=3)
    case(nn.TripletMarginWithDistanceLoss(margin=0.5), [x, y, z], {'margin': 0.5}, grads=3)
    case(nn.PairwiseDistance(p=3, keepdim=True), [x, y], {'p': 3, 'keepdim': True}, grads=2)
    case(nn.CosineSimilarity(dim=0), [x, y], 0, grads=2)


def pads():
    images = {1: rand(2, 3, 6), 2: rand(2, 2, 4, 5), 3: rand(1, 2, 3, 4, 3)}
    for axes, x in images.items():
        # PyTorch's padding begins with the last axis.
        ends = [(1, 2), (0, 1), (2, 1)][:axes]
        flat = tuple(size for pair in reversed(ends) for size in pair)
        pairs = [list(pair) for pair in ends]
        for kind in ['ReflectionPad', 'ReplicationPad']:
            case(getattr(nn, f'{kind}{axes}d')(1), [x], 1)
            case(getattr(nn, f'{kind}{axes}d')(flat), [x], pairs)
            case(getattr(nn, f'{kind}{axes}d')(1), [x[0]], 1)
        case(getattr(nn, f'ConstantPad{axes}d')(flat, 1.5), [x], pairs, 1.5)
    case(nn.ConstantPad2d(-1, 0.5), [images[2]], -1, 0.5)
    case(nn.ZeroPad2d((1, 2, 0, -1)), [images[2]], [[0, -1], [1, 2]])


def layers():
    shapes = {1: (2, 3, 5), 2: (2, 3, 3, 2), 3: (2, 3, 2, 2, 3)}
    for axes, shape in shapes.items():
        kind = getattr(nn, f'InstanceNorm{axes}d')
        case(kind(3), [rand(*shape)], 3, F64)
        case(kind(3), [rand(*shape[1:])], 3, F64)
        for train in [True, False]:
            layer = kind(3, affine=True, track_running_stats=True, momentum=0.3, eps=1e-3)
            for value in [layer.weight, layer.bias, layer.running_mean]:
                nn.init.normal_(value)
            nn.init.uniform_(layer.running_var, 0.5, 2)
            told = {'affine': True, 'trackRunningStats': True, 'momentum': 0.3, 'eps': 1e-3, **F64}
            case(layer, [rand(*shape)], 3, told, train=train)
    case(nn.Bilinear(3, 2, 4), [rand(5, 3), rand(5, 2)], 3, 2, 4, F64, grads=2)
    case(nn.Bilinear(3, 2, 4, bias=False), [rand(2, 5, 3), rand(2, 5, 2)], 3, 2, 4, {'bias': False, **F64}, grads=2)
    for mode in ['sum', 'mean', 'max']:
        case(nn.EmbeddingBag(6, 3, mode=mode), [classes(6, 4, 3)], 6, 3, {'mode': mode, **F64}, grads=0)
        case(nn.EmbeddingBag(6, 3, mode=mode, padding_idx=2), [classes(6, 9)], 6, 3,
             {'mode': mode, 'paddingIdx': 2, **F64}, options={'offsets': torch.tensor([0, 2, 2, 5])}, grads=0)
    case(nn.EmbeddingBag(6, 3, mode='sum', include_last_offset=True), [classes(6, 7)], 6, 3,
         {'mode': 'sum', 'includeLastOffset': True, **F64}, grads=0,
         options={'offsets': torch.tensor([0, 3, 7]), 'perSampleWeights': rand(7)})
    case(nn.PReLU(), [rand(3, 4)], 1, F64)
    case(nn.PReLU(3, init=0.1), [rand(2, 3, 4)], 3, {'init': 0.1, **F64})
    case(nn.RReLU(0.1, 0.4), [rand(3, 4)], {'lower': 0.1, 'upper': 0.4}, train=False)
    case(nn.Softmax2d(), [rand(2, 3, 2, 2)])
    case(nn.Softmax2d(), [rand(3, 2, 2)])
    case(nn.LPPool1d(3, 2), [rand(2, 3, 8).abs()], 2, {'p': 3})
    case(nn.LPPool2d(2, (2, 3), stride=(1, 2)), [rand(1, 2, 4, 7)], [2, 3], {'stride': [1, 2]})
    for axes, shape in {1: (1, 2, 6), 2: (1, 2, 4, 4), 3: (1, 1, 2, 4, 2)}.items():
        pool = getattr(nn.functional, f'max_pool{axes}d')
        values, places = pool(rand(*shape), 2, return_indices=True)
        case(getattr(nn, f'MaxUnpool{axes}d')(2), [values, places], 2)
    told = {'stride': 2, 'padding': 1, 'dilation': [1, 2]}
    case(nn.Unfold((2, 2), stride=2, padding=1, dilation=(1, 2)), [rand(2, 3, 4, 5)], [2, 2], told)
    columns = nn.Unfold((2, 2), stride=2, padding=1, dilation=(1, 2))(rand(2, 3, 4, 5))
    case(nn.Fold((4, 5), (2, 2), stride=2, padding=1, dilation=(1, 2)), [columns], [4, 5], [2, 2], told)
    case(nn.Unflatten(1, (2, 3)), [rand(2, 6, 2)], 1, [2, 3])
    case(nn.UpsamplingNearest2d(size=(3, 7)), [rand(1, 2, 2, 3)], {'size': [3, 7]})
    case(nn.UpsamplingBilinear2d(scale_factor=2), [rand(1, 2, 2, 3)], {'scaleFactor': 2})
    for kind in ['Dropout1d', 'AlphaDropout', 'FeatureAlphaDropout']:
        case(getattr(nn, kind)(0.5), [rand(2, 3, 4)], 0.5, train=False)


def transformers():
    told = {'hidden': 6, 'dropout': 0, **F64}
    options = {'dim_feedforward': 6, 'dropout': 0, 'batch_first': True}
    x, memory = rand(2, 4, 4), rand(2, 3, 4)
    # True where a position may see another; PyTorch's masks are the opposite.
    causal = torch.ones(4, 4).tril().bool()
    seen = torch.tensor([[True, True, False], [True, True, True]])
    for first in [False, True]:
        ours = {**told, 'normFirst': first, 'layerNormEps': 1e-3}
        given = {**options, 'norm_first': first, 'layer_norm_eps': 1e-3}
        case(nn.TransformerEncoderLayer(4, 2, **given), [x], 4, 2, ours)
        case(nn.TransformerEncoderLayer(4, 2, **given), [memory], 4, 2, ours,
             options={'mask': seen[:, None, None]}, theirs={'src_key_padding_mask': ~seen})
        case(nn.TransformerDecoderLayer(4, 2, **given), [x, memory], 4, 2, ours, grads=2,
             options={'mask': causal, 'memoryMask': seen[:, None, None]},
             theirs={'tgt_mask': ~causal, 'memory_key_padding_mask': ~seen})
        layers = {'num_encoder_layers': 2, 'num_decoder_layers': 2}
        mine = {'heads': 2, 'encoderLayers': 2, 'decoderLayers': 2, **told, 'normFirst': first}
        case(nn.Transformer(4, 2, **options, **layers, norm_first=first), [memory, x], 4, mine, grads=2,
             options={'mask': causal, 'sourceMask': seen[:, None, None], 'memoryMask': seen[:, None, None]},
             theirs={'tgt_mask': ~causal, 'src_key_padding_mask': ~seen, 'memory_key_padding_mask': ~seen})


def more():
    for axes, shape in {1: (4, 3), 2: (2, 3, 3, 2), 3: (2, 3, 2, 2, 3)}.items():
        for train in [True, False]:
            layer = getattr(nn, f'BatchNorm{axes}d')(3, momentum=0.3, eps=1e-3)
            nn.init.normal_(layer.running_mean)
            nn.init.uniform_(layer.running_var, 0.5, 2)
            case(layer, [rand(*shape)], 3, {'momentum': 0.3, 'eps': 1e-3, **F64}, train=train)
    # Of more channels PyTorch never takes the first one out of its windows again; its gradient is one of
    # an even size alone (gradcheck).
    for size, channels in [(3, 2), (4, 2), (5, 3), (7, 4)]:
        told = {'alpha': 0.5, 'beta': 0.6, 'k': 2}
        case(nn.CrossMapLRN2d(size, **told), [rand(2, channels, 2, 3)], size, told, grads=int(size == 4))
    # PyTorch sums odd powers with their signs, ours are those of absolute values.
    mixed = torch.tensor([[[1.5, -0.7, 2.0, -1.1, 0.4, 0.9, -0.2, 0.8]]], dtype=torch.float64)
    case(nn.LPPool1d(3, 2), [mixed.abs()], 2, {'p': 3})
    case(nn.LPPool1d(1, 2, stride=1), [mixed.abs()], 2, {'p': 1, 'stride': 1})
    case(nn.LPPool1d(4, 3), [rand(2, 2, 9)], 3, {'p': 4})
    case(nn.LPPool2d(3, 2), [mixed.reshape(1, 2, 4).abs() - 0.1], 2, {'p': 3})
    for bias in [False, True]:
        told = {'divValue': 2, 'headBias': bias, **F64}
        given = [8, 9, [2, 5], told]
        labels = torch.tensor([0, 8, 3, 4, 1, 5])
        for member in ['output', 'loss']:
            layer = nn.AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], div_value=2, head_bias=bias)
            case(layer, [rand(6, 8), labels], *given, member=member)
        case(layer, [rand(8), labels[1]], *given, member='output')
        case(layer, [rand(6, 8)], *given, method='log_prob')


if __name__ == '__main__':
    torch.manual_seed(7)
    losses()
    pads()
    layers()
    transformers()
    more()
    path = pathlib.Path(__file__).resolve().parents[2] / 'test/fixtures/layers.json'
    path.write_text('[\n' + ',\n'.join(json.dumps(one, ensure_ascii=False) for one in cases) + '\n]\n')
    print(len(cases), 'cases')
