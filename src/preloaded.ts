// What a bundled page downloads later, there from the start in Node: the compiler with all its chunks, explain, and why operations
// are compiled once more. `browser` in
// package.json leaves this file out of pages.

import * as made from './explain/explain.ts';
import { supplyExplaining } from './explain/front.ts';
import { tellNovelties } from './tensor/profiling/profile.ts';

supplyExplaining(made);
tellNovelties();
