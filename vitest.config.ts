import type { ViteUserConfig } from 'vitest/config';

import { sourcePaths } from './test/support/source-paths.ts';
import { waitLimit } from './test/support/limits.ts';

// Forks, not threads: stopping a worker thread with GPU work in flight aborts the whole process in Dawn for Node.
const config: ViteUserConfig = {
  // The examples import the package as users do; here that is its source, as in tsconfig.json.
  resolve: {
    alias: sourcePaths.map(([name, file]) => ({
      find: new RegExp(`^${name.replace('*', String.raw`(\w+)`)}$`),
      replacement: file.replace('*', '$1'),
    })),
  },
  test: {
    // The default device is WebAssembly wherever tests run. Those of compiled C look for the compiler by the other variable.
    env: {
      SINTER_CC: 'none',
      SINTER_TEST_CC: process.env['SINTER_TEST_CC'] ?? process.env['SINTER_CC'] ?? '',
    },
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/seed.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // What hangs is ended by `npm test` (test/run/), which says where it was.
    testTimeout: 0,
    hookTimeout: 0,
    expect: { poll: { timeout: waitLimit } },
    reporters: ['default', './test/reporter.ts'],
  },
};
export default config;
