import type { ViteUserConfig } from 'vitest/config';

// Forks, not threads: stopping a worker thread with GPU work in flight aborts the whole process in Dawn for Node.
const config: ViteUserConfig = {
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/seed.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/reporter.ts'],
  },
};
export default config;
