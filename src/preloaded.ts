// What a bundled page downloads later, there from the start in Node: the compiler with all its chunks, and explain. `browser` in
// package.json leaves this file out of pages.

import * as made from './explain/explain.ts';
import { supplyExplaining } from './explain/front.ts';

supplyExplaining(made);
