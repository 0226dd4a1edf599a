// What few programs ask for: Loops with lanes of 64 bits, and modules as text. A chunk fills it in (compile/chunks.ts).

import { Slot } from '../../../slot.ts';
import type { printModule } from './module/wat.ts';
import type { halveVectors } from './rewrite/halves.ts';

export const vectorHalving: Slot<typeof halveVectors> = new Slot('vectors of 64-bit lanes in WebAssembly');

export const moduleText: Slot<typeof printModule> = new Slot('the text of WebAssembly');
