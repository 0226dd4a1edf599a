// Address ranges of buffers, and whether they overlap. The compiler declares that what a kernel
// reads and what it writes do not alias, and graphs run steps concurrently that use different
// buffers: both are correct only while different buffers do not overlap.

import { DeviceError } from '../../errors.ts';
import { everyStep, type KernelOutline, type ProgramOutline } from '../program.ts';

export interface ByteRange {
  readonly start: number;
  readonly bytes: number;
}

/** Throws E_VALIDATION where a launch writes bytes that it binds a second time. */
export function checkAliasing(
  program: ProgramOutline,
  kernel: KernelOutline,
  slots: readonly number[],
  ranges: ReadonlyMap<number, ByteRange>,
  device: string,
): void {
  const { bindings, name } = kernel;
  for (let i = 0; i < bindings.length; i++) {
    const one = ranges.get(slots[i]!)!;
    for (let j = 0; j < i; j++) {
      if (bindings[i] === 'read' && bindings[j] === 'read') continue;
      const other = ranges.get(slots[j]!)!;
      if (!meet(one, other)) continue;
      const names = [j, i].map((k) => program.buffers[slots[k]!]!.name).join(' and ');
      const how =
        bindings[i] === bindings[j]
          ? 'overlap and are both written'
          : 'overlap, bound both read and read_write';
      throw new DeviceError('E_VALIDATION', device, `${names} ${how}`, { kernel: name });
    }
  }
}

/** Whether different inputs and outputs of the program overlap in bytes that it writes. */
export function overlaps(program: ProgramOutline, ranges: ReadonlyMap<number, ByteRange>): boolean {
  const { inputs, outputs, packs, donated, steps, kernels } = program;
  /** Slots that overlap by design are represented by one number. */
  const roots = new Map<number, number>();
  for (const { buffer, members } of packs) for (const member of members) roots.set(member.buffer, buffer);
  const rootOf = (slot: number): number => roots.get(slot) ?? slot;
  for (const { input, output } of donated) {
    const [from, to] = [rootOf(inputs[input]!), rootOf(outputs[output]!)];
    if (from !== to) for (const slot of [to, ...outputs]) if (rootOf(slot) === to) roots.set(slot, from);
  }
  const written = new Set<number>();
  for (const step of everyStep(steps)) {
    if (step.kind === 'copy') written.add(rootOf(step.to));
    if (step.kind === 'clear') written.add(rootOf(step.buffer));
    if (step.kind === 'collective') written.add(rootOf(step.to));
    if (step.kind !== 'dispatch') continue;
    const { bindings } = kernels[step.kernel]!;
    step.buffers.forEach((slot, i) => {
      if (bindings[i] === 'read_write') written.add(rootOf(slot));
    });
  }
  const copies = outputs.map((_, i) => program.buffers.length + 1 + i);
  outputs.forEach((slot, i) => {
    // Copied to unless it is the very same place.
    if (ranges.get(slot)!.start === ranges.get(copies[i]!)!.start) roots.set(copies[i]!, rootOf(slot));
    else written.add(copies[i]!);
  });
  const outside = [...new Set([...inputs, ...outputs, ...packs.map(({ buffer }) => buffer), ...copies])]
    .filter((slot) => program.buffers[slot]?.role !== 'scratch')
    .map((slot) => ({ ...ranges.get(slot)!, root: rootOf(slot) }))
    .sort((a, b) => a.start - b.start);
  return outside.some((one, i) => {
    for (let k = i + 1; k < outside.length && outside[k]!.start < one.start + one.bytes; k++) {
      const { root } = outside[k]!;
      if (root !== one.root && (written.has(root) || written.has(one.root))) return true;
    }
    return false;
  });
}

function meet(one: ByteRange, other: ByteRange): boolean {
  return one.start < other.start + other.bytes && other.start < one.start + one.bytes;
}
