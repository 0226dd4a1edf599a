// What a measurement holds for: near sizes share it, other kernels and machines do not.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import type { ContractProblem } from '../../src/codegen/template/contract/problem.ts';
import type { DeviceFacts } from '../../src/runtime/device.ts';
import { roundedSize, scheduleKey } from '../../src/tune/key.ts';
import { checkLaw } from '../support/property.ts';

const problem: ContractProblem = {
  kind: 'dot',
  batch: 1,
  m: 512,
  n: 768,
  k: 256,
  lhs: 'k',
  rhs: 'n',
  dtype: 'f32',
  epilogue: 4,
};

const facts: DeviceFacts = {
  name: 'webgpu',
  target: 'wgsl',
  description: 'Vendor  chip driver 1.2',
  software: false,
  features: ['timestamp-query', 'subgroups'],
  limits: {
    storageBuffers: 8,
    bufferBytes: 2 ** 30,
    bindingBytes: 2 ** 27,
    workgroupBytes: 16_384,
    workgroupInvocations: 256,
    workgroupsPerDimension: 65_535,
  },
};

test('a key reads as what it stands for', () => {
  expect(scheduleKey(problem, facts)).toBe(
    'dot 1x512x256x768 lhs:k rhs:n f32 e4 on webgpu: Vendor chip driver 1.2 [subgroups timestamp-query] 16384/256',
  );
});

test('sizes are rounded by at most an eighth, in order, and once', () => {
  checkLaw(500, fc.integer({ min: 1, max: 2 ** 28 }), (size) => {
    const rounded = roundedSize(size);
    expect(Math.abs(rounded - size)).toBeLessThanOrEqual(size / 8);
    expect(roundedSize(rounded)).toBe(rounded);
    expect(roundedSize(size + 1)).toBeGreaterThanOrEqual(rounded);
  });
  expect([1021, 1000, 896].map(roundedSize)).toEqual([1024, 1024, 896]);
});

test('near sizes share a key', () => {
  expect(scheduleKey({ ...problem, m: 509, n: 760 }, facts)).toBe(scheduleKey(problem, facts));
});

const window = { width: 56, lines: 56, taps: 3, tapLines: 3, stride: 1, dilation: 1, spread: 1 };

test.each<[string, Partial<ContractProblem>, Partial<DeviceFacts>]>([
  ['a convolution', { kind: 'conv' }, {}],
  ['another size', { m: 640 }, {}],
  ['a batch', { batch: 2 }, {}],
  ['a transposed operand', { rhs: 'k' }, {}],
  ['another dtype', { dtype: 'f16' }, {}],
  ['a longer epilogue', { epilogue: 12 }, {}],
  ['a window', { kind: 'conv', window }, {}],
  ['another line', { kind: 'conv', window: { ...window, width: 55 } }, {}],
  ['another driver', {}, { description: 'Vendor chip driver 1.3' }],
  ['another feature', {}, { features: ['subgroups'] }],
  ['another limit', {}, { limits: { ...facts.limits, workgroupInvocations: 1024 } }],
])('%s has a key of its own', (_, other, machine) => {
  const key = scheduleKey({ ...problem, ...other }, { ...facts, ...machine });
  expect(key).not.toBe(scheduleKey(problem, facts));
  if (other.window !== undefined && other.window.width !== 56)
    expect(key).not.toBe(scheduleKey({ ...problem, kind: 'conv', window }, facts));
});
