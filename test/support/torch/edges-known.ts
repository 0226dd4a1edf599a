// Where Sinter means something else than PyTorch 1.13 at an edge, on purpose. Each row is said in the table "Where results differ" of
// docs/pytorch.md;
// a row that no case meets any more is a mistake (test/numerics/torch-edges.test.ts).

import type { Difference } from './edges.ts';

interface Known {
  /** What the table says of it. */
  readonly why: string;
  readonly calls: RegExp;
  readonly parts?: RegExp;
  readonly when?: (difference: Difference) => boolean;
}

const size = ({ operands }: Difference): number =>
  Math.max(0, ...operands.map(Math.abs).filter((x) => Number.isFinite(x)));
const hasInfinity = ({ operands }: Difference): boolean => operands.some((x) => !Number.isFinite(x));
const isGradient = /^grad/;

export const known: readonly Known[] = [
  {
    why: 'functions are right to the ends of the range',
    calls: /sn\.(log1p|sinh|cosh|hardswish)\(a\)/,
    when: (d) => size(d) >= 88 && d.want === Infinity && Number.isFinite(d.got),
  },
  {
    why: 'functions are right to the ends of the range',
    calls: /sn\.(asinh|sigmoid|glu)\(/,
    parts: isGradient,
    when: (d) => size(d) >= 20,
  },
  {
    why: 'functions are right to the ends of the range',
    calls: /sn\.square\(a\)\.sqrt\(\)/,
    parts: isGradient,
    // The derivative of the square overflows, or the square of 1e-20 is below the normal numbers.
    when: (d) => size(d) > 1e38 || (size(d) > 0 && size(d) < 1e-19),
  },
  {
    why: 'functions are right to the ends of the range',
    calls: /sn\.atan2\(a, ?b\)/,
    parts: isGradient,
    // Where the sum of the squares is 0 or infinite; the angle does not turn at the origin (as in PyTorch 2).
    when: (d) => Number.isNaN(d.want) && Number.isFinite(d.got),
  },
  {
    why: 'fmod is exact for every quotient',
    calls: /sn\.(fmod|remainder|floorDivide)\(a, ?b\)|rounding: ?'floor'/,
    when: (d) => Number.isNaN(d.want) && Math.abs(d.operands[1]!) <= 0.5,
  },
  {
    why: 'a gradient takes nothing from the branch not taken',
    calls: /sn\.where\(a\.gt\(0\),a\.log\(\),0\)/,
    parts: isGradient,
    when: (d) => d.got === 0 && Number.isNaN(d.want),
  },
  {
    why: 'sums, products and squares of f32 are f32',
    calls: /sn\.(std|varMean|prod|cumprod)\(a, ?1/,
    when: (d) => size(d) > 1e38 || size(d) < 1e-38 || (d.part === 'out1' && hasInfinity(d)),
  },
  {
    why: 'sums, products and squares of f32 are f32',
    calls: /sn\.cosineSimilarity\(a,b,1\)/,
    when: (d) => size(d) > 1e38,
  },
  {
    why: 'lpPool folds absolute values, whose slope at 0 is 0',
    calls: /sn\.lpPool2d\(a, ?2, ?\{ ?p: ?1 ?\}\)/,
    parts: isGradient,
    when: (d) => d.got === 0 && d.operands[0] === 0,
  },
  {
    why: 'gradients of log-sums keep their digits beside large results',
    calls: /sn\.(logsumexp|logcumsumexp)\(a, ?1\)/,
    parts: isGradient,
    when: (d) => size(d) >= 1e4 && Number.isFinite(d.got),
  },
  {
    why: 'gradients of products never divide',
    calls: /sn\.cumprod\(a, ?1\)/,
    parts: isGradient,
    when: (d) => hasInfinity(d) || size(d) >= 1e17,
  },
  {
    why: 'gradients of products never divide',
    calls: /scatterReduce\(a, 0, b, c, 'prod'\)/,
    parts: isGradient,
    when: (d) => Number.isNaN(d.want) && hasInfinity(d),
  },
  {
    why: 'a gradient takes nothing from the branch not taken',
    calls: /normalize\(a, 1, \{ p: Infinity \}\)/,
    parts: isGradient,
    when: (d) => d.got === 0 && hasInfinity(d),
  },
  {
    why: 'a transposed convolution by an infinite weight is NaN beside it',
    calls: /sn\.convTranspose2d\(/,
    parts: /out0/,
    when: (d) => Number.isNaN(d.got),
  },
  {
    why: 'losses take their limits',
    calls: /sn\.bceWithLogits\(/,
    parts: /out0/,
    when: (d) => d.got === Infinity && Number.isNaN(d.want),
  },
  {
    why: 'losses take their limits',
    calls: /sn\.klDiv\(/,
    parts: /grad1/,
    when: (d) => Number.isNaN(d.want),
  },
  {
    why: 'losses take their limits',
    calls: /sn\.bceLoss\(/,
    parts: /grad1/,
    when: (d) => Math.abs(d.want) === Infinity,
  },
  {
    why: 'the kinks of hardswish',
    calls: /sn\.hardswish\(a\)/,
    parts: isGradient,
    when: (d) => size(d) === 3,
  },
  { why: 'smoothL1Loss with beta 0 is l1Loss', calls: /smoothL1Loss\(.*beta: 0/, parts: isGradient },
  {
    why: 'powers of −0 and −∞',
    calls: /sn\.pow\(a, (-0\.5|1\.5)\)/,
    parts: isGradient,
    when: (d) => d.operands[0] === 0 || d.operands[0] === -Infinity,
  },
  {
    why: 'powers of −0 and −∞',
    calls: /sn\.norm\(a, 0\.5, 1\)/,
    parts: isGradient,
    when: (d) => d.got === 0 && hasInfinity(d),
  },
  {
    why: 'add with alpha rounds once',
    calls: /sn\.add\(a, b, \{ alpha: 2 \}\)/,
    when: (d) => Number.isNaN(d.want) && size(d) > 1e38,
  },
  {
    why: 'a whole number beside integers is an integer',
    calls: /sn\.eq\(a,16777216\.0\)/,
    when: (d) => d.operands[0] === 16777217,
  },
];

/** The row that a difference falls under. */
export function knownRow(difference: Difference): Known | undefined {
  return known.find(
    ({ calls, parts, when }) =>
      calls.test(difference.call) &&
      (parts === undefined || parts.test(difference.part)) &&
      (when === undefined || when(difference)),
  );
}
