// The device `native` of the tests that run on every device.

import { expect, test } from 'vitest';
import { openDevice } from '../../../src/runtime/registry.ts';
import { everyDevice } from '../../support/devices.ts';
import { isQuick } from '../../support/sample.ts';
import { withoutCompiler } from './machine.ts';

test('tests of every device run on compiled C, in the full tier', async (context) => {
  if (withoutCompiler !== undefined) context.skip(withoutCompiler);
  expect(everyDevice.includes('native')).toBe(!isQuick);
  if (isQuick) return;
  // Nothing begins on WebAssembly, so that even what runs once runs as C.
  const { facts } = await openDevice('native');
  expect(facts).toMatchObject({ name: 'native', target: 'c', threads: 1 });
  expect(facts.first).toBe(undefined);
});
