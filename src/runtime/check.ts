// Structural checks of a Program, made once when it is loaded: every index in range, every binding
// declared, every region inside its arena. What the compiler guarantees is asked again here because
// programs also come from files.

import { groupProblem } from './communicator.ts';
import { DeviceError } from '../errors.ts';
import { everyStep, strideProblem } from './program.ts';
import type { ProgramBuffer, ProgramOutline, ProgramStep, ProgramTileMap, TargetId } from './program.ts';

/**
 * Throws DeviceError E_VALIDATION, naming the kernel or buffer, unless the program is well formed
 * for `target`.
 */
export function checkProgram(program: ProgramOutline, target: TargetId, device: string): void {
  const invalid = (problem: string, kernel?: string): never => {
    throw new DeviceError('E_VALIDATION', device, problem, kernel === undefined ? {} : { kernel });
  };
  if (program.version !== 1) invalid(`program version ${String(program.version)} is not 1`);
  if (program.target !== target)
    invalid(`a program for ${program.target} cannot run here: expected ${target}`);
  const { buffers, kernels } = program;

  for (const buffer of buffers) checkBuffer(buffer, program.arenas, invalid);
  for (const [list, name] of [
    [program.inputs, 'input'],
    [program.outputs, 'output'],
  ] as const) {
    list.forEach((index, position) => {
      const buffer = buffers[index];
      if (buffer === undefined) invalid(`${name} ${position} is buffer ${index} of ${buffers.length}`);
      else if (buffer.role === 'scratch') invalid(`${name} ${position} is the scratch buffer ${buffer.name}`);
    });
  }
  for (const pair of program.donated) {
    const input = buffers[program.inputs[pair.input] ?? -1];
    const output = buffers[program.outputs[pair.output] ?? -1];
    if (input === undefined || output === undefined) {
      invalid(`donated pair (output ${pair.output}, input ${pair.input}) is out of range`);
    } else if (input.bytes !== output.bytes) {
      invalid(
        `donated ${input.name} has ${input.bytes} bytes, its output ${output.name} has ${output.bytes}`,
      );
    }
  }

  checkPacks(program, invalid);
  const names = new Set<string>();
  for (const kernel of kernels) {
    if (names.has(kernel.name)) invalid('two kernels have this name', kernel.name);
    names.add(kernel.name);
  }
  const bound = new Set([
    ...program.inputs,
    ...program.outputs,
    ...program.packs.map(({ buffer }) => buffer),
  ]);
  [...everyStep(program.steps)].forEach((step, position) => {
    const { kernel, uses } = usesOf(step, program, position, invalid);
    for (const index of uses) {
      const buffer = buffers[index];
      if (buffer === undefined) invalid(`step ${position} uses buffer ${index} of ${buffers.length}`, kernel);
      else if (buffer.role !== 'scratch' && !bound.has(index)) {
        invalid(`step ${position} uses ${buffer.role} ${buffer.name}, which is never bound`, kernel);
      }
    }
  });
}

type Invalid = (problem: string, kernel?: string) => never;

function checkPacks({ packs, buffers, inputs, outputs }: ProgramOutline, invalid: Invalid): void {
  const taken = new Set<number>();
  packs.forEach(({ buffer, members }, position) => {
    const whole = buffers[buffer] ?? invalid(`pack ${position} is buffer ${buffer} of ${buffers.length}`);
    if (inputs.includes(buffer) || outputs.includes(buffer))
      invalid(`pack ${position} is the ${whole.role} ${whole.name}`);
    const list = whole.role === 'input' ? inputs : whole.role === 'output' ? outputs : [];
    if (members.length === 0) invalid(`pack ${position} (${whole.name}) has no members`);
    let end = 0;
    for (const member of members) {
      const part = buffers[member.buffer];
      if (part === undefined || part.role !== whole.role || !list.includes(member.buffer))
        invalid(`${whole.name} holds buffer ${member.buffer}, which is no ${whole.role}`);
      else {
        if (taken.has(member.buffer)) invalid(`${part.name} is in two packs, or twice in one`);
        taken.add(member.buffer);
        if (member.offset % 256 !== 0 || member.offset < end)
          invalid(
            `${part.name} is at offset ${member.offset} of ${whole.name}: not a multiple of 256 from ${end} on`,
          );
        end = member.offset + part.bytes;
      }
    }
    if (end > whole.bytes) invalid(`the members of ${whole.name} end at ${end}, it has ${whole.bytes} bytes`);
  });
}

function checkBuffer(buffer: ProgramBuffer, arenas: readonly number[], invalid: Invalid): void {
  const { name, bytes } = buffer;
  if (!(bytes >= 4 && bytes % 4 === 0)) invalid(`buffer ${name} has ${bytes} bytes: not a multiple of 4`);
  if (buffer.role !== 'scratch') return;
  const arena = arenas[buffer.arena ?? -1] ?? invalid(`scratch buffer ${name} is in no arena`);
  const offset = buffer.offset ?? -1;
  if (!(offset >= 0 && offset % 256 === 0)) {
    invalid(`scratch buffer ${name} is at offset ${offset}: not a multiple of 256`);
  }
  if (offset + bytes > arena) {
    invalid(`scratch buffer ${name} ends at ${offset + bytes}, its arena at ${arena}`);
  }
}

function usesOf(
  step: ProgramStep,
  program: ProgramOutline,
  position: number,
  invalid: Invalid,
): { kernel?: string; uses: readonly number[] } {
  switch (step.kind) {
    case 'dispatch': {
      const kernel =
        program.kernels[step.kernel] ?? invalid(`step ${position} runs kernel ${step.kernel}: there is none`);
      if (step.buffers.length !== kernel.bindings.length) {
        const counts = `${step.buffers.length} buffers for ${kernel.bindings.length} bindings`;
        invalid(`step ${position} gives ${counts}`, kernel.name);
      }
      if (step.grid.some((count) => !(Number.isInteger(count) && count >= 0))) {
        invalid(`step ${position} has the grid ${step.grid.join('×')}`, kernel.name);
      }
      for (const map of kernel.tileMaps ?? [])
        checkTileMap(map, program.buffers[step.buffers[map.binding] ?? -1], (problem) =>
          invalid(`step ${position}: ${problem}`, kernel.name),
        );
      return { kernel: kernel.name, uses: step.buffers };
    }
    case 'copy': {
      const from = program.buffers[step.from]?.bytes;
      const to = program.buffers[step.to]?.bytes;
      if (from !== to) invalid(`step ${position} copies ${from} bytes onto ${to}`);
      return { uses: [step.from, step.to] };
    }
    case 'clear':
      return { uses: [step.buffer] };
    case 'repeat': {
      if (!(Number.isInteger(step.times) && step.times >= 0))
        invalid(`step ${position} is repeated ${step.times} times`);
      return { uses: [] };
    }
    case 'while': {
      if (!(Number.isInteger(step.times) && step.times >= 0))
        invalid(`step ${position} is repeated ${step.times} times`);
      const dtype = program.buffers[step.guard]?.dtype ?? 'i32';
      if (dtype !== 'i32') invalid(`step ${position} is guarded by ${dtype}`);
      return { uses: [step.guard] };
    }
    case 'collective': {
      const [from, to] = [program.buffers[step.from], program.buffers[step.to]];
      if (step.sends > (from?.bytes ?? Infinity) || step.takes > (to?.bytes ?? Infinity))
        invalid(
          `step ${position} sends ${step.sends} bytes and takes ${step.takes}: more than its buffers have`,
        );
      const problem = groupProblem(step);
      if (problem !== undefined) invalid(`step ${position}: ${problem}`);
      return { uses: [step.from, step.to] };
    }
    case 'host':
      return { uses: [...step.reads, ...step.writes] };
    default:
      return step satisfies never;
  }
}

/** Copies of boxes are not checked by the device, so what they can reach is checked here. */
function checkTileMap(
  { binding, dtype, offset, sizes, strides, box }: ProgramTileMap,
  buffer: ProgramBuffer | undefined,
  invalid: (problem: string) => never,
): void {
  if (buffer === undefined) return invalid(`a tile map of binding ${binding}, which there is not`);
  if (buffer.dtype !== dtype) invalid(`a tile map takes ${buffer.name} for ${dtype}, it is ${buffer.dtype}`);
  if (strides.length !== sizes.length || box.length !== sizes.length)
    invalid(`a tile map has ${sizes.length} sizes, ${strides.length} strides and a box of ${box.length}`);
  const odd = strideProblem({ sizes, strides });
  if (odd !== undefined || offset % 8 !== 0)
    invalid(`a tile map of ${buffer.name}: ${odd ?? `offset ${offset}`}`);
  const last = sizes.reduce((at, size, axis) => at + (size - 1) * strides[axis]!, offset);
  if (!(offset >= 0 && 2 * (last + 1) <= buffer.bytes))
    invalid(`a tile map reaches element ${last} of ${buffer.name}, which has ${buffer.bytes} bytes`);
}
