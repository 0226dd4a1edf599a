// A device that computes some kernels wrongly: software WebGPU whose sources are changed before they are compiled.

import type { Device } from '../../../src/runtime/device.ts';
import type { Program, ProgramKernel } from '../../../src/runtime/program.ts';
import { findBackend, registerBackend } from '../../../src/runtime/registry.ts';

/** How a source is changed; the same text where the kernel is right. */
export type Plant = (kernel: ProgramKernel) => string;

let count = 0;

/**
 * Registers a device that computes what a GPU with subgroups would be given, with sources as `plant` changes them;
 * gives its name.
 */
export function plantedDevice(plant: Plant): string {
  const real = findBackend('webgpu:software')!;
  const name = `planted-${(count += 1)}`;
  const open = async (): Promise<Device> => {
    const device = await real.open();
    const facts = {
      ...device.facts,
      name,
      description: `${name}, driver 1`,
      software: false,
      subgroups: { min: 4, max: 4 },
      features: [...new Set([...device.facts.features, 'subgroups'])],
    };
    const load: Device['load'] = (program: Program, ...rest) => {
      const kernels = program.kernels.map((kernel) => ({ ...kernel, source: plant(kernel) }));
      return device.load({ ...program, kernels }, ...rest);
    };
    return new Proxy(device, {
      get(target, key) {
        if (key === 'facts') return facts;
        if (key === 'load') return load;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  };
  registerBackend({ name, open });
  return name;
}

/** The kernel, with 1 added to what it stores first. */
export function offByOne({ source }: ProgramKernel): string {
  return source.replace(/(out0\[[^\]]+\]) = ([^;]+);/, '$1 = ($2) + 1.0;');
}
