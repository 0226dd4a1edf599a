// Random programs of branches and loops (compositions.ts), on every device.

import { afterAll, describe, test } from 'vitest';

import * as sn from '../../src/index.ts';
import { everyDevice } from '../support/devices.ts';
import { checkLawAsync } from '../support/property.ts';
import { casesOf } from '../support/sample.ts';
import { check, samples } from './compositions.ts';

const devices = everyDevice.filter((device) => device !== 'interpreter');

describe.each(devices)('random programs on %s', (device) => {
  afterAll(() => sn.setDevice('interpreter'));
  test('are what plain loops and branches are, with their derivatives and batches', async () => {
    sn.setDevice(device);
    const runs = Number(process.env['SINTER_CONTROL_RUNS'] ?? 0) || 3;
    await checkLawAsync(casesOf(runs, 1), samples, check);
  });
});
