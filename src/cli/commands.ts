// The command line: finds the command, parses its options, turns errors into messages and exit
// codes (0 done, 1 failed, 2 asked wrongly).

import { stagesWritten } from '../dump/stages.ts';
import { SinterError } from '../errors.ts';
import { benchCommand } from './bench/bench.ts';
import { budgetCommand } from './bench/budget.ts';
import { buildCommand } from './build/build.ts';
import { checkCommand } from './check/check.ts';
import { commandHelp, parseOptions, UsageError, type Command, type Output } from './command.ts';
import { demoCommand } from './demo/demo.ts';
import { explainCommand } from './explain/explain.ts';
import { exportCommand } from './build/export.ts';
import { lowerCommand } from './explain/lower.ts';
import { chatCommand } from './llm/chat.ts';
import { generateCommand } from './llm/generate.ts';
import { serveCommand } from './llm/serve/serve.ts';
import { launchCommand } from './launch/launch.ts';
import { runCommand } from './run/run.ts';
import { version } from './version.ts';
import { devices } from '../index.ts';
import { table } from '../table.ts';

// `sinter devices`: what this machine can compute on, and why not on the rest.

const devicesCommand: Command = {
  name: 'devices',
  about: 'list the devices of this machine',
  details:
    'Looks for every device and prints what it is, or why it is missing. Without SINTER_DEVICE or\n' +
    'setDevice, Sinter uses cuda, or else webgpu, or else wasm. cuda:1 is the second CUDA device, and\n' +
    'wasm:2 is WebAssembly on two threads. Without a number it has SINTER_THREADS threads, or one for each core, at most 8.',
  options: {},
  examples: ['sinter devices', 'SINTER_DEVICE=wasm:2 sinter demo'],
  run: async (values, output) => {
    const reports = await devices();
    if (values['json'] === true) {
      output.line(JSON.stringify(reports));
      return;
    }
    const rows = reports.map((report) => [
      report.name,
      report.available ? 'yes' : 'no',
      report.available ? report.description : firstLine(report.reason),
      report.available ? report.features.join(' ') : '',
    ]);
    output.line(table(['device', 'there', 'what it is', 'features'], rows));
  },
};

function firstLine(reason: string): string {
  return reason.split('\n')[0]!;
}

const commands: readonly Command[] = [
  devicesCommand,
  demoCommand,
  explainCommand,
  lowerCommand,
  buildCommand,
  exportCommand,
  runCommand,
  checkCommand,
  launchCommand,
  generateCommand,
  chatCommand,
  serveCommand,
  budgetCommand,
  benchCommand,
];

/** Runs `sinter` with these arguments; gives the exit code. */
export async function runCli(args: readonly string[], output: Output): Promise<number> {
  try {
    await dispatch(args, output);
    return 0;
  } catch (error) {
    output.note(`sinter: ${describe(error, args.includes('--debug'))}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function dispatch([name, ...rest]: readonly string[], output: Output): Promise<void> {
  if (name === undefined) throw new UsageError(`no command given\n\n${overview()}`);
  if (name === '--help' || name === '-h' || name === 'help') {
    const command = commands.find((known) => known.name === rest[0]);
    output.line(command === undefined ? overview() : commandHelp(command));
    return;
  }
  if (name === '--version') {
    output.line(version());
    return;
  }
  const command = commands.find((known) => known.name === name);
  if (command === undefined) {
    const names = commands.map((known) => known.name).join(', ');
    throw new UsageError(`there is no command '${name}': expected ${names}`);
  }
  const values = parseOptions(command, rest);
  if (values['help'] === true) output.line(commandHelp(command));
  else {
    await stagesWritten();
    await command.run(values, output);
  }
}

function overview(): string {
  return [
    'usage: sinter COMMAND [options]',
    '',
    'A lazy tensor graph compiler: it records, differentiates and fuses operations, and runs generated kernels.',
    '',
    'commands:',
    ...commands.map(({ name, about }) => `  ${name.padEnd(8)}  ${about}`),
    '',
    '`sinter COMMAND --help` prints the options. SINTER_DEVICE chooses the device, and SINTER_THREADS the number of wasm threads.',
    'SINTER_DUMP names a folder, into which every stage of the compiler is written as text.',
  ].join('\n');
}

/** What went wrong, for people; the stack for those who ask for it. */
function describe(error: unknown, debug: boolean): string {
  if (!(error instanceof Error)) return String(error);
  if (debug) return error.stack ?? error.message;
  const known = error instanceof SinterError || 'code' in error;
  return known ? error.message : `${error.message}\n  --debug shows where`;
}
