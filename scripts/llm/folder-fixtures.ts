// Writes the small models of test/support/llm/folder.ts as folders, for scripts/llm/folder-fixtures.py:
// `npx tsx scripts/llm/folder-fixtures.ts FOLDER`.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folderFiles, folderSpecs } from '../../test/support/llm/folder.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('expects the folder that the models are to lie in');
for (const spec of folderSpecs) {
  const place = join(folder, spec.name);
  mkdirSync(place, { recursive: true });
  for (const [name, bytes] of folderFiles(spec)) writeFileSync(join(place, name), bytes);
}
