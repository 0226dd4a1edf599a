// `npm run coverage:ops -- --json [--device D,D] [--only REGEXP] [--dtype D,D] [--mode M,M]`: every row of the catalogue in every dtype on
// every target, read at once, compiled, differentiated, exported and bundled, against the reference interpreter. The last line of output is
// the report; it exits with 1 where a cell failed.

import { parseArgs } from 'node:util';
import { close } from '../../src/index.ts';
import { dtypes, isDType } from '../../src/ir/dtype.ts';
import { removeFolders } from '../../test/aot/bundles.ts';
import { modes, type Mode } from '../../test/support/coverage/cells.ts';
import { coverage } from '../../test/support/coverage/report.ts';
import { everyDevice } from '../../test/support/devices.ts';

const usage = `usage: npm run coverage:ops -- [--device D,D] [--only REGEXP] [--dtype D,D] [--mode M,M] [--json]
  --device  ${everyDevice.join(', ')}: all by default
  --only    calls whose name fits, as they are in test/support/coverage/rows
  --dtype   ${dtypes.join(' ')}
  --mode    ${modes.join(', ')}
  --json    no list of failures before the report, which is the last line
`;

const { values } = parseArgs({
  options: {
    device: { type: 'string', default: everyDevice.join(',') },
    only: { type: 'string', default: '' },
    dtype: { type: 'string', default: dtypes.join(',') },
    mode: { type: 'string', default: modes.join(',') },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const chosen = {
  devices: values.device.split(','),
  dtypes: values.dtype.split(',').filter(isDType),
  modes: values.mode.split(',').filter((mode): mode is Mode => modes.includes(mode as Mode)),
};
if (values.help || chosen.dtypes.length === 0 || chosen.modes.length === 0) {
  process.stdout.write(usage);
  process.exit(values.help ? 0 : 2);
}
const only = new RegExp(values.only);
const report = await coverage({
  ...chosen,
  takes: ({ name }) => only.test(name),
  progress: (line) => process.stderr.write(`${line}\n`),
});
await close();
removeFolders();
if (!values.json)
  for (const { cell, reason } of report.failures) process.stderr.write(`${cell}: ${reason}\n`);
process.stdout.write(`${JSON.stringify(report)}\n`);
process.exit(report.failed === 0 ? 0 : 1);
