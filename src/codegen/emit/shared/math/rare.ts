// Functions that few programs call: logarithms, powers and remainders, those of angles, roundings to 16 bits, and all of doubles.
// A chunk of its own fills them in (compile/chunks.ts).

import { Slot } from '../../../../slot.ts';
import type { reduceAngle } from './angle.ts';
import type { FloatFunctions, Functions, RareFloatFunctions } from './functions.ts';
import type { mod } from './round.ts';

/** What the chunk of rare functions has. */
export interface RareFunctions {
  /** Of f32. */
  readonly singles: RareFloatFunctions & Functions;
  readonly doubles: FloatFunctions;
  readonly reduceAngle: typeof reduceAngle;
  readonly mod: typeof mod;
}

export const rareFunctions: Slot<RareFunctions> = new Slot(
  'functions that WebAssembly has no instructions for',
);
