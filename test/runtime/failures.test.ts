// Which read is told of which failure, without a device: failures arrive late and in any order.

import { expect, test } from 'vitest';
import { DeviceError } from '../../src/errors.ts';
import { Failures } from '../../src/runtime/failures.ts';

function failures(): Failures {
  return new Failures('d');
}

function fail(log: Failures, at: number): void {
  log.record(at, new DeviceError('E_VALIDATION', 'd', `operation ${at}`));
}

test('a read reports the first failure before it, once', () => {
  const log = failures();
  const [a, b] = [log.tick(), log.tick()];
  fail(log, b);
  fail(log, a);
  expect(() => log.deliver(log.tickRead())).toThrow(`operation ${a}`);
  expect(() => log.deliver(log.tickRead())).not.toThrow();
});

test('a read does not report what failed after it', () => {
  const log = failures();
  const read = log.tickRead();
  const later = log.tick();
  fail(log, later);
  expect(() => log.deliver(read)).not.toThrow();
  expect(() => log.deliver(log.tickRead())).toThrow(`operation ${later}`);
});

test('reads that waited when a failure was reported report it too', () => {
  const log = failures();
  fail(log, log.tick());
  const waiting = [log.tickRead(), log.tickRead(), log.tickRead()];
  for (const read of waiting) expect(() => log.deliver(read)).toThrow('operation 1');
  expect(() => log.deliver(log.tickRead())).not.toThrow();
});

test('a failure behind a waiting read outlives the report of one before it', () => {
  const log = failures();
  const before = log.tick();
  const read = log.tickRead();
  const behind = log.tick();
  fail(log, before);
  fail(log, behind);
  expect(() => log.deliver(read)).toThrow(`operation ${before}`);
  expect(() => log.deliver(log.tickRead())).toThrow(`operation ${behind}`);
  expect(() => log.deliver(log.tickRead())).not.toThrow();
});

test('once lost, a device reports only that', () => {
  const log = failures();
  fail(log, log.tick());
  log.lose('it went away');
  log.lose('again');
  expect(() => log.deliver(log.tickRead())).toThrow('d: it went away');
  expect(() => log.assertAlive()).toThrow(expect.objectContaining({ code: 'E_DEVICE_LOST' }) as Error);
});
