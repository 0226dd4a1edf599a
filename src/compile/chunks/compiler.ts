// The chunk that every program needs: the compiler itself. The other chunks import this one, so that bundlers see that what they
// share is there already, and make no files of their own of it.

import { fill, type Slot } from '../../slot.ts';

export { castDoubleInputs, compileGraph } from '../compile.ts';

// What the chunks of the languages have in common: one name of the module brings it here.
export { byFormula } from '../../ir/formula.ts';

/** None. A module without a statement of its own would leave the compiler to a file beside that of this chunk. */
export const slots: readonly Slot<unknown>[] = fill();
