// An operation at the position where it is written, for the tables that say how to write it: spelling.ts, and
// wide.ts for integers of 64 bits.

import type { RegisterType, Width } from '../../loop/loop.ts';
import type { Term } from '../shared/term.ts';
import type { WgslPrelude } from './prelude.ts';

/** One use of an operation. */
export interface Site {
  readonly type: RegisterType;
  readonly width: Width;
  readonly args: readonly Term[];
  /** Register type of the first argument. */
  readonly from: RegisterType;
  /** The first, the second and the last argument where they are constants. */
  readonly first: number | undefined;
  readonly second: number | undefined;
  readonly last: number | undefined;
  readonly prelude: WgslPrelude;
}

export type Spelling = (site: Site) => Term;
