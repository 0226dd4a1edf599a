// A device that finds more than a GPU would: every buffer of a program is memory of its own, exactly as large as it says, poisoned
// until it is written; programs run at once, checked, with the threads of blocks in a given order. For tests of generated code: the
// product's own device (src/runtime/cuda) is quicker, and has what people use.

import { DeviceError } from '../../../src/errors.ts';
import { checkProgram } from '../../../src/runtime/check.ts';
import type { Device, DeviceAllocation, DeviceFacts, LoadedProgram } from '../../../src/runtime/device.ts';
import type { Program, ProgramStep, ProgramTileMap } from '../../../src/runtime/program.ts';
import { Driver, type Address, type Parameter } from './driver.ts';
import { orders, type Order } from './standin.ts';

export interface StrictOptions {
  readonly order?: Order;
  /** Kernels are built with the checks of the checker. Default: yes. */
  readonly check?: boolean;
}

const name = 'cuda';
const P = 'uintptr_t';

const facts: DeviceFacts = {
  name,
  target: 'cuda',
  description: 'CUDA stand-in on the CPU, strict',
  software: false,
  features: ['sm_50', 'sm_60', 'sm_70', 'sm_75', 'sm_80', 'sm_86', 'sm_89', 'sm_90'],
  subgroups: { min: 32, max: 32 },
  limits: {
    storageBuffers: 500,
    bufferBytes: 2 ** 31,
    bindingBytes: 2 ** 31,
    workgroupBytes: 227 * 1024,
    workgroupInvocations: 1024,
    workgroupsPerDimension: 65_535,
  },
};

class Memory implements DeviceAllocation {
  readonly bytes: number;
  readonly address: Address;
  readonly #driver: Driver;
  #live = true;

  constructor(driver: Driver, bytes: number) {
    this.#driver = driver;
    this.bytes = bytes;
    this.address = driver.out('cuMemAlloc_v2', ['size_t'], bytes);
  }

  destroy(): void {
    // After a failure the context is made afresh, and its memory is gone.
    if (this.#live) this.#driver.result('cuMemFree_v2', [P], this.address);
    this.#live = false;
  }
}

class StrictDevice implements Device {
  readonly facts = facts;
  readonly #driver: Driver;
  readonly #options: StrictOptions;
  #failure: DeviceError | undefined;
  #lost = false;

  constructor(driver: Driver, options: StrictOptions) {
    this.#driver = driver;
    this.#options = options;
  }

  get lost(): boolean {
    return this.#lost;
  }
  allocate(bytes: number): DeviceAllocation {
    return new Memory(this.#driver, bytes);
  }
  write(buffer: DeviceAllocation, bytes: Uint8Array): void {
    const types = [P, 'void *', 'size_t'];
    if (bytes.length > 0) this.#driver.call('cuMemcpyHtoD_v2', types, addressOf(buffer), bytes, bytes.length);
  }
  async read(buffer: DeviceAllocation, bytes: number): Promise<Uint8Array> {
    this.#deliver();
    const into = new Uint8Array(bytes);
    return bytes === 0 ? into : this.#driver.download(addressOf(buffer), into);
  }
  async finish(): Promise<void> {
    this.#deliver();
  }
  memory(): { readonly live: number; readonly pooled: number; readonly buffers: number } {
    const driver = this.#driver;
    return { live: driver.get('live_bytes'), pooled: 0, buffers: driver.get('live_buffers') };
  }
  destroy(): void {
    this.#lost = true;
  }

  load(program: Program): LoadedProgram {
    checkProgram(program, 'cuda', name);
    const driver = this.#driver;
    const names = program.kernels.map((kernel) => kernel.name);
    const { order = 'forward', check = true } = this.#options;
    driver.set('check', check ? 1 : 0);
    const kernels =
      names.length === 0
        ? {}
        : driver.kernels(program.kernels.map(({ source }) => source).join('\n'), ...names);
    return {
      program,
      allocateOutputs: () => {
        const fresh = [...new Set(program.outputs)].filter(
          (index) => program.buffers[index]!.role === 'output',
        );
        return fresh.map((index) => this.allocate(program.buffers[index]!.bytes));
      },
      run: (inputs, outputs, scalars) => {
        driver.set('order', orders[order]);
        try {
          runProgram(driver, program, kernels, inputs.map(addressOf), outputs.map(addressOf), scalars);
        } catch (error) {
          this.#failure ??= new DeviceError('E_DEVICE', name, (error as Error).message);
          driver.open();
        }
      },
      destroy: () => undefined,
    };
  }

  #deliver(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

function addressOf(buffer: DeviceAllocation): Address {
  if (!(buffer instanceof Memory)) throw new DeviceError('E_VALIDATION', name, 'a buffer of another device');
  return buffer.address;
}

function runProgram(
  driver: Driver,
  program: Program,
  kernels: Readonly<Record<string, Address>>,
  inputs: readonly Address[],
  outputs: readonly Address[],
  scalars: readonly number[],
): void {
  const { buffers } = program;
  const taken: Address[] = [];
  const take = (bytes: number): Address => {
    const address = driver.out('cuMemAlloc_v2', ['size_t'], Math.max(4, bytes));
    taken.push(address);
    return address;
  };
  const copy = (to: Address, from: Address, bytes: number): void =>
    driver.call('cuMemcpyDtoD_v2', [P, P, 'size_t'], to, from, bytes);

  // Where each buffer lies: as given, in an arena, or in a pack that is filled from what was given.
  const places = new Map<number, Address>();
  program.outputs.forEach((index, i) => places.set(index, outputs[i]!));
  program.inputs.forEach((index, i) => places.set(index, inputs[i]!));
  const given = new Map(places);
  const arenas = program.arenas.map(take);
  buffers.forEach(({ role, arena, offset }, i) => {
    if (role === 'scratch') places.set(i, arenas[arena!]! + offset!);
  });
  for (const { buffer, members } of program.packs) {
    if (buffers[buffer]!.role === 'scratch') continue;
    const start = take(buffers[buffer]!.bytes);
    places.set(buffer, start);
    for (const member of members) {
      places.set(member.buffer, start + member.offset);
      if (buffers[member.buffer]!.role === 'input')
        copy(start + member.offset, given.get(member.buffer)!, buffers[member.buffer]!.bytes);
    }
  }
  const block = take(4 * program.scalars.length);
  const at = (index: number): Address => places.get(index)!;
  writeScalars(driver, program, block, scalars, (input) => at(program.inputs[input]!));

  const perform = (step: ProgramStep): void => {
    switch (step.kind) {
      case 'repeat':
        for (let time = 0; time < step.times; time++) step.steps.forEach(perform);
        break;
      case 'while': {
        const word = new Int32Array(1);
        for (let time = 0; time < step.times; time++) {
          driver.call('cuMemcpyDtoH_v2', ['void *', P, 'size_t'], word, at(step.guard), 4);
          if (word[0] === 0) break;
          step.steps.forEach(perform);
        }
        break;
      }
      case 'dispatch': {
        const kernel = program.kernels[step.kernel]!;
        const maps = (kernel.tileMaps ?? []).map((map) =>
          tensorMapOf(driver, map, at(step.buffers[map.binding]!)),
        );
        const parameters: Parameter[] = [
          ...step.buffers.map(at),
          ...(kernel.usesScalars ? [block] : []),
          ...maps,
        ];
        const dynamic = kernel.sharedBytes ?? 0;
        const handle = kernels[kernel.name]!;
        if (dynamic > 0) driver.call('cuFuncSetAttribute', [P, 'int', 'int'], handle, 8, dynamic);
        driver.launch(handle, { grid: [...step.grid], block: [...kernel.workgroup], dynamic }, ...parameters);
        break;
      }
      case 'copy':
        copy(at(step.to), at(step.from), Math.min(buffers[step.from]!.bytes, buffers[step.to]!.bytes));
        break;
      case 'clear': {
        const fill = [P, 'uint8_t', 'size_t'];
        driver.call('cuMemsetD8_v2', fill, at(step.buffer), 0, buffers[step.buffer]!.bytes);
        break;
      }
      case 'collective':
        throw new DeviceError('E_UNSUPPORTED', name, 'a collective');
      case 'host':
        throw new DeviceError('E_UNSUPPORTED', name, `host step ${step.run}`);
      default:
        step satisfies never;
    }
  };
  program.steps.forEach(perform);
  driver.call('cuCtxSynchronize', []);
  // What lay elsewhere while the program ran goes to where it was asked for.
  for (const [i, index] of program.outputs.entries())
    if (at(index) !== outputs[i]) copy(outputs[i]!, at(index), buffers[index]!.bytes);
  for (const address of taken) driver.call('cuMemFree_v2', [P], address);
}

/** What a launch passes for a program's tile map of a buffer. */
export function tensorMapOf(
  driver: Driver,
  { dtype, offset, sizes, strides, box }: ProgramTileMap,
  address: Address,
): Parameter {
  const apart = strides.slice(1).map((stride) => 2 * stride);
  return driver.map({ dtype, start: address + 2 * offset, sizes, strides: apart, box });
}

function writeScalars(
  driver: Driver,
  program: Program,
  block: Address,
  scalars: readonly number[],
  inputAt: (input: number) => Address,
): void {
  let next = 0;
  program.scalars.forEach(({ dtype, input }, word) => {
    const to = block + 4 * word;
    if (input !== undefined) return driver.call('cuMemcpyDtoD_v2', [P, P, 'size_t'], to, inputAt(input), 4);
    const value = scalars[next++]!;
    const bits =
      dtype === 'f32'
        ? Float32Array.of(value)
        : Int32Array.of(dtype === 'bool' ? Number(value !== 0) : value);
    driver.call('cuMemcpyHtoD_v2', [P, 'void *', 'size_t'], to, bits, 4);
  });
}

/** The stand-in as a device. Throws where there is none (see `standIn`). */
export function strictDevice(options: StrictOptions = {}): Device {
  return new StrictDevice(new Driver(), options);
}
