#!/usr/bin/env python3
"""Writes test/fixtures/torch-complex.json: what PyTorch gives for complex functions, and their gradients, on both sides of the cuts,
on the axes, near 0 and far out. Run with any Python that has torch 1.13 or later (Debian: apt install python3-torch):

    python3 scripts/complex-fixtures.py

The figures are committed, so tests need no Python. All is computed in complex128. Gradients are those of the real part of the sum of
results times 1 - 0.5i. Numbers are pairs; what is no number is text.
"""

import json
import math
import pathlib

import torch

torch.set_num_threads(1)

parts = [0.0, -0.0, 0.25, -0.75, 2.0, -2.0]
POINTS = [complex(re, im) for re in parts for im in parts if (re, im) != (0, 0)]
POINTS += [complex(*p) for p in [(1e-4, 2e-4), (-3e-4, 1e-4), (12, 3), (-12, 3), (0.8, -30), (1000, 1000), (-1000, 0.5)]]

UNARY = {
    'exp': torch.exp, 'log': torch.log, 'log2': torch.log2, 'log10': torch.log10, 'sqrt': torch.sqrt, 'rsqrt': torch.rsqrt,
    'reciprocal': torch.reciprocal, 'square': torch.square, 'sin': torch.sin, 'cos': torch.cos, 'tan': torch.tan,
    'asin': torch.asin, 'acos': torch.acos, 'atan': torch.atan, 'sinh': torch.sinh, 'cosh': torch.cosh, 'tanh': torch.tanh,
    'asinh': torch.asinh, 'acosh': torch.acosh, 'atanh': torch.atanh, 'abs': torch.abs, 'angle': torch.angle, 'sgn': torch.sgn,
    'sigmoid': torch.sigmoid,
}
BINARY = {'mul': torch.mul, 'div': torch.div, 'pow': torch.pow}


def number(value):
    return value if math.isfinite(value) else str(value)


def listed(values):
    if values.is_complex():
        return [[number(z.real), number(z.imag)] for z in values.tolist()]
    return [number(x) for x in values.tolist()]


def case(f, *inputs):
    leaves = [torch.tensor(values, dtype=torch.complex128, requires_grad=True) for values in inputs]
    result = f(*leaves)
    weight = complex(1, -0.5) if result.is_complex() else 1.0
    total = (result * weight).sum()
    grads = torch.autograd.grad(total.real if total.is_complex() else total, leaves)
    return {'result': listed(result.detach()), 'grads': [listed(g) for g in grads]}


# By a second operand that is none of the others' neighbours.
turned = [z * complex(0.6, -0.7) + complex(0.3, 0.1) for z in POINTS if abs(z) < 10]
near = [z for z in POINTS if abs(z) < 10]
data = {
    'points': [[z.real if z.real or math.copysign(1, z.real) > 0 else '-0', z.imag if z.imag or math.copysign(1, z.imag) > 0 else '-0']
               for z in POINTS],
    'unary': {name: case(f, POINTS) for name, f in UNARY.items()},
    'others': [[z.real, z.imag] for z in turned],
    'near': [i for i, z in enumerate(POINTS) if abs(z) < 10],
    'binary': {name: case(f, near, turned) for name, f in BINARY.items()},
}
path = pathlib.Path(__file__).resolve().parent.parent / 'test' / 'fixtures' / 'torch-complex.json'
path.write_text(json.dumps(data, separators=(',', ':')) + '\n')
