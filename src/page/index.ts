// `sinter` for bundled pages: the names of ../index.ts. The code of operations that are not everybody's comes when they are
// first called; what such a call gives waits for it (../tensor/waiting.ts).

import './methods.ts';

export * from '../basics.ts';
// In place of those of the basics.
export { customJvp, customVjp } from './functions.ts';
export * from './core.ts';
export * from './functions.ts';
export * from './rare.ts';
export * from './spaces.ts';
