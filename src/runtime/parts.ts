// What the backends that a page can have share. The registry holds it, so that bundlers put it beside the registry, in a file that
// every page loads anyway: in files of its own it would be three requests more before the first result.

import { givenBuffers, Plans } from './plans.ts';
import { checkProgram } from './check.ts';
import { Failures } from './failures.ts';
import { ProgramLayout } from './layout.ts';
import { checkLimits } from './limits.ts';
import { Scratch } from './scratch.ts';
import { SharedEntries } from './shared.ts';
import { Timeline } from './timeline.ts';
import { Turns } from './turns.ts';

/** A name of each module. Nobody reads the list. */
export const parts: readonly unknown[] = [
  givenBuffers,
  checkProgram,
  Failures,
  ProgramLayout,
  checkLimits,
  Plans,
  Scratch,
  SharedEntries,
  Timeline,
  Turns,
];
