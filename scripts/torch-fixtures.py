#!/usr/bin/env python3
"""Writes test/fixtures/torch/*.json: what PyTorch computes, forward and backward, for the operations Sinter shares with it.

Run with any Python that has torch and numpy (Debian: apt install python3-torch), from anywhere:

    python3 scripts/torch-fixtures.py            # every family
    python3 scripts/torch-fixtures.py conv norm  # some

The figures are committed, so tests need no Python. test/support/torch/figures.ts reads them and documents the layout. Each case
draws from a generator seeded by its family, op and number, so adding a case leaves the others as they were.

Conventions: ops and options carry Sinter's names (`axis`, `keepDims`, camelCase); index inputs are i32; index outputs are
i64, as torch gives them; integer sums and products keep their input's width (torch's would widen to i64), bool sums are i32;
f32 results are torch's f64 results rounded once (its own f32 kernels err by some ulps, and SLEEF at the ends of the range),
16-bit ones its f32 results rounded once. Gradients are those of sum(outputs[0] * upstream).
"""

import itertools
import json
import math
import pathlib
import sys
import zlib

import numpy as np
import torch
import torch.nn.functional as F

DTYPES = {
    'bool': torch.bool, 'i8': torch.int8, 'u8': torch.uint8, 'i16': torch.int16, 'i32': torch.int32,
    'i64': torch.int64, 'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32, 'f64': torch.float64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = ('f16', 'bf16', 'f32', 'f64')
NAN, INF = math.nan, math.inf

families = {}


def family(make):
    families[make.__name__.rstrip('_')] = make
    return make


# ---------------------------------------------------------------- text

def number(value, dtype):
    """The shortest decimal that reads back as `value`, checked; special values and wide integers are strings."""
    if dtype == 'bool':
        return '1' if value else '0'
    if dtype not in FLOATS:
        return str(value) if abs(value) < 2**53 else f'"{value}"'
    if math.isnan(value):
        return '"nan"'
    if math.isinf(value):
        return '"inf"' if value > 0 else '"-inf"'
    # Narrow floats are told apart by an f32's digits; the reader rounds to f32.
    kind = np.float64 if dtype == 'f64' else np.float32
    text = repr(float(value)) if dtype == 'f64' else str(kind(value))
    assert kind(float(text)) == value, (text, value)
    text = text[:-2] if text.endswith('.0') and text != '-0.0' else text
    return text.replace('e+', 'e')


def tensor_text(tensor):
    if tensor is None:
        return 'null'
    tensor = tensor.detach()
    dtype = NAMES[tensor.dtype]
    data = ','.join(number(value, dtype) for value in tensor.reshape(-1).tolist())
    shape = ','.join(map(str, tensor.shape))
    return f'{{"dtype":"{dtype}","shape":[{shape}],"data":[{data}]}}'


def list_text(tensors):
    return '[' + ','.join(map(tensor_text, tensors)) + ']'


def plain(value):
    """Option values as JSON: infinities as strings, tuples as lists."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


class Out:
    """Collects the cases of one family as lines of JSON."""

    def __init__(self, name):
        self.name, self.lines, self.counts = name, [], {}

    def rng(self, op):
        """A generator of this case's own."""
        count = self.counts[op] = self.counts.get(op, 0) + 1
        return torch.Generator().manual_seed(zlib.crc32(f'{self.name}/{op}/{count}'.encode()))

    def case(self, op, fn, inputs, grad=True, **args):
        """Runs `fn(*inputs)` and records it, with gradients of the float inputs when `grad` and the output is a float.

        Inputs are tensors, or recipes: a shape (f32 uniform in [-2, 2]) or a function of the generator.
        """
        rng = self.rng(op)
        tensors = [make(rng) if callable(make) else uniform(make)(rng) if isinstance(make, (list, tuple)) else make
                   for make in inputs]
        wide = op not in NATIVE and any(t.dtype == torch.float32 for t in tensors)
        leaves = [(t.double() if wide and t.dtype == torch.float32 else t.clone())
                  .requires_grad_(grad and t.is_floating_point()) for t in tensors]
        # Indices are i32 in the fixture and i64 for torch.
        results = fn(*(t.long() if t.dtype == torch.int32 and op in INDEXED else t for t in leaves))
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        outputs = [t.float() if wide and t.dtype == torch.float64 else t for t in results]
        fields = {'op': json.dumps(op), 'args': json.dumps({k: plain(v) for k, v in args.items()}),
                  'inputs': list_text(tensors), 'outputs': list_text(outputs)}
        if grad and outputs[0].requires_grad:
            upstream = torch.rand(outputs[0].shape, generator=rng, dtype=torch.float64).mul(2).sub(1)
            upstream = upstream.to(torch.float32).to(outputs[0].dtype)
            wanted = [t for t in leaves if t.requires_grad]
            found = iter(torch.autograd.grad(results[0], wanted, upstream.to(results[0].dtype), allow_unused=True))
            grads = [next(found) if leaf.requires_grad else None for leaf in leaves]
            grads = [None if not leaf.requires_grad else torch.zeros_like(t) if g is None or g._is_zerotensor() else g.to(t.dtype)
                     for g, leaf, t in zip(grads, leaves, tensors)]
            fields |= {'upstream': tensor_text(upstream), 'grads': list_text(grads)}
        self.lines.append('{' + ','.join(f'"{key}":{text}' for key, text in fields.items()) + '}')

    def both(self, op, fn, inputs, **args):
        """The case in f32, and in f64 with inputs of its own."""
        self.case(op, fn, inputs, **args)
        self.case(op, fn, [widen(make) for make in inputs], **args)

    def fact(self, **fields):
        """A line of another layout."""
        self.lines.append(json.dumps(fields, separators=(',', ':')))


INDEXED = {'gather', 'scatter', 'scatterAdd', 'scatterReduce', 'indexSelect', 'embedding', 'crossEntropy', 'nllLoss',
           'oneHot', 'indexAdd'}
# Ops whose result turns on the exact input type.
NATIVE = {'cast', 'floorDivide'}


# ---------------------------------------------------------------- inputs

def uniform(shape, low=-2.0, high=2.0, dtype=torch.float32):
    # Drawn as f32 even for f64: the inputs' text stays short and f64 results stay comparable.
    return lambda rng: (torch.rand(tuple(shape), generator=rng) * (high - low) + low).to(dtype)


def widen(make):
    if isinstance(make, (list, tuple)):
        return uniform(make, dtype=torch.float64)
    if callable(make):
        return lambda rng: (lambda t: t.double() if t.is_floating_point() else t)(make(rng))
    return make.double() if make.is_floating_point() else make


def ints(shape, low, high, dtype=torch.int32):
    return lambda rng: torch.randint(low, high, tuple(shape), generator=rng).to(dtype)


def distinct(shape, dtype=torch.float32):
    """No two elements equal, so an extremum has one place and its gradient one answer."""
    return lambda rng: (torch.randperm(math.prod(shape), generator=rng).to(dtype) * 0.37 - 3).reshape(tuple(shape))


def bools(shape):
    return lambda rng: torch.rand(tuple(shape), generator=rng) < 0.5


def vec(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 1e-3, -1e-7, 1e-30, 20.0, -20.0,
           88.0, 89.0, -89.0, -104.0, 720.0, -745.0, 12345.678, -1e10, 16777217.0, 3e38, -3e38]
PAIRS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 5.5, -1e-3, 1e20]


# ---------------------------------------------------------------- elementwise

def domain(low, high):
    return lambda shape: uniform(shape, low, high)


UNARY = {
    # name: (function, smooth domain for gradients)
    'abs': (torch.abs, (-2, 2)), 'neg': (torch.neg, (-2, 2)), 'sign': (torch.sign, (-2, 2)),
    'floor': (torch.floor, (-3, 3)), 'ceil': (torch.ceil, (-3, 3)), 'round': (torch.round, (-3, 3)),
    'trunc': (torch.trunc, (-3, 3)), 'square': (torch.square, (-2, 2)), 'reciprocal': (torch.reciprocal, (0.2, 3)),
    'exp': (torch.exp, (-5, 5)), 'exp2': (torch.exp2, (-5, 5)), 'expm1': (torch.expm1, (-1, 1)),
    'log': (torch.log, (0.01, 9)), 'log2': (torch.log2, (0.01, 9)), 'log10': (torch.log10, (0.01, 9)),
    'log1p': (torch.log1p, (-0.9, 3)), 'sqrt': (torch.sqrt, (0.01, 9)), 'rsqrt': (torch.rsqrt, (0.1, 9)),
    'sin': (torch.sin, (-7, 7)), 'cos': (torch.cos, (-7, 7)), 'tan': (torch.tan, (-1.4, 1.4)),
    'asin': (torch.asin, (-0.95, 0.95)), 'acos': (torch.acos, (-0.95, 0.95)), 'atan': (torch.atan, (-4, 4)),
    'sinh': (torch.sinh, (-3, 3)), 'cosh': (torch.cosh, (-3, 3)), 'tanh': (torch.tanh, (-3, 3)),
    'asinh': (torch.asinh, (-3, 3)), 'acosh': (torch.acosh, (1.1, 5)), 'atanh': (torch.atanh, (-0.9, 0.9)),
    'erf': (torch.erf, (-3, 3)), 'sigmoid': (torch.sigmoid, (-6, 6)), 'relu': (torch.relu, (-2, 2)),
    'silu': (F.silu, (-6, 6)), 'mish': (F.mish, (-6, 6)), 'softplus': (F.softplus, (-6, 6)),
    'logSigmoid': (F.logsigmoid, (-6, 6)), 'softsign': (F.softsign, (-3, 3)), 'selu': (F.selu, (-3, 3)),
    'relu6': (F.relu6, (-8, 8)), 'hardsigmoid': (F.hardsigmoid, (-5, 5)), 'hardswish': (F.hardswish, (-5, 5)),
}
TESTS = {'isNan': torch.isnan, 'isFinite': torch.isfinite, 'isInf': torch.isinf, 'logicalNot': torch.logical_not}


@family
def unary(out):
    for op, (fn, (low, high)) in UNARY.items():
        out.both(op, fn, [uniform([2, 7], low, high)])
        out.case(op, fn, [uniform([], low, high)])
    for op, fn in TESTS.items():
        out.case(op, fn, [vec(*SPECIAL)])
        out.case(op, fn, [vec(*SPECIAL, dtype=torch.float64)])


@family
def special(out):
    """Special values through every unary and binary float op; no gradients."""
    for dtype in (torch.float32, torch.float64):
        for op, (fn, _) in UNARY.items():
            if op != 'selu':
                out.case(op, fn, [vec(*SPECIAL, dtype=dtype)], grad=False)
        out.case('gelu', F.gelu, [vec(*SPECIAL, dtype=dtype)], grad=False, approximate='none')
        out.case('gelu', lambda x: F.gelu(x, approximate='tanh'), [vec(*SPECIAL, dtype=dtype)], grad=False,
                 approximate='tanh')
        # torch's elu subtracts 1 from exp: near 0 it is not good enough to compare with.
        out.case('elu', lambda x: torch.where(x > 0, x, torch.expm1(x)), [vec(*SPECIAL, dtype=dtype)], grad=False, alpha=1.0)
        out.case('clamp', lambda x: x.clamp(-1, 2), [vec(*SPECIAL, dtype=dtype)], grad=False, min=-1, max=2)
        a, b = zip(*itertools.product(PAIRS, PAIRS))
        for op, fn in {**BINARY, **COMPARE}.items():
            out.case(op, fn, [vec(*a, dtype=dtype), vec(*b, dtype=dtype)], grad=False)


@family
def activation(out):
    x = [3, 5]
    for approximate in ('none', 'tanh'):
        out.both('gelu', lambda t: F.gelu(t, approximate=approximate), [uniform(x, -4, 4)], approximate=approximate)
    for alpha in (1.0, 0.3):
        out.both('elu', lambda t: F.elu(t, alpha), [uniform(x, -3, 3)], alpha=alpha)
    out.both('celu', lambda t: F.celu(t, 0.7), [uniform(x, -3, 3)], alpha=0.7)
    out.case('elu', F.elu, [vec(-1e-6, -1e-4, 1e-6, -0.0, 0.0)], alpha=1.0)
    for slope in (0.01, 0.2):
        out.both('leakyRelu', lambda t: F.leaky_relu(t, slope), [x], negativeSlope=slope)
    out.both('hardtanh', lambda t: F.hardtanh(t, -0.5, 1.0), [x], min=-0.5, max=1.0)
    for beta in (1.0, 2.5):
        out.both('softplus', lambda t: F.softplus(t, beta), [uniform(x, -30, 30)], beta=beta)
    for low, high in ((-1, 1), (-0.5, None), (None, 0.5), (1, -1)):
        out.both('clamp', lambda t: t.clamp(low, high), [x], **{k: v for k, v in (('min', low), ('max', high))
                                                                if v is not None})
    # The gradient flows at both ends and nowhere past them.
    out.case('clamp', lambda t: t.clamp(-1, 1), [vec(-2.0, -1.0, -0.5, 0.0, 1.0, 1.5, NAN)], min=-1, max=1)
    out.case('relu', torch.relu, [vec(-1.0, -0.0, 0.0, 1.0)])
    out.case('abs', torch.abs, [vec(-1.0, -0.0, 0.0, 1.0)])
    for axis in (0, 1):
        out.both('glu', lambda t: F.glu(t, axis), [[4, 6]], axis=axis)


BINARY = {
    'add': torch.add, 'sub': torch.sub, 'mul': torch.mul, 'div': torch.div, 'pow': torch.pow, 'atan2': torch.atan2,
    'remainder': torch.remainder, 'fmod': torch.fmod, 'floorDivide': torch.floor_divide, 'maximum': torch.maximum,
    'minimum': torch.minimum,
}
COMPARE = {'eq': torch.eq, 'ne': torch.ne, 'lt': torch.lt, 'le': torch.le, 'gt': torch.gt, 'ge': torch.ge}
SHAPES = (([2, 3], [2, 3]), ([2, 3], [3]), ([2, 1, 3], [4, 1]), ([], [3]), ([1], []), ([2, 0, 3], [1, 3]))


@family
def binary(out):
    for op, fn in BINARY.items():
        grad = op not in ('remainder', 'fmod', 'floorDivide')
        low = 0.3 if op == 'pow' else -2.0
        for index, (a, b) in enumerate(SHAPES):
            record = out.both if index == 0 else out.case
            record(op, fn, [uniform(a, low), uniform(b, 0.3 if op in ('div', 'pow', 'floorDivide') else -2.0)], grad=grad)
    for op, fn in COMPARE.items():
        out.case(op, fn, [ints([3, 4], -2, 3), ints([4], -2, 3)])
        out.case(op, fn, [lambda rng: ints([3, 4], -2, 3)(rng).float(), vec(-1.0, 0.0, 1.0, 2.0)])
    # Ties share the gradient evenly.
    out.case('maximum', torch.maximum, [vec(1.0, 2.0, 3.0), vec(1.0, 3.0, 2.0)])
    out.case('minimum', torch.minimum, [vec(1.0, 2.0, 3.0), vec(1.0, 3.0, 2.0)])
    for exponent in (0, 1, 2, 3, -1, 0.5, -0.5, 2.5):
        out.case('pow', lambda x: x.pow(exponent), [uniform([6], 0.2, 2)], exponent=exponent)
    for exponent in (2, 3, -1, -2):
        out.case('pow', lambda x: x.pow(exponent), [uniform([6], -2, -0.2)], exponent=exponent)
    out.case('pow', torch.pow, [vec(0.0, 0.0, 2.0, 0.0), vec(0.0, 2.0, 0.0, 1.0)])
    out.both('add', lambda a, b: torch.add(a, b, alpha=-0.5), [[2, 3], [3]], alpha=-0.5)
    out.both('lerp', torch.lerp, [[2, 3], [2, 3], uniform([2, 3], 0, 1)])
    cond = torch.tensor([[True, False, True], [False, False, True]])
    out.both('where', torch.where, [cond, [2, 3], [3]])
    out.case('where', lambda c, x, y: torch.where(c, x, y), [cond, [2, 3], []])
    # What is not chosen must not leak, in value or gradient.
    out.case('where', torch.where, [vec(1, 0, 1, 0, dtype=torch.bool), vec(1.0, NAN, 2.0, INF), vec(NAN, 3.0, INF, 4.0)])
    out.case('maskedFill', lambda x, m: x.masked_fill(m, -INF), [[2, 3], cond], value=-INF)
    for op in ('logicalAnd', 'logicalOr', 'logicalXor'):
        fn = getattr(torch, op.replace('logical', 'logical_').lower())
        out.case(op, fn, [vec(0, 0, 1, 1, dtype=torch.bool), vec(0, 1, 0, 1, dtype=torch.bool)])
        out.case(op, fn, [vec(0.0, -0.0, NAN, 2.0), vec(1.0, 0.0, 0.0, -1.0)])


@family
def integer(out):
    edges = {torch.int32: [-2**31, -2**31 + 1, -8, -7, -1, 0, 1, 7, 8, 65537, 2**31 - 1],
             torch.int64: [-2**63, -2**40 - 3, -7, -1, 0, 1, 7, 2**33 + 5, 2**63 - 1],
             torch.uint8: [0, 1, 2, 7, 100, 127, 128, 200, 255],
             torch.int8: [-128, -127, -7, -1, 0, 1, 7, 100, 127],
             torch.int16: [-32768, -300, -7, -1, 0, 1, 7, 300, 32767]}
    wrapping = {op: BINARY[op] for op in ('add', 'sub', 'mul', 'maximum', 'minimum')}
    bitwise = {'bitwiseAnd': torch.bitwise_and, 'bitwiseOr': torch.bitwise_or, 'bitwiseXor': torch.bitwise_xor}
    for dtype, values in edges.items():
        a, b = (vec(*column, dtype=dtype) for column in zip(*itertools.product(values, values)))
        for op, fn in {**wrapping, **bitwise, **COMPARE}.items():
            out.case(op, fn, [a, b])
        low = torch.iinfo(dtype).min
        # No zero divisors, and not the overflowing low / -1, which traps on some machines.
        a, b = zip(*((x, y) for x, y in itertools.product(values, values) if y != 0 and not (x == low and y == -1)))
        # Python's integers give the answer: torch before 2.0 divides i64 through doubles in places.
        for op, fn in (('floorDivide', lambda x, y: x // y), ('remainder', lambda x, y: x % y),
                       ('fmod', lambda x, y: int(math.copysign(1, x)) * (abs(x) % abs(y)))):
            result = vec(*map(fn, a, b), dtype=dtype)
            torch_fn = BINARY[op](vec(*a, dtype=dtype), vec(*b, dtype=dtype))
            assert torch.equal(result, torch_fn), (op, dtype)
            out.case(op, lambda *_: result, [vec(*a, dtype=dtype), vec(*b, dtype=dtype)])
        out.case('div', torch.div, [vec(*values[1:], dtype=dtype), vec(*([3] * (len(values) - 1)), dtype=dtype)])
        for op, fn in (('neg', torch.neg), ('abs', torch.abs), ('sign', torch.sign), ('bitwiseNot', torch.bitwise_not)):
            if not (op in ('neg', 'abs') and dtype == torch.uint8):
                out.case(op, fn, [vec(*values, dtype=dtype)])
        bits = torch.iinfo(dtype).bits
        a, b = zip(*itertools.product(values, (0, 1, 3, bits // 2, bits - 1)))
        out.case('bitwiseLeftShift', torch.bitwise_left_shift, [vec(*a, dtype=dtype), vec(*b, dtype=dtype)])
        out.case('bitwiseRightShift', torch.bitwise_right_shift, [vec(*a, dtype=dtype), vec(*b, dtype=dtype)])
        for op in ('sum', 'prod'):
            out.case(op, lambda x: getattr(x, op)(dtype=dtype), [ints([3, 4], 0, 100, dtype)])
            out.case(op, lambda x: getattr(x, op)(1, dtype=dtype), [ints([3, 4], 0, 100, dtype)], axis=1)
        for op in ('amax', 'amin'):
            out.case(op, lambda x: getattr(x, op)(0), [ints([3, 4], 0, 100, dtype)], axis=0)
        out.case('cumsum', lambda x: x.cumsum(0, dtype=dtype), [ints([9], 0, 100, dtype)], axis=0)
    flags = [vec(0, 0, 1, 1, dtype=torch.bool), vec(0, 1, 0, 1, dtype=torch.bool)]
    for op, fn in {**bitwise, **COMPARE}.items():
        out.case(op, fn, flags)
    out.case('bitwiseNot', torch.bitwise_not, flags[:1])
    out.case('sum', lambda x: x.sum(0, dtype=torch.int32), [bools([5, 3])], axis=0)


@family
def cast(out):
    values = [0, 1, -1, 2, 100, -100, 127, -128, 3, 0.5, -0.5, 2.5, -2.75, 99.99]
    wide = [255, 256, 300, -300, 65535, 2**31 - 1, -2**31, 2**24 + 1, 2**53 + 1, -2**63]
    tiny = [1e-3, 65504.0, 65520.0, 1e-5, 6e-8, 1e6, 3.3895e38, 1.00390625, 1.01171875, NAN, INF, -INF, -0.0]
    for source, target in itertools.product(DTYPES, DTYPES):
        if source == target:
            continue
        src = DTYPES[source]
        if source in FLOATS:
            x = values + (tiny + wide if target in FLOATS else [])
            x = [v for v in x if target in FLOATS or target != 'u8' or v > -1]
            x = x if target != 'bool' else x + [NAN, INF, -0.0, 1e-6]
        elif source == 'bool':
            x = [0, 1]
        else:
            low, high = torch.iinfo(src).min, torch.iinfo(src).max
            x = [v for v in values + wide if v == int(v) and low <= v <= high]
        out.case('cast', lambda t: t.to(DTYPES[target]), [vec(*x, dtype=src)], grad=False, dtype=target)
    out.case('cast', lambda t: t.double(), [[2, 3]], dtype='f64')
    out.case('cast', lambda t: t.float(), [uniform([2, 3], dtype=torch.float64)], dtype='f32')


@family
def promote(out):
    """Facts, not cases: promote_types of every pair, and result dtypes of operations with tensors and bare numbers."""
    for a, b in itertools.product(DTYPES, DTYPES):
        out.fact(kind='types', a=a, b=b, result=NAMES[torch.promote_types(DTYPES[a], DTYPES[b])])
        x, y = (torch.ones(2, dtype=DTYPES[name]) for name in (a, b))
        for op in ('add', 'mul', 'div', 'lt', 'pow', 'maximum'):
            if op == 'pow' and a == b == 'bool':
                continue
            result = {**BINARY, **COMPARE}[op](x, y).dtype
            out.fact(kind='binary', op=op, a=a, b=b, result=NAMES[result])
    for name, dtype in DTYPES.items():
        x = torch.ones(2, dtype=dtype)
        for value in (2, 2.5, True):
            for op, fn in (('add', torch.add), ('mul', torch.mul), ('div', torch.div), ('lt', torch.lt)):
                out.fact(kind='number', op=op, a=name, value=value, result=NAMES[fn(x, value).dtype])
        for op, fn in (('sum', torch.sum), ('prod', torch.prod), ('argmax', torch.argmax), ('all', torch.all),
                       ('cumsum', lambda t: t.cumsum(0))):
            if not (name in ('bool', 'f16', 'bf16') and op in ('argmax', 'prod', 'cumsum')):
                out.fact(kind='reduce', op=op, a=name, result=NAMES[fn(x).dtype])
        if name != 'bool' and name != 'f16':
            for op in ('exp', 'sqrt', 'sin', 'sigmoid', 'tanh', 'erf', 'log1p', 'reciprocal'):
                out.fact(kind='unary', op=op, a=name, result=NAMES[UNARY[op][0](x).dtype])


@family
def more(out):
    """Elementwise operations, products, differences and joins that are formulas of others."""
    pairs = [vec(*column) for column in zip(*itertools.product([v for v in PAIRS if v != 1e20], repeat=2))]
    for op, fn in (('fmax', torch.fmax), ('fmin', torch.fmin), ('copysign', torch.copysign), ('heaviside', torch.heaviside)):
        out.case(op, fn, pairs, grad=False)
        if op != 'heaviside':
            out.both(op, fn, [uniform([3, 4]), uniform([4])])
    for op, fn, low in (('hypot', torch.hypot, -2), ('logaddexp', torch.logaddexp, -30), ('logaddexp2', torch.logaddexp2, -30),
                        ('xlogy', torch.xlogy, 0.2)):
        out.both(op, fn, [uniform([3, 4], low, 3), uniform([3, 1], low, 3)])
        out.case(op, fn, pairs, grad=False)
    out.case('nextafter', torch.nextafter, [vec(1.0, 0.0, -0.0, -1.5, INF, 1e-45, 3.0, NAN), vec(2.0, -1.0, 1.0, 0.0, 0.0, -1.0, 3.0, 1.0)],
             grad=False)
    out.case('nextafter', torch.nextafter, [vec(1.0, 0.0, -1.5, INF, dtype=torch.float64), vec(0.0, -1.0, -2.0, 0.0, dtype=torch.float64)],
             grad=False)
    out.both('ldexp', torch.ldexp, [[3, 4], uniform([4], -3, 3)])
    out.case('ldexp', torch.ldexp, [vec(1.0, -0.75, 3.0), vec(3, -2, 20, dtype=torch.int32)], grad=False)
    out.case('frexp', torch.frexp, [vec(0.0, 1.0, -6.5, 1e-37, 3e38, INF, NAN, 0.1)], grad=False)
    out.case('frexp', torch.frexp, [vec(0.0, -6.5, 1e-310, 1e300, dtype=torch.float64)], grad=False)
    special = vec(*SPECIAL)
    for op, fn in (('signbit', torch.signbit), ('isneginf', torch.isneginf), ('isposinf', torch.isposinf)):
        out.case(op, fn, [special])
    for op, fn in (('frac', torch.frac), ('deg2rad', torch.deg2rad), ('rad2deg', torch.rad2deg), ('sinc', torch.sinc),
                   ('positive', torch.positive), ('sgn', torch.sgn)):
        out.both(op, fn, [[3, 4]])
    out.case('sinc', torch.sinc, [vec(0.0, 0.05, -0.2, 1.0, 2.5)])
    out.both('logit', lambda x: torch.logit(x), [uniform([3, 4], 0.05, 0.95)])
    out.both('logit', lambda x: torch.logit(x, 0.1), [uniform([3, 4], 0.01, 0.99)], eps=0.1)
    for decimals in (2, -1):
        out.case('round', lambda x: torch.round(x, decimals=decimals), [uniform([8], -99, 99)], grad=False, decimals=decimals)
    for dtype in (torch.int32, torch.int64, torch.uint8):
        a, b = [vec(*column, dtype=dtype) for column in zip(*itertools.product((0, 1, 6, 35, 89, 144, 233), repeat=2))]
        out.case('gcd', torch.gcd, [a, b])
        out.case('lcm', lambda x, y: torch.lcm(x.long(), y.long()).to(dtype), [a, b])
    out.case('gcd', torch.gcd, [vec(1836311903, -48, 0, dtype=torch.int32), vec(1134903170, 36, -7, dtype=torch.int32)])
    for op, fn in (('addcmul', torch.addcmul), ('addcdiv', torch.addcdiv)):
        out.both(op, lambda x, a, b: fn(x, a, b, value=0.7), [[3, 4], uniform([4]), uniform([3, 1], 0.5, 2)], value=0.7)
    near = [vec(1.0, 1.0, INF, NAN, 1e-9), vec(1.00001, 1.1, INF, NAN, 0.0)]
    for op, fn in (('isclose', torch.isclose), ('allclose', lambda *a, **k: torch.tensor(torch.allclose(*a, **k)))):
        out.case(op, fn, near, grad=False)
        out.case(op, lambda x, y: fn(x, y, rtol=0.2, equal_nan=True), near, grad=False, rtol=0.2, equalNan=True)
    affine = {'addmm': ([2, 4], [2, 3], [3, 4]), 'addmv': ([2], [2, 3], [3]), 'addr': ([2, 3], [2], [3]),
              'baddbmm': ([1, 4], [2, 3, 2], [2, 2, 4]), 'addbmm': ([4], [2, 3, 2], [2, 2, 4])}
    for op, inputs in affine.items():
        fn = getattr(torch, op)
        out.case(op, fn, list(inputs))
        out.case(op, lambda x, a, b: fn(x, a, b, beta=0.3, alpha=-1.5), list(inputs), beta=0.3, alpha=-1.5)
    out.both('tensordot', lambda x, y: torch.tensordot(x, y, 2), [[2, 3, 4], [3, 4, 5]])
    out.case('tensordot', lambda x, y: torch.tensordot(x, y, ([0, 1], [2, 0])), [[2, 3, 4], [3, 5, 2]], axes=[[0, 1], [2, 0]])
    out.case('inner', torch.inner, [[2, 3], [4, 3]])
    out.case('kron', torch.kron, [[2, 3], [2, 1, 2]])
    out.case('vdot', torch.vdot, [[5], [5]])
    out.case('cross', lambda x, y: torch.cross(x, y, 1), [[2, 3], [2, 3]], axis=1)
    out.case('vander', torch.vander, [[4]], grad=False)
    out.case('diff', torch.diff, [[3, 5]])
    out.case('diff', lambda x, p, q: torch.diff(x, 2, 0, p, q), [[3, 5], [1, 5], [2, 5]], order=2, axis=0)
    out.case('trapezoid', lambda y: torch.trapezoid(y, dx=0.5), [[3, 5]], dx=0.5)
    out.case('trapezoid', lambda y, x: torch.trapezoid(y, x, dim=0), [[3, 5], [3]], axis=0)
    out.case('cumulativeTrapezoid', lambda y, x: torch.cumulative_trapezoid(y, x), [[3, 5], [3, 5]], axis=-1)
    for edge in (1, 2):
        out.case('gradient', lambda x: torch.gradient(x, spacing=0.5, dim=1, edge_order=edge), [[3, 5]], axis=1, spacing=0.5,
                 edgeOrder=edge)
        out.case('gradient', lambda x: torch.gradient(x, spacing=[vec(0.0, 0.5, 2.0, 3.5).to(x.dtype)], dim=0, edge_order=edge), [[4, 2]],
                 axis=0, places=[0, 0.5, 2, 3.5], edgeOrder=edge)
    out.both('dist', lambda x, y: torch.dist(x, y, 3), [[3, 4], [4]], p=3)
    out.both('renorm', lambda x: torch.renorm(x, 2, 0, 1.5), [[3, 4]], p=2, axis=0, largest=1.5)
    out.case('aminmax', lambda x: torch.aminmax(x, dim=1), [distinct([3, 4])], grad=False, axis=1)
    out.case('stdMean', lambda x: torch.std_mean(x, 1, unbiased=True), [[3, 4]], axis=1)
    out.case('sumToSize', lambda x: x.sum_to_size(1, 3, 1), [[2, 3, 4]], shape=[1, 3, 1])
    out.case('diagflat', lambda x: torch.diagflat(x, 1), [[2, 2]], offset=1)
    out.case('diagEmbed', lambda x: torch.diag_embed(x, -1, 0, 2), [[2, 3]], offset=-1, axis1=0, axis2=2)
    for op, shapes in (('hstack', [[2, 3], [2, 1]]), ('vstack', [[3], [2, 3]]), ('dstack', [[2, 3], [2, 3]]),
                       ('column_stack', [[3], [3, 2]])):
        out.case(op.replace('_s', 'S'), lambda *xs: getattr(torch, op)(xs), shapes)
    out.case('blockDiag', torch.block_diag, [[2, 1], [3], [1, 2]])
    out.case('cartesianProd', torch.cartesian_prod, [[2], [3]])
    out.case('combinations', lambda x: torch.combinations(x, 2), [[4]], count=2, withReplacement=False)
    out.case('combinations', lambda x: torch.combinations(x, 3, True), [[3]], count=3, withReplacement=True)
    out.case('tensorSplit', lambda x: torch.tensor_split(x, 3, 1), [[2, 7]], parts=3, axis=1)
    out.case('tensorSplit', lambda x: torch.tensor_split(x, (1, -2, 9), 1), [[2, 7]], parts=[1, -2, 9], axis=1)
    for turns in (-1, 1, 2):
        out.case('rot90', lambda x: torch.rot90(x, turns, (2, 0)), [[2, 3, 2]], turns=turns, axes=[2, 0])
    out.case('logspace', lambda: torch.logspace(-1, 2, 5, 3.0), [], start=-1, end=2, count=5, base=3)
    out.case('trilIndices', lambda: torch.tril_indices(3, 4, 1).int(), [], rows=3, columns=4, offset=1)
    out.case('triuIndices', lambda: torch.triu_indices(3, 4, -1).int(), [], rows=3, columns=4, offset=-1)


# ---------------------------------------------------------------- reductions and scans

AXES = (None, 0, -1, [0, 2], [0, 1, 2])


def over(fn, axis, keep):
    axis = list(range(3)) if axis is None else axis
    return lambda x: fn(x, axis, keepdim=keep)


@family
def reduce(out):
    for op, fn in (('sum', torch.sum), ('mean', torch.mean), ('amax', torch.amax), ('amin', torch.amin),
                   ('logsumexp', torch.logsumexp)):
        make = distinct if op in ('amax', 'amin') else uniform
        for index, (axis, keep) in enumerate(itertools.product(AXES, (False, True))):
            args = {} if axis is None else {'axis': axis}
            (out.both if index in (0, 4) else out.case)(op, over(fn, axis, keep), [make([2, 3, 4])], **args, keepDims=keep)
    for op, fn in (('var', torch.var), ('std', torch.std)):
        for axis, keep, correction in itertools.product((None, 1, [0, 2]), (False, True), (0, 1)):
            dims = list(range(3)) if axis is None else axis
            out.both(op, lambda x: fn(x, dims, correction=correction, keepdim=keep), [[2, 3, 4]],
                     **({} if axis is None else {'axis': axis}), keepDims=keep, correction=correction)
    for p, axis in itertools.product((1, 2, 3, INF, -INF), (None, 1)):
        out.both('norm', lambda x: torch.linalg.vector_norm(x, p, axis), [distinct([3, 4])],
                 **({} if axis is None else {'axis': axis}), p=p)
    out.case('norm', lambda x: torch.linalg.vector_norm(x, 0, 1), [vec(0.0, 1.0, -2.0, 0.0).reshape(2, 2)], grad=False,
             p=0, axis=1)
    for axis in (None, 0, 1):
        fn = torch.prod if axis is None else lambda x: x.prod(axis)
        args = {} if axis is None else {'axis': axis}
        out.both('prod', fn, [[3, 4]], **args)
        # No zero, one zero, two zeros in a row: the gradient stays finite.
        out.case('prod', fn, [vec(1.0, 2.0, 3.0, 4.0, 0.0, 5.0, 0.0, 0.0, 2.0).reshape(3, 3)], **args)
    for op in ('max', 'min'):
        out.both(op, getattr(torch, op), [distinct([3, 4])])
        for axis, keep in itertools.product((0, 1, -1), (False, True)):
            out.case(op, lambda x: getattr(torch, op)(x, axis, keepdim=keep), [distinct([3, 4])], axis=axis, keepDims=keep)
    # Ties of amax, amin, and of max over everything share the gradient evenly.
    for op in ('amax', 'amin'):
        out.case(op, lambda x: getattr(torch, op)(x, 1), [vec(1.0, 3.0, 3.0, 2.0, 2.0, 2.0).reshape(2, 3)], axis=1)
    out.case('max', torch.max, [vec(1.0, 3.0, 3.0, 2.0)])
    for op in ('argmax', 'argmin'):
        fn = getattr(torch, op)
        out.case(op, fn, [distinct([3, 4])])
        for axis, keep in itertools.product((0, 1), (False, True)):
            out.case(op, lambda x: fn(x, axis, keepdim=keep), [distinct([3, 4])], axis=axis, keepDims=keep)
        out.case(op, lambda x: fn(x, 1), [vec(1, 3, 3, 0, 0, 2, 5, 5, 5).reshape(3, 3)], axis=1)
        out.case(op, lambda x: fn(x, 0), [ints([5, 2], 0, 9)], axis=0)
    nans = vec(1.0, NAN, 3.0, -INF, 2.0, INF, NAN, NAN, 0.0).reshape(3, 3)
    for op in ('sum', 'mean', 'amax', 'amin', 'prod', 'logsumexp', 'argmax', 'argmin'):
        out.case(op, lambda x: getattr(torch, op)(x, 1), [nans], grad=False, axis=1)
    for op in ('max', 'min'):
        out.case(op, lambda x: getattr(torch, op)(x, 1), [nans], grad=False, axis=1)
    infinite = vec(-INF, -INF, INF, 1.0, -INF, 2.0).reshape(3, 2)
    out.case('logsumexp', lambda x: torch.logsumexp(x, 1), [infinite], grad=False, axis=1)
    out.case('logsumexp', lambda x: torch.logsumexp(x, 0), [vec(1000.0, 1000.5, -1000.0)], axis=0)
    for op in ('any', 'all'):
        fn = getattr(torch, op)
        for make in (bools([3, 4]), vec(0.0, -0.0, 1.0, NAN, 0.0, 0.0).reshape(2, 3), ints([2, 3], 0, 2)):
            out.case(op, fn, [make])
            out.case(op, lambda x: fn(x, 1), [make], axis=1)
            out.case(op, lambda x: fn(x, 0, keepdim=True), [make], axis=0, keepDims=True)


@family
def empty(out):
    """Reductions over nothing, and rank 0."""
    for shape in ([0], [0, 3], [2, 0]):
        x = torch.zeros(shape)
        for op in ('sum', 'prod', 'mean'):
            out.case(op, getattr(torch, op), [x])
            for axis in range(len(shape)):
                out.case(op, lambda t: getattr(torch, op)(t, axis), [x], axis=axis)
        for op in ('any', 'all'):
            out.case(op, getattr(torch, op), [x.bool()])
            for axis in range(len(shape)):
                out.case(op, lambda t: getattr(torch, op)(t, axis), [x.bool()], axis=axis)
    out.case('amax', lambda t: t.amax(0), [torch.zeros([2, 0])], axis=0)
    out.case('logsumexp', lambda t: t.logsumexp(0), [torch.zeros([0, 3])], axis=0)
    out.case('softmax', lambda t: t.softmax(1), [torch.zeros([0, 3])], axis=1)
    out.case('cumsum', lambda t: t.cumsum(1), [torch.zeros([2, 0])], axis=1)
    out.case('matmul', torch.matmul, [torch.zeros([2, 0]), torch.zeros([0, 3])])
    out.case('matmul', torch.matmul, [torch.zeros([0, 2]), torch.zeros([2, 3])])
    out.case('cat', lambda a, b: torch.cat([a, b], 0), [torch.zeros([0, 3]), [2, 3]], axis=0)
    for op in ('sum', 'prod', 'mean', 'amax', 'argmax'):
        out.case(op, lambda t: getattr(torch, op)(t), [[]])
    for op in ('softmax', 'logSoftmax', 'cumsum', 'cumprod', 'logsumexp'):
        fn = {'logSoftmax': 'log_softmax'}.get(op, op)
        out.case(op, lambda t: getattr(torch, fn)(t, 0), [[]], axis=0)
    out.case('var', lambda t: t.var(0, correction=0), [vec(3.0)], axis=0, correction=0)
    out.case('var', lambda t: t.var(0, correction=1), [vec(3.0)], grad=False, axis=0, correction=1)


@family
def scan(out):
    for op in ('cumsum', 'cumprod', 'logcumsumexp'):
        fn = getattr(torch, op)
        for axis in (0, 1, -1):
            out.both(op, lambda x: fn(x, axis), [[3, 5]], axis=axis)
        if op != 'logcumsumexp':
            out.case(op, lambda x: fn(x, 1), [vec(1.0, 0.0, 2.0, 3.0, 0.0, 0.0, NAN, 1.0, INF, -INF).reshape(2, 5)],
                     grad=False, axis=1)
    out.case('cumprod', lambda x: x.cumprod(1), [vec(1.0, 0.0, 2.0, 3.0, 2.0, 0.0, 3.0, 0.0).reshape(2, 4)], axis=1)
    for op in ('cummax', 'cummin'):
        fn = getattr(torch, op)
        for axis in (0, 1):
            out.case(op, lambda x: fn(x, axis), [distinct([3, 5])], axis=axis)
        out.case(op, lambda x: fn(x, 0), [vec(1.0, 1.0, 3.0, 3.0, 2.0, -1.0, -1.0)], grad=False, axis=0)
        out.case(op, lambda x: fn(x, 0), [vec(1.0, 2.0, NAN, 5.0, NAN, -9.0)], grad=False, axis=0)
        out.case(op, lambda x: fn(x, 0), [ints([8], 0, 4)], axis=0)


@family
def softmax(out):
    for op, fn in (('softmax', torch.softmax), ('logSoftmax', torch.log_softmax)):
        for shape, axis in (([7], 0), ([3, 5], 0), ([3, 5], 1), ([3, 5], -1), ([2, 3, 4], 1), ([2, 3, 1], 2)):
            out.both(op, lambda x: fn(x, axis), [uniform(shape, -4, 4)], axis=axis)
        out.case(op, lambda x: fn(x, 1), [vec(1000.0, 1001.0, -1000.0, 0.0, 88.0, 89.0).reshape(2, 3)], axis=1)
        rows = vec(-INF, -INF, -INF, 1.0, -INF, 2.0, INF, 0.0, 1.0, NAN, 0.0, 1.0).reshape(4, 3)
        out.case(op, lambda x: fn(x, 1), [rows], grad=False, axis=1)
        out.case(op, lambda x: fn(x, 1), [vec(1.0, -INF, 2.0, -INF, 0.0, 0.0).reshape(2, 3)], axis=1)


# ---------------------------------------------------------------- contractions

@family
def matmul(out):
    shapes = (([3], [3]), ([3], [3, 4]), ([2, 3], [3]), ([2, 3], [3, 4]), ([2, 2, 3], [3, 4]), ([2, 3], [2, 3, 4]),
              ([2, 2, 3], [2, 3, 4]), ([1, 2, 3], [4, 3, 2]), ([4, 2, 3], [1, 3, 2]), ([2, 2, 3], [3]), ([3], [2, 3, 4]),
              ([2, 1, 2, 3], [3, 3, 2]), ([2, 3], [2, 2, 3, 2]), ([2, 2, 2, 3], [3, 2]), ([2, 2, 2, 3], [3]),
              ([3], [2, 2, 3, 2]), ([2, 1, 2, 3], [2, 2, 3, 2]), ([1, 1], [1, 1]), ([5, 1], [1, 4]), ([1, 9], [9, 1]))
    for a, b in shapes:
        out.both('matmul', torch.matmul, [a, b])
    out.case('matmul', torch.matmul, [ints([3, 4], -9, 9), ints([4, 2], -9, 9)])
    out.case('matmul', torch.matmul, [vec(1.0, INF, 0.0, NAN).reshape(2, 2), vec(1.0, 0.0, 2.0, 1.0).reshape(2, 2)],
             grad=False)
    for batch in ([4], [2, 3]):
        out.both('linear', F.linear, [[*batch, 5], [3, 5], [3]])
    out.case('linear', F.linear, [[4, 5], [3, 5]])
    out.both('outer', torch.outer, [[3], [4]])
    equations = (('ij,jk->ik', [2, 3], [3, 4]), ('ij,kj->ik', [2, 3], [4, 3]), ('bij,bjk->bik', [2, 2, 3], [2, 3, 2]),
                 ('i,j->ij', [3], [4]), ('i,i->', [4], [4]), ('ij->ji', [2, 3]), ('ij->', [2, 3]), ('ij->j', [2, 3]),
                 ('ii->i', [3, 3]), ('ii', [3, 3]), ('ij,ij->i', [2, 3], [2, 3]), ('bhqd,bhkd->bhqk', [1, 2, 3, 4], [1, 2, 2, 4]),
                 ('ijk,ilk->jl', [2, 3, 2], [2, 4, 2]), ('a,b,c->abc', [2], [3], [2]), ('ij,jk,kl->il', [2, 3], [3, 2], [2, 4]),
                 ('...ij,...jk->...ik', [2, 2, 3], [3, 2]), ('...i->...', [2, 3, 4]), ('ij,jk', [2, 3], [3, 4]),
                 ('ij,ij->ij', [2, 3], [2, 3]), ('b...,b...->b', [2, 3, 2], [2, 3, 2]), ('iij->ij', [3, 3, 2]),
                 ('ij,->ij', [2, 3], []), ('ba', [2, 3]))
    for equation, *operands in equations:
        out.both('einsum', lambda *xs: torch.einsum(equation, *xs), operands, equation=equation)


@family
def conv(out):
    cases = (([1, 1, 4, 4], [1, 1, 3, 3], {}), ([2, 3, 5, 4], [4, 3, 3, 2], {}), ([1, 2, 5, 5], [3, 2, 3, 3], dict(stride=2)),
             ([1, 2, 4, 5], [2, 2, 3, 3], dict(padding=1)), ([1, 2, 6, 5], [2, 2, 2, 3], dict(stride=(2, 1), padding=(1, 2))),
             ([1, 2, 7, 6], [2, 2, 3, 2], dict(dilation=2)), ([1, 1, 7, 6], [2, 1, 2, 3], dict(dilation=(3, 2), stride=2, padding=1)),
             ([1, 4, 4, 4], [4, 2, 3, 3], dict(groups=2, padding=1)), ([1, 3, 4, 4], [6, 1, 3, 3], dict(groups=3)),
             ([2, 3, 3, 3], [2, 3, 1, 1], {}))
    for index, (x, w, args) in enumerate(cases):
        record = out.both if index < 5 else out.case
        record('conv2d', lambda a, b: F.conv2d(a, b, **args), [x, w], **args)
        out.case('conv2d', lambda a, b, c: F.conv2d(a, b, c, **args), [x, w, [w[0]]], **args)
    for x, w, args in (([2, 3, 8], [4, 3, 3], dict(padding=1)), ([1, 2, 9], [2, 2, 3], dict(stride=2, dilation=2)),
                       ([1, 4, 6], [4, 1, 2], dict(groups=4))):
        out.both('conv1d', lambda a, b, c: F.conv1d(a, b, c, **args), [x, w, [w[0]]], **args)
    out.case('conv3d', lambda a, b: F.conv3d(a, b, padding=1, stride=2), [[1, 2, 3, 4, 3], [2, 2, 2, 2, 2]], padding=1, stride=2)
    for x, w, args in (([1, 2, 3, 3], [2, 3, 3, 3], {}), ([1, 2, 3, 2], [2, 1, 3, 2], dict(stride=2, padding=1)),
                       ([1, 2, 3, 3], [2, 2, 2, 2], dict(stride=2, outputPadding=1)),
                       ([1, 4, 3, 3], [4, 1, 2, 2], dict(groups=2, dilation=2))):
        own = {'output_padding' if k == 'outputPadding' else k: v for k, v in args.items()}
        out.both('convTranspose2d', lambda a, b: F.conv_transpose2d(a, b, **own), [x, w], **args)
    out.case('convTranspose1d', lambda a, b, c: F.conv_transpose1d(a, b, c, stride=2), [[1, 2, 4], [2, 3, 3], [3]], stride=2)


@family
def pool(out):
    for x, args in (([1, 2, 4, 4], dict(kernelSize=2)), ([2, 1, 5, 6], dict(kernelSize=3, stride=2)),
                    ([1, 2, 5, 5], dict(kernelSize=3, stride=2, padding=1)), ([1, 1, 5, 4], dict(kernelSize=(2, 3), stride=1)),
                    ([1, 1, 6, 5], dict(kernelSize=(3, 2), stride=(2, 1), padding=(1, 0)))):
        own = {{'kernelSize': 'kernel_size'}.get(k, k): v for k, v in args.items()}
        out.both('maxPool2d', lambda t: F.max_pool2d(t, **own), [distinct(x)], **args)
        for include in (True, False):
            out.both('avgPool2d', lambda t: F.avg_pool2d(t, **own, count_include_pad=include), [x], **args,
                     countIncludePad=include)
    out.case('maxPool2d', lambda t: F.max_pool2d(t, 2, stride=1), [vec(NAN, 1.0, 2.0, 3.0, -INF, 4.0).reshape(1, 1, 2, 3)],
             grad=False, kernelSize=2, stride=1)
    out.case('maxPool2d', lambda t: F.max_pool2d(t, 2, stride=1, dilation=2), [distinct([1, 1, 5, 5])], kernelSize=2, stride=1,
             dilation=2)
    out.case('maxPool1d', lambda t: F.max_pool1d(t, 3, 2), [distinct([1, 2, 9])], kernelSize=3, stride=2)
    out.case('avgPool1d', lambda t: F.avg_pool1d(t, 3, 2), [[1, 2, 9]], kernelSize=3, stride=2)


# ---------------------------------------------------------------- norms, losses, attention

def rms_norm(x, weight=None, eps=1e-5):
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return y if weight is None else y * weight


@family
def norm(out):
    for shape, normal, eps in (([3, 6], [6], 1e-5), ([2, 3, 4], [3, 4], 1e-5), ([2, 3, 4], [4], 0.1), ([5], [5], 1e-5)):
        out.both('layerNorm', lambda x: F.layer_norm(x, normal, eps=eps), [shape], normalizedShape=normal, eps=eps)
        out.both('layerNorm', lambda x, w, b: F.layer_norm(x, normal, w, b, eps), [shape, normal, normal],
                 normalizedShape=normal, eps=eps)
    # A large mean must not cancel the variance away; a constant row gives the bias.
    out.case('layerNorm', lambda x: F.layer_norm(x, [4]), [vec(1000.0, 1001.0, 1002.0, 1004.0, 7.0, 7.0, 7.0, 7.0).reshape(2, 4)],
             grad=False, normalizedShape=[4], eps=1e-5)
    for shape, eps in (([3, 6], 1e-5), ([2, 2, 4], 1e-6), ([5], 0.1)):
        out.both('rmsNorm', lambda x: rms_norm(x, eps=eps), [shape], eps=eps)
        out.both('rmsNorm', lambda x, w: rms_norm(x, w, eps), [shape, shape[-1:]], eps=eps)
    for shape, groups in (([2, 4, 3], 2), ([2, 6, 2, 2], 3), ([2, 3, 4], 1), ([1, 4, 3, 2], 4)):
        out.both('groupNorm', lambda x, w, b: F.group_norm(x, groups, w, b), [shape, [shape[1]], [shape[1]]], groups=groups,
                 eps=1e-5)
    out.case('groupNorm', lambda x: F.group_norm(x, 2), [[2, 4, 3]], groups=2, eps=1e-5)
    out.both('instanceNorm', lambda x: F.instance_norm(x), [[2, 3, 4, 2]], eps=1e-5)
    for shape in ([4, 3], [2, 3, 4], [2, 3, 2, 3]):
        for training in (True, False):
            def run(x, w, b, mean, var):
                mean, var = mean.detach().clone(), var.detach().clone()
                y = F.batch_norm(x, mean, var, w, b, training, 0.1, 1e-5)
                return y, mean, var
            out.both('batchNorm', run, [shape, [3], [3], [3], uniform([3], 0.5, 2)], training=training, momentum=0.1, eps=1e-5)
    for p, axis in ((2, 1), (1, 0)):
        out.both('normalize', lambda x: F.normalize(x, p, axis), [[3, 4]], p=p, axis=axis)
    out.case('localResponseNorm', lambda x: F.local_response_norm(x, 3, 0.1, 0.75, 2.0), [[2, 5, 3]], size=3, alpha=0.1,
             beta=0.75, k=2.0)


@family
def loss(out):
    reductions = ('mean', 'sum', 'none')
    for reduction in reductions:
        r = dict(reduction=reduction)
        for op, fn in (('mseLoss', F.mse_loss), ('l1Loss', F.l1_loss), ('smoothL1Loss', F.smooth_l1_loss), ('huberLoss', F.huber_loss)):
            out.both(op, lambda x, y: fn(x, y, **r), [[3, 4], [3, 4]], **r)
        out.both('smoothL1Loss', lambda x, y: F.smooth_l1_loss(x, y, beta=0.4, **r), [[3, 4], [3, 4]], beta=0.4, **r)
        out.both('huberLoss', lambda x, y: F.huber_loss(x, y, delta=0.4, **r), [[3, 4], [3, 4]], delta=0.4, **r)
        out.both('bceLoss', lambda x, y: F.binary_cross_entropy(x, y.detach(), **r),
                 [uniform([3, 4], 0.02, 0.98), uniform([3, 4], 0, 1)], **r)
        out.both('bceWithLogits', lambda x, y: F.binary_cross_entropy_with_logits(x, y.detach(), **r),
                 [uniform([3, 4], -5, 5), uniform([3, 4], 0, 1)], **r)
        target = ints([5], 0, 3)
        out.both('crossEntropy', lambda x, t: F.cross_entropy(x, t, **r), [[5, 3], target], **r)
        out.both('nllLoss', lambda x, t: F.nll_loss(x, t, **r), [[5, 3], target], **r)
        out.case('crossEntropy', lambda x, t: F.cross_entropy(x, t, ignore_index=1, **r), [[5, 3], vec(0, 1, 2, 1, 0, dtype=torch.int32)],
                 ignoreIndex=1, **r)
        out.both('crossEntropy', lambda x, t: F.cross_entropy(x, t, label_smoothing=0.2, **r), [[5, 3], target], labelSmoothing=0.2, **r)
        out.case('crossEntropy', lambda x, t: F.cross_entropy(x, t, **r), [[2, 3, 4], ints([2, 4], 0, 3)], **r)
        out.case('crossEntropy', lambda x, t: F.cross_entropy(x, t.detach(), **r),
                 [[4, 3], lambda rng: torch.softmax(uniform([4, 3])(rng), 1)], **r)
    out.case('nllLoss', lambda x, t, w: F.nll_loss(x, t, w.detach()), [[5, 3], ints([5], 0, 3), uniform([3], 0.2, 2)], reduction='mean')
    out.case('crossEntropy', lambda x, t: F.cross_entropy(x, t), [vec(1000.0, 0.0, -1000.0, 5.0, 5.0, 5.0).reshape(2, 3),
             vec(1, 2, dtype=torch.int32)], reduction='mean')
    out.case('bceWithLogits', lambda x, y: F.binary_cross_entropy_with_logits(x, y.detach()), [vec(200.0, -200.0, 0.0, 30.0),
             vec(0.0, 1.0, 0.5, 1.0)], reduction='mean')
    out.case('bceLoss', lambda x, y: F.binary_cross_entropy(x, y.detach(), reduction='none'), [vec(0.0, 1.0, 0.0, 1.0),
             vec(0.0, 1.0, 1.0, 0.0)], grad=False, reduction='none')
    for reduction in (*reductions, 'batchmean'):
        for logged in (False, True):
            out.both('klDiv', lambda x, y: F.kl_div(x, y, reduction=reduction, log_target=logged),
                     [uniform([3, 4], -3, 0), uniform([3, 4], -3, 0) if logged else uniform([3, 4], 0.05, 1)],
                     reduction=reduction, logTarget=logged)
    out.both('cosineSimilarity', lambda a, b: F.cosine_similarity(a, b, 1), [[3, 4], [3, 4]], axis=1)


def attend(q, k, v, mask=None, causal=False, scale=None):
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        keep = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        scores = scores.masked_fill(~keep, -INF)
    if mask is not None:
        scores = scores.masked_fill(~mask, -INF) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ v


@family
def attention(out):
    op = 'scaledDotProductAttention'
    for q, k, v in (([3, 4], [5, 4], [5, 2]), ([2, 3, 4], [2, 3, 4], [2, 3, 4]), ([1, 2, 4, 3], [1, 2, 5, 3], [1, 2, 5, 3])):
        out.both(op, attend, [q, k, v])
        out.both(op, lambda *t: attend(*t, causal=True), [q, k, v], isCausal=True)
    out.case(op, lambda *t: attend(*t, scale=0.3), [[3, 4], [3, 4], [3, 4]], scale=0.3)
    keep = torch.tensor([[True, True, False], [True, False, False], [False, True, True]])
    out.case(op, attend, [[2, 3, 4], [2, 3, 4], [2, 3, 4], keep])
    out.case(op, attend, [[2, 3, 4], [2, 3, 4], [2, 3, 4], [3, 3]])


# ---------------------------------------------------------------- indexing and movement

@family
def index(out):
    out.both('indexSelect', lambda x, i: x.index_select(0, i), [[4, 3], vec(3, 0, 0, 2, dtype=torch.int32)], axis=0)
    out.both('indexSelect', lambda x, i: x.index_select(-1, i), [[2, 4], vec(1, 1, 3, dtype=torch.int32)], axis=-1)
    for x, i, axis in (([4, 3], [2, 3], 0), ([3, 4], [3, 2], 1), ([3, 4], [2, 5], 1), ([2, 3, 4], [2, 5, 4], 1), ([6], [4], 0)):
        size = x[axis]
        out.both('gather', lambda t, j: t.gather(axis, j), [x, ints(i, 0, size)], axis=axis)
        out.both('scatterAdd', lambda t, j, s: t.scatter_add(axis, j, s), [x, ints(i, 0, size), i], axis=axis)
    unique = torch.stack([torch.randperm(5, generator=torch.Generator().manual_seed(n))[:3] for n in range(2)]).int()
    out.both('scatter', lambda t, j, s: t.scatter(1, j, s), [[2, 5], unique, [2, 3]], axis=1)
    out.both('scatter', lambda t, j: t.scatter(1, j, 1.5), [[2, 5], unique], axis=1, value=1.5)
    out.case('scatter', lambda t, j, s: t.scatter(0, j, s), [[5, 2], unique.t().contiguous(), [3, 2]], axis=0)
    for reduction in ('sum', 'prod', 'amax', 'amin'):
        out.case('scatterReduce', lambda t, j, s: t.scatter_reduce(1, j, s, reduction, include_self=True),
                 [[2, 4], ints([2, 5], 0, 4), [2, 5]], grad=False, axis=1, reduce=reduction)
    out.both('embedding', F.embedding, [ints([4], 0, 6), [6, 3]])
    out.case('embedding', F.embedding, [ints([2, 3], 0, 6), [6, 3]])
    out.case('embedding', lambda i, w: F.embedding(i, w, padding_idx=2), [vec(2, 0, 2, 5, dtype=torch.int32), [6, 3]], paddingIdx=2)
    out.case('oneHot', lambda i: F.one_hot(i, 4), [vec(0, 3, 1, dtype=torch.int32)], classes=4)
    for descending in (False, True):
        out.both('sort', lambda x: torch.sort(x, -1, descending), [distinct([3, 5])], axis=-1, descending=descending)
        ties = vec(2, 1, 2, 3, 1, 1, 0, 3, dtype=torch.float32)
        out.case('sort', lambda x: torch.sort(x, dim=0, descending=descending, stable=True), [ties], grad=False, axis=0, descending=descending)
        out.case('argsort', lambda x: torch.argsort(x, 0, descending), [distinct([4, 3])], axis=0, descending=descending)
        out.case('topk', lambda x: torch.topk(x, 2, 1, largest=descending), [distinct([3, 5])], k=2, axis=1, largest=descending)
    out.case('sort', lambda x: torch.sort(x, 0), [vec(1.0, NAN, -INF, INF, -1.0)], grad=False, axis=0, descending=False)


@family
def sort(out):
    # Long lines with many equal elements: every length of line has its own kernels.
    special = vec(0.0, NAN, -0.0, 1.0, -INF, 1e-40, INF, -1.0, NAN, -0.0, 3e38, 0.0, -1e-40, INF, -3e38, 1.0)
    for descending in (False, True):
        def stable(axis):
            return lambda x: torch.sort(x, dim=axis, descending=descending, stable=True)

        def case(x, axis=-1, grad=False):
            out.case('sort', stable(axis), [x], grad=grad, axis=axis, descending=descending)

        for length in (7, 64, 300):
            case(ints([2, length], -5, 5, torch.float32))
        case(ints([2, 600], -200, 200, torch.float32))
        case(ints([270, 3], -40, 40), 0)
        case(ints([2, 2, 90], -9, 9), 1)
        case(bools([700]))
        case(special)
        for dtype in (torch.float16, torch.bfloat16):
            case(special.to(dtype))
            case(uniform([2, 90], -3, 3, dtype))
        case(distinct([2, 64]), grad=True)
        case(distinct([600, 2]), 0, grad=True)
        for count, shape in ((3, [2, 64]), (8, [1, 900])):
            out.case('topk', lambda x: torch.topk(x, count, 1, largest=descending), [distinct(shape)], k=count, axis=1, largest=descending)
    out.case('topk', lambda x: torch.topk(x, 3, 0), [vec(1.0, NAN, INF, -2.0)], grad=False, k=3, axis=0, largest=True)
    bounds = vec(-INF, -1.0, 0.0, 0.0, 2.0, 2.0, 2.0, 5.5, INF)
    for right in (False, True):
        def search(x, v):
            return torch.searchsorted(x, v, right=right)

        out.case('searchsorted', search, [bounds, vec(-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, 9.0, INF, -INF, NAN)], grad=False, right=right)
        out.case('searchsorted', search, [bounds[:4], uniform([2, 5])], grad=False, right=right)
        out.case('searchsorted', search, [torch.arange(0, 3000, 3, dtype=torch.int32), ints([40], -5, 3005)], right=right)


@family
def segments(out):
    # Updates by the hundred: more than one kernel takes them.
    for slots, width, updates in ((40, 3, 300), (90, 8, 120), (3, 1, 900)):
        index = ints([updates], 0, slots)
        rows = lambda x, i, s: x.index_add(0, i, s)
        out.case('indexAdd', rows, [[slots, width], index, [updates, width]], axis=0)
    out.case('scatterAdd', lambda t, j, s: t.scatter_add(1, j, s), [[2, 50], ints([2, 300], 0, 50), [2, 300]], axis=1)
    out.case('embedding', F.embedding, [ints([2, 70], 0, 30), [30, 8]])
    for reduction in ('prod', 'amax', 'amin'):
        out.case('scatterReduce', lambda t, j, s: t.scatter_reduce(1, j, s, reduction, include_self=True),
                 [[1, 100], ints([1, 300], 0, 100), uniform([1, 300], 0.5, 1.5)], grad=False, axis=1, reduce=reduction)


@family
def movement(out):
    x = [2, 3, 4]
    for axis in (0, 1, -1, [0, 2]):
        out.case('flip', lambda t: t.flip(axis if isinstance(axis, list) else [axis]), [x], axis=axis)
    for shift, axis in ((1, 0), (-2, 1), (5, -1), ([1, 2], [0, 2])):
        out.case('roll', lambda t: t.roll(shift, axis), [x], shift=shift, axis=axis)
    for k in (-2, -1, 0, 1, 9):
        out.case('tril', lambda t: t.tril(k), [x], diagonal=k)
        out.case('triu', lambda t: t.triu(k), [x], diagonal=k)
    out.case('tril', torch.tril, [vec(NAN, INF, 1.0, NAN).reshape(2, 2)], grad=False, diagonal=0)
    for axis in (0, 1, -1):
        sizes = [[2, 3, 4] for _ in range(3)]
        for size, extent in zip(sizes, (1, 2, 3)):
            size[axis] = extent
        out.both('cat', lambda *ts: torch.cat(ts, axis), sizes, axis=axis)
        out.case('stack', lambda *ts: torch.stack(ts, axis), [[2, 3], [2, 3]], axis=axis)
    for pads, value in (([[1, 2]], 0.0), ([[0, 1], [2, 0]], 1.5), ([[1, 0], [0, 0], [0, 2]], -INF)):
        shape = [2, 3, 2][:len(pads)]
        flat = [n for pair in reversed(pads) for n in pair]
        out.case('pad', lambda t: F.pad(t, flat, value=value), [shape], pads=pads, value=value)
    out.case('repeat', lambda t: t.repeat(2, 1, 3), [[2, 3]], repeats=[2, 1, 3])
    out.case('tile', lambda t: t.tile(2, 3), [[2, 3]], repeats=[2, 3])
    out.case('tile', lambda t: t.tile(2), [[2, 3]], repeats=[2])
    out.case('repeatInterleave', lambda t: t.repeat_interleave(3, 1), [[2, 3]], repeats=3, axis=1)
    # [start, stop, step] an axis; null is the end in that direction.
    for slices in ([[0, 2, 1], [1, 3, 1]], [[1, None, 1], [0, 4, 2]], [[-2, None, 1], [None, -1, 1]], [[0, 3, 2], [1, None, 3]],
                   [[None, None, -1], [None, None, -2]], [[2, 0, -1], [3, None, -1]], [[2, 1, 1], [0, 4, 1]], [[-9, 9, 1], [1, 1, 1]]):
        def cut(t):
            for axis, (start, stop, step) in enumerate(slices):
                places = torch.arange(t.shape[axis])[torch.tensor(range(t.shape[axis])[slice(start, stop, step)]).long()]
                t = t.index_select(axis, places)
            return t
        out.case('slice', cut, [[3, 4]], slices=slices)
    for order in ([1, 0, 2], [2, 0, 1], [0, 2, 1], [-1, 0, 1]):
        out.case('permute', lambda t: t.permute(order), [x], axes=order)
    out.case('transpose', lambda t: t.transpose(0, -1), [x], axes=[0, -1])
    for shape in ([6, 4], [4, -1], [1, 24, 1], [-1], [2, 3, 2, 2]):
        out.case('reshape', lambda t: t.reshape(shape), [x], shape=shape)
    out.case('squeeze', lambda t: t.squeeze(1), [[2, 1, 3]], axis=1)
    out.case('unsqueeze', lambda t: t.unsqueeze(-2), [[2, 3]], axis=-2)
    out.case('expand', lambda t: t.expand(4, 2, 3), [[2, 1]], shape=[4, 2, 3])
    out.case('narrow', lambda t: t.narrow(1, 1, 2), [x], axis=1, start=1, length=2)
    out.case('split', lambda t: t.split(2, 1), [x], size=2, axis=1)
    out.case('chunk', lambda t: t.chunk(2, 2), [x], chunks=2, axis=2)
    for k in (-1, 0, 1):
        out.case('diagonal', lambda t: torch.diagonal(t, k), [[3, 4]], offset=k)
        out.case('diag', lambda t: torch.diag(t, k), [[3]], offset=k)
    out.case('unfold', lambda t: t.unfold(0, 3, 2), [[8]], axis=0, size=3, step=2)


# ---------------------------------------------------------------- 16-bit floats

@family
def half(out):
    """Computed in f32 from the rounded inputs, rounded once to nearest even."""
    def narrow(dtype, fn):
        return lambda *xs: fn(*(x.float() if x.is_floating_point() else x for x in xs)).to(dtype)

    for name in ('f16', 'bf16'):
        dtype = DTYPES[name]
        # Neighbours of ties: 1 + k/2 ulp, overflow, the smallest values.
        a = vec(1.0, 1.0, 2048.0, 2049.0, 65504.0, 65504.0, 1e-3, 6e-8, -1.0, 256.0, 257.0, 0.1, NAN, INF, 6e-5, dtype=dtype)
        b = vec(2**-11, 2**-8, 1.0, 1.0, 15.0, 65504.0, 3e-4, 6e-8, 2**-12, 1.0, 1.0, 0.2, 1.0, -INF, 1e-5, dtype=dtype)
        for op in ('add', 'sub', 'mul', 'div'):
            fn = narrow(dtype, BINARY[op])
            out.case(op, fn, [a, b], grad=False)
            out.case(op, fn, [uniform([3, 8], dtype=dtype), uniform([8], 0.5, 2, dtype)], grad=False)
        for op in ('exp', 'log', 'sqrt', 'tanh', 'sigmoid', 'silu', 'relu'):
            out.case(op, narrow(dtype, UNARY[op][0]), [uniform([24], 0.1 if op in ('log', 'sqrt') else -3, 4, dtype)], grad=False)
        for op in ('gelu',):
            out.case(op, narrow(dtype, F.gelu), [uniform([24], -3, 3, dtype)], grad=False, approximate='none')
        for op in ('sum', 'mean', 'amax', 'prod', 'logsumexp'):
            out.case(op, narrow(dtype, lambda x: getattr(torch, op)(x, 1)), [uniform([3, 17], -1, 2, dtype)], grad=False, axis=1)
        # 300 ones stop growing at 256 (bf16) when accumulated in bf16: the sum must be taken in f32.
        out.case('sum', narrow(dtype, torch.sum), [torch.ones(300, dtype=dtype)], grad=False)
        out.case('cumsum', narrow(dtype, lambda x: x.cumsum(0)), [uniform([20], dtype=dtype)], grad=False, axis=0)
        out.case('softmax', narrow(dtype, lambda x: x.softmax(-1)), [uniform([3, 9], -4, 4, dtype)], grad=False, axis=-1)
        out.case('logSoftmax', narrow(dtype, lambda x: x.log_softmax(-1)), [uniform([3, 9], -4, 4, dtype)], grad=False, axis=-1)
        out.case('layerNorm', narrow(dtype, lambda x, w, c: F.layer_norm(x, [8], w, c)),
                 [uniform([3, 8], dtype=dtype), uniform([8], dtype=dtype), uniform([8], dtype=dtype)], grad=False,
                 normalizedShape=[8], eps=1e-5)
        out.case('matmul', narrow(dtype, torch.matmul), [uniform([4, 24], dtype=dtype), uniform([24, 5], dtype=dtype)], grad=False)
        out.case('matmul', narrow(dtype, torch.matmul), [uniform([2, 3, 8], dtype=dtype), uniform([8, 2], dtype=dtype)], grad=False)


# ---------------------------------------------------------------- training

class Stepwise:
    """An optimizer that this version of PyTorch lacks, as its paper has it, on one parameter; `step_of` moves it."""

    def __init__(self, params, **settings):
        [self.param] = params
        self.settings, self.t, self.state = {**self.defaults, **settings}, 0, {}

    def running(self, name, now, kept):
        old = self.state.get(name, torch.zeros_like(now))
        self.state[name] = kept * old + (1 - kept) * now
        return old, self.state[name]

    def step(self):
        self.t += 1
        with torch.no_grad():
            self.step_of(self.param, self.param.grad, **self.settings)


class NAdam(Stepwise):
    """PyTorch 1.13 multiplies by the momentum of this step twice, which was mended in 2.0."""
    defaults = dict(lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3)

    def step_of(self, p, g, lr, betas, eps, weight_decay, momentum_decay):
        momentum = lambda t: betas[0] * (1 - 0.5 * 0.96 ** (t * momentum_decay))
        g = g + weight_decay * p
        _, m = self.running('m', g, betas[0])
        _, v = self.running('v', g * g, betas[1])
        now, after = momentum(self.t), momentum(self.t + 1)
        self.product = getattr(self, 'product', 1.0) * now
        spread = (v / (1 - betas[1] ** self.t)).sqrt() + eps
        p.copy_(p - lr * ((1 - now) / (1 - self.product) * g + after / (1 - self.product * after) * m) / spread)


class ASGD(Stepwise):
    """PyTorch keeps the rate in f32 whatever the parameter is."""
    defaults = dict(lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0)

    def step_of(self, p, g, lr, lambd, alpha, t0, weight_decay):
        rate = lr / (1 + lambd * lr * (self.t - 1)) ** alpha
        p.copy_(p * (1 - lambd * rate) - rate * (g + weight_decay * p))


class Lion(Stepwise):
    defaults = dict(betas=(0.9, 0.99), weight_decay=0.0)

    def step_of(self, p, g, lr, betas, weight_decay):
        old, _ = self.running('m', g, betas[1])
        u = torch.sign(betas[0] * old + (1 - betas[0]) * g)
        p.copy_(p - lr * (u + weight_decay * p))


class Lamb(Stepwise):
    defaults = dict(betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0)

    def step_of(self, p, g, lr, betas, eps, weight_decay):
        _, m = self.running('m', g, betas[0])
        _, v = self.running('v', g * g, betas[1])
        r = (m / (1 - betas[0] ** self.t)) / ((v / (1 - betas[1] ** self.t)).sqrt() + eps) + weight_decay * p
        p.copy_(p - lr * p.norm() / r.norm() * r)


class Adafactor(Stepwise):
    defaults = dict(beta2Decay=-0.8, eps=(2.0 ** -23, 1e-3), d=1.0, weight_decay=0.0)

    def step_of(self, p, g, lr, beta2Decay, eps, d, weight_decay):
        rms = lambda x: (x * x).mean().sqrt()
        rate = max(eps[1], rms(p).item()) * min(lr, 1 / self.t ** 0.5)
        kept = 1 - self.t ** beta2Decay
        _, r = self.running('r', (g * g).mean(-1, keepdim=True), kept)
        _, c = self.running('c', (g * g).mean(-2, keepdim=True), kept)
        v = (r @ c) / r.mean(-2, keepdim=True).clamp(min=eps[0])
        u = g / v.clamp(min=eps[0] ** 2).sqrt()
        p.copy_(p * (1 - lr * weight_decay) - rate * u / max(1.0, rms(u).item() / d))


class Muon(Stepwise):
    defaults = dict(momentum=0.95, nesterov=True, nsSteps=5, adjustLr='original', weight_decay=0.1)

    def step_of(self, p, g, lr, momentum, nesterov, nsSteps, adjustLr, weight_decay):
        _, m = self.running('m', g, momentum)
        x = (1 - momentum) * g + momentum * m if nesterov else m
        rows, columns = x.shape
        x = x.T if rows > columns else x
        x = x / x.norm()
        for _ in range(nsSteps):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        x = x.T if rows > columns else x
        adjust = max(1, rows / columns) ** 0.5 if adjustLr == 'original' else 0.2 * max(rows, columns) ** 0.5
        p.copy_(p - lr * (adjust * x + weight_decay * p))


@family
def optim(out):
    """inputs: a parameter, then its gradient at each of five steps; outputs: the parameter after each step."""
    def trajectory(make):
        def run(start, *grads):
            p = start.detach().clone().requires_grad_()
            optimizer, history = make([p]), []
            for g in grads:
                p.grad = g.detach().clone()
                optimizer.step()
                history.append(p.detach().clone())
            return history
        return run

    o = torch.optim
    inputs = [[2, 3] for _ in range(6)]
    recipes = [('sgd', o.SGD, a) for a in (dict(lr=0.1), dict(lr=0.1, momentum=0.9), dict(lr=0.1, momentum=0.9, nesterov=True),
               dict(lr=0.1, weightDecay=0.05), dict(lr=0.05, momentum=0.8, dampening=0.3, weightDecay=0.01))]
    recipes += [('adam', o.Adam, a) for a in (dict(lr=0.01), dict(lr=0.1, betas=(0.8, 0.95), eps=1e-3), dict(lr=0.01, weightDecay=0.1),
                dict(lr=0.01, amsgrad=True))]
    recipes += [('adamw', o.AdamW, a) for a in (dict(lr=0.01), dict(lr=0.1, weightDecay=0.3), dict(lr=0.01, betas=(0.5, 0.9)))]
    recipes += [('rmsprop', o.RMSprop, a) for a in (dict(lr=0.01), dict(lr=0.01, momentum=0.9), dict(lr=0.01, alpha=0.9, centered=True))]
    recipes += [('adagrad', o.Adagrad, a) for a in (dict(lr=0.1), dict(lr=0.1, weightDecay=0.1, eps=1e-6))]
    recipes += [('adagrad', o.Adagrad, dict(lr=0.1, lrDecay=0.3)), ('adam', o.Adam, dict(lr=0.01, maximize=True))]
    recipes += [('adadelta', o.Adadelta, a) for a in (dict(), dict(lr=0.5, rho=0.8, eps=1e-4, weightDecay=0.1))]
    recipes += [('adamax', o.Adamax, a) for a in (dict(), dict(lr=0.1, betas=(0.8, 0.95), eps=1e-3, weightDecay=0.1))]
    recipes += [('nadam', NAdam, a) for a in (dict(), dict(lr=0.1, betas=(0.8, 0.95), weightDecay=0.1, momentumDecay=0.1))]
    recipes += [('radam', o.RAdam, a) for a in (dict(lr=0.1), dict(lr=0.1, betas=(0.8, 0.9), eps=1e-3, weightDecay=0.1),
                dict(lr=0.1, betas=(0.8, 0.4)))]
    recipes += [('rprop', o.Rprop, a) for a in (dict(), dict(lr=0.1, etas=(0.4, 1.5), stepSizes=(0.05, 0.12)))]
    recipes += [('asgd', kind, a) for kind in (o.ASGD, ASGD) for a in (dict(), dict(lr=0.1, lambd=0.3, alpha=0.5, t0=2.0, weightDecay=0.1))]
    recipes += [('lion', Lion, a) for a in (dict(lr=0.1), dict(lr=0.1, betas=(0.5, 0.8), weightDecay=0.2))]
    recipes += [('lamb', Lamb, a) for a in (dict(lr=0.1), dict(lr=0.1, betas=(0.5, 0.8), weightDecay=0.2))]
    recipes += [('adafactor', Adafactor, a) for a in (dict(lr=0.1), dict(lr=0.9, beta2Decay=-0.5, eps=(0.01, 0.5), d=0.3, weightDecay=0.2))]
    recipes += [('muon', Muon, a) for a in (dict(lr=0.1), dict(lr=0.1, momentum=0.5, nesterov=False, nsSteps=2, adjustLr='matchRmsAdamW'))]
    torch_names = {'weightDecay': 'weight_decay', 'lrDecay': 'lr_decay', 'momentumDecay': 'momentum_decay', 'stepSizes': 'step_sizes'}
    for op, kind, args in recipes:
        own = {torch_names.get(k, k): v for k, v in args.items()}
        run = trajectory(lambda ps: kind(ps, **own))
        out.case(op, run, inputs, grad=False, **args)
        if kind is not o.ASGD:
            out.case(op, run, [uniform(s, dtype=torch.float64) for s in inputs], grad=False, **args)
    # inputs: where to start; outputs: where each of four calls of `step` leads, on Rosenbrock's function.
    for args in (dict(), dict(lr=0.5, historySize=3, maxIter=7)):
        own = {{'historySize': 'history_size', 'maxIter': 'max_iter'}.get(k, k): v for k, v in args.items()}

        def follow(start):
            p = start.detach().clone().requires_grad_()
            optimizer, history = o.LBFGS([p], **own), []

            def closure():
                optimizer.zero_grad()
                loss = ((1 - p[:-1]) ** 2 + 2 * (p[1:] - p[:-1] ** 2) ** 2).sum()
                loss.backward()
                return loss
            for _ in range(4):
                optimizer.step(closure)
                history.append(p.detach().clone())
            return history
        out.case('lbfgs', follow, [uniform([4], dtype=torch.float64)], grad=False, **args)
    # inputs: gradients; outputs: the clipped gradients, then the norm before clipping.
    for limit, p in ((1.0, 2.0), (100.0, 2.0), (0.5, INF), (1.0, 1.0)):
        def clip(*grads):
            ps = [g.detach().clone().requires_grad_() for g in grads]
            for q, g in zip(ps, grads):
                q.grad = g.detach().clone()
            total = torch.nn.utils.clip_grad_norm_(ps, limit, p)
            return [*(q.grad for q in ps), total]
        out.case('clipGradNorm', clip, [[2, 3], [4], []], grad=False, maxNorm=limit, p=p)
    out.case('clipGradValue', lambda g: g.clamp(-0.5, 0.5), [[2, 3]], grad=False, value=0.5)


@family
def schedule(out):
    """No inputs; the output is the learning rate of steps 0, 1, 2… in f64."""
    s = torch.optim.lr_scheduler

    def rates(make, steps):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        scheduler, history = make(optimizer), []
        for _ in range(steps):
            history.append(optimizer.param_groups[0]['lr'])
            optimizer.step()
            scheduler.step()
        return vec(*history, dtype=torch.float64)

    def add(op, make, steps=16, **args):
        out.case(op, lambda: rates(make, steps), [], lr=0.1, **args)

    add('stepLr', lambda o: s.StepLR(o, 4, 0.5), stepSize=4, gamma=0.5)
    add('multiStepLr', lambda o: s.MultiStepLR(o, [3, 8, 9], 0.1), milestones=[3, 8, 9], gamma=0.1)
    add('exponentialLr', lambda o: s.ExponentialLR(o, 0.9), gamma=0.9)
    add('cosineAnnealingLr', lambda o: s.CosineAnnealingLR(o, 15), tMax=15, etaMin=0.0)
    add('cosineAnnealingLr', lambda o: s.CosineAnnealingLR(o, 15, 0.01), tMax=15, etaMin=0.01)
    add('cosineAnnealingWarmRestarts', lambda o: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.01), t0=4, tMult=2, etaMin=0.01)
    add('linearLr', lambda o: s.LinearLR(o, 0.25, 1.0, 5), startFactor=0.25, endFactor=1.0, totalIters=5)
    add('linearLr', lambda o: s.LinearLR(o, 1.0, 0.1, 8), startFactor=1.0, endFactor=0.1, totalIters=8)
    add('constantLr', lambda o: s.ConstantLR(o, 0.5, 4), factor=0.5, totalIters=4)
    add('polynomialLr', lambda o: s.PolynomialLR(o, 10, 2.0), totalIters=10, power=2.0)
    add('oneCycleLr', lambda o: s.OneCycleLR(o, 0.5, total_steps=16, cycle_momentum=False), maxLr=0.5, totalSteps=16, pctStart=0.3,
        divFactor=25.0, finalDivFactor=1e4)
    add('warmupCosine', lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.2, 1.0, 5), s.CosineAnnealingLR(o, 15)], [5]), 20,
        startFactor=0.2, warmup=5, tMax=15, etaMin=0.0)
    add('multiplicativeLr', lambda o: s.MultiplicativeLR(o, lambda step: 0.9), base=0.9)
    for mode, own in (('triangular', 'triangular'), ('triangular2', 'triangular2'), ('exp_range', 'expRange')):
        add('cyclicLr', lambda o: s.CyclicLR(o, 0.1, 0.5, 3, 5, mode=mode, gamma=0.9, cycle_momentum=False), 20, baseLr=0.1, maxLr=0.5,
            stepSizeUp=3, stepSizeDown=5, mode=own, gamma=0.9)
    add('chainedLr', lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]), factor=0.1, totalIters=2, gamma=0.9)

    figures = [3, 2, 2, 2, 2.00001, 1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.49, 0.49, 0.49, 0.49, 0.1, 0.1]
    for args in (dict(patience=2), dict(patience=1, cooldown=2, factor=0.5), dict(mode='max', patience=2, threshold=0.2),
                 dict(patience=0, thresholdMode='abs', threshold=0.3, minLr=0.01)):
        names = {'thresholdMode': 'threshold_mode', 'minLr': 'min_lr'}
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        plateau, history = s.ReduceLROnPlateau(optimizer, **{names.get(k, k): v for k, v in args.items()}), []
        for figure in figures:
            plateau.step(figure)
            history.append(optimizer.param_groups[0]['lr'])
        out.case('plateau', lambda f: vec(*history, dtype=torch.float64), [vec(*figures, dtype=torch.float64)], grad=False, lr=0.1, **args)


@family
def layer(out):
    """Layers as functions, beyond what PyTorch's own samples try."""
    for mode, size in (('bilinear', [3, 4]), ('bicubic', [3, 4]), ('bilinear', [9, 8])):
        for align in (False, True):
            out.case('interpolate', lambda x: F.interpolate(x, size, mode=mode, align_corners=align, antialias=True),
                     [[1, 2, 7, 9]], size=size, mode=mode, alignCorners=align, antialias=True)
    for size in ([5], [11], [3], [14]):
        out.case('interpolate', lambda x: F.interpolate(x, size, mode='nearest-exact'), [[2, 2, 7]], size=size,
                 mode='nearestExact')
    for factor in (2, 3, 1.7, 0.45):
        for mode in ('nearest', 'linear'):
            out.case('interpolate', lambda x: F.interpolate(x, scale_factor=factor, mode=mode), [[1, 2, 7]],
                     scaleFactor=factor, mode=mode)
    out.case('interpolate', lambda x: F.interpolate(x, scale_factor=1.7, mode='linear', recompute_scale_factor=True),
             [[1, 2, 7]], scaleFactor=1.7, mode='linear', recomputeScaleFactor=True)
    for options in ({}, {'stride': 2}, {'padding': 1}, {'dilation': 2, 'padding': 2}):
        columns = F.unfold(torch.zeros(1, 2, 6, 5), 3, **options)
        out.case('col2im', lambda x: F.fold(x, (6, 5), 3, **options), [list(columns.shape)], outputSize=[6, 5],
                 kernelSize=3, **options)
        out.case('im2col', lambda x: F.unfold(x, 3, **options), [[1, 2, 6, 5]], kernelSize=3, **options)
    out.case('channelShuffle', lambda x: F.channel_shuffle(x, 3), [[2, 6, 2, 2]], grad=False, groups=3)
    drawn = [round(0.083 * i + 0.01, 3) for i in range(12)]
    out.case('fractionalMaxPool2d', lambda x: F.fractional_max_pool2d(x, 2, output_size=(4, 3),
             _random_samples=torch.tensor(drawn, dtype=x.dtype).reshape(2, 3, 2)), [[2, 3, 6, 5]], kernelSize=2,
             outputSize=[4, 3], samples=drawn)
    logits = lambda rng: F.log_softmax(uniform([7, 2, 5])(rng).double(), -1).float()
    labels = torch.tensor([1, 2, 2, 4], dtype=torch.int32)
    out.case('ctcLoss', lambda x: F.ctc_loss(x, labels.long(), torch.tensor([7, 5]), torch.tensor([3, 1])), [logits],
             targets=[1, 2, 2, 4], inputLengths=[7, 5], targetLengths=[3, 1])
    out.case('ctcLoss', lambda x: F.ctc_loss(x, labels[:3].long(), torch.tensor([2, 5]), torch.tensor([3, 0]),
             reduction='sum', zero_infinity=True), [logits], targets=[1, 2, 2], inputLengths=[2, 5], targetLengths=[3, 0],
             reduction='sum', zeroInfinity=True)
    bags = torch.tensor([0, 3, 3, 2, 1, 0], dtype=torch.int32)
    offsets = torch.tensor([0, 2, 2, 6], dtype=torch.int32)
    for mode in ('sum', 'mean', 'max'):
        out.case('embeddingBag', lambda w: F.embedding_bag(bags.long(), w, offsets.long(), mode=mode, padding_idx=2,
                 include_last_offset=True), [[4, 3]], mode=mode)
    scores = [[3, 4]]
    out.case('multiMarginLoss', lambda x: F.multi_margin_loss(x, torch.tensor([0, 3, 1]), p=2, margin=0.7,
             weight=torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=x.dtype)), scores, target=[0, 3, 1], p=2, margin=0.7)
    out.case('multilabelMarginLoss', lambda x: F.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1], [-1, 0, 1, 2],
             [0, 1, 2, 3]])), scores, target=[3, 0, -1, 1, -1, 0, 1, 2, 0, 1, 2, 3])
    out.case('tripletMarginLoss', lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=0.5, p=1.5, swap=True),
             [[4, 3]] * 3, margin=0.5, p=1.5, swap=True)
    out.case('gaussianNllLoss', lambda x, t, v: F.gaussian_nll_loss(x, t, v, full=True),
             [[3, 2], [3, 2], uniform([3, 2], 0.1, 2.0)], full=True)
    for p in (1.0, 2.0, 3.0):
        out.case('pdist', lambda x: F.pdist(x, p), [[5, 3]], p=p)


def main(chosen):
    torch.set_num_threads(1)
    folder = pathlib.Path(__file__).resolve().parent.parent / 'test' / 'fixtures' / 'torch'
    folder.mkdir(parents=True, exist_ok=True)
    for name in chosen or families:
        out = Out(name)
        families[name](out)
        text = '[\n' + ',\n'.join(out.lines) + '\n]\n'
        (folder / f'{name}.json').write_text(text)
        json.loads(text)
        print(f'{name}: {len(out.lines)} cases, {len(text):,} bytes')


main(sys.argv[1:])
