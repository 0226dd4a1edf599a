#!/usr/bin/env python3
# Figures of the special functions: test/fixtures/special.json.
#   apt-get install python3-mpmath; python3 scripts/special/fixtures.py
# Per function and dtype: arguments that the dtype holds, over the range of the function, and its values by mpmath with 40 digits.
# `scale`, where it is there, is what errors are measured by in place of the value: the amplitude of a wave, or the greatest term of a
# sum that has zeros.
import json, os, random, struct
import mpmath
from mpmath import mp, mpf, exp, log, sqrt, pi, erfc, erf, cot, sin, cos

mp.dps = 40


def single(x):
    return struct.unpack('f', struct.pack('f', float(x)))[0]


def spread(rng, low, high, count, kind):
    if kind == 'log':
        return [float(exp(log(mpf(low)) + (log(mpf(high)) - log(mpf(low))) * rng.random())) for _ in range(count)]
    if kind == '-log':
        return [-v for v in spread(rng, low, high, count, 'log')]
    return [low + (high - low) * rng.random() for _ in range(count)]


def shown(value):
    if mpmath.isnan(value):
        return 'nan'
    if mpmath.isinf(value):
        return 'inf' if value > 0 else '-inf'
    value = mpf(value)
    return 0 if value == 0 else float(mpmath.nstr(value, 17)) if abs(value) > mpf('1e-300') else 0


def erfcx(x):
    return exp(x * x) * erfc(x)


def ndtr(x):
    return erfc(-x / sqrt(2)) / 2


def solve(f, slope, start):
    y = mpf(start)
    for _ in range(200):
        step = f(y) / slope(y)
        y -= step
        if abs(step) <= abs(y) * mpf(10) ** -38:
            break
    return y


def erfinv(x):
    if x == 0:
        return mpf(0)
    a = abs(x)
    rest = 1 - a
    if a < mpf('0.5'):
        y = solve(lambda t: erf(t) - a, lambda t: 2 / sqrt(pi) * exp(-t * t), a * sqrt(pi) / 2)
    else:
        start = sqrt(max(-log(rest) - log(sqrt(-log(rest)) + 1), mpf('0.2')))
        y = solve(lambda t: log(erfc(t)) - log(rest), lambda t: -2 / sqrt(pi) * exp(-t * t) / erfc(t), start)
    return y if x > 0 else -y


def ndtri(p):
    if p == mpf('0.5'):
        return mpf(0)
    q = min(p, 1 - p)
    start = -sqrt(-2 * log(q)) if q < 0.05 else sqrt(2 * pi) * (q - mpf(1) / 2)
    y = solve(lambda t: log(ndtr(t)) - log(q), lambda t: exp(-t * t / 2) / sqrt(2 * pi) / ndtr(t), start)
    return y if p < mpf('0.5') else -y


def lgamma(x):
    return log(abs(mpmath.gamma(x))) if x < 1e4 else mpmath.loggamma(x)


def lgamma_scale(x):
    return max(abs(lgamma(x)), abs(lgamma(-x)) if x < -0.5 else 0)


def digamma_scale(x):
    value = abs(mpmath.digamma(x))
    return max(value, abs(pi * cot(pi * x)), abs(mpmath.digamma(1 - x))) if x < 0 else value


def polygamma_scale(n):
    def scale(x):
        value = abs(mpmath.psi(n, x))
        return max(value, abs(mpmath.psi(n, 1 - x))) if x < 0 else value
    return scale


def wave(x):
    return 0 if abs(x) < 2 else sqrt(2 / (pi * abs(x)))


def entr(x):
    return -x * log(x)


def logit(x):
    return log(x / (1 - x))


# name: (f, scale or None, ranges for f32, more ranges for f64)
ROWS = {
    'erf': (erf, None, [(-5, 5, 60, ''), (1e-30, 0.1, 10, 'log')], []),
    'erfc': (erfc, None, [(-4, 10.05, 120, ''), (1e-20, 0.1, 10, 'log'), (8, 10.05, 20, '')], [(10, 26, 30, '')]),
    'special.erfcx': (erfcx, None, [(-9.3, 0, 60, ''), (0, 30, 60, ''), (1, 1e30, 30, 'log')], [(-26, 0, 20, '')]),
    'special.ndtr': (ndtr, None, [(-14.1, 6, 150, ''), (-3, 3, 40, '')], [(-37, -14, 30, '')]),
    'special.logNdtr': (lambda x: mpmath.log1p(-ndtr(-x)) if x > 0 else log(ndtr(x)), None, [(-30, 13, 150, ''), (-1e18, -1, 30, ''), (-3, 3, 30, '')], [(13, 36, 20, '')]),
    'erfinv': (erfinv, None, [(-1, 1, 120, ''), (1e-30, 0.1, 20, 'log')], []),
    'special.ndtri': (ndtri, None, [(0, 1, 120, ''), (1e-37, 0.1, 60, 'log')], [(1e-300, 1e-30, 30, 'log')]),
    'lgamma': (lgamma, lgamma_scale, [(1e-30, 0.5, 30, 'log'), (0.1, 4, 120, ''), (4, 50, 60, ''), (1, 1e36, 40, 'log'), (-0.5, 0, 20, ''), (-20, -0.5, 60, '')], []),
    'digamma': (mpmath.digamma, digamma_scale, [(1e-30, 0.5, 30, 'log'), (0, 8, 120, ''), (1, 1e36, 40, 'log'), (-20, 0, 60, '')], []),
    'polygamma(1)': (lambda x: mpmath.psi(1, x), polygamma_scale(1), [(1e-15, 1, 40, 'log'), (0, 20, 80, ''), (1, 1e30, 30, 'log'), (-10, 0, 40, '')], []),
    'polygamma(2)': (lambda x: mpmath.psi(2, x), polygamma_scale(2), [(1e-10, 1, 40, 'log'), (0, 20, 80, ''), (1, 1e15, 30, 'log'), (-10, 0, 40, '')], []),
    'polygamma(3)': (lambda x: mpmath.psi(3, x), polygamma_scale(3), [(1e-8, 1, 40, 'log'), (0, 20, 80, ''), (1, 1e10, 30, 'log'), (-10, 0, 40, '')], []),
    'i0': (lambda x: mpmath.besseli(0, x), None, [(-10, 10, 60, ''), (0, 91, 80, '')], [(91, 700, 20, '')]),
    'special.i0e': (lambda x: exp(-abs(x)) * mpmath.besseli(0, x), None, [(-20, 20, 100, ''), (1, 1e30, 30, 'log')], []),
    'special.i1': (lambda x: mpmath.besseli(1, x), None, [(-10, 10, 60, ''), (0, 91, 80, ''), (1e-30, 1, 20, 'log')], [(91, 700, 20, '')]),
    'special.i1e': (lambda x: exp(-abs(x)) * mpmath.besseli(1, x), None, [(-20, 20, 100, ''), (1, 1e30, 30, 'log'), (1e-30, 1, 20, 'log')], []),
    'special.modifiedBesselK0': (lambda x: mpmath.besselk(0, x), None, [(0, 10, 100, ''), (5, 85, 40, ''), (1e-30, 1, 40, 'log')], [(85, 690, 20, '')]),
    'special.modifiedBesselK1': (lambda x: mpmath.besselk(1, x), None, [(0, 10, 100, ''), (5, 85, 40, ''), (1e-30, 1, 40, 'log')], [(85, 690, 20, '')]),
    'special.scaledModifiedBesselK0': (lambda x: exp(x) * mpmath.besselk(0, x), None, [(0, 10, 100, ''), (1, 1e30, 40, 'log'), (1e-30, 1, 40, 'log')], []),
    'special.scaledModifiedBesselK1': (lambda x: exp(x) * mpmath.besselk(1, x), None, [(0, 10, 100, ''), (1, 1e30, 40, 'log'), (1e-30, 1, 40, 'log')], []),
    'special.besselJ0': (lambda x: mpmath.besselj(0, x), wave, [(-10, 10, 100, ''), (0, 100, 40, ''), (1, 1e6, 30, 'log')], []),
    'special.besselJ1': (lambda x: mpmath.besselj(1, x), wave, [(-10, 10, 100, ''), (0, 100, 40, ''), (1, 1e6, 30, 'log'), (1e-30, 1, 10, 'log')], []),
    'special.besselY0': (lambda x: mpmath.bessely(0, x), lambda x: max(wave(x), mpf('0.5')) if x < 5 else wave(x), [(0, 10, 100, ''), (0, 100, 40, ''), (1, 1e6, 30, 'log'), (1e-30, 1, 20, 'log')], []),
    'special.besselY1': (lambda x: mpmath.bessely(1, x), lambda x: 0 if x < 1 else max(wave(x), mpf('0.5')) if x < 5 else wave(x), [(0, 10, 100, ''), (0, 100, 40, ''), (1, 1e6, 30, 'log'), (1e-30, 1, 20, 'log')], []),
    'special.sphericalBesselJ0': (lambda x: sin(x) / x, lambda x: 0 if abs(x) < 2 else 1 / abs(x), [(-10, 10, 60, ''), (1, 1e6, 30, 'log')], []),
    'sinc': (lambda x: sin(pi * x) / (pi * x), None, [(-10, 10, 60, ''), (1, 1e4, 30, 'log')], []),
    'special.airyAi': (mpmath.airyai, lambda x: 0 if x > -1 else 1 / sqrt(pi) / sqrt(sqrt(-x)), [(-10, 10, 120, ''), (2, 25, 40, ''), (-400, -3, 40, '')], [(25, 100, 20, '')]),
    'special.entr': (entr, None, [(0, 5, 40, ''), (1e-30, 0.1, 20, 'log')], []),
    'logit': (logit, None, [(0, 1, 80, ''), (1e-30, 0.1, 20, 'log')], []),
}


def zeta_cases(rng, dtype):
    pairs = []
    for _ in range(120):
        s = 1 + exp(mpf(rng.uniform(-3, 3.2)))
        q = exp(mpf(rng.uniform(-3, 6 if s < 6 else 2)))
        pairs.append((s, q))
    for _ in range(20):
        pairs.append((mpf(rng.randint(2, 7)), -mpf(rng.uniform(0.05, 12))))
    # Far out q^-s is no number any more, and q^(1 - s) is one.
    for _ in range(30):
        pairs.append((1 + exp(mpf(rng.uniform(-6, 1.5))), exp(mpf(rng.uniform(5, 85 if dtype == 'f32' else 600)))))
    return pairs


def zeta(s, q):
    # Euler and Maclaurin's terms, where the next one counts for nothing.
    return mpmath.zeta(s, q) if q < 1e9 else q ** (1 - s) / (s - 1) + q ** -s / 2 + s * q ** (-s - 1) / 12


def zeta_scale(s, q):
    return abs(zeta(s, q)) if q > 0 else max(abs(zeta(s, q)), abs(mpmath.nint(q) - q) ** -s)


def gamma_cases(rng, dtype):
    pairs = []
    for _ in range(80):
        a = exp(mpf(rng.uniform(-4, 6)))
        pairs.append((a, a * exp(mpf(rng.uniform(-1.5, 1.2)))))
    for _ in range(60):
        a = mpf(rng.uniform(0.1, 30))
        pairs.append((a, max(mpf('0.01'), a + sqrt(a) * mpf(rng.gauss(0, 1.5)))))
    for _ in range(20):
        a = exp(mpf(rng.uniform(5, 10)))
        pairs.append((a, a + sqrt(a) * mpf(rng.gauss(0, 1.5))))
    # Tiny orders, which 1 + a loses.
    for _ in range(30):
        pairs.append((exp(mpf(rng.uniform(-60, -4))), exp(mpf(rng.uniform(-50, 3)))))
    return pairs


def lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


PAIRS = {
    'special.zeta': (zeta, zeta_scale, zeta_cases),
    'igamma': (lower, lambda a, x: lower(a, x) * max(1, -log(lower(a, x))), gamma_cases),
    'igammac': (upper, lambda a, x: upper(a, x) * max(1, -log(upper(a, x))), gamma_cases),
    'xlogy': (lambda x, y: x * log(y), None, lambda rng, d: [(mpf(rng.uniform(-5, 5)), exp(mpf(rng.uniform(-20, 20)))) for _ in range(40)]),
    'special.xlog1py': (lambda x, y: x * mpmath.log1p(y), None, lambda rng, d: [(mpf(rng.uniform(-5, 5)), exp(mpf(rng.uniform(-20, 20)))) for _ in range(40)]),
}


def table():
    out = {}
    limits = {'f32': (mpf('1e-37'), mpf('3.4e38')), 'f64': (mpf('1e-300'), mpf('1e300'))}
    for name, (f, scale, ranges, more) in ROWS.items():
        rng = random.Random(name)
        row = {}
        for dtype in ('f32', 'f64'):
            held = single if dtype == 'f32' else float
            xs = []
            for low, high, count, kind in ranges + (more if dtype == 'f64' else []):
                xs += [held(v) for v in spread(rng, low, high, count if dtype == 'f32' else max(8, count // 3), kind)]
            kept = {'args': [[]], 'values': []}
            scales = []
            for x in xs:
                if x in (0, 1) or (x == int(x) and x <= 0):
                    continue
                value = f(mpf(x))
                least = mpf('1e-45') if name in ('erfc', 'special.ndtr') and dtype == 'f32' else limits[dtype][0]
                if not (least < abs(value) < limits[dtype][1]) and value != 0:
                    continue
                kept['args'][0].append(x)
                kept['values'].append(shown(value))
                scales.append(shown(scale(mpf(x))) if scale else 0)
            if scale:
                kept['scale'] = [s if s > abs(v) * (1 + 1e-15) else 0 for s, v in zip(scales, kept['values'])]
            row[dtype] = kept
        out[name] = row
        print(name, len(row['f32']['values']), len(row['f64']['values']), flush=True)
    for name, (f, scale, cases) in PAIRS.items():
        row = {}
        for dtype in ('f32', 'f64'):
            rng = random.Random(name.replace('igammac', 'igamma') + dtype)
            held = single if dtype == 'f32' else float
            kept = {'args': [[], []], 'values': []}
            scales = []
            for pair in cases(rng, dtype):
                a, x = [held(v) for v in pair]
                value = f(mpf(a), mpf(x))
                if not (limits[dtype][0] < abs(value) < limits[dtype][1]):
                    continue
                kept['args'][0].append(a)
                kept['args'][1].append(x)
                kept['values'].append(shown(value))
                scales.append(shown(scale(mpf(a), mpf(x))) if scale else 0)
            if scale:
                kept['scale'] = [s if s > abs(v) * (1 + 1e-15) else 0 for s, v in zip(scales, kept['values'])]
            row[dtype] = kept
        out[name] = row
        print(name, len(row['f32']['values']), len(row['f64']['values']), flush=True)
    return out


def compact(value):
    if isinstance(value, dict):
        return '{' + ','.join('%s:%s' % (json.dumps(k), compact(v)) for k, v in value.items()) + '}'
    if isinstance(value, list):
        return '[' + ','.join(compact(v) for v in value) + ']'
    return json.dumps(value)


path = os.path.join(os.path.dirname(__file__), '../../test/fixtures/special.json')
with open(path, 'w') as file:
    rows = table()
    file.write('{\n' + ',\n'.join('%s:%s' % (json.dumps(k), compact(v)) for k, v in rows.items()) + '\n}\n')
