// Factorials, for coefficients of series.

/** n! of a whole n. */
export function factorial(n: number): number {
  return n < 2 ? 1 : n * factorial(n - 1);
}
