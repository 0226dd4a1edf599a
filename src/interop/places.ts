// Whether sums of multiples meet: two elements of a layout at one place, or elements of two layouts.
// Both ask whether Σ xᵢ·sᵢ = t has a solution with each xᵢ from 0 to nᵢ − 1, a bounded knapsack. It
// is searched from the largest stride on, where what the smaller ones reach leaves few multiples
// open, and the greatest common divisor of the rest none at all in most cases.

interface Term {
  readonly stride: number;
  readonly count: number;
}

function gcd(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return x;
}

/** Whether Σ xᵢ·sᵢ = target, with 0 ≤ xᵢ < countᵢ. */
function reaches(given: readonly Term[], target: number): boolean {
  let wanted = target;
  const terms: Term[] = [];
  for (const { stride, count } of given) {
    if (count <= 1 || stride === 0) continue;
    // A negative stride is counted from its other end.
    if (stride < 0) wanted -= stride * (count - 1);
    terms.push({ stride: Math.abs(stride), count });
  }
  terms.sort((a, b) => b.stride - a.stride);
  // What the terms from i on reach at most, and what all of it is a multiple of.
  const rest = new Array<number>(terms.length + 1).fill(0);
  const unit = new Array<number>(terms.length + 1).fill(0);
  for (let i = terms.length - 1; i >= 0; i--) {
    const { stride, count } = terms[i]!;
    rest[i] = rest[i + 1]! + stride * (count - 1);
    unit[i] = gcd(stride, unit[i + 1]!);
  }
  const failed = terms.map(() => new Set<number>());
  const search = (i: number, left: number): boolean => {
    if (left < 0 || left > rest[i]!) return false;
    if (i === terms.length) return left === 0;
    if (left % unit[i]! !== 0 || failed[i]!.has(left)) return false;
    const { stride, count } = terms[i]!;
    const most = Math.min(count - 1, Math.floor(left / stride));
    const least = Math.max(0, Math.ceil((left - rest[i + 1]!) / stride));
    for (let x = most; x >= least; x--) if (search(i + 1, left - x * stride)) return true;
    failed[i]!.add(left);
    return false;
  };
  return search(0, wanted);
}

/** Whether two indices have one place: whether some difference of indices but none adds up to 0. */
export function repeats(shape: readonly number[], strides: readonly number[]): boolean {
  return shape.some((size, first) => {
    if (size <= 1) return false;
    // The first axis that differs does so by 1 to size − 1, those after it either way.
    const terms: Term[] = [{ stride: strides[first]!, count: size - 1 }];
    let target = -strides[first]!;
    if (strides[first] === 0) return true;
    shape.forEach((other, axis) => {
      if (axis <= first) return;
      terms.push({ stride: strides[axis]!, count: 2 * other - 1 });
      target += strides[axis]! * (other - 1);
    });
    return reaches(terms, target);
  });
}

interface Places {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;
}

/** Whether an element of one layout and an element of another have one place. */
export function meets(one: Places, other: Places): boolean {
  const terms = (of: Places, sign: 1 | -1): Term[] =>
    of.shape.map((count, axis) => ({ stride: sign * of.strides[axis]!, count }));
  return reaches([...terms(one, 1), ...terms(other, -1)], other.offset - one.offset);
}
