#!/usr/bin/env python3
"""Writes test/fixtures/attention.json: what PyTorch computes, in f64, for attention problems that are too large to store.

Run with any Python that has torch and numpy (Debian: apt install python3-torch), from anywhere:

    python3 scripts/attention-fixtures.py

Inputs are not stored: test/numerics/attention-cases.ts makes the same numbers from the same seeds (mulberry32), q from 1, k from
2, v from 3, the cotangent from 99. Of each result and each gradient some elements are stored, and the Euclidean norm.
"""

import json
import math
import pathlib

import numpy as np
import torch

LEAST = -3.4028234663852886e38
DTYPES = {'f32': torch.float32, 'f16': torch.float16, 'bf16': torch.bfloat16}
NUMBERS = {'nan': math.nan, 'inf': math.inf, '-inf': -math.inf}
STORED = 40


def uniform(count, seed):
    """The first numbers in [0, 1) of mulberry32, of 24 bits each."""
    state = (np.arange(1, count + 1, dtype=np.uint64) * 0x6D2B79F5 + seed) % 2**32
    def multiply(a, b):
        return a * b % 2**32
    word = multiply(state ^ (state >> np.uint64(15)), state | np.uint64(1))
    word = ((word + multiply(word ^ (word >> np.uint64(7)), word | np.uint64(61))) % 2**32) ^ word
    word = word ^ (word >> np.uint64(14))
    return (word >> np.uint64(8)).astype(np.float64) * 2.0**-24


def filled(shape, fill, seed, dtype):
    numbers = uniform(math.prod(shape), seed)
    if fill == 'steep':
        first = np.arange(numbers.size) % shape[-1] == 0
        numbers = np.where(first, np.where(numbers < 0.5, -100.0, 100.0), np.floor(numbers * 5) - 2)
    elif fill == 'gentle':
        numbers = numbers - 0.5
    else:
        numbers = numbers * 4 - 2
    return torch.tensor(numbers.reshape(shape)).to(DTYPES[dtype]).double()


def sees(queries, keys):
    i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
    return torch.tensor((i % 8 != 3) & ((i + j) % 3 != 0))


def attend(q, k, v, scale, mask, causal, plain):
    """softmax(q kᵀ scale) v; a row that may see nothing gives zeros, unless the plain form is asked for."""
    queries, keys = q.shape[-2], k.shape[-2]
    scores = q @ k.transpose(-1, -2) * scale
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        seen = seen.tril()
    if mask in ('bool', 'infinite'):
        seen = seen & sees(queries, keys)
    if mask == 'least':
        scores = scores + torch.where(sees(queries, keys), 0.0, LEAST)
    weights = torch.softmax(scores.masked_fill(~seen, -math.inf), -1)
    return (weights if plain else weights.masked_fill(~seen, 0)) @ v


def number(value):
    return value if math.isfinite(value) else str(value)


def sampled(tensor):
    flat = tensor.detach().reshape(-1)
    step = max(1, flat.numel() // STORED)
    # An odd step, so that all columns have their turn.
    at = list(range(0, flat.numel(), step | 1))
    norm = flat.nan_to_num(0, 0, 0).norm().item()
    return {'at': at, 'values': [number(float('%.9g' % flat[i].item())) for i in at], 'norm': float('%.9g' % norm)}


def case(name, queries, keys, width, values=None, batch=(2,), heads=None, fill='tame', dtype='f32', mask=None, causal=False,
         plain=False, scale=None, poison=None):
    """`heads`: of queries and of keys, a leading axis more. `poison`: by input, flat places and what stands there."""
    lead = [list(batch), list(batch)] if heads is None else [[*batch, heads[0]], [*batch, heads[1]]]
    shapes = [[*lead[0], queries, width], [*lead[1], keys, width], [*lead[1], keys, values or width]]
    tensors = []
    for i, shape in enumerate(shapes):
        tensor = filled(shape, 'tame' if i == 2 and fill == 'steep' else fill, i + 1, dtype)
        for place, value in ((poison or {}).get('qkv'[i], {})).items():
            tensor.reshape(-1)[int(place)] = NUMBERS[value]
        tensors.append(tensor.requires_grad_())
    q, k, v = tensors
    shared = 1 if heads is None else heads[0] // heads[1]
    spread = [k, v] if shared == 1 else [x.repeat_interleave(shared, -3) for x in (k, v)]
    factor = 1 / math.sqrt(width) if scale is None else scale
    result = attend(q, *spread, factor, mask, causal, plain)
    upstream = filled(list(result.shape), 'tame', 99, dtype)
    outputs = [result, *torch.autograd.grad(result, tensors, upstream)]
    return {'name': name, 'shapes': shapes, 'fill': fill, 'dtype': dtype, 'mask': mask, 'causal': causal, 'plain': plain,
            'scale': scale, 'poison': poison or {}, 'outputs': [sampled(output) for output in outputs]}


def cases():
    for queries, keys in ((1, 1), (1, 7), (7, 7), (7, 1), (9, 128), (128, 9), (33, 29)):
        yield case(f'{queries} queries, {keys} keys', queries, keys, 8)
    for width in (1, 5, 64, 80, 256):
        yield case(f'heads of {width}', 7, 10, width, batch=(1,))
    yield case('narrow values', 9, 11, 8, values=3)
    yield case('128 positions, causal', 128, 128, 64, batch=(1,), causal=True)
    yield case('1000 positions, causal and masked', 1000, 1000, 8, batch=(1,), causal=True, mask='bool')
    yield case('7 of 1000 positions', 7, 1000, 16, batch=(1,))
    yield case('queries of four heads share two of keys', 9, 11, 8, heads=(4, 2), causal=True)
    for mask in ('bool', 'infinite', 'least'):
        yield case(f'mask {mask}', 9, 11, 8, mask=mask)
        yield case(f'mask {mask} and causal', 9, 11, 8, mask=mask, causal=True)
    yield case('mask bool, plain: rows of NaN', 9, 11, 8, mask='bool', plain=True)
    yield case('steep', 9, 11, 8, fill='steep', scale=1)
    yield case('steep, causal and masked', 9, 11, 8, fill='steep', scale=1, causal=True, mask='bool')
    for dtype in ('f16', 'bf16'):
        yield case(f'{dtype}', 9, 11, 8, fill='gentle', dtype=dtype)
        yield case(f'{dtype}, causal and masked', 9, 11, 8, fill='gentle', dtype=dtype, causal=True, mask='bool')
    yield case('NaN and infinities in q', 9, 11, 8, poison={'q': {'20': 'nan', '40': 'inf', '60': '-inf'}})
    yield case('NaN in k', 9, 11, 8, poison={'k': {'17': 'nan'}})
    yield case('infinities in k', 9, 11, 8, poison={'k': {'17': 'inf', '120': '-inf'}})
    yield case('NaN and infinities in v', 9, 11, 8, poison={'v': {'17': 'nan', '120': 'inf', '121': '-inf'}})


target = pathlib.Path(__file__).resolve().parent.parent / 'test' / 'fixtures' / 'attention.json'
lines = ',\n'.join(json.dumps(one, separators=(',', ':')) for one in cases())
target.write_text(f'[\n{lines}\n]\n')
print(f'{target}: {target.stat().st_size} bytes')
