// The text of Loops, as a page has it: for messages of errors, which few pages ever see.

import { Lazy } from '../../lazy.ts';
import type { printLoop, printStmt, printValue } from './print.ts';

/** What spells Loops and parts of them. */
export interface Printer {
  readonly printLoop: typeof printLoop;
  readonly printStmt: typeof printStmt;
  readonly printValue: typeof printValue;
}

export const printer: Lazy<Printer> = new Lazy('the text of loops', () => import('./print.ts'));
