// `npm run conformance:opinfo -- --dir DIR --device D --json [--only REGEXP]`: runs PyTorch's own samples of its operators, unpacked
// in DIR, on a device. The last line of output is the report; it exits with 0 whatever passed.

import { parseArgs } from 'node:util';
import { chooseDevice } from '../test/runtime/native/waiting.ts';
import { runSamples } from '../test/support/opinfo/run.ts';

const { values } = parseArgs({
  options: {
    dir: { type: 'string' },
    device: { type: 'string', default: 'wasm' },
    json: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
});
if (values.dir === undefined) {
  process.stderr.write(
    'usage: npm run conformance:opinfo -- --dir DIR [--device D] [--only REGEXP] [--json]\n',
  );
  process.exit(2);
}
const rehearse = await chooseDevice(values.device);
const chosen = new RegExp(values.only);
// An expression fits an operator's name or a case's.
const takes = (id: string): boolean => chosen.test(id) || chosen.test(id.split('/')[0]!);
await rehearse?.(() => runSamples(values.dir!, { takes }));
const report = await runSamples(values.dir, {
  takes,
  progress: (name, { passed, total }) => {
    if (!values.json) process.stderr.write(`${name}: ${passed} of ${total}\n`);
  },
});
if (!values.json) for (const { id, reason } of report.failures) process.stderr.write(`${id}: ${reason}\n`);
process.stdout.write(`${JSON.stringify(report)}\n`);
process.exit(0);
