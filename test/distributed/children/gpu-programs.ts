// Compiled programs of one rank on a CUDA device that has joined the others, against what the interpreter says of the graph over all.

import * as fc from 'fast-check';
import { compileGraph } from '../../../src/compile.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import type { Communicator } from '../../../src/runtime/communicator.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { targetOf } from '../../../src/schedule/target.ts';
import { simulate } from '../../support/ranks/on-mesh.ts';
import { localProgram, stackedRanks, type LocalProgram } from '../../support/ranks/program.ts';
import { ofLoops, ofType, onDevice, tolerances } from '../../support/ranks/square.ts';

type Named = readonly [name: string, program: LocalProgram, tolerance: number];

/** `programs i8,f16,random 3`: one of each dtype, loops, random ones. */
function programsOf(scenario: string, seed: number): readonly Named[] {
  return scenario
    .replace('programs ', '')
    .split(',')
    .flatMap((what): readonly Named[] => {
      if (what === 'loops') return [1, 5].map((trips) => [`${trips} iterations`, ofLoops(trips), 1e-5]);
      if (what.startsWith('random')) {
        const options = { dtype: 'f32', meshes: ['a=2,b=2'] } as const;
        const numRuns = Number(what.replace('random ', ''));
        return fc
          .sample(localProgram(options), { seed, numRuns })
          .map((program, i) => [`random program ${i} of seed ${seed}`, program, 1e-3]);
      }
      const dtype = what as keyof typeof tolerances;
      return [[dtype, ofType(dtype), tolerances[dtype] ?? 0]];
    });
}

/** Runs programs, each twice over the same buffers. Throws where a result is wrong. */
export async function runPrograms(
  device: Device,
  communicator: Communicator,
  scenario: string,
  seed: number,
): Promise<number> {
  const { rank } = communicator;
  const programs = programsOf(scenario, seed);
  for (const [name, { graph, mesh, inputs }, tolerance] of programs) {
    const compiled = compileGraph(graph, targetOf(device.facts), { rank, check: true });
    const found = await onDevice(device, compiled, graph, inputs[rank]!, communicator, 3);
    const expected = interpret(
      simulate(graph, mesh),
      graph.parameters.map((_, i) => stackedRanks(inputs.map((each) => each[i]!))),
    );
    found.forEach((output, i) => {
      const wrong = difference(output, expected[i]!, rank, tolerance);
      if (wrong !== undefined) throw new Error(`${name}, output ${i} at rank ${rank}: ${wrong}`);
    });
  }
  return programs.length;
}

/** What is wrong with the values of a rank. */
function difference(found: HostArray, all: HostArray, rank: number, tolerance: number): string | undefined {
  const count = found.data.length;
  for (let i = 0; i < count; i++) {
    const [value, wanted] = [found.data[i]!, all.data[rank * count + i]!];
    if (Object.is(value, wanted) || value === wanted) continue;
    const away = Math.abs(Number(value) - Number(wanted));
    if (!(away <= tolerance * Math.max(1, Math.abs(Number(wanted)))))
      return `element ${i} is ${value}, not ${wanted}`;
  }
  return undefined;
}
