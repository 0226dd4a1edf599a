// The compiler as Node has it: Graph in, Program out, with every chunk (compile/chunks.ts) loaded. A page has no `all.ts`: there
// it is the chunk of the compiler, and no file beside it.

import './compile/all.ts';
import './compile/chunks/compiler.ts';

export * from './compile/compile.ts';
