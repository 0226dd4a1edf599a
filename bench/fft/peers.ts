// Fourier transforms of packages on npm, each behind one face: complex numbers of 32 bits in pairs,
// in memory of the package before and after.

/* oxlint-disable no-underscore-dangle -- so Emscripten names what a module exports */

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/** One way to transform lines of n points, with what it takes in place. */
export interface Contender {
  readonly name: string;
  run(): void;
  /** What the last run left, in pairs. */
  output(): Promise<Float32Array> | Float32Array;
  free(): void;
}

/** A package: gives undefined for lengths that it does not take. */
export type Peer = (n: number, lines: number, x: Float32Array) => Contender | undefined;

/** Memory of a module that Emscripten made. */
interface Heap {
  readonly HEAPF32: Float32Array;
  _malloc(bytes: number): number;
  _free(at: number): void;
}

const isPower = (n: number): boolean => Number.isInteger(Math.log2(n));

/** Lines of a plan that transforms from one place of a heap to another. */
function overHeap(
  name: string,
  heap: Heap,
  size: number,
  x: Float32Array,
  plan: { readonly each: (from: number, to: number) => void; readonly free: () => void },
): Contender {
  const bytes = 4 * x.length;
  // Room to begin at a multiple of 64.
  const places = [heap._malloc(bytes + 64), heap._malloc(bytes + 64)];
  const [from, to] = places.map((place) => Math.ceil(place / 64) * 64) as [number, number];
  heap.HEAPF32.set(x, from / 4);
  return {
    name,
    run: () => {
      for (let at = 0; at < bytes; at += 8 * size) plan.each(from + at, to + at);
    },
    output: () => heap.HEAPF32.slice(to / 4, to / 4 + x.length),
    free: () => {
      plan.free();
      places.forEach((place) => heap._free(place));
    },
  };
}

interface Pffft extends Heap {
  _pffft_new_setup(n: number, kind: number): number;
  _pffft_destroy_setup(plan: number): void;
  _pffft_transform_ordered(plan: number, from: number, to: number, work: number, direction: number): void;
}

async function pffft(load: Loader): Promise<Peer> {
  const { default: open } = (await load.module('@echogarden/pffft-wasm/simd')) as {
    default: () => Promise<Pffft>;
  };
  const heap = await open();
  return (n, _, x) => {
    const isSmooth = [2, 3, 5].reduce((left, p) => {
      let rest = left;
      while (rest % p === 0) rest /= p;
      return rest;
    }, n);
    if (n % 16 !== 0 || isSmooth !== 1) return undefined;
    const plan = heap._pffft_new_setup(n, 1);
    const room = heap._malloc(8 * n + 64);
    const work = Math.ceil(room / 64) * 64;
    return overHeap('pffft-wasm', heap, n, x, {
      each: (from, to) => heap._pffft_transform_ordered(plan, from, to, work, 0),
      free: () => {
        heap._pffft_destroy_setup(plan);
        heap._free(room);
      },
    });
  };
}

interface Kiss extends Heap {
  _kiss_fft_alloc(n: number, inverse: number, memory: number, size: number): number;
  _kiss_fft(plan: number, from: number, to: number): void;
}

async function kissWasm(load: Loader): Promise<Peer> {
  // The package takes a page for granted where there is `fetch`.
  const { fetch } = globalThis;
  Reflect.deleteProperty(globalThis, 'fetch');
  try {
    const loaded = load.common('kissfft-wasm/lib/wasm.js') as {
      wasm: Kiss;
      waitLoading(): Promise<void>;
    };
    await loaded.waitLoading();
    const heap = loaded.wasm;
    return (n, _, x) => {
      const plan = heap._kiss_fft_alloc(n, 0, 0, 0);
      return overHeap('kissfft-wasm', heap, n, x, {
        each: (from, to) => heap._kiss_fft(plan, from, to),
        free: () => heap._free(plan),
      });
    };
  } finally {
    globalThis.fetch = fetch;
  }
}

/** A package that transforms a line of pairs to another one. */
function byLine(
  name: string,
  n: number,
  x: Float32Array,
  transform: (line: Float32Array) => ArrayLike<number>,
  free: () => void,
): Contender {
  const lines = Array.from({ length: x.length / (2 * n) }, (_, i) => x.subarray(2 * n * i, 2 * n * (i + 1)));
  const found = new Float32Array(x.length);
  return {
    name,
    run: () => lines.forEach((line) => transform(line)),
    output: () => {
      lines.forEach((line, i) => found.set(transform(line), 2 * n * i));
      return found;
    },
    free,
  };
}

function kissJs(load: Loader): Peer {
  const { FFT } = load.common('kissfft-js') as {
    FFT: new (n: number) => { forward(line: Float32Array): Float32Array; dispose(): void };
  };
  return (n, _, x) => {
    // Its memory holds no more.
    if (n > 2 ** 17) return undefined;
    const plan = new FFT(n);
    return byLine(
      'kissfft-js',
      n,
      x,
      (line) => plan.forward(line),
      () => plan.dispose(),
    );
  };
}

function fftJs(load: Loader): Peer {
  const FFT = load.common('fft.js') as new (n: number) => {
    createComplexArray(): number[];
    transform(to: number[], from: ArrayLike<number>): void;
  };
  return (n, _, x) => {
    if (!isPower(n)) return undefined;
    const plan = new FFT(n);
    const to = plan.createComplexArray();
    const transform = (line: Float32Array): number[] => {
      plan.transform(to, line);
      return to;
    };
    return byLine('fft.js', n, x, transform, () => {});
  };
}

function mlFft(load: Loader): Peer {
  const { FFT } = load.common('ml-fft') as {
    FFT: { init(n: number): void; fft(re: Float64Array, im: Float64Array): void };
  };
  return (n, _, x) => {
    if (!isPower(n)) return undefined;
    const [re, im] = [new Float64Array(n), new Float64Array(n)];
    const pairs = new Float32Array(2 * n);
    // In place, and of parts: what is not given so is brought there.
    const transform = (line: Float32Array): Float32Array => {
      for (let i = 0; i < n; i++) [re[i], im[i]] = [line[2 * i]!, line[2 * i + 1]!];
      FFT.init(n);
      FFT.fft(re, im);
      for (let i = 0; i < n; i++) [pairs[2 * i], pairs[2 * i + 1]] = [re[i]!, im[i]!];
      return pairs;
    };
    return byLine('ml-fft', n, x, transform, () => {});
  };
}

async function webFft(load: Loader): Promise<Peer> {
  const { default: WebFft } = (await load.module('webfft')) as {
    default: new (n: number) => { fft(line: Float32Array, by: string): Float32Array; dispose(): void };
  };
  return (n, _, x) => {
    if (!isPower(n) || n > 2 ** 17) return undefined;
    const plan = new WebFft(n);
    // The one of its libraries that its own `profile` found the fastest.
    return byLine(
      'webfft',
      n,
      x,
      (line) => plan.fft(line, 'kissfftmodifiedWasm'),
      () => plan.dispose(),
    );
  };
}

interface Loader {
  common(name: string): unknown;
  module(name: string): Promise<unknown>;
}

const known: Readonly<Record<string, (load: Loader) => Promise<Peer> | Peer>> = {
  '@echogarden/pffft-wasm': pffft,
  'kissfft-wasm': kissWasm,
  'kissfft-js': kissJs,
  'fft.js': fftJs,
  'ml-fft': mlFft,
  webfft: webFft,
};

/** Every package that is tried. */
export const packages: readonly string[] = Object.keys(known);

/** The packages that are installed in a folder. Throws where one is not. */
export async function peersIn(folder: string): Promise<readonly Peer[]> {
  const common = createRequire(`${folder}/package.json`);
  const load: Loader = {
    common: (name) => common(name) as unknown,
    module: (name) => import(pathToFileURL(common.resolve(name)).href) as Promise<unknown>,
  };
  const peers: Peer[] = [];
  for (const [name, open] of Object.entries(known)) {
    try {
      peers.push(await open(load));
    } catch (cause) {
      const install = `npm install --no-save ${packages.join(' ')}`;
      throw new Error(`${name} cannot be loaded from ${folder}: ${install}`, { cause });
    }
  }
  return peers;
}
