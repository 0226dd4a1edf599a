// Whether this machine compiles C.

import { findCompiler } from '../../../src/runtime/native/compiler.ts';

/** Why native code is not tested here; undefined where it is. */
export const withoutCompiler: string | undefined = await findCompiler('native').then(
  () => undefined,
  (error: unknown) => (error instanceof Error ? error.message : String(error)),
);
