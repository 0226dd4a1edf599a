// A copy of the checkout in a temporary folder, whose sources are changed and changed back: what git tracks or would track, with
// the packages and the build beside it.

import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { mutated } from './text.ts';
import type { Mutant } from './mutants.ts';

/** What is not copied but linked to: nobody writes there. */
const linked = ['node_modules', 'dist'];

export class Checkout {
  readonly folder: string = fs.realpathSync(fs.mkdtempSync(path.join(tmpdir(), 'sinter-mutants-')));

  constructor(root: string) {
    const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    });
    // A file that was deleted is listed until that is committed.
    const files = listed.split('\0').filter((name) => name !== '' && fs.existsSync(path.join(root, name)));
    for (const name of files) {
      const to = path.join(this.folder, name);
      fs.mkdirSync(path.dirname(to), { recursive: true });
      fs.copyFileSync(path.join(root, name), to, fs.constants.COPYFILE_FICLONE);
    }
    for (const name of linked) {
      const from = path.join(root, name);
      if (fs.existsSync(from)) fs.symlinkSync(from, path.join(this.folder, name), 'junction');
    }
  }

  /** Runs with a mutant's text in its file, and takes it away again. */
  async with<T>(mutant: Mutant, run: () => Promise<T>): Promise<T> {
    const file = path.join(this.folder, mutant.file);
    const text = fs.readFileSync(file, 'utf8');
    fs.writeFileSync(file, mutated(mutant, text));
    try {
      return await run();
    } finally {
      fs.writeFileSync(file, text);
    }
  }

  close(): void {
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}
