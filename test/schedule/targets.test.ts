// Targets: an open device says what it is and how much of it there is, and that makes its target;
// names mean nothing.

import { describe, expect, test } from 'vitest';
import type { DeviceFacts } from '../../src/runtime/device.ts';
import type { TargetId } from '../../src/runtime/program.ts';
import {
  blocksToFill,
  invocationsToFill,
  invocationsToLoad,
  packsOperands,
  resultsToFill,
  sharesWork,
  walkersToFill,
} from '../../src/schedule/machine.ts';
import {
  cudaTarget,
  gpuTarget,
  interpreterTarget,
  softwareTarget,
  targetOf,
  wasmTarget,
  type Target,
} from '../../src/schedule/target.ts';

const limits = { ...gpuTarget.limits, storageBuffers: 11, workgroupBytes: 20_000 };
const facts = (target: TargetId, more: Partial<DeviceFacts> = {}): DeviceFacts => ({
  name: 'mine',
  target,
  description: '',
  software: false,
  features: [],
  limits,
  ...more,
});

describe('a device', () => {
  test('of any name is scheduled for by what it reports, with its own limits', () => {
    expect(targetOf(facts('wgsl', { name: 'cuda' }))).toEqual({ ...gpuTarget, limits });
    expect(targetOf(facts('wgsl', { name: 'wasm:2', software: true }))).toEqual({
      ...softwareTarget,
      limits,
    });
    expect(targetOf(facts('wasm', { threads: 3, features: ['relaxed-simd'] }))).toEqual({
      ...wasmTarget,
      limits,
      relaxedSimd: true,
      threads: 3,
    });
    expect(targetOf(facts('interpreter', { name: 'cuda:1' }))).toBe(interpreterTarget);
  });

  test('for CUDA has matrix units and warp groups from the architectures on that have them', () => {
    const { matrixUnits, ...simple } = cudaTarget;
    const own = { ...simple, limits: { ...limits, storageBuffers: cudaTarget.limits.storageBuffers } };
    expect(targetOf(facts('cuda', { features: ['sm_75'] }))).toEqual(own);
    expect(targetOf(facts('cuda', { features: ['sm_80'] }))).toEqual({ ...own, matrixUnits });
    expect(targetOf(facts('cuda', { features: ['sm_80', 'sm_90a'] }))).toEqual({
      ...own,
      matrixUnits,
      warpgroups: true,
    });
    const warps = { min: 32, max: 32 };
    expect(targetOf(facts('cuda', { subgroups: warps })).subgroups).toEqual({ ...warps, inOrder: true });
    expect(targetOf(facts('wgsl', { subgroups: warps })).subgroups).toEqual(warps);
  });

  test('is filled by as many invocations as its own multiprocessors hold', () => {
    const target = targetOf(facts('cuda', { multiprocessors: { count: 46, invocations: 1536 } }));
    expect(invocationsToFill(target)).toBe(46 * 1536);
  });

  test('that does not say what it runs is an error that says what is missing', () => {
    for (const target of [undefined, 'metal', 'toString'] as unknown as TargetId[])
      expect(() => targetOf(facts(target))).toThrow(
        expect.objectContaining({
          code: 'E_UNSUPPORTED',
          message: expect.stringMatching(
            /^device mine does not say which programs it runs: facts\.target is .*expected one of 'wgsl', 'cuda', 'wasm', 'c', 'interpreter'\n {2}try: /,
          ),
        }),
      );
  });
});

/** What each machine was measured with. */
test.each([
  ['wgsl', gpuTarget, [65_536, 4096, 16_384, 256, 4096], true, false],
  ['wgsl:software', softwareTarget, [512, 32, 512, 512, 256], false, false],
  ['cuda', cudaTarget, [270_336, 16_896, 67_584, 1056, 16_896], true, false],
  ['wasm', wasmTarget, [64, 4, 64, 64, 32], false, true],
] as const)('%s is filled by', (_, target: Target, figures, shares, packs) => {
  const asked = [invocationsToFill, invocationsToLoad, walkersToFill, blocksToFill, resultsToFill];
  expect(asked.map((ask) => ask(target))).toEqual(figures);
  expect([sharesWork(target), packsOperands(target)]).toEqual([shares, packs]);
});

test('devices with memory of their own work beside the host, and read weights once for several rows', () => {
  const found = (['wgsl', 'cuda', 'wasm', 'c', 'interpreter'] as const).map((id) => {
    const { isBesideHost, furtherRow } = targetOf(facts(id, { name: 'cuda' }));
    return [id, isBesideHost, furtherRow < 0.5];
  });
  expect(found).toEqual([
    ['wgsl', true, true],
    ['cuda', true, true],
    ['wasm', false, false],
    ['c', false, false],
    ['interpreter', false, false],
  ]);
  const software = targetOf(facts('wgsl', { software: true }));
  expect([software.isBesideHost, software.furtherRow]).toEqual([true, wasmTarget.furtherRow]);
});
