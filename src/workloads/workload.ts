// A workload: a function and the shapes it is called with, traced and compiled but never run, so
// that kernels and bytes can be counted on a machine without a GPU. Arguments are constants, which
// take no memory.

/** A named program whose kernels are counted. */
export interface Workload {
  readonly name: string;
  /** What it computes, with its sizes, in one line. */
  readonly about: string;
  readonly fn: (...args: never[]) => unknown;
  /** Arguments to trace it with, made anew at each call. */
  readonly args: () => readonly unknown[];
}

/** A workload of a typed function: the type checker sees that the arguments fit it. */
export function workload<A extends unknown[]>(
  name: string,
  about: string,
  fn: (...args: A) => unknown,
  args: () => [...NoInfer<A>],
): Workload {
  return { name, about, fn: fn as unknown as Workload['fn'], args };
}
