// What a measured schedule holds for: the kind of kernel, its sizes rounded so that near ones share
// a measurement, the layout of its operands, and the machine. Equal keys are equal texts.

import type { ContractProblem } from '../codegen/template/contract/problem.ts';
import type { DeviceFacts } from '../runtime/device.ts';

/**
 * The key of a problem on a machine, e.g. `dot 1x512x256x768 lhs:k rhs:n f32 e4 on webgpu: Vendor
 * chip, driver`.
 */
export function scheduleKey(problem: ContractProblem, facts: DeviceFacts): string {
  return `${problemKey(problem)} on ${machineKey(facts)}`;
}

/** The key of a problem, on any machine. */
export function problemKey(problem: ContractProblem): string {
  const { kind, batch, m, k, n, lhs, rhs, dtype, matrix, window, products, stages, folds, epilogue } =
    problem;
  const sizes = [batch, m, k, n].map(roundedSize).join('x');
  const narrow = matrix === undefined || matrix === 'tf32' ? [] : [matrix];
  const parts = [kind, sizes, `lhs:${lhs}`, `rhs:${rhs}`, dtype, ...narrow, `e${roundedSize(epilogue)}`];
  if (products !== undefined) parts.push(`products:${products}`);
  if (stages !== undefined) parts.push(`stages:${stages}`);
  if (folds !== undefined) parts.push(`folds:${folds}`);
  if (window !== undefined) {
    const { width, lines, taps, tapLines, stride, dilation, spread } = window;
    // Patches divide the line, so its width enters the key exactly.
    parts.push(`line:${width}x${roundedSize(lines)}`, `taps:${tapLines}x${taps}`);
    parts.push(`step:${stride},${dilation},${spread}`);
  }
  return parts.join(' ');
}

/**
 * The adapter's description includes its driver, if it says; limits decide which schedules are
 * legal.
 */
function machineKey({ name, description, features, limits }: DeviceFacts): string {
  const { workgroupBytes, workgroupInvocations } = limits;
  const words = description.replace(/\s+/g, ' ').trim();
  return `${name}: ${words} [${[...features].sort().join(' ')}] ${workgroupBytes}/${workgroupInvocations}`;
}

/** A key's problem and its machine. */
export function partsOfKey(key: string): readonly [string, string] {
  const at = key.indexOf(' on ');
  return [key.slice(0, at), key.slice(at + ' on '.length)];
}

/** Exact up to 16, then four steps an octave: 1000 and 1024 are one size, 896 is another. */
export function roundedSize(size: number): number {
  if (size <= 16) return size;
  const step = 2 ** (Math.floor(Math.log2(size)) - 2);
  return Math.round(size / step) * step;
}
