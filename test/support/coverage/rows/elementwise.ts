// Arithmetic, functions of one number, comparisons, bits, casts, activations, complex numbers.

import { alike, type Family } from '../row.ts';

const x = 'sn.tensor([[1, -2, 3], [0.5, 4, -1]])';
const y = 'sn.tensor([[2, 3, 1], [1, 5, 4]])';
const one = (name: string): string => `sn.${name}(x)`;
const two = (name: string): string => `sn.${name}(x, y)`;

export const arithmetic: Family = {
  name: 'arithmetic',
  title: 'Arithmetic',
  about:
    'Two operands broadcast: sizes of 1 and missing leading axes are repeated. Results have the common shape, and the common dtype by ' +
    'PyTorch’s rules.',
  inputs: {
    x,
    y,
    z: 'sn.tensor([[1, 2, 3], [4, 5, 6]])',
    edge: 'sn.tensor([NaN, Infinity, -Infinity, 1])',
    powers: 'sn.tensor([1, 2, 3])',
    c: 'sn.tensor([1, -0.5, 2])',
  },
  rows: {
    ...alike('add sub mul div maximum minimum fmax fmin hypot floorDivide remainder fmod', two),
    ...alike('trueDivide rsub logaddexp logaddexp2 copysign heaviside atan2', two),
    'add/alpha': 'sn.add(x, y, { alpha: 2 })',
    'mul/number': 'sn.mul(x, 0.5)',
    'div/floor': "sn.div(x, y, { rounding: 'floor' })",
    addScaled: 'sn.addScaled(x, y, 0.5)',
    pow: 'sn.pow(y, 2)',
    'pow/tensor': 'sn.pow(y, powers)',
    floatPower: 'sn.floatPower(y, 2)',
    ...alike('gcd lcm', (name) => ({
      call: `sn.${name}(x, y)`,
      given: { x: "sn.tensor([4, 6, 9], { dtype: 'i32' })", y: "sn.tensor([6, 10, 3], { dtype: 'i32' })" },
    })),
    ldexp: 'sn.ldexp(x, c)',
    nextafter: { call: 'sn.nextafter(x, y)' },
    addcmul: 'sn.addcmul(x, y, z, { value: 2 })',
    addcdiv: 'sn.addcdiv(x, y, z, { value: 2 })',
    clamp: 'sn.clamp(x, 0, 2)',
    clampMax: 'sn.clampMax(x, 2)',
    clampMin: 'sn.clampMin(x, 0)',
    lerp: 'sn.lerp(x, y, 0.25)',
    nanToNum: 'sn.nanToNum(edge, { posinf: 9 })',
    ...alike('abs neg sign square ceil floor trunc round reciprocal positive frac sgn signbit', one),
    'round/decimals': 'sn.round(x, { decimals: 1 })',
    deg2rad: 'sn.deg2rad(x)',
    rad2deg: 'sn.rad2deg(x)',
    frexp: 'sn.frexp(x)',
  },
};

export const functions: Family = {
  name: 'arithmetic',
  title: 'Functions of one number',
  about:
    'Any shape, which stays. Integers and bool are computed as f32. ±0, infinities and NaN follow C and PyTorch.',
  inputs: {
    x,
    u: 'sn.tensor([0.1, 0.5, 0.9])',
    v: 'sn.tensor([1, 1.5, 4])',
  },
  rows: {
    ...alike('exp exp2 expm1 sin cos tan sinh cosh tanh asinh atan erf erfc', one),
    ...alike('log log2 log10 log1p sqrt rsqrt acosh', (name) => `sn.${name}(v)`),
    ...alike('acos asin atanh', (name) => `sn.${name}(u)`),
  },
};

export const comparisons: Family = {
  name: 'comparisons',
  title: 'Comparisons, booleans, bits and casts',
  about:
    'Operands broadcast. Comparisons and logic give bool for every dtype; bits are those of two’s complement. Casts to integers saturate ' +
    'and take NaN as 0; between integers they wrap.',
  inputs: {
    x,
    y,
    edge: 'sn.tensor([NaN, Infinity, -Infinity, 1])',
    mask: "sn.tensor([[true, false, true], [false, true, false]], { dtype: 'bool' })",
    i: "sn.tensor([6, 3, 1], { dtype: 'i32' })",
    j: "sn.tensor([3, 1, 2], { dtype: 'i32' })",
    a: 'sn.tensor([1, 2, 3])',
    b: 'sn.tensor([1, 2, 4])',
  },
  rows: {
    ...alike('eq ne lt le gt ge logicalAnd logicalOr logicalXor', two),
    ...alike('isFinite isNan isInf isposinf isneginf', (name) => `sn.${name}(edge)`),
    'ne/number': 'sn.ne(x, 0.5)',
    isReal: 'sn.isReal(x)',
    isclose: 'sn.isclose(a, b)',
    allclose: {
      call: 'sn.allclose(a, b, { atol: 1.5 })',
      eager: 'it gives a promise of a boolean',
    },
    equal: { call: 'sn.equal(a, b)', eager: 'it gives a promise of a boolean' },
    logicalNot: 'sn.logicalNot(x)',
    isComplex: 'sn.isComplex(x)',
    ...alike(
      'bitwiseAnd bitwiseOr bitwiseXor bitwiseLeftShift bitwiseRightShift',
      (name) => `sn.${name}(i, j)`,
    ),
    bitwiseNot: 'sn.bitwiseNot(i)',
    where: 'sn.where(mask, x, y)',
    maskedFill: 'sn.maskedFill(x, mask, 0)',
    isin: 'sn.isin(a, b)',
    cast: "sn.cast(x, 'f16')",
    ...alike(
      'bf16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool c64 c128',
      (dtype) => `sn.cast(x, '${dtype}')`,
      'cast/',
    ),
    to: "sn.to(x, 'i32')",
    bitcast: { call: "sn.bitcast(i, 'f32')" },
    ...alike('toBool toFloat toHalf toInt', one),
  },
};

export const activations: Family = {
  name: 'activations',
  title: 'Activations',
  about: 'Any shape, which stays; `glu` halves an axis.',
  inputs: { x, even: 'sn.tensor([[1, -2, 3, 0.5]])', w: 'sn.tensor([0.25])' },
  rows: {
    ...alike(
      'relu relu6 sigmoid silu mish gelu elu celu selu leakyRelu logSigmoid hardsigmoid hardswish',
      one,
    ),
    ...alike('hardtanh softplus softsign tanhshrink softshrink hardshrink', one),
    'gelu/tanh': "sn.gelu(x, { approximate: 'tanh' })",
    'gelu/sigmoid': "sn.gelu(x, { approximate: 'sigmoid' })",
    prelu: 'sn.prelu(x, w)',
    threshold: 'sn.threshold(x, 0.75, -1)',
    glu: 'sn.glu(even)',
  },
};

export const complexNumbers: Family = {
  name: 'complex',
  title: 'Complex numbers',
  about:
    'c64 and c128 are pairs of f32 and of f64 (see [complex numbers](../complex.md)). Gradients are PyTorch’s: ∂L/∂x + i·∂L/∂y.',
  inputs: {
    z: 'sn.complex(sn.tensor([[1, 2], [3, 4]]), sn.tensor([[0, -1], [2, 1]]))',
    re: 'sn.tensor([1, 2])',
    im: 'sn.tensor([0.5, -1])',
    pairs: 'sn.tensor([[1, 2], [3, 4]])',
  },
  rows: {
    complex: 'sn.complex(re, im)',
    polar: 'sn.polar(re, im)',
    ...alike('real conj conjPhysical angle adjoint resolveConj resolveNeg', (name) => `sn.${name}(z)`),
    imag: 'sn.imag(z)',
    viewAsReal: 'sn.viewAsReal(z)',
    viewAsComplex: 'sn.viewAsComplex(pairs)',
  },
};
