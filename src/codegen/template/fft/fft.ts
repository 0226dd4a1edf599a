// fft: discrete Fourier transforms of lines that one workgroup, or one core, can hold. Longer ones
// were taken apart before (passes/fft.ts).

import { packsOperands } from '../../../schedule/machine.ts';
import type { Loop } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { serialFftLoop } from './cpu.ts';
import { sharedFftLoop } from './gpu.ts';

/** The Loop of a kernel of transforms. */
export function fftLoop(frame: Frame): Loop {
  return packsOperands(frame.target) ? serialFftLoop(frame) : sharedFftLoop(frame);
}
