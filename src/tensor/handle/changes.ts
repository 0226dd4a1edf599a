// How often something changed that traces of compiled functions depend on and do not compare: hooks
// of layers, and dtypes of tensors. A trace of an earlier count is made anew.

let count = 0;

/** Something changed that every trace may depend on. */
export function noteChange(): void {
  count += 1;
}

/** How often something changed. */
export function changes(): number {
  return count;
}
