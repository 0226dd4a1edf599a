// Whether this machine compiles C, and the environment for tests of native code: a run that hides the compiler from other tests
// (`SINTER_CC=none`) names it in `SINTER_TEST_CC`.

import { findCompiler } from '../../../src/runtime/native/compiler.ts';

/** The name of the compiler that the run was started with; empty for the usual ones. */
export const compilerName: string = process.env['SINTER_TEST_CC'] ?? process.env['SINTER_CC'] ?? '';

export const compilerEnv: Readonly<Record<string, string | undefined>> = {
  ...process.env,
  SINTER_CC: compilerName,
};

/** Why native code is not tested here; undefined where it is. */
export const withoutCompiler: string | undefined = await findCompiler('native', { env: compilerEnv }).then(
  () => undefined,
  (error: unknown) => (error instanceof Error ? error.message : String(error)),
);
