#!/usr/bin/env python3
# Derives the polynomials of the special functions: src/tensor/formula/special/fits/*.ts.
#   apt-get install python3-mpmath; python3 scripts/special/fits.py [FAMILY ...] && npm run format
# Each fit is the Chebyshev series of a smooth function on an interval, computed with 50 digits and cut where the rest is below the
# tolerance; written as a polynomial in the distance from the middle, once with as many terms as f32 needs and once for f64.
import os, struct, sys
from mpmath import mp, mpf, cos, sin, pi, sqrt, log, exp, gamma, loggamma, digamma, erfc, erfinv
from mpmath import besseli, besselj, besselk, bessely, airyai, findroot
import mpmath

mp.dps = 50
TERMS = 80
TOLERANCE = {'f32': mpf('1.2e-8'), 'f64': mpf('1e-14')}


def chebyshev(f, a, b, count):
    """Coefficients of the Chebyshev series of f on [a, b]."""
    nodes = [cos(pi * (k + mpf(1) / 2) / count) for k in range(count)]
    values = [f((a + b) / 2 + (b - a) / 2 * t) for t in nodes]
    series = []
    for j in range(count):
        total = sum(values[k] * cos(j * pi * (k + mpf(1) / 2) / count) for k in range(count))
        series.append(2 * total / count)
    series[0] /= 2
    return series, min(abs(v) for v in values), max(abs(v) for v in values)


def monomials(series, half):
    """The series as a polynomial in the distance from the middle, lowest power first."""
    old, new = [mpf(1)], [mpf(0), mpf(1)]
    total = [mpf(0)] * len(series)
    for k, c in enumerate(series):
        poly = old if k == 0 else new
        if k > 1:
            poly = [mpf(0)] + [2 * v for v in new]
            for i, v in enumerate(old):
                poly[i] -= v
            old, new = new, poly
        for i, v in enumerate(poly):
            total[i] += c * v
    return [v / half ** i for i, v in enumerate(total)]


def rounded(value, dtype):
    return struct.unpack('f', struct.pack('f', float(value)))[0] if dtype == 'f32' else float(value)


def shortest(value, dtype):
    if dtype == 'f64':
        # One digit more than tells it from others, so that it is exactly what is written.
        text = repr(value)
        return '%.18g' % value if sum(c.isdigit() for c in text.split('e')[0].strip('-0.')) > 16 else text
    for digits in range(1, 18):
        text = '%.*g' % (digits, value)
        if struct.pack('f', float(text)) == struct.pack('f', value):
            return repr(float(text))


def settled(poly, half, dtype):
    """
    The coefficients as numbers of the dtype, the highest first: what rounding takes from one, the lower ones make up for as well as a
    Chebyshev polynomial can.
    """
    left = list(poly)
    for k in range(len(left) - 1, 1, -1):
        value = mpf(rounded(left[k], dtype))
        lost = left[k] - value
        unit = [mpf(0)] * k + [mpf(1)]
        for i, v in enumerate(monomials(unit, half)):
            left[i] -= lost * half ** k / mpf(2) ** (k - 1) * v
        left[k] = value
    return [rounded(v, dtype) for v in left]


def fit(name, f, a, b, about, absolute=False, middle=None, dtypes=('f32', 'f64')):
    """A fit whose error is relative, or where f has zeros relative to its greatest value."""
    a, b = mpf(a), mpf(b)
    middle = mpf(rounded((a + b) / 2, 'f32')) if middle is None else mpf(middle)
    half = max(b - middle, middle - a)
    series, least, most = chebyshev(f, middle - half if a < middle - half else a, b, TERMS)
    lists = {}
    for dtype in dtypes:
        allowed = TOLERANCE[dtype] * (most if absolute else least)
        count = TERMS
        while count > 1 and sum(abs(c) for c in series[count - 1:]) < allowed:
            count -= 1
        if count > TERMS - 4:
            print('   !! %s does not converge in %s: %s' % (name, dtype, mpmath.nstr(series[-1], 3)))
        # About the middle of [a, b]; a shift to `middle` where that is another number.
        poly = monomials(series[:count], (b - a) / 2)
        shift = middle - (a + b) / 2
        if shift != 0:
            poly = [sum(poly[j] * mpmath.binomial(j, i) * shift ** (j - i) for j in range(i, count)) for i in range(count)]
        kept = settled(poly, half, dtype)
        worst = mpf(0)
        for k in range(41):
            u = a + (b - a) * k / 40
            if k in (0, 40):
                u += (b - a) * mpf('1e-6') * (1 if k == 0 else -1)
            value = f(u)
            got = mpmath.polyval([mpf(v) for v in reversed(kept)], u - middle)
            worst = max(worst, abs(got - value) / (most if absolute else abs(value)))
        print('%-18s %s %3d terms, error %s' % (name, dtype, count, mpmath.nstr(worst, 3)))
        lists[dtype] = [shortest(v, dtype) for v in reversed(kept)]
    return name, about, float(middle), lists


def write(family, header, fits, constants=()):
    lines = ['// Coefficients of %s, derived by scripts/special/fits.py: highest power first, of the' % header,
             '// distance from the centre.', '', "import type { Fit } from '../polynomial.ts';", '']
    for name, about, value in constants:
        lines += ['/** %s */' % about, 'export const %s = %s;' % (name, value), '']
    for name, about, middle, lists in fits:
        lines += ['/** %s */' % about, 'export const %s: Fit = {' % name, '  center: %r,' % middle]
        for dtype in ('f32', 'f64'):
            lines.append('  %s: [%s],' % (dtype, ', '.join(lists.get(dtype, []))))
        lines += ['};', '']
    path = os.path.join(os.path.dirname(__file__), '../../src/tensor/formula/special/fits/%s.ts' % family)
    with open(path, 'w') as file:
        file.write('\n'.join(lines))


def erfcx(x):
    return exp(x * x) * erfc(x)


def erf_family():
    def scaled(q):
        return 1 / sqrt(pi) if q == 0 else erfcx(1 / q - 2) / q

    def by_log(w):
        # erfinv(x)/x where w = −log(1 − x²).
        if w < mpf('1e-30'):
            return sqrt(pi) / 2
        return inverse(w) / sqrt(-mpmath.expm1(-w))

    def inverse(w):
        # 1 − x = e^−w/(1 + x): the tail in full precision by Newton's steps on log erfc.
        rest = exp(-w) / (1 + sqrt(-mpmath.expm1(-w)))
        y = sqrt(max(w - log(sqrt(w) + 1), mpf('1e-12')))
        for _ in range(60):
            e = erfc(y)
            step = (log(e) - log(rest)) * e / (2 / sqrt(pi) * exp(-y * y))
            y += step
            if abs(step) < mpf('1e-45'):
                break
        return y

    def central(z):
        # Φ⁻¹(½ + d)/d for z = d².
        if z < mpf('1e-30'):
            return sqrt(2 * pi)
        d = sqrt(z)
        return -normal_tail(mpf(1) / 2 - d) / d

    def normal_tail(p):
        # Φ⁻¹(p) for p below ½.
        y = -sqrt(-2 * log(p)) if p < mpf('0.1') else mpf(0)
        for _ in range(80):
            value = erfc(-y / sqrt(2)) / 2
            step = (log(value) - log(p)) * value * sqrt(2 * pi) * exp(y * y / 2)
            y -= step
            if abs(step) < mpf('1e-45'):
                break
        return y

    def tail(s):
        # −Φ⁻¹(p)/s for s = √(−2 log p).
        return -normal_tail(exp(-s * s / 2)) / s

    write('erf', 'the error function\'s relatives', [
        fit('scaledTail', scaled, 0, mpf(1) / 2, 'erfcx(x)/q for q = 1/(x + 2), x ≥ 0.'),
        fit('inverseNear', by_log, 0, 5, 'erfinv(x)/x at w = −log(1 − x²).'),
        fit('inverseFar', lambda s: by_log(s * s), sqrt(mpf(5)), 4.25, 'The same at √w.'),
        fit('inverseLast', lambda s: by_log(s * s), 4.25, 6.25, 'The same at √w, beyond what f32 has.', dtypes=('f64',)),
        fit('normalNear', central, 0, mpf('0.16'), 'Φ⁻¹(½ + d)/d at d².'),
        fit('normalFar', tail, mpf('2.1'), 5, '−Φ⁻¹(p)/s for p ≤ 0.1, at s = √(−2 log p).'),
        fit('normalLast', lambda q: tail(1 / q), mpf('0.026'), mpf(1) / 5, 'The same at 1/s.'),
    ])


def gamma_family():
    root = findroot(digamma, 1.4616)
    high = rounded(root, 'f32')
    low = rounded(root - mpf(high), 'f64')

    def near(center):
        return lambda x: (-mpmath.euler if center == 1 else 1 - mpmath.euler) if x == center else loggamma(x) / (x - center)

    def stirling(z):
        if z == 0:
            return mpf(1) / 12
        x = 1 / sqrt(z)
        return (loggamma(x) - (x - mpf(1) / 2) * log(x) + x - log(2 * pi) / 2) * x

    def stirling_factor(t):
        return mpf(1) if t == 0 else exp((1 / t - mpf(1) / 2) * log(1 / t) - 1 / t + log(2 * pi) / 2 - loggamma(1 / t))

    def by_root(x):
        return mpmath.psi(1, root) if abs(x - root) < mpf('1e-30') else digamma(x) / (x - root)

    def beyond(z):
        if z == 0:
            return mpf(1) / 12
        x = 1 / sqrt(z)
        return (log(x) - 1 / (2 * x) - digamma(x)) / z

    write('gamma', 'the logarithm of the gamma function and its derivative', [
        fit('logGammaAtOne', near(1), mpf('0.5'), mpf('1.5'), 'log Γ(x)/(x − 1).'),
        fit('logGammaAtTwo', near(2), mpf('1.5'), 3, 'log Γ(x)/(x − 2).'),
        fit('logGammaMiddle', near(2), 3, 8, 'log Γ(x)/(x − 2).'),
        fit('stirling', stirling, 0, mpf(1) / 64, 'x·(log Γ(x) − (x − ½)·log x + x − ½·log 2π) at 1/x², x ≥ 8.'),
        fit('digammaNear', by_root, 1, 2, 'ψ(x)/(x − root).'),
        fit('digammaMiddle', digamma, 2, 4, 'ψ(x).'),
        fit('digammaFar', beyond, 0, mpf(1) / 16, 'x²·(log x − 1/(2x) − ψ(x)) at 1/x², x ≥ 4.'),
        fit('stirlingFactor', stirling_factor, 0, 1, '√(2π/a)·(a/e)ᵃ/Γ(a) at 1/a, a ≥ 1.'),
        fit('logRest', lambda x: mpf(1) / 2 if x == 0 else (x - mpmath.log1p(x)) / x ** 2, mpf('-0.5'), mpf('0.75'), '(x − log(1 + x))/x².', middle=0.125),
        fit('expRest', lambda x: mpf(1) / 2 if abs(x) < mpf('1e-20') else (exp(x) - 1 - x) / x ** 2, -1, 1, '(eˣ − 1 − x)/x².'),
    ], [('digammaRoot', 'Where ψ is 0, in two parts.', '[%r, %r] as const' % (high, low))])


def modified_family():
    def large(function):
        return lambda q: 1 / sqrt(2 * pi) if q == 0 else function(1 / q) * exp(-1 / q) * sqrt(1 / q)

    def decay(function):
        return lambda q: sqrt(pi / 2) if q == 0 else function(1 / q) * exp(1 / q) * sqrt(1 / q)

    def k0(z):
        if z == 0:
            return -mpmath.euler
        x = sqrt(z)
        return besselk(0, x) + log(x / 2) * besseli(0, x)

    def k1(z):
        if z < mpf('1e-20'):
            return (2 * mpmath.euler - 1) / 4
        x = sqrt(z)
        return (besselk(1, x) - log(x / 2) * besseli(1, x) - 1 / x) / x

    I = lambda n: lambda x: besseli(n, x)
    K = lambda n: lambda x: besselk(n, x)
    write('modified', 'the modified Bessel functions', [
        fit('i0Near', lambda x: exp(-x) * besseli(0, x), 0, 4, 'e⁻ˣ·I₀(x).'),
        fit('i0Middle', lambda x: exp(-x) * besseli(0, x), 4, 12, 'e⁻ˣ·I₀(x).'),
        fit('i0Far', large(I(0)), 0, mpf(1) / 12, '√x·e⁻ˣ·I₀(x) at 1/x.'),
        fit('i1Near', lambda x: mpf(1) / 2 if x == 0 else exp(-x) * besseli(1, x) / x, 0, 4, 'e⁻ˣ·I₁(x)/x.'),
        fit('i1Middle', lambda x: exp(-x) * besseli(1, x), 4, 12, 'e⁻ˣ·I₁(x).'),
        fit('i1Far', large(I(1)), 0, mpf(1) / 12, '√x·e⁻ˣ·I₁(x) at 1/x.'),
        fit('i0Small', lambda z: besseli(0, sqrt(z)), 0, 1, 'I₀(x) at x², x ≤ 1.'),
        fit('i1Small', lambda z: mpf(1) / 2 if z == 0 else besseli(1, sqrt(z)) / sqrt(z), 0, 1, 'I₁(x)/x at x², x ≤ 1.'),
        fit('k0Near', k0, 0, 1, 'K₀(x) + log(x/2)·I₀(x) at x².', absolute=True),
        fit('k0Middle', lambda x: exp(x) * besselk(0, x), 1, 3, 'eˣ·K₀(x).'),
        fit('k0Far', decay(K(0)), 0, mpf(1) / 3, '√x·eˣ·K₀(x) at 1/x.'),
        fit('k1Near', k1, 0, 1, '(K₁(x) − log(x/2)·I₁(x) − 1/x)/x at x².', absolute=True),
        fit('k1Middle', lambda x: exp(x) * besselk(1, x), 1, 3, 'eˣ·K₁(x).'),
        fit('k1Far', decay(K(1)), 0, mpf(1) / 3, '√x·eˣ·K₁(x) at 1/x.'),
    ])


def bessel_family():
    bound = 5

    def modulus(n, part):
        def value(z):
            if z == 0:
                return mpf(1) if part == 0 else mpf(4 * n * n - 1) / 8
            x = 1 / sqrt(z)
            angle = x - (2 * n + 1) * pi / 4
            j, y = besselj(n, x), bessely(n, x)
            root = sqrt(pi * x / 2)
            if part == 0:
                return root * (j * cos(angle) + y * sin(angle))
            return root * (y * cos(angle) - j * sin(angle)) * x
        return value

    def y0(z):
        if z < mpf('1e-20'):
            return 2 * mpmath.euler / pi
        x = sqrt(z)
        return bessely(0, x) - 2 / pi * log(x / 2) * besselj(0, x)

    def y1(z):
        if z < mpf('1e-20'):
            return (2 * mpmath.euler - 1) / pi / 2
        x = sqrt(z)
        return (bessely(1, x) - 2 / pi * (log(x / 2) * besselj(1, x) - 1 / x)) / x

    fits = []
    top = bound * bound
    for n in (0, 1):
        small = (lambda z: besselj(0, sqrt(z))) if n == 0 else (lambda z: mpf(1) / 2 if z == 0 else besselj(1, sqrt(z)) / sqrt(z))
        by_x = '' if n == 0 else '/x'
        fits += [
            fit('j%dNear' % n, small, 0, 4, 'J%s(x)%s at x², x ≤ 2.' % ('₀₁'[n], by_x)),
            fit('j%dMiddle' % n, small, 4, top, 'J%s(x)%s at x², 2 ≤ x ≤ 5.' % ('₀₁'[n], by_x), absolute=True),
            fit('y%dNear' % n, y0 if n == 0 else y1, 0, 4, 'What log(x/2)·J%s(x) leaves of Y%s(x)%s at x², x ≤ 2.' % ('₀₁'[n], '₀₁'[n], by_x), absolute=True),
            fit('y%dMiddle' % n, lambda x, n=n: bessely(n, x), 2, 5, 'Y%s(x).' % '₀₁'[n], absolute=True),
            fit('phase%dEven' % n, modulus(n, 0), 0, mpf(1) / top, 'Hankel\'s P of order %d at 1/x².' % n),
            fit('phase%dOdd' % n, modulus(n, 1), 0, mpf(1) / top, 'Hankel\'s Q·x of order %d at 1/x².' % n),
        ]
    write('bessel', 'the Bessel functions', fits)


def airy_family():
    def zeta(x):
        return 2 * x * sqrt(x) / 3

    def inverse(t):
        # x for t = 1/ζ.
        return (3 / (2 * t)) ** (mpf(2) / 3)

    def decay(t):
        if t == 0:
            return 1 / (2 * sqrt(pi))
        x = inverse(t)
        return airyai(x) * exp(zeta(x)) * sqrt(sqrt(x))

    def part(even):
        def value(t):
            if t == 0:
                return mpf(1) / sqrt(pi) if even else -mpf(5) / 72 / sqrt(pi)
            x = inverse(sqrt(t))
            a, b = airyai(-x), mpmath.airybi(-x)
            angle = zeta(x) + pi / 4
            root = sqrt(sqrt(x))
            if even:
                return root * (a * sin(angle) + b * cos(angle))
            return root * (a * cos(angle) - b * sin(angle)) * zeta(x)
        return value

    far = 1 / zeta(mpf(2))
    near = 1 / zeta(mpf(3)) ** 2
    write('airy', 'the Airy function', [
        fit('airyWave', lambda x: airyai(x), -3, -1, 'Ai(x).', absolute=True),
        fit('airyNear', lambda x: airyai(x), -1, 1, 'Ai(x).'),
        fit('airyMiddle', lambda x: airyai(x), 1, 2, 'Ai(x).'),
        fit('airyFar', decay, 0, far, 'x^¼·e^ζ·Ai(x) at 1/ζ for ζ = ⅔·x^(3/2), x ≥ 2.'),
        fit('airyEven', part(True), 0, near, 'The factor of sin(ζ + π/4) in x^¼·Ai(−x) at 1/ζ², x ≥ 3.'),
        fit('airyOdd', part(False), 0, near, 'ζ times that of cos(ζ + π/4).'),
    ])


families = {'erf': erf_family, 'gamma': gamma_family, 'modified': modified_family, 'bessel': bessel_family, 'airy': airy_family}

for family in sys.argv[1:] or families:
    print('# ' + family)
    families[family]()
