// The example that runs a model from ONNX in C alone, on the model beside the project, by the commands of its README.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { expectRun, missing, reason, removeFolders } from './folders.ts';
import { temporary } from '../bundles.ts';

afterAll(removeFolders);

const project = path.resolve(import.meta.dirname, '../../..');
const shared = path.join(project, '../shared');
const example = path.join(project, 'examples/c/squeezenet');

test('squeezenet from ONNX gives in C what ONNX expects, by the commands of the README', ({ skip }) => {
  if (missing !== undefined) skip(reason);
  if (!fs.existsSync(path.join(shared, 'onnx/models/squeezenet'))) skip(`there are no models in ${shared}`);
  // A checkout with the example and the command line, and what lies beside it.
  const folder = temporary();
  const checkout = path.join(folder, 'checkout');
  fs.mkdirSync(path.join(checkout, 'node_modules/.bin'), { recursive: true });
  fs.symlinkSync(shared, path.join(folder, 'shared'));
  fs.symlinkSync(path.join(project, 'examples'), path.join(checkout, 'examples'));
  // As npm installs commands: the build itself leaves the file without the right to be run.
  const command = `#!/bin/sh\nexec node '${path.join(project, 'dist/cli/main.js')}' "$@"\n`;
  fs.writeFileSync(path.join(checkout, 'node_modules/.bin/sinter'), command, { mode: 0o755 });
  const [commands] = /(?<=```sh\n)[^`]+/.exec(fs.readFileSync(path.join(example, 'README.md'), 'utf8'))!;
  const printed = expectRun('sh', ['-ec', commands], checkout);
  expect(printed).toMatch(/squeezenet\.c .* 22 kernels; a context has 5\.18 MiB/);
  expect(printed).toMatch(/^0 of 1000 results are wrong, and the furthest is off by \d\.\de-0[67]$/m);

  // What ONNX does not expect is reported.
  const models = path.join(shared, 'onnx/models/squeezenet');
  const other = path.join(folder, 'other.pb');
  const compared = (bytes: Uint8Array): string => {
    fs.writeFileSync(other, bytes);
    const call = `./classify squeezenet/squeezenet.bin ${models}/input_0.pb ${other} 2>&1 || echo exit $?`;
    return expectRun('sh', ['-c', call], checkout);
  };
  const right = fs.readFileSync(path.join(models, 'output_0.pb'));
  expect(compared(right.subarray(0, -1))).toMatch(/other\.pb: the file is damaged\nexit 2/);
  const at = right.length - 4 * 7;
  right.writeFloatLE(right.readFloatLE(at) * 1.01, at);
  expect(compared(right)).toMatch(/^1 of 1000 results are wrong.*\n.*\nexit 1$/m);
});
