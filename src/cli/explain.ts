// `sinter explain`: what a workload becomes, from graph to kernels.

import { writeFile } from 'node:fs/promises';
import { explainFor } from '../explain.ts';
import { gpuTarget, softwareTarget } from '../schedule/target.ts';
import { chosenWorkload } from './choice.ts';
import { text, type Command } from './command.ts';

export const explainCommand: Command = {
  name: 'explain',
  about: 'show what a workload becomes: graph, kernels, bytes',
  details:
    'Compiles a workload for a GPU, without one, and shows the recorded graph and the kernels it becomes:\n' +
    'what each reads and writes, its arithmetic, the bytes it must move, and how it is spread over the machine.',
  options: {
    workload: { type: 'string', value: 'NAME', about: 'which one; an unknown name lists them' },
    sources: { type: 'boolean', about: 'show the kernels’ sources too' },
    software: { type: 'boolean', about: 'schedule for the software adapter instead of a GPU' },
    html: { type: 'string', value: 'FILE', about: 'write one self-contained page' },
  },
  examples: [
    'sinter explain --workload softmax',
    'sinter explain --workload gptBlockForward --html block.html',
  ],
  run: async (values, output) => {
    const { fn, args } = chosenWorkload(text(values, 'workload'));
    const target = values['software'] === true ? softwareTarget : gpuTarget;
    const explanation = explainFor(target, fn, ...args());
    const file = text(values, 'html');
    if (file !== undefined) {
      await writeFile(file, explanation.toHTML());
      output.note(`wrote ${file}`);
    }
    if (values['json'] === true) output.line(JSON.stringify(explanation));
    else if (file === undefined) output.line(explanation.toString());
    if (values['sources'] === true && values['json'] !== true) {
      for (const { source } of explanation.kernels) output.line(`\n${source.trimEnd()}`);
    }
  },
};
