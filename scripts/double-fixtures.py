#!/usr/bin/env python3
"""Writes test/fixtures/double.json: functions of doubles at many arguments, to more digits than a double has.

Run with any Python that has mpmath (Debian: apt install python3-mpmath), from anywhere:

    python3 scripts/double-fixtures.py

A row is the arguments, the nearest double, and what is missing from it in units of its last place.
"""

import json
import math
import random
from pathlib import Path

import mpmath
from mpmath import mpf

mpmath.mp.prec = 1400
random.seed(20)

COUNT = 60
# Nearest to multiples of pi/2 among all doubles, and among smaller ones.
NEAR_MULTIPLES = [6381956970095103 * 2.0**797, 1.5707963267948966, 3.141592653589793, 11.0, 22.0, 355.0, 1e22, 1.7e308]
TINY = [5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 1e-20, 1e-9]


def uniform(low, high, count=COUNT):
    return [random.uniform(low, high) for _ in range(count)]


def anywhere(low, high, count=COUNT):
    """Magnitudes between two powers of ten, of either sign."""
    return [random.choice([-1, 1]) * 10 ** random.uniform(low, high) for _ in range(count)]


def pairs(xs, ys):
    return list(zip(xs, ys))


def quiet_log1p(x):
    return mpmath.log(1 + x)


ANGLES = uniform(-7, 7) + uniform(-1e6, 1e6) + anywhere(6, 308) + NEAR_MULTIPLES + TINY
ROWS = {
    'exp': (mpmath.exp, uniform(-1, 1) + uniform(-745, 709.7) + uniform(-745, -708) + TINY),
    'exp2': (lambda x: mpf(2) ** x, uniform(-1, 1) + uniform(-1074, 1023.9) + uniform(-1074, -1022) + TINY),
    'expm1': (mpmath.expm1, uniform(-1, 1) + uniform(-40, 709.7) + anywhere(-300, 0) + TINY),
    'log': (mpmath.log, uniform(0.5, 2) + uniform(0.99, 1.01) + [abs(x) for x in anywhere(-308, 308)] + TINY),
    'log2': (lambda x: mpmath.log(x, 2), uniform(0.5, 2) + uniform(0.99, 1.01) + [abs(x) for x in anywhere(-308, 308)] + TINY),
    'log1p': (quiet_log1p, uniform(-0.999, 1) + [abs(x) for x in anywhere(-308, 308)] + anywhere(-18, -1) + TINY),
    'sin': (mpmath.sin, ANGLES),
    'cos': (mpmath.cos, ANGLES),
    'tan': (mpmath.tan, ANGLES),
    'asin': (mpmath.asin, uniform(-1, 1, 120) + uniform(0.99, 1) + TINY),
    'acos': (mpmath.acos, uniform(-1, 1, 120) + uniform(0.99, 1) + uniform(-1, -0.99) + TINY),
    'atan': (mpmath.atan, uniform(-1, 1) + uniform(-10, 10) + anywhere(-308, 308) + TINY),
    'sinh': (mpmath.sinh, uniform(-1, 1) + uniform(-5, 5) + uniform(-710.4, 710.4) + TINY),
    'cosh': (mpmath.cosh, uniform(-1, 1) + uniform(-5, 5) + uniform(-710.4, 710.4) + TINY),
    'tanh': (mpmath.tanh, uniform(-1, 1, 120) + uniform(-20, 20) + TINY),
    'erf': (mpmath.erf, uniform(-1, 1, 120) + uniform(0.4, 0.9) + uniform(-6, 6) + TINY),
    'pow': (
        mpmath.power,
        pairs(uniform(0, 3), uniform(-20, 20))
        + pairs(uniform(0.9, 1.1), uniform(-6000, 6000))
        + pairs([abs(x) for x in anywhere(-300, 300)], uniform(-1, 1))
        + [(float(x), float(y)) for x in range(2, 13) for y in range(-3, 9)],
    ),
    'atan2': (mpmath.atan2, pairs(uniform(-2, 2), uniform(-2, 2)) + pairs(anywhere(-300, 300), anywhere(-300, 300))),
}


def nearest(exact):
    """The nearest double, ties aside, and what is missing, in units of its last place."""
    near = float(exact)
    if exact != 0 and abs(exact) < mpf(2) ** -1022:
        near = float(mpmath.nint(exact * mpf(2) ** 1074)) * 2.0**-1074
    missing = exact - mpf(near)
    return near, float(missing / mpf(math.ulp(near)))


def row(function, given):
    arguments = given if isinstance(given, tuple) else (given,)
    near, missing = nearest(function(*[mpf(x) for x in arguments]))
    return [*arguments, near, round(missing, 4)]


fixtures = {op: [row(function, given) for given in arguments] for op, (function, arguments) in ROWS.items()}
path = Path(__file__).parent.parent / 'test' / 'fixtures' / 'double.json'
compact = json.JSONEncoder(separators=(',', ':'), allow_nan=False).encode
lines = [f'  "{op}": {compact(rows)}' for op, rows in fixtures.items()]
path.write_text('{\n' + ',\n'.join(lines) + '\n}\n')
