#!/usr/bin/env python3
"""Writes test/fixtures/complex-infinities.json: what NumPy, which follows Annex G of the C standard, gives for complex functions where a
part is 0, tiny, huge, infinite or not a number. Run with any Python that has NumPy 2:

    python3 scripts/special/infinities.py

All is computed in complex128, at points that complex64 has too. Numbers are pairs; what JSON cannot write is text.
"""

import json
import math
import pathlib

import numpy as np

np.seterr(all='ignore')

PARTS = [0.0, -0.0, 2.0**-100, 0.5, -1.0, 2.0, 85.0, -100.0, 1000.0, 2.0**100, math.inf, -math.inf, math.nan]
FUNCTIONS = {
    'exp': np.exp, 'log': np.log, 'sqrt': np.sqrt, 'sin': np.sin, 'cos': np.cos, 'tan': np.tan, 'sinh': np.sinh, 'cosh': np.cosh,
    'tanh': np.tanh, 'asin': np.arcsin, 'acos': np.arccos, 'atan': np.arctan, 'asinh': np.arcsinh, 'acosh': np.arccosh,
    'atanh': np.arctanh, 'abs': np.abs, 'angle': np.angle, 'reciprocal': np.reciprocal, 'sgn': np.sign,
}


def number(x):
    x = float(x)
    return str(x) if not math.isfinite(x) or (x == 0 and math.copysign(1, x) < 0) else x


def figures(name, points):
    """None where the functions define the value in different ways: 1/0, and the sign of what has no direction."""
    z = np.array([complex(*p) for p in points])
    values = FUNCTIONS[name](z)
    listed = [[number(v.real), number(v.imag)] if np.iscomplexobj(values) else number(v) for v in values]
    for i, (re, im) in enumerate(points):
        if (name == 'reciprocal' and re == im == 0) or (name == 'sgn' and (math.isnan(re) or math.isnan(im))):
            listed[i] = None
    return listed


points = [(re, im) for re in PARTS for im in PARTS]
data = {'points': [[number(re), number(im)] for re, im in points], 'values': {name: figures(name, points) for name in FUNCTIONS}}
path = pathlib.Path(__file__).resolve().parent.parent.parent / 'test' / 'fixtures' / 'complex-infinities.json'
path.write_text(json.dumps(data, separators=(',', ':')) + '\n')
