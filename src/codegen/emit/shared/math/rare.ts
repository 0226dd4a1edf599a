// Functions that few programs call: those of angles, and all of doubles. A chunk of its own fills them in (compile/chunks.ts).

import { Slot } from '../../../../slot.ts';
import type { AngleFunctions, FloatFunctions } from './functions.ts';
import type { reduceAngle } from './angle.ts';
import type { scale } from './double-exp.ts';

/** What the chunk of rare functions has. */
export interface RareFunctions {
  /** Of f32. */
  readonly angles: AngleFunctions;
  readonly doubles: FloatFunctions;
  readonly reduceAngle: typeof reduceAngle;
  /** A double times a power of two. */
  readonly scaleDouble: typeof scale;
}

export const rareFunctions: Slot<RareFunctions> = new Slot('functions of angles and of doubles');
