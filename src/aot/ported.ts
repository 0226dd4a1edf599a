// A compiled program with what its buffers are to its entry and to the bundle: which hold inputs,
// outputs and weights.

import { SinterError } from '../errors.ts';
import type { Ports } from '../bundle-runtime/manifest.ts';
import type { Program } from '../runtime/program.ts';
import type { EntryResult, Wiring } from './entry.ts';

export interface PortedProgram {
  readonly program: Program;
  readonly ports: Ports;
}

/** A program and its ports. `count`: inputs of the entry. Throws E_UNSUPPORTED where only the interpreter runs it. */
export function portedProgram(name: string, compiled: Program, traced: Wiring, count: number): PortedProgram {
  const { program, wiring } = withCopies(compiled, traced);
  if (program.steps.some(({ kind }) => kind === 'host'))
    throw new SinterError('E_UNSUPPORTED', `build: ${name} has steps that only the interpreter runs`);
  return { program, ports: portsOf(program, wiring, count) };
}

/**
 * The program, preceded by copies of weights whose old values a call returns and whose values it
 * then replaces.
 */
function withCopies(
  program: Program,
  wiring: Wiring,
): { readonly program: Program; readonly wiring: Wiring } {
  const changed = new Set(wiring.updates.map(({ weight }) => weight));
  const [buffers, outputs] = [[...program.buffers], [...program.outputs]];
  const copies: Program['steps'][number][] = [];
  const results = wiring.results.map((from): EntryResult => {
    const wire = 'input' in from ? wiring.wires[from.input] : undefined;
    if (!('input' in from && wire !== undefined && 'weight' in wire && changed.has(wire.weight))) return from;
    const held = program.inputs[from.input]!;
    const copy = buffers.push({ ...buffers[held]!, role: 'output' }) - 1;
    copies.push({ kind: 'copy', from: held, to: copy });
    return { output: outputs.push(copy) - 1 };
  });
  const steps = [...copies, ...program.steps];
  return { program: { ...program, buffers, outputs, steps }, wiring: { ...wiring, results } };
}

/** Which buffers of a program hold the entry's inputs and outputs, and the bundle's weights. */
function portsOf({ inputs, outputs }: Program, wiring: Wiring, count: number): Ports {
  const { wires, sources, results, updates, draws, checks } = wiring;
  const bufferOf = (from: EntryResult): number =>
    'output' in from ? outputs[from.output]! : inputs[from.input]!;
  return {
    args: Array.from({ length: count }, (_, argument) => {
      const at = wires.findIndex((wire) => 'argument' in wire && wire.argument === argument);
      return inputs[at] ?? -1;
    }),
    weights: wires.flatMap((wire, i) => ('weight' in wire ? [{ ...wire, buffer: inputs[i]! }] : [])),
    scalars: sources,
    results: results.map(bufferOf),
    updates: updates.map(({ weight, from }) => ({ weight, buffer: bufferOf(from) })),
    draws,
    ...(checks.length > 0 && {
      checks: checks.map(({ from, ...check }) => ({ ...check, buffer: bufferOf(from) })),
    }),
  };
}
