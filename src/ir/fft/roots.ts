// Roots of unity: e^(−2πi·k/n) for integers, to the last bit or two of a double. The angle is
// reduced to an eighth of the circle while it is a fraction of integers, where cosine and sine lose
// nothing; what is exact (±1, ±i, and equal halves of √2) comes out exact.

/** e^(−2πi·k/n) as its real and imaginary part. */
export function root(k: number, n: number): readonly [re: number, im: number] {
  const at = ((k % n) + n) % n;
  // 8·at ≤ 8·n is an integer below 2^53 for every length that a tensor can have.
  const octant = Math.floor((8 * at) / n);
  const rest = 8 * at - octant * n;
  const angle = (part: number): number => (Math.PI / 4) * (part / n);
  // Odd octants are measured from their upper end: cosine and sine change places there.
  const odd = octant % 2 === 1;
  const x = angle(odd ? n - rest : rest);
  const [c, s] = [Math.cos(x), Math.sin(x)];
  const [near, far] = odd ? [s, c] : [c, s];
  switch (octant >> 1) {
    case 0:
      return [near, 0 - far];
    case 1:
      return [0 - far, 0 - near];
    case 2:
      return [0 - near, far];
    default:
      return [far, near];
  }
}
