// The compiler as Node has it: Graph in, Program out, with every chunk (compile/chunks.ts) loaded.

import './compile/all.ts';

export * from './compile/compile.ts';
