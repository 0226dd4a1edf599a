// `npm run conformance:onnx -- --dir DIR --device D --json`: runs the ONNX project's backend tests in DIR (with an index.json) on a
// device. The last line of output is the report; it exits with 0 whatever passed.

import { parseArgs } from 'node:util';
import { chooseDevice } from '../test/runtime/native/waiting.ts';
import { casesOf, runCases } from '../test/support/onnx/conformance.ts';

const { values } = parseArgs({
  options: {
    dir: { type: 'string' },
    device: { type: 'string', default: 'wasm' },
    json: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    scope: { type: 'string', default: '' },
  },
});
if (values.dir === undefined) {
  process.stderr.write(
    'usage: npm run conformance:onnx -- --dir DIR [--device D] [--only REGEXP] [--scope S] [--json]\n',
  );
  process.exit(2);
}
const rehearse = await chooseDevice(values.device);
const chosen = new RegExp(values.only);
const cases = casesOf(values.dir).filter(
  ({ name, scope }) => chosen.test(name) && (values.scope === '' || scope === values.scope),
);
await rehearse?.(() => runCases(values.dir!, cases));
const report = await runCases(values.dir, cases, ({ name, scope }, reason) => {
  if (!values.json && reason !== undefined)
    process.stdout.write(`${scope} ${name}: ${reason.split('\n').join(' ')}\n`);
});
if (!values.json) {
  for (const [name, { passed, total }] of Object.entries({ ...report.byScope, ...report.byTag })) {
    process.stdout.write(`${name}: ${passed} of ${total}\n`);
  }
}
process.stdout.write(`${JSON.stringify(report)}\n`);
process.exit(0);
