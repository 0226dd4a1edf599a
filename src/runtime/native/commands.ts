// Node only: which commands may be the machine's C compiler, and whether there is one of them at all, without
// running any.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { DeviceError } from '../../errors.ts';

/** What koffi opens libraries of here. */
export const compiledPrograms = 'compiled programs';

/** Variables of the process by default. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Tried in order where `SINTER_CC` names no other. */
const usual: readonly string[] = ['cc', 'gcc', 'clang', 'zig cc'];

/** Commands with their arguments, in the order they are tried. */
export function compilerCommands(env: Environment): readonly string[] {
  const named = env['SINTER_CC']?.trim() ?? '';
  return named === '' ? usual : [named];
}

/** The error of a machine without a compiler: by command, why it is none. */
export function noCompiler(device: string, tried: ReadonlyMap<string, string>): DeviceError {
  const reasons = Array.from(tried, ([command, problem]) => `${command}: ${problem}`);
  return new DeviceError('E_DEVICE', device, `there is no C compiler: ${reasons.join('; ')}`, {
    hint: "install gcc or clang, or name one: SINTER_CC='zig cc'",
  });
}

/** Throws E_DEVICE where none of the commands exists. Runs nothing: one that exists may still not work. */
export function checkCommands(device: string, env: Environment = process.env): void {
  const commands = compilerCommands(env);
  if (commands.some((command) => exists(command.split(/\s+/)[0]!, env))) return;
  throw noCompiler(device, new Map(commands.map((command) => [command, 'not found'])));
}

function exists(name: string, env: Environment): boolean {
  const folders = name.includes('/') ? [''] : (env['PATH'] ?? '').split(path.delimiter);
  return folders.some((folder) => {
    try {
      fs.accessSync(path.join(folder, name), fs.constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
