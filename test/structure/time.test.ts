// Tests hold on a machine that has other work to do: what they say of time is said of processor time (test/support/cpu-time.ts) or
// counted, and the clock on the wall serves only to find what hangs (test/run/).

import { expect, test } from 'vitest';
import { bareCode, filesUnder, readText } from './source.ts';

/** Tests that read the clock on the wall, and why. */
const clocks: Readonly<Record<string, string>> = {
  'test/browser/bundle.test.ts': 'prints how long a page took',
  'test/distributed/children/gpu.ts': 'says since when it waits for other ranks',
  'test/distributed/children/speed.ts': 'prints how long collectives took',
  'test/gpu/all.ts': 'prints how long each stage took, and ends those that take too long',
  'test/gpu/suite.ts': 'prints how long the suite took',
  'test/mutants/main.ts': 'prints how long a mutant took',
  'test/run/batch.ts': 'bounds how long a test file may take',
  'test/run/main.ts': 'prints how long the run took',
  'test/run/where.ts': 'bounds a wait for the inspector',
  'test/runtime/stopwatch.test.ts': "a device's clock is not ahead of it, however late the device is",
  'test/wasm/death.test.ts': 'bounds a wait for the end of a thread',
};

const tests = filesUnder('test').map((path) => [path, bareCode(readText(path))] as const);

test('what a test says of time does not depend on what else the machine does', () => {
  const clock = new RegExp('performance\\.now\\(|hrtime');
  expect(tests.filter(([, code]) => clock.test(code)).map(([path]) => path)).toEqual(Object.keys(clocks));
});

test('no test has a time limit of its own: the run ends what hangs, and says where it was', () => {
  const limited = tests.flatMap(([path, code]) =>
    Array.from(
      code.matchAll(/\b(?:test|hook)Timeout: ([\d_]+)|\btimeout: ([\d_]+)/g),
      ([text]) => `${path}: ${text}`,
    ),
  );
  expect(limited).toEqual([
    'test/run/vitest.config.ts: testTimeout: 0',
    'test/run/vitest.config.ts: hookTimeout: 0',
  ]);
});
