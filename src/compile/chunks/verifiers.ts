// The chunk of verifiers, which look at every stage of what is compiled with `check`, and of the text of Loops.

import './compiler.ts';
import { printLoop, printStmt, printValue } from '../../codegen/loop/print.ts';
import { loopText } from '../../codegen/loop/text.ts';
import { verifyLoop } from '../../codegen/loop/verify.ts';
import { verify } from '../../ir/verify.ts';
import { verifyKernel } from '../../schedule/verify.ts';
import { fill, type Slot } from '../../slot.ts';
import { verifiers } from '../slots.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [verifiers, { verify, verifyKernel, verifyLoop }],
  [loopText, { printLoop, printStmt, printValue }],
);
