// `npm run scaling -- [--model gpt2-124m] [--json]`: modelled step times of models that many GPUs train (docs/design/scaling.md).

import { parseArgs } from 'node:util';
import { scaledModels } from './scaling/program.ts';
import { scalingOf, scalingText } from './scaling/table.ts';

const names = scaledModels.map(({ name }) => name).join(', ');
const usage = `usage: npm run scaling -- [options]

Models the steps of GPT-2 and of a model of 7 billion weights on 8 to 1,024 H100 GPUs. Computes nothing.

  --model NAME  one of ${names}; all by default
  --json        print { model, way, mesh, gpus, serial, overlapped, ideal, sent, memory, fits } of each line, in seconds and bytes`;

const { values } = parseArgs({
  options: {
    model: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) {
  console.log(usage);
} else {
  const chosen = scaledModels.filter(({ name }) => values.model === undefined || name === values.model);
  if (chosen.length === 0) {
    console.error(`there is no model '${values.model}': expected one of ${names}`);
    process.exitCode = 1;
  } else {
    const lines = chosen.flatMap((model) => scalingOf(model));
    console.log(values.json ? JSON.stringify(lines) : scalingText(lines));
  }
}
