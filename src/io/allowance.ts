// Limits how many bytes a file may become. A small file can ask for any amount of memory and time, so readers
// count what they will allocate before they do, and throw an error beyond a limit that is proportional to the
// size of the file.

import { SinterError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';

/** What readers take besides the file. */
export interface LimitOptions {
  /** Most bytes that the file may become; by default 64 MiB and eight times its size. Infinity for none. */
  readonly maxBytes?: number;
}

/** The kinds of the options that every reader takes. */
export const limitTable: arg.Table<LimitOptions> = { maxBytes: arg.notNegative };

/** Bytes of the allowance that do not depend on the file. */
const least = 2 ** 26;
/** And those for each byte of it. */
const perByte = 8;

/** The bytes that are left to a reader. */
export class Allowance {
  readonly #op: string;
  readonly #hint: string;
  readonly #most: number;
  #spent = 0;

  /** `option`: how the caller may say that there is no limit. */
  constructor(op: string, fileBytes: number, most?: number, option = 'maxBytes') {
    this.#op = op;
    this.#most = most ?? least + perByte * fileBytes;
    this.#hint = option;
  }

  /** Bytes that are left. */
  get left(): number {
    return this.#most - this.#spent;
  }

  /** Counts bytes that are about to be made. Throws E_LIMIT where they are too many. */
  spend(bytes: number, what: string): void {
    this.#spent += bytes;
    // NaN is refused as well.
    if (!(this.#spent <= this.#most)) throw this.refusal(what);
  }

  /** The error of what would go beyond the allowance. */
  refusal(what: string): SinterError {
    const problem = `${what} makes more than ${this.#most} bytes of the file`;
    return new SinterError(
      'E_LIMIT',
      `${this.#op}: ${problem}\n  try: ${this.#op}(…, { ${this.#hint}: Infinity }), if the file can be trusted`,
    );
  }
}
