// Measures the special functions beside figures of high precision on every device there is here, and writes the table of
// docs/functions/special.md: npx tsx scripts/special/errors.ts

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { setDevice } from '../../src/index.ts';
import { everyDevice } from '../../test/support/devices.ts';
import { boundOf, figures, worstOf, type FloatName } from '../../test/support/special-figures.ts';
import { markdownTable, withSection } from '../docs.ts';

const path = fileURLToPath(new URL('../../docs/functions/special.md', import.meta.url));
const doubles = everyDevice.filter((device) => !device.startsWith('webgpu'));
const columns: readonly (readonly [device: string, dtype: FloatName])[] = [
  ...everyDevice.map((device) => [device, 'f32'] as const),
  ...doubles.map((device) => [device, 'f64'] as const),
];

async function cell(name: string, device: string, dtype: FloatName): Promise<string> {
  setDevice(device);
  const { units, relative } = await worstOf(name, dtype, device.startsWith('webgpu') ? 2 ** -126 : 0);
  return dtype === 'f32' ? units.toFixed(2) : relative.toExponential(0);
}

const head = ['function', ...columns.map(([device, dtype]) => `${device} ${dtype}`), 'bound f32'];
const rows: string[][] = [];
for (const name of Object.keys(figures)) {
  const row = [`\`${name}\``];
  for (const [device, dtype] of columns) row.push(await cell(name, device, dtype));
  rows.push([...row, String(boundOf(name))]);
}
const table = markdownTable(head, rows, (column) => column === 0);
writeFileSync(path, withSection(readFileSync(path, 'utf8'), 'errors', table));
process.exit(0);
