import { fileURLToPath } from 'node:url';
import type { ViteUserConfig } from 'vitest/config';

import { waitLimit } from './test/support/limits.ts';

const source = (path: string): string => `${fileURLToPath(new URL('src/', import.meta.url))}${path}`;

// Forks, not threads: stopping a worker thread with GPU work in flight aborts the whole process in Dawn for Node.
const config: ViteUserConfig = {
  // The examples import the package as users do; here that is its source, as in tsconfig.json.
  resolve: {
    alias: [
      { find: /^sinter$/, replacement: source('index.ts') },
      { find: /^sinter\/runtime$/, replacement: source('interop/index.ts') },
      {
        find: /^sinter\/(linalg|fft|special|sparse|distributions|masked)$/,
        replacement: source('operations/$1.ts'),
      },
      { find: /^sinter\/(\w+)$/, replacement: source('$1/index.ts') },
    ],
  },
  test: {
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
