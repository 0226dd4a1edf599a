// Tests hold on a machine that has other work to do: what they say of time is said of processor time (test/support/cpu-time.ts) or
// counted, and the clock on the wall serves only to find what hangs (test/support/limits.ts).

import { expect, test } from 'vitest';
import { testLimit } from '../support/limits.ts';
import { bareCode, filesUnder, readText } from './source.ts';

/** Tests that read the clock on the wall, and why. */
const clocks: Readonly<Record<string, string>> = {
  'test/browser/bundle.test.ts': 'prints how long a page took',
  'test/gpu/suite.ts': 'prints how long the suite took',
  'test/runtime/stopwatch.test.ts': "a device's clock is not ahead of it, however late the device is",
  'test/wasm/death.test.ts': 'bounds a wait for the end of a thread',
};

const tests = filesUnder('test').map((path) => [path, bareCode(readText(path))] as const);

test('what a test says of time does not depend on what else the machine does', () => {
  const clock = new RegExp('performance\\.now\\(|hrtime');
  expect(tests.filter(([, code]) => clock.test(code)).map(([path]) => path)).toEqual(Object.keys(clocks));
});

test('no test has less time than all have before it counts as hung', () => {
  const hasty = tests.flatMap(([path, code]) =>
    Array.from(code.matchAll(/\b(?:test|hook)?[tT]imeout: ([\d_]+)/g), ([text, limit]) => ({
      path,
      text,
      limit,
    })),
  );
  expect(hasty.filter(({ limit }) => Number(limit!.replaceAll('_', '')) < testLimit)).toEqual([]);
});
