// `sinter devices`: what this machine can compute on, and why not on the rest.

import { devices } from '../index.ts';
import { table } from '../table.ts';
import type { Command } from './command.ts';

export const devicesCommand: Command = {
  name: 'devices',
  about: 'list the devices of this machine',
  details:
    'Looks for every device and says what it is, or why it is not there. Without SINTER_DEVICE or\n' +
    'setDevice, tensors are computed on cuda, else on webgpu, else on wasm. cuda:1 is the second CUDA device,\n' +
    'wasm:2 is WebAssembly on two threads; without a number it has SINTER_THREADS, or one for each core, 8 at most.',
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
