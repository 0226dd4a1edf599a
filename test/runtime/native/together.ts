// Compiles the kernels of many small programs as one object: most of what a compiler takes for one of them is its start, and what all
// of them need. The work that needs the programs runs twice. The first time it only says which programs it needs: nothing is computed,
// and what it reads is undefined. Kernels keep the compiler's flags and their text, but for their names.

import type { CDevice } from '../../../src/runtime/native/device.ts';
import type { NativeProgram } from '../../../src/runtime/native/load.ts';
import type { LoadedProgram } from '../../../src/runtime/device.ts';
import type { Program, ProgramKernel, ProgramStep } from '../../../src/runtime/program.ts';

/** Characters of kernels in one object: enough that the start of a compiler is little of its work, and few enough for its patience. */
const textAtOnce = 300_000;

/** Where the kernels of a program are among those of its object. */
interface Shelf {
  readonly kernels: readonly ProgramKernel[];
  readonly numbers: readonly number[];
}

/** Runs work whose results are undefined, and compiles all programs that it has loaded. */
export type Rehearse = (work: () => Promise<unknown>) => Promise<void>;

/** Makes a device that waits for its compiler compile together what is rehearsed; other programs stay as they are. */
export function compilesTogether(device: CDevice): Rehearse {
  const shelves = new Map<string, Shelf>();
  const gathered = new Map<string, Program>();
  let isRehearsing = false;
  const loadAlone = device.load.bind(device);

  /** Loads a program when it runs first. */
  const loadLate = (program: Program): LoadedProgram => {
    let loaded: LoadedProgram | undefined;
    const load = (): LoadedProgram => (loaded ??= loadAlone(onShelf(program, shelves.get(keyOf(program)))));
    return {
      program,
      engine: 'c',
      allocateOutputs: () => (isRehearsing ? freshOutputs(device, program) : load().allocateOutputs()),
      run: (...given) => {
        if (!isRehearsing) load().run(...given);
      },
      destroy: () => loaded?.destroy(),
    };
  };
  device.load = (program) => {
    if (isRehearsing) gathered.set(keyOf(program), program);
    return loadLate(program) as NativeProgram;
  };

  return async (work) => {
    isRehearsing = true;
    try {
      await work();
    } finally {
      isRehearsing = false;
    }
    for (const [key, shelf] of shelvesOf(gathered)) shelves.set(key, shelf);
    gathered.clear();
  };
}

function keyOf({ kernels }: Program): string {
  return JSON.stringify(kernels);
}

/** Puts programs into as few objects as may be. */
function shelvesOf(programs: ReadonlyMap<string, Program>): Map<string, Shelf> {
  const shelves = new Map<string, Shelf>();
  let kernels: ProgramKernel[] = [];
  let numbers = new Map<string, number>();
  let length = 0;
  for (const [key, program] of programs) {
    if (length >= textAtOnce) [kernels, numbers, length] = [[], new Map(), 0];
    const own = program.kernels.map((kernel) => {
      const text = JSON.stringify(kernel);
      const known = numbers.get(text);
      if (known !== undefined) return known;
      const number = kernels.push(renamed(kernel, `k${kernels.length}_`)) - 1;
      numbers.set(text, number);
      length += kernel.source.length;
      return number;
    });
    shelves.set(key, { kernels, numbers: own });
  }
  return shelves;
}

/** What a kernel's text defines outside of guard blocks begins with the kernel's name. */
function renamed(kernel: ProgramKernel, prefix: string): ProgramKernel {
  const name = prefix + kernel.name;
  return {
    ...kernel,
    name,
    source: kernel.source.replaceAll(new RegExp(`\\b${kernel.name}(?=\\b|_)`, 'g'), name),
  };
}

/** The same program over all kernels of its object. */
function onShelf(program: Program, shelf: Shelf | undefined): Program {
  if (shelf === undefined) return program;
  const moved = (steps: readonly ProgramStep[]): ProgramStep[] =>
    steps.map((step) => {
      switch (step.kind) {
        case 'dispatch':
          return { ...step, kernel: shelf.numbers[step.kernel]! };
        case 'repeat':
        case 'while':
          return { ...step, steps: moved(step.steps) };
        case 'copy':
        case 'clear':
        case 'collective':
        case 'host':
          return step;
        default:
          return step satisfies never;
      }
    });
  return { ...program, kernels: shelf.kernels, steps: moved(program.steps) };
}

function freshOutputs(
  device: CDevice,
  { inputs, outputs, buffers }: Program,
): ReturnType<LoadedProgram['allocateOutputs']> {
  const fresh = new Set(outputs.filter((buffer) => !inputs.includes(buffer)));
  return [...fresh].map((buffer) => device.allocate(buffers[buffer]!.bytes));
}
