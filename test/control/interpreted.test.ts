// Random programs of branches and loops (compositions.ts), on the interpreter alone: no device has to be opened for them.

import { beforeAll, test } from 'vitest';

import * as sn from '../../src/index.ts';
import { checkLawAsync } from '../support/property.ts';
import { casesOf } from '../support/sample.ts';
import { check, samples } from './compositions.ts';

beforeAll(() => sn.setDevice('interpreter'));

test('are what plain loops and branches are, with their derivatives and batches', async () => {
  const runs = Number(process.env['SINTER_CONTROL_RUNS'] ?? 0) || 20;
  await checkLawAsync(casesOf(runs, 8), samples, check);
});
