// Integers that an operation takes within a range only.

export interface IntegerRange {
  readonly op: string;
  /** What the integers are: `label`. */
  readonly what: string;
  /** Up to `end`, which is outside. */
  readonly start: number;
  readonly end: number;
  /** What they are outside of: `the 3 classes of f32[1,3]`. */
  readonly where: string;
  /** An integer that may stand there as well. */
  readonly ignored: number | undefined;
}
