// The stand-in driven by hand: kernels written in tests are compiled, launched and read back through the C functions, without the
// product's own runtime.

import koffi from 'koffi';
import { standIn } from './standin.ts';

const { alloc, load, view } = koffi;
const P = 'uintptr_t';
type Library = ReturnType<typeof load>;
type Foreign = ReturnType<Library['func']>;

/** Thrown for a result that is not CUDA_SUCCESS. */
export class DriverFailure extends Error {
  readonly code: number;
  constructor(call: string, code: number, story: string) {
    super(`${call}: ${code}: ${story}`);
    this.code = code;
  }
}

/** A number for an address, or for a handle. */
export type Address = number;

export interface Dimensions {
  readonly grid?: readonly [number, number?, number?];
  readonly block: readonly [number, number?, number?];
  readonly dynamic?: number;
}

export class Driver {
  readonly #library: Library;
  readonly #functions = new Map<string, Foreign>();
  readonly #cell = alloc('uint64_t', 8);
  readonly #words = new BigUint64Array(view(this.#cell, 64));
  readonly #set: Foreign;
  readonly #get: Foreign;
  readonly #inject: Foreign;
  readonly #heal: Foreign;
  readonly #story: Foreign;

  /** Opens the library, and the context of its device. */
  constructor() {
    const found = standIn();
    if (!found.available) throw new Error(found.reason);
    this.#library = load(found.library);
    this.#set = this.#library.func('standin_set', 'int', ['str', 'int64_t']);
    this.#get = this.#library.func('standin_get', 'int64_t', ['str']);
    this.#inject = this.#library.func('standin_inject', 'void', ['str', 'int', 'int', 'int']);
    this.#heal = this.#library.func('standin_heal', 'void', []);
    this.#story = this.#library.func('standin_story', 'str', []);
    this.set('silent', 1);
    this.open();
  }

  /** Makes the context afresh: what is left of a failed one goes. */
  open(): void {
    this.call('cuInit', ['uint32_t'], 0);
    this.call('cuDevicePrimaryCtxReset_v2', ['int'], 0);
    this.call('cuCtxSetCurrent', [P], this.out('cuDevicePrimaryCtxRetain', ['int'], 0));
  }

  /** Calls a function of this C signature and gives its result, whatever it is. */
  result(name: string, types: readonly string[], ...values: readonly unknown[]): number {
    const key = `${name}(${types.join()})`;
    const known = this.#functions.get(key) ?? this.#library.func(name, 'int', [...types]);
    this.#functions.set(key, known);
    return known(...values) as number;
  }

  /** As `result`, and throws where that is a failure. */
  call(name: string, types: readonly string[], ...values: readonly unknown[]): void {
    const code = this.result(name, types, ...values);
    if (code !== 0) throw new DriverFailure(name, code, this.story);
  }

  /** Calls a function whose first parameter is where its result goes. */
  out(name: string, types: readonly string[], ...values: readonly unknown[]): Address {
    this.#words[0] = 0n;
    this.call(name, ['void *', ...types], this.#cell, ...values);
    return Number(this.#words[0]);
  }

  set(setting: string, value: number): void {
    if ((this.#set(setting, value) as number) !== 0) throw new Error(`no setting ${setting}`);
  }
  get(counter: string): number {
    return Number(this.#get(counter) as bigint | number);
  }
  /** After `skip` more calls, `times` calls of the function give this result. */
  inject(name: string, result: number, skip = 0, times = 1): void {
    this.#inject(name, result, skip, times);
  }
  heal(): void {
    this.#heal();
  }
  get story(): string {
    return this.#story() as string;
  }

  /** NVRTC's log and result, and the image where there is one. */
  compile(
    source: string,
    options: readonly string[] = ['--gpu-architecture=sm_90a'],
  ): {
    readonly code: number;
    readonly log: string;
    readonly image: Uint8Array | undefined;
  } {
    const create = ['str', 'str', 'int', 'void *', 'void *'];
    const program = this.out('nvrtcCreateProgram', create, source, 'test.cu', 0, null, null);
    const list = [P, 'int', 'str *'];
    const code = this.result('nvrtcCompileProgram', list, program, options.length, [...options]);
    const read = (what: string): Uint8Array => {
      this.call(`nvrtcGet${what}Size`, [P, 'void *'], program, this.#cell);
      const bytes = new Uint8Array(Number(this.#words[0]));
      if (bytes.length > 0) this.call(`nvrtcGet${what}`, [P, 'void *'], program, bytes);
      return bytes;
    };
    const log = Buffer.from(read('ProgramLog')).toString().replace(/\0$/, '');
    const image = code === 0 ? read('CUBIN') : undefined;
    this.#words[0] = BigInt(program);
    this.call('nvrtcDestroyProgram', ['void *'], this.#cell);
    return { code, log, image };
  }

  /** Compiles and loads; the functions of the kernels named. */
  kernels<Name extends string>(source: string, ...names: readonly Name[]): Record<Name, Address> {
    const { image, log } = this.compile(source);
    if (image === undefined) throw new Error(log);
    const module = this.out('cuModuleLoadData', ['void *'], image);
    const found = names.map((name) => [name, this.out('cuModuleGetFunction', [P, 'str'], module, name)]);
    return Object.fromEntries(found) as Record<Name, Address>;
  }

  /** Device memory that holds these elements. */
  upload(data: ArrayBufferView): Address {
    const address = this.out('cuMemAlloc_v2', ['size_t'], data.byteLength);
    this.call('cuMemcpyHtoD_v2', [P, 'void *', 'size_t'], address, data, data.byteLength);
    return address;
  }

  /** Fills `into` from device memory. */
  download<T extends ArrayBufferView>(address: Address, into: T): T {
    this.call('cuMemcpyDtoH_v2', ['void *', P, 'size_t'], into, address, into.byteLength);
    return into;
  }

  /** Encodes a map of lines of 128 bytes; where it lies, for a parameter. */
  map({ dtype, start, sizes, strides, box }: TensorMap): { readonly map: Address } {
    // 128 bytes at a multiple of 64.
    const memory = alloc('uint64_t', 24);
    const address = Math.ceil(Number(koffi.address(memory)) / 64) * 64;
    const words = (values: readonly number[]): BigUint64Array => BigUint64Array.from(values, BigInt);
    const [type, swizzle128, promote128] = [dtype === 'f16' ? 6 : 9, 3, 2];
    const types = [
      P,
      'int',
      'uint32_t',
      P,
      'void *',
      'void *',
      'void *',
      'void *',
      'int',
      'int',
      'int',
      'int',
    ];
    const [shape, steps] = [Uint32Array.from(box), new Uint32Array(sizes.length).fill(1)];
    const rest = [shape, steps, 0, swizzle128, promote128, 0];
    this.call(
      'cuTensorMapEncodeTiled',
      types,
      address,
      type,
      sizes.length,
      start,
      words(sizes),
      words(strides),
      ...rest,
    );
    return { map: address };
  }

  /** Launches on the default stream and waits. Parameters: pointers as numbers, i32 as `{ i32 }`, f32 as `{ f32 }`. */
  launch(
    kernel: Address,
    { grid = [1], block, dynamic = 0 }: Dimensions,
    ...parameters: readonly Parameter[]
  ): void {
    const block64 = parameterBlock(parameters);
    const sizes = [...three(grid), ...three(block), dynamic];
    const types = [P, ...sizes.map(() => 'uint32_t'), P, P, P];
    this.call('cuLaunchKernel', types, kernel, ...sizes, 0, block64.address, 0);
    this.call('cuCtxSynchronize', []);
  }
}

export type Parameter =
  | Address
  | { readonly i32: number }
  | { readonly f32: number }
  | { readonly map: Address };

/** A tensor in global memory whose boxes kernels copy: `sizes` from the axis along which elements are neighbours. */
export interface TensorMap {
  readonly dtype: 'f16' | 'bf16';
  readonly start: Address;
  readonly sizes: readonly number[];
  /** Bytes from one index to the next, along all axes but the first. */
  readonly strides: readonly number[];
  readonly box: readonly number[];
}

/** An array of addresses of parameters, and behind it the parameters, in memory that stays where it is. */
export function parameterBlock(parameters: readonly Parameter[]): { readonly address: Address } {
  const count = Math.max(1, parameters.length);
  const memory = alloc('uint64_t', 2 * count);
  const address = Number(koffi.address(memory));
  const words = new DataView(view(memory, 16 * count));
  parameters.forEach((value, i) => {
    const at = 8 * (count + i);
    // A map is memory of its own already.
    const place = typeof value === 'object' && 'map' in value ? value.map : address + at;
    words.setBigUint64(8 * i, BigInt(place), true);
    if (typeof value === 'number') words.setBigUint64(at, BigInt(value), true);
    else if ('i32' in value) words.setInt32(at, value.i32, true);
    else if ('f32' in value) words.setFloat32(at, value.f32, true);
  });
  return { address };
}

function three([x, y = 1, z = 1]: readonly [number, number?, number?]): readonly number[] {
  return [x, y, z];
}
