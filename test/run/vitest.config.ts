// How Vitest runs a batch of test files: one after another in a process that keeps what it has loaded, or each in one of its own
// where they need that; and on the build, whose modules Node imports several times faster than Vite serves the sources.

import { existsSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import type { ViteUserConfig } from 'vitest/config';
import type { TestSpecification } from 'vitest/node';
import bySources from '../../vitest.config.ts';
import { waitLimit } from '../support/limits.ts';
import type { Batch } from './worker/events.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const batch = JSON.parse(readFileSync(process.env['SINTER_TEST_BATCH']!, 'utf8')) as Batch;

/** The module that the build made of one of the sources. */
function built(source: string): string | undefined {
  const place = path.relative(path.join(root, 'src'), source);
  if (place.startsWith('..') || path.isAbsolute(place)) return undefined;
  const file = path.join(root, 'dist', place.replace(/\.ts$/, '.js'));
  return existsSync(file) ? file : undefined;
}

const onTheBuild: Plugin = {
  name: 'sinter-on-the-build',
  enforce: 'pre',
  resolveId(id, importer) {
    const source = path.isAbsolute(id)
      ? id
      : id.startsWith('.') && importer !== undefined
        ? path.resolve(path.dirname(importer), id)
        : undefined;
    const file = source === undefined ? undefined : built(source);
    return file === undefined ? undefined : { id: file, external: true };
  },
};

const config: ViteUserConfig = {
  root,
  plugins: batch.needs.sources ? [] : [onTheBuild],
  resolve: { ...bySources.resolve },
  test: {
    env: { ...bySources.test?.env },
    include: [...batch.files],
    setupFiles: ['test/support/seed.ts'],
    pool: 'forks',
    isolate: batch.needs.own,
    maxWorkers: 1,
    // What hangs is ended from outside: the process that hangs may have no turn left to notice.
    testTimeout: 0,
    hookTimeout: 0,
    expect: { poll: { timeout: waitLimit } },
    teardownTimeout: 20_000,
    execArgv: [`--inspect-port=127.0.0.1:${batch.inspectorPort}`],
    server: { deps: { external: [/\/dist\//] } },
    runner: path.join(root, 'test/run/worker/runner.ts'),
    reporters: [path.join(root, 'test/run/worker/reporter.ts')],
    silent: true,
    sequence: {
      sequencer: class {
        sort(files: TestSpecification[]): TestSpecification[] {
          const place = ({ moduleId }: TestSpecification): number =>
            batch.files.indexOf(path.relative(root, moduleId).replaceAll('\\', '/'));
          return files.toSorted((a, b) => place(a) - place(b));
        }

        shard(files: TestSpecification[]): TestSpecification[] {
          return files;
        }
      },
    },
  },
};
export default config;
