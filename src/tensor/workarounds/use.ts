// useWorkarounds: has programs of a session avoid what `check` found to be wrong.

import { adjustmentOf, type Workarounds } from '../../check/workarounds.ts';
import { adjustBy } from './adjusting.ts';

export type { Workaround, Workarounds } from '../../check/workarounds.ts';

/**
 * Has programs that run from now on avoid what `check` found to be wrong; undefined avoids nothing. Throws
 * ParseError E_FORMAT where it is no such table.
 */
export function useWorkarounds(workarounds: Workarounds | undefined): void {
  adjustBy(workarounds === undefined ? undefined : adjustmentOf(workarounds, 'useWorkarounds'));
}
