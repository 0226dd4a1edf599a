#!/usr/bin/env python3
"""Writes test/fixtures/torch-edges.json: what PyTorch gives, and its gradients, at the points where formulas break: NaN, infinities,
both zeros, denormals, the ends of the range, equal elements, ends of integers, and nothing at all.

Run with any Python that has torch 1.13 or later and numpy (Debian: apt install python3-torch):

    python3 scripts/edge-fixtures.py

The figures are committed, so tests need no Python. A case is a call in Sinter's names, the inputs a, b, c…, and the results. Gradients
are those of the results against the weights 1, 2, ½, 1, 2, ½… in C-order. PyTorch's kernels for vectors of the CPU give other values
than its own formulas at the ends of the range, so they are turned off. 16-bit results are those of f32, rounded once.
"""

import os

os.environ['ATEN_CPU_CAPABILITY'] = 'default'

import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)

DTYPES = {
    'bool': torch.bool, 'i8': torch.int8, 'u8': torch.uint8, 'i16': torch.int16, 'i32': torch.int32,
    'i64': torch.int64, 'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
NAN, INF = math.nan, math.inf
MIN, MAX = -2**31, 2**31 - 1

sets = {}
cases = []


def number(value):
    if isinstance(value, bool):
        return '1' if value else '0'
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return '"nan"'
    if math.isinf(value):
        return '"inf"' if value > 0 else '"-inf"'
    if value == 0:
        return '-0' if math.copysign(1, value) < 0 else '0'
    text = str(np.float32(value))
    return text[:-2] if text.endswith('.0') else text


def text(tensor):
    values = ','.join(number(v) for v in tensor.detach().flatten().tolist())
    return f'{{"dtype":"{NAMES[tensor.dtype]}","shape":{json.dumps(list(tensor.shape), separators=(",", ":"))},"data":[{values}]}}'


def given(name, values, shape=None, dtype='f32'):
    """An input that cases share, by name."""
    tensor = torch.tensor(values, dtype=DTYPES[dtype])
    sets[name] = tensor.reshape(shape if shape is not None else tensor.shape)
    return name


def weights(like):
    return torch.tensor([1.0, 2.0, 0.5])[torch.arange(like.numel()) % 3].reshape(like.shape).to(like.dtype)


def case(call, names, f, grad=True):
    inputs = [sets[name].detach().clone() for name in names]
    narrow = [x.dtype for x in inputs if x.dtype in (torch.float16, torch.bfloat16)]
    wide = [x.float() if x.dtype in (torch.float16, torch.bfloat16) else x for x in inputs]
    for x in wide:
        if grad and x.dtype == torch.float32:
            x.requires_grad_(True)
    found = f(*wide)
    outs = list(found) if isinstance(found, (tuple, list)) else [found]
    grads = None
    if grad:
        tracked = [x for x in outs if x.requires_grad]
        leaves = [x for x in wide if x.requires_grad]
        if tracked and leaves:
            seeds = [weights(x).to(narrow[0]).float() if narrow else weights(x) for x in tracked]
            given_back = iter(torch.autograd.grad(tracked, leaves, seeds, allow_unused=True))
            grads = [next(given_back) if x.requires_grad else None for x in wide]
    if narrow:
        outs = [x.to(narrow[0]) if x.dtype == torch.float32 else x for x in outs]
        grads = None if grads is None else [None if g is None else g.to(narrow[0]) for g in grads]
    rows = ['null'] if grads is None else [','.join('null' if g is None else text(g) for g in grads)]
    back = 'null' if grads is None else f'[{rows[0]}]'
    cases.append(
        f'{{"call":{json.dumps(call)},"in":{json.dumps(list(names), separators=(",", ":"))},'
        f'"out":[{",".join(text(x) for x in outs)}],"grad":{back}}}'
    )


# ---------------------------------------------------------------- one operand

X = given('points', [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, NAN, INF, -INF, 1e-40, -1e-40, 1e-45, 1.17549435e-38, 3.4028235e38, -3.4028235e38,
    1e-20, 1e20, 88.0, 89.0, -88.0, -104.0, -150.0, 16777216.0, 0.9999999, 1.0000001, -0.9999999, 100.5, -1.5, 2.5, 3.5, -2.5,
    1e10, -1e10, 20.0, -20.0, 3.0, -3.0, 6.0, 5.0, 9.0,
])
unary = {
    'neg': torch.neg, 'abs': torch.abs, 'sign': torch.sign, 'square': torch.square, 'relu': F.relu, 'relu6': F.relu6,
    'floor': torch.floor, 'ceil': torch.ceil, 'round': torch.round, 'trunc': torch.trunc, 'exp': torch.exp, 'exp2': torch.exp2,
    'expm1': torch.expm1, 'log': torch.log, 'log2': torch.log2, 'log10': torch.log10, 'log1p': torch.log1p, 'sin': torch.sin,
    'cos': torch.cos, 'tan': torch.tan, 'asin': torch.asin, 'acos': torch.acos, 'atan': torch.atan, 'sinh': torch.sinh,
    'cosh': torch.cosh, 'tanh': torch.tanh, 'asinh': torch.asinh, 'acosh': torch.acosh, 'atanh': torch.atanh, 'sqrt': torch.sqrt,
    'rsqrt': torch.rsqrt, 'reciprocal': torch.reciprocal, 'sigmoid': torch.sigmoid, 'logSigmoid': F.logsigmoid, 'elu': F.elu,
    'selu': F.selu, 'celu': F.celu, 'gelu': F.gelu, 'silu': F.silu, 'mish': F.mish, 'softplus': F.softplus, 'softsign': F.softsign,
    'tanhshrink': F.tanhshrink, 'hardsigmoid': F.hardsigmoid, 'hardswish': F.hardswish, 'hardtanh': F.hardtanh,
    'leakyRelu': F.leaky_relu, 'erf': torch.erf, 'erfc': torch.erfc, 'nanToNum': torch.nan_to_num,
}
for name, f in unary.items():
    case(f'sn.{name}(a)', [X], f)
for name, f in {'isNan': torch.isnan, 'isInf': torch.isinf, 'isFinite': torch.isfinite}.items():
    case(f'sn.{name}(a)', [X], f, grad=False)
case("sn.gelu(a, { approximate: 'tanh' })", [X], lambda a: F.gelu(a, approximate='tanh'))
case("sn.gelu(a, { approximate: 'sigmoid' })", [X], lambda a: a * torch.sigmoid(1.702 * a))
case('sn.elu(a, 0.5)', [X], lambda a: F.elu(a, 0.5))
case('sn.celu(a, 2)', [X], lambda a: F.celu(a, 2.0))
case('sn.leakyRelu(a, -0.2)', [X], lambda a: torch.where(a > 0, a, a * -0.2))
case('sn.hardtanh(a, -2, 3)', [X], lambda a: F.hardtanh(a, -2.0, 3.0))
case('sn.softplus(a, { beta: 2 })', [X], lambda a: F.softplus(a, beta=2.0))
case('sn.nanToNum(a, { nan: 1, posinf: 2, neginf: 3 })', [X], lambda a: torch.nan_to_num(a, 1.0, 2.0, 3.0))
case('sn.clamp(a, -1, 1)', [X], lambda a: torch.clamp(a, -1, 1))
case('sn.clamp(a, 2, -2)', [X], lambda a: torch.clamp(a, 2, -2))
case('sn.clamp(a, 1)', [X], lambda a: torch.clamp(a, min=1))
case('sn.clamp(a, undefined, 1)', [X], lambda a: torch.clamp(a, max=1))
for power in ('2', '3', '0.5', '-1', '0', '-0.5', '1', '4', '1.5', '-2', '-3'):
    case(f'sn.pow(a, {power})', [X], lambda a, power=power: torch.pow(a, float(power)))
for base in ('2', '0.5', '1'):
    case(f'sn.pow({base}, a)', [X], lambda a, base=base: torch.pow(float(base), a))
case('sn.where(a.gt(0), a, a.mul(2))', [X], lambda a: torch.where(a > 0, a, a * 2))
case('sn.maskedFill(a, a.lt(0), 3)', [X], lambda a: torch.masked_fill(a, a < 0, 3))
case('sn.square(a).sqrt()', [X], lambda a: a.square().sqrt())
case('sn.logicalNot(a)', [X], torch.logical_not, grad=False)
case('sn.div(1, a)', [X], lambda a: 1 / a)
case('sn.sub(1, a)', [X], lambda a: 1 - a)

# ---------------------------------------------------------------- two operands

pairs = [0.0, -0.0, 1.0, -1.0, NAN, INF, -INF, 2.5, -2.5, 1e-40, 3e38, 0.5, 3.0, -3.0]
A = given('left', [x for x in pairs for _ in pairs])
B = given('right', [y for _ in pairs for y in pairs])
binary = {
    'add': torch.add, 'sub': torch.sub, 'mul': torch.mul, 'div': torch.div, 'maximum': torch.maximum, 'minimum': torch.minimum,
    'pow': torch.pow, 'atan2': torch.atan2, 'fmod': torch.fmod, 'remainder': torch.remainder,
}
for name, f in binary.items():
    case(f'sn.{name}(a, b)', [A, B], f)
case('sn.floorDivide(a, b)', [A, B], torch.floor_divide, grad=False)
case("sn.div(a, b, { rounding: 'trunc' })", [A, B], lambda a, b: torch.div(a, b, rounding_mode='trunc'), grad=False)
for name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge'):
    case(f'sn.{name}(a, b)', [A, B], getattr(torch, name), grad=False)
for name, f in {'logicalAnd': torch.logical_and, 'logicalOr': torch.logical_or, 'logicalXor': torch.logical_xor}.items():
    case(f'sn.{name}(a, b)', [A, B], f, grad=False)
case('sn.lerp(a, b, 0.3)', [A, B], lambda a, b: torch.lerp(a, b, 0.3))
case('sn.lerp(a, b, 0.7)', [A, B], lambda a, b: torch.lerp(a, b, 0.7))
case('sn.clamp(a, b, 1)', [A, B], lambda a, b: torch.clamp(a, b, torch.ones_like(a)))
case('sn.clamp(a, -1, b)', [A, B], lambda a, b: torch.clamp(a, -torch.ones_like(a), b))
case('sn.where(a.gt(0), a, b)', [A, B], lambda a, b: torch.where(a > 0, a, b))
case('sn.add(a, b, { alpha: 2 })', [A, B], lambda a, b: torch.add(a, b, alpha=2))
case('sn.prelu(a, b)', [X, given('slope', [0.25])], F.prelu)
case('sn.outer(a, b)', [given('three', [0.0, INF, NAN]), given('ten', [1.0, 0.0])], torch.outer)

# ---------------------------------------------------------------- rows

table = [
    [1., 2., 3.], [NAN, 1., 2.], [1., NAN, 2.], [INF, 1., 2.], [INF, INF, 1.], [-INF, -INF, -INF], [-INF, 0., 1.], [INF, -INF, 0.],
    [0., -0., 0.], [-0., 0., -0.], [1e-40, -1e-40, 0.], [1., 1., 1.], [2., 5., 5.], [100., 0., -100.], [NAN, INF, -INF],
    [INF, 100., 0.], [7., 7., 7.], [1e18, -1e18, 1e18], [0., 0., 2.],
]
R = given('rows', table)
folds = {
    'sum': torch.sum, 'mean': torch.mean, 'prod': torch.prod, 'amax': torch.amax, 'amin': torch.amin, 'max': torch.amax,
    'min': torch.amin, 'logsumexp': torch.logsumexp, 'std': torch.std, 'var': torch.var,
}
for name, f in folds.items():
    case(f'sn.{"varMean" if name == "var" else name}(a, 1){"[0]" if name == "var" else ""}', [R], lambda a, f=f: f(a, 1))
case('sn.std(a, 1, { correction: 0 })', [R], lambda a: torch.std(a, 1, unbiased=False))
for name, f in {'argmax': torch.argmax, 'argmin': torch.argmin}.items():
    case(f'sn.{name}(a, 1)', [R], lambda a, f=f: f(a, 1), grad=False)
case('sn.maxWithIndices(a, 1)', [R], lambda a: torch.max(a, 1))
case('sn.minWithIndices(a, 1)', [R], lambda a: torch.min(a, 1))
for name, f in {'any': torch.any, 'all': torch.all}.items():
    case(f'sn.{name}(a, 1)', [R], lambda a, f=f: f(a != 0, 1), grad=False)
case('sn.countNonzero(a, 1)', [R], lambda a: torch.count_nonzero(a, 1), grad=False)
for p in ('2', '1', 'Infinity', '-Infinity', '0', '3', '1.5', '0.5'):
    case(f'sn.norm(a, {p}, 1)', [R], lambda a, p=p: torch.linalg.vector_norm(a, float(p.replace('Infinity', 'inf')), 1))
alongs = {
    'softmax': torch.softmax, 'logSoftmax': torch.log_softmax, 'softmin': F.softmin, 'cumsum': torch.cumsum, 'cumprod': torch.cumprod,
    'logcumsumexp': torch.logcumsumexp, 'cummax': torch.cummax, 'cummin': torch.cummin,
}
for name, f in alongs.items():
    case(f'sn.{name}(a, 1)', [R], lambda a, f=f: f(a, 1))
for name in ('softmax', 'logSoftmax', 'logcumsumexp', 'cumsum'):
    case(f'sn.{name}(a, 0)', [R], lambda a, f=alongs[name]: f(a, 0))
for name in ('amax', 'amin', 'logsumexp', 'sum', 'mean'):
    case(f'sn.{name}(a)', [R], lambda a, f=folds[name]: f(a, (0, 1)))
case('sn.sort(a, 1)', [R], lambda a: torch.sort(a, dim=1, stable=True))
case('sn.sort(a, 1, { descending: true })', [R], lambda a: torch.sort(a, dim=1, stable=True, descending=True))
case('sn.topk(a, 2, 1)[0]', [R], lambda a: torch.topk(a, 2, 1)[0])
case('sn.topk(a, 2, 1, { largest: false })[0]', [R], lambda a: torch.topk(a, 2, 1, largest=False)[0])
case('sn.glu(a, 0)', [given('halves', table[:18])], lambda a: F.glu(a, 0))
case('sn.searchsorted(a, b)', [given('edges', [-INF, -1., 0., 2., INF]), X], lambda a, b: torch.searchsorted(a, b), grad=False)
case('sn.prod(a, 1)', [given('zeros', [[0., 2., 3.], [0., 0., 4.], [1., 2., 3.], [INF, 0., 1.], [NAN, 0., 1.]])], lambda a: torch.prod(a, 1))
case('sn.cumprod(a, 1)', [given('finite', [[0., 2., 3.], [0., 0., 4.], [1., 0., 3.], [2., 2., 2.]])], lambda a: torch.cumprod(a, 1))
long = [math.sin(i * 12.9898) * 30 + (80 if i % 37 == 0 else 0) - i for i in range(150)]
long[:3] = [-INF, -INF, -INF]
case('sn.logcumsumexp(a, 0)', [given('long', long)], lambda a: torch.logcumsumexp(a.double(), 0).float())
case('sn.logcumsumexp(a, 0)', [given('wide', long[:66] + [INF] + long[66:90])], lambda a: torch.logcumsumexp(a, 0))

# ---------------------------------------------------------------- norms

case('sn.layerNorm(a, 3)', [R], lambda a: F.layer_norm(a, [3]))
case('sn.rmsNorm(a, 3, undefined, { eps: 1e-5 })', [R], lambda a: a * torch.rsqrt(a.square().mean(1, keepdim=True) + 1e-5))
case('sn.normalize(a, 1)', [R], lambda a: F.normalize(a, dim=1))
case('sn.normalize(a, 1, { p: 1 })', [R], lambda a: F.normalize(a, p=1, dim=1))
P = given('planes', [[[1., 1.], [2., 2.], [0., 0.], [INF, 1.]], [[NAN, 1.], [1., 3.], [-INF, INF], [5., 5.]]])
case('sn.groupNorm(a, 2)', [P], lambda a: F.group_norm(a, 2))
case('sn.instanceNorm(a)', [P], lambda a: F.instance_norm(a))
case('sn.localResponseNorm(a, 3)', [P], lambda a: F.local_response_norm(a, 3))

# ---------------------------------------------------------------- losses

T = given('targets', [0., 1., 0.5] * len(table), [len(table), 3])
K = given('classes', [i % 3 for i in range(len(table))], dtype='i32')
NONE = "{ reduction: 'none' }"
losses = {
    'mseLoss': F.mse_loss, 'l1Loss': F.l1_loss, 'smoothL1Loss': F.smooth_l1_loss, 'huberLoss': F.huber_loss,
    'bceWithLogits': F.binary_cross_entropy_with_logits, 'klDiv': F.kl_div,
}
for name, f in losses.items():
    case(f'sn.{name}(a, b, {NONE})', [R, T], lambda a, b, f=f: f(a, b, reduction='none'))
case("sn.smoothL1Loss(a, b, { reduction: 'none', beta: 0 })", [R, T], lambda a, b: F.smooth_l1_loss(a, b, reduction='none', beta=0))
case("sn.huberLoss(a, b, { reduction: 'none', delta: 0.5 })", [R, T], lambda a, b: F.huber_loss(a, b, reduction='none', delta=0.5))
case("sn.bceWithLogits(a, b, { reduction: 'none', posWeight: 3 })", [R, T],
     lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction='none', pos_weight=torch.tensor(3.)))
case("sn.klDiv(a, b, { reduction: 'none', logTarget: true })", [R, T], lambda a, b: F.kl_div(a, b, reduction='none', log_target=True))
case(f'sn.cosineSimilarity(a, b, 1)', [R, T], lambda a, b: F.cosine_similarity(a, b, 1))
case(f'sn.cosineSimilarity(a, a, 1)', [given('vectors', [[0., 0., 0.], [1., 2., 2.], [1e-5, 0., 0.]])], lambda a: F.cosine_similarity(a, a, 1))
case(f'sn.bceLoss(a, b, {NONE})', [given('chances', [0., 1., 0.5, 1e-40, 0.9999999, 0., 1.]), given('truths', [0., 1., 0.5, 1., 0., 1., 0.])],
     lambda a, b: F.binary_cross_entropy(a, b, reduction='none'))
case(f'sn.crossEntropy(a, b, {NONE})', [R, K], lambda a, b: F.cross_entropy(a, b.long(), reduction='none'))
case(f'sn.nllLoss(a, b, {NONE})', [R, K], lambda a, b: F.nll_loss(a, b.long(), reduction='none'))
case("sn.crossEntropy(a, b, { reduction: 'none', labelSmoothing: 0.1 })", [R, K],
     lambda a, b: F.cross_entropy(a, b.long(), reduction='none', label_smoothing=0.1))
case('sn.crossEntropy(a, b, { ignoreIndex: 1 })', [given('few', [[1., 2., 3.], [4., 5., 6.]]), given('ones', [1, 1], dtype='i32')],
     lambda a, b: F.cross_entropy(a, b.long(), ignore_index=1))
S = given('scores', table[:1] + table[11:14] + [[30., -30., 0.]])
case(f'sn.crossEntropy(a, b, {NONE})', [S, given('odds', [[0., 1., 0.], [.5, .5, 0.], [0., 0., 0.], [1., 0., 0.], [0., 1., 0.]])],
     lambda a, b: F.cross_entropy(a, b, reduction='none'))
case(f'sn.hingeEmbeddingLoss(a, b, {NONE})', [X, given('signs', [1. if i % 2 else -1. for i in range(42)])],
     lambda a, b: F.hinge_embedding_loss(a, b.detach(), reduction='none'))

# ---------------------------------------------------------------- products, windows, places

case('sn.matmul(a, b)', [R, given('columns', [[1., 0.], [2., -1.], [0., 0.]])], torch.matmul)
case('sn.matmul(a, b)', [given('zero row', [[0., 1., 0.]]), given('inf column', [[INF], [1.], [NAN]])], torch.matmul)
I4 = given('image', [1., NAN, 3., -INF, 5., INF, 7., -0., 0., 1e-40, 2., 2., -3., 4., 4., -5.], [1, 1, 4, 4])
case('sn.maxPool2d(a, 2)', [I4], lambda a: F.max_pool2d(a, 2))
case('sn.maxPool2d(a, 3, { stride: 1, padding: 1 })', [I4], lambda a: F.max_pool2d(a, 3, 1, 1))
case('sn.maxPool2dWithIndices(a, 2)', [I4], lambda a: F.max_pool2d(a, 2, return_indices=True))
case('sn.avgPool2d(a, 3, { stride: 1, padding: 1 })', [I4], lambda a: F.avg_pool2d(a, 3, 1, 1))
case('sn.avgPool2d(a, 3, { stride: 1, padding: 1, countIncludePad: false })', [I4], lambda a: F.avg_pool2d(a, 3, 1, 1, count_include_pad=False))
case('sn.adaptiveAvgPool2d(a, 2)', [I4], lambda a: F.adaptive_avg_pool2d(a, 2))
case('sn.conv2d(a, b, undefined, { padding: 1 })', [I4, given('kernel', [0., 1., 0., 1., -4., 1., 0., 1., 0.], [1, 1, 3, 3])],
     lambda a, b: F.conv2d(a, b, padding=1))
N2 = given('negative', [-1., -2., -3., -INF], [1, 1, 2, 2])
case('sn.maxPool2d(a, 2, { padding: 1 })', [N2], lambda a: F.max_pool2d(a, 2, 2, 1))
L4 = given('half zero', [0., 0., 0., 0., 1., 2., 3., 4.] * 2, [1, 1, 4, 4])
case('sn.lpPool2d(a, 2, { p: 2 })', [L4], lambda a: F.lp_pool2d(a, 2, 2))
case('sn.lpPool2d(a, 2, { p: 1 })', [L4], lambda a: F.lp_pool2d(a, 1, 2))
G = given('grid', [0., 0., NAN, 0., INF, 0., -INF, -INF, 5., 5., -1., -1., 1., 1., .3, -.4], [1, 2, 4, 2])
M2 = given('small image', [1., 2., 3., 4.], [1, 1, 2, 2])
F2 = given('hot image', [INF, 2., 3., NAN], [1, 1, 2, 2])
Q = given('outside', [5., 5., -5., 0., .3, -.4, 0., 5.], [1, 2, 2, 2])
case('sn.gridSample(a, b)', [M2, G], lambda a, b: F.grid_sample(a, b, align_corners=False))
case('sn.gridSample(a, b)', [F2, Q], lambda a, b: F.grid_sample(a, b, align_corners=False))
for mode in ('border', 'reflection'):
    case(f"sn.gridSample(a, b, {{ paddingMode: '{mode}' }})", [M2, Q], lambda a, b, mode=mode: F.grid_sample(a, b, padding_mode=mode, align_corners=False))
case("sn.gridSample(a, b, { mode: 'nearest' })", [F2, Q], lambda a, b: F.grid_sample(a, b, mode='nearest', align_corners=False))
case("sn.gridSample(a, b, { mode: 'cubic' })", [M2, Q], lambda a, b: F.grid_sample(a, b, mode='bicubic', align_corners=False))
case('sn.scaledDotProductAttention(a, b, c)',
     [given('queries', [0., 1., 1e20, 0., -1e20, 1., 3., NAN], [1, 4, 2]), given('keys', [1., 0., 0., 1., -INF, 0.], [1, 3, 2]),
      given('values', [1., 2., 3., 4., 5., 6.], [1, 3, 2])],
     lambda a, b, c: torch.softmax(a @ b.transpose(-1, -2) / math.sqrt(2), -1) @ c)
W = given('picks', [0, 2, 0, 1], dtype='i32')
case('sn.indexSelect(a, 1, b)', [R, W], lambda a, b: torch.index_select(a, 1, b.long()))
case('sn.gather(a, 0, b)', [R, given('cells', [[0, 1, 2], [3, 4, 5]], dtype='i32')], lambda a, b: torch.gather(a, 0, b.long()))
case('sn.scatterAdd(a, 0, b, c)', [given('base', [0., 1., NAN]), W, given('sources', [INF, -INF, 2., NAN])],
     lambda a, b, c: torch.scatter_add(a, 0, b.long(), c))

# Folds into slots: NaN in one, equal elements in another, nothing in the last.
D = given('slots', [1., 0., 5., -INF, 7.])
V8 = given('updates', [NAN, 2., 0., 5., 5., INF, -INF, 3.])
J8 = given('into', [0, 0, 1, 2, 2, 3, 3, 1], dtype='i32')
for mode in ('amax', 'amin', 'prod', 'sum'):
    case(f"sn.scatterReduce(a, 0, b, c, '{mode}')", [D, J8, V8],
         lambda a, b, c, mode=mode: torch.scatter_reduce(a, 0, b.long(), c, mode))
C = given('channels', [[1., NAN, 3.], [1., 2., INF], [1., 4., 5.]])
case('sn.batchNorm(a, b, b, undefined, undefined, { training: true })[0]', [C, given('statistics', [0., 0., 0.])],
     lambda a, b: F.batch_norm(a, None, None, training=True))
case('sn.normalize(a, 1, { p: Infinity })', [R], lambda a: F.normalize(a, p=INF, dim=1))
case('sn.lerp(a, b, c)', [given('from', [0., INF, NAN, 1., -INF, 3e38]), given('toward', [1., -INF, 0., INF, 1., -3e38]), given('share', [0.3, 0.5, 0., 1., 0., 0.7])],
     torch.lerp)
case('sn.matmul(a, b)', [given('tall', [[INF, 0.], [0., NAN]]), given('flat', [[0., 1.], [2., 0.]])], torch.matmul)
case('sn.convTranspose2d(a, b)', [N2, given('corner', [0., 1., 2., INF], [1, 1, 2, 2])], lambda a, b: F.conv_transpose2d(a, b))
case('sn.embedding(b, a)', [R, W], lambda a, b: F.embedding(b.long(), a))
case('sn.rearrange(a, "a b -> b a").amax(0)', [R], lambda a: a.amax(1))
case('sn.tril(a)', [C], torch.tril)
case('sn.trace(a)', [C], torch.trace)
case('sn.pad(a, [[1, 0], [0, 1]], { value: Infinity })', [C], lambda a: F.pad(a, (0, 1, 1, 0), value=INF))

# ---------------------------------------------------------------- integers and casts

ends = [0, 1, -1, 5, -5, MAX, MIN, 7, 100]
others = [3, -3, 1, -1, 2, MAX, MIN]
Z1 = given('i32 left', [a for a in ends for _ in others], dtype='i32')
Z2 = given('i32 right', [b for _ in ends for b in others], dtype='i32')
for name, f in {'add': torch.add, 'sub': torch.sub, 'mul': torch.mul, 'maximum': torch.maximum, 'minimum': torch.minimum,
                'bitwiseAnd': torch.bitwise_and, 'bitwiseOr': torch.bitwise_or, 'bitwiseXor': torch.bitwise_xor}.items():
    case(f'sn.{name}(a, b)', [Z1, Z2], f, grad=False)
safe = [(a, b) for a in ends for b in others if (a, b) != (MIN, -1)]
Z3 = given('i32 dividends', [a for a, _ in safe], dtype='i32')
Z4 = given('i32 divisors', [b for _, b in safe], dtype='i32')
for name, f in {'floorDivide': torch.floor_divide, 'remainder': torch.remainder, 'fmod': torch.fmod, 'div': torch.div,
                'eq': torch.eq, 'lt': torch.lt, 'ge': torch.ge}.items():
    case(f'sn.{name}(a, b)', [Z3, Z4], f, grad=False)
case("sn.div(a, b, { rounding: 'trunc' })", [Z3, Z4], lambda a, b: torch.div(a, b, rounding_mode='trunc'), grad=False)
Z5 = given('i32 ends', ends, dtype='i32')
for call, f in {'sn.abs(a)': torch.abs, 'sn.neg(a)': torch.neg, 'sn.sign(a)': torch.sign, 'sn.pow(a, 3)': lambda a: torch.pow(a, 3),
                'sn.bitwiseNot(a)': torch.bitwise_not, 'sn.sum(a)': lambda a: torch.sum(a, dtype=torch.int32),
                'sn.cumsum(a, 0)': lambda a: torch.cumsum(a, 0, dtype=torch.int32), 'sn.mul(a, 0.5)': lambda a: a * 0.5,
                'sn.cumprod(a, 0)': lambda a: torch.cumprod(a, 0, dtype=torch.int32), 'sn.amax(a)': torch.amax, 'sn.argmin(a)': torch.argmin,
                'sn.sqrt(a)': torch.sqrt, 'sn.floor(a)': lambda a: a, 'sn.clamp(a, -3, 6)': lambda a: torch.clamp(a, -3, 6),
                'sn.sort(a, 0)[0]': lambda a: torch.sort(a)[0]}.items():
    case(call, [Z5], f, grad=False)
case('sn.pow(a, b)', [given('bases', [0, 1, -1, 2, -2, 3, -3, 2, MIN, -1], dtype='i32'), given('exponents', [0, -1, -3, -1, 31, 20, 21, 31, 2, MAX], dtype='i32')],
     torch.pow, grad=False)
case('sn.bitwiseLeftShift(a, b)', [given('shifted', [1, 1, -1, 5, 1, MIN], dtype='i32'), given('counts', [0, 31, 4, 30, 1, 1], dtype='i32')],
     torch.bitwise_left_shift, grad=False)
case('sn.bitwiseRightShift(a, b)', [given('moved', [1, -1, -8, MAX, MIN], dtype='i32'), given('steps', [0, 31, 1, 30, 31], dtype='i32')],
     torch.bitwise_right_shift, grad=False)
MIX = given('beyond 2^24', [16777217, MAX, 5, 16777216, MIN, -16777217], dtype='i32')
FLT = given('near them', [16777216., 2147483648., 5.5, 16777216., -2147483648., -16777216.])
for name in ('eq', 'ne', 'lt', 'le', 'add', 'sub', 'mul', 'maximum'):
    case(f'sn.{name}(a, b)', [MIX, FLT], getattr(torch, name), grad=False)
case('sn.eq(a, 16777216.5)', [MIX], lambda a: a == 16777216.5, grad=False)
case('sn.lt(a, b)', [MIX, given('scalar', 16777216.)], lambda a, b: a < b, grad=False)
for dtype, values in {'u8': [0, 5, 200, 255], 'i8': [0, 127, -128, -1], 'i16': [0, 32767, -32768, 5]}.items():
    V = given(f'{dtype} left', values, dtype=dtype)
    U = given(f'{dtype} right', [1, 10, 3, 2], dtype=dtype)
    for name in ('add', 'sub', 'mul', 'floorDivide', 'remainder'):
        case(f'sn.{name}(a, b)', [V, U], getattr(torch, 'floor_divide' if name == 'floorDivide' else name), grad=False)
    case('sn.neg(a)', [V], torch.neg, grad=False)
    case('sn.abs(a)', [V], torch.abs, grad=False)
reals = [0., -0., 1.9, -1.9, 0.5, 1e-40, 100., -100., 127., 128., 255., 65504., 65519., 65520., 1e-8, 6e-8, 2049., 2051., 16777217., 2147483520.]
ranges = {'i32': (-2**31, 2**31), 'u8': (0, 256), 'i8': (-128, 128), 'i16': (-2**15, 2**15), 'bool': (-INF, INF), 'f16': (-INF, INF), 'bf16': (-INF, INF)}
for dtype, (low, high) in ranges.items():
    V = given(f'to {dtype}', [v for v in reals if low <= v < high])
    back = ".cast('f32')" if dtype in ('f16', 'bf16') else ''
    case(f"sn.cast(a, '{dtype}'){back}", [V], lambda a, dtype=dtype: a.to(DTYPES[dtype]).float() if dtype in ('f16', 'bf16') else a.to(DTYPES[dtype]), grad=False)
case("sn.cast(a, 'f16').cast('f32')", [given('specials', [NAN, INF, -INF, -0., 1e6, -1e6])], lambda a: a.half().float(), grad=False)
case("sn.cast(a, 'bool')", ['specials'], lambda a: a.bool(), grad=False)

# ---------------------------------------------------------------- 16-bit floats

for dtype, most in {'f16': 65504., 'bf16': 3.3895313892515355e38}.items():
    H = given(f'{dtype} rows', [[most, most, 0.], [most, -most, 1.], [1., 1., 1.], [INF, NAN, -INF], [INF, 1., 0.], [-0., 0., 0.], [2., 5., 5.], [300., -300., 12.]], dtype=dtype)
    for call, f in {'sn.mul(a, 2)': lambda a: a * 2, 'sn.square(a)': lambda a: a * a, 'sn.exp(a)': torch.exp, 'sn.log(a)': torch.log, 'sn.softmax(a, 1)': lambda a: torch.softmax(a, 1),
                    'sn.logsumexp(a, 1)': lambda a: torch.logsumexp(a, 1), 'sn.amax(a, 1)': lambda a: torch.amax(a, 1), 'sn.sigmoid(a)': torch.sigmoid,
                    'sn.relu6(a)': F.relu6, 'sn.reciprocal(a)': torch.reciprocal, 'sn.cumsum(a, 1)': lambda a: torch.cumsum(a, 1), 'sn.gelu(a)': F.gelu,
                    'sn.erfc(a)': torch.erfc}.items():
        case(call, [H], f)
    if dtype == 'f16':
        for call, f in {'sn.mean(a, 1)': lambda a: torch.mean(a, 1), 'sn.std(a, 1)': lambda a: torch.std(a, 1), 'sn.norm(a, 2, 1)': lambda a: torch.linalg.vector_norm(a, 2, 1),
                        'sn.sum(a, 1)': lambda a: torch.sum(a, 1), 'sn.layerNorm(a, 3)': lambda a: F.layer_norm(a, [3])}.items():
            case(call, [H], f)

# ---------------------------------------------------------------- nothing, and rank 0

E = given('none', [], [0])
E2 = given('three of none', [], [3, 0])
E3 = given('none of three', [], [0, 3])
for call, names, f in [
    ('sn.sum(a)', [E], torch.sum), ('sn.mean(a)', [E], torch.mean), ('sn.prod(a)', [E], torch.prod), ('sn.sum(a, 1)', [E2], lambda a: torch.sum(a, 1)),
    ('sn.mean(a, 1)', [E2], lambda a: torch.mean(a, 1)), ('sn.amax(a, 0)', [E2], lambda a: torch.amax(a, 0)), ('sn.logsumexp(a, 1)', [E2], lambda a: torch.logsumexp(a, 1)),
    ('sn.softmax(a, 1)', [E2], lambda a: torch.softmax(a, 1)), ('sn.softmax(a, 0)', [E2], lambda a: torch.softmax(a, 0)), ('sn.argmax(a, 0)', [E2], lambda a: torch.argmax(a, 0)),
    ('sn.matmul(a, b)', [E2, E3], torch.matmul), ('sn.matmul(b, a)', [E2, E3], lambda a, b: torch.matmul(b, a)), ('sn.cumsum(a, 1)', [E2], lambda a: torch.cumsum(a, 1)),
    ('sn.cumprod(a, 1)', [E2], lambda a: torch.cumprod(a, 1)), ('sn.logcumsumexp(a, 1)', [E2], lambda a: torch.logcumsumexp(a, 1)), ('sn.sort(a, 1)[0]', [E2], lambda a: torch.sort(a, 1)[0]),
    ('sn.std(a, 1)', [E2], lambda a: torch.std(a, 1)), ('sn.varMean(a)[0]', [E], torch.var), ('sn.layerNorm(a, [3])', [E3], lambda a: F.layer_norm(a, [3])),
    ('sn.mseLoss(a, a)', [E], lambda a: F.mse_loss(a, a)), ('sn.norm(a)', [E], lambda a: torch.linalg.vector_norm(a)), ('sn.all(a)', [E], lambda a: torch.all(a != 0)),
    ('sn.any(a)', [E], lambda a: torch.any(a != 0)), ('sn.topk(a, 0, 1)[0]', [E2], lambda a: torch.topk(a, 0, 1)[0]), ('sn.prod(a, 1)', [E2], lambda a: torch.prod(a, 1)),
    ("sn.einsum('ab,bc->ac', a, b)", [E2, E3], lambda a, b: torch.einsum('ab,bc->ac', a, b)), ('sn.cosineSimilarity(a, a, 1)', [E2], lambda a: F.cosine_similarity(a, a, 1)),
    ('sn.conv2d(a, b)', [given('no images', [], [0, 1, 4, 4]), given('point', [1.], [1, 1, 1, 1])], lambda a, b: F.conv2d(a, b)),
    ('sn.crossEntropy(a, b)', [E3, given('no classes', [], [0], 'i32')], lambda a, b: F.cross_entropy(a, b.long())),
    ('sn.relu6(a)', [E], F.relu6), ('sn.indexSelect(a, 0, b)', [R, 'no classes'], lambda a, b: torch.index_select(a, 0, b.long())),
    ('sn.std(a, 1)', [given('singles', [[1.], [2.]])], lambda a: torch.std(a, 1)), ('sn.varMean(a, 1)[0]', ['singles'], lambda a: torch.var(a, 1)),
    ('sn.sum(a)', [given('one', 3.)], torch.sum), ('sn.softmax(a, 0)', ['one'], lambda a: torch.softmax(a, 0)), ('sn.cumsum(a, 0)', ['one'], lambda a: torch.cumsum(a, 0)),
    ('sn.sort(a, 0)', ['one'], lambda a: torch.sort(a, 0)), ('sn.argmax(a)', ['one'], torch.argmax), ('sn.std(a)', ['one'], torch.std), ('sn.logcumsumexp(a, 0)', ['one'], lambda a: torch.logcumsumexp(a, 0)),
]:
    case(call, names, f)

target = pathlib.Path(__file__).resolve().parent.parent / 'test' / 'fixtures' / 'torch-edges.json'
lines = ',\n'.join(f'{json.dumps(name)}:{text(tensor)}' for name, tensor in sets.items())
target.write_text('{"sets":{\n' + lines + '\n},"cases":[\n' + ',\n'.join(cases) + '\n]}\n')
print(f'{len(cases)} cases, {target.stat().st_size} bytes')
