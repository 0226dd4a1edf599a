// Runs the code of a document: every `ts` block is a module of its own, and the `text` block that follows is what it prints. In:
// Markdown; out: the blocks with what they print now, and what the type checker says of them.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sourcePaths } from '../test/support/source-paths.ts';

/** A `ts` block and the `text` block after it. */
export interface Example {
  readonly code: string;
  readonly expected: string;
}

const block = /^```ts\n([\s\S]*?)^```\n\n^```text\n([\s\S]*?)^```$/gm;
const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);
/** Stands between what one example prints and the next. */
const mark = '-- next example --';

/** The examples of a document, in order. Throws when a `ts` block shows no output. */
export function examplesOf(markdown: string): Example[] {
  const found = [...markdown.matchAll(block)].map(([, code, expected]) => ({
    code: code!,
    expected: expected!,
  }));
  const blocks = markdown.match(/^```ts$/gm)?.length ?? 0;
  if (blocks !== found.length)
    throw new Error(`${blocks - found.length} ts block(s) without a text block after them`);
  return found;
}

/** The document with each example's output replaced. */
export function withOutputs(markdown: string, outputs: readonly string[]): string {
  let next = 0;
  return markdown.replaceAll(
    block,
    (_, code: string) => `\`\`\`ts\n${code}\`\`\`\n\n\`\`\`text\n${outputs[next++]!}\`\`\``,
  );
}

/** Writes the examples as modules into a temporary folder, where `sinter` means the source tree, and removes it at the end. */
async function inFolder<T>(examples: readonly Example[], use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'sinter-examples-'));
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      typeRoots: [join(root, 'node_modules/@types'), join(root, 'node_modules')],
      // Declarations are not emitted here, and a module that exports nothing needs none.
      isolatedDeclarations: false,
      declaration: false,
      paths: Object.fromEntries(sourcePaths.map(([name, file]) => [name, [file]])),
    },
    include: ['*.ts'],
  };
  try {
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
    for (const [i, { code }] of examples.entries()) await writeFile(join(folder, `example${i}.ts`), code);
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** What each example prints, run one after another in one process on the software device. */
export function runExamples(examples: readonly Example[]): Promise<string[]> {
  return inFolder(examples, async (folder) => {
    // An example may choose a device; the next one has the software device again.
    const lines = examples.map(
      (_, i) => `await import('./example${i}.ts');\nsetDevice(undefined);\nconsole.log('${mark}');`,
    );
    const all = ["import { setDevice } from 'sinter';", ...lines];
    await writeFile(join(folder, 'all.ts'), all.join('\n'));
    const { stdout } = await run(
      process.execPath,
      [
        join(root, 'node_modules/tsx/dist/cli.mjs'),
        '--tsconfig',
        join(folder, 'tsconfig.json'),
        join(folder, 'all.ts'),
      ],
      { cwd: root, env: { ...process.env, SINTER_DEVICE: 'webgpu:software', NO_COLOR: '1' } },
    );
    return stdout.split(`${mark}\n`).slice(0, -1);
  });
}

/**
 * How the type checker runs on the least processor time: with one checker, where several would each work out the same types, and
 * with memory collected seldom.
 */
export const thrifty = { options: ['--checkers', '1'], env: { GOGC: '400' } } as const;

/** What the type checker says against the examples; empty when nothing. (What they import is checked with the sources.) */
export function checkExamples(examples: readonly Example[]): Promise<string> {
  return inFolder(examples, async (folder) => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    try {
      await run(process.execPath, [tsc, '-p', folder, ...thrifty.options], {
        cwd: root,
        env: { ...process.env, ...thrifty.env },
      });
      return '';
    } catch (error) {
      const report = (error as { stdout: string }).stdout;
      return /example\d+\.ts\(/.test(report) ? report : '';
    }
  });
}
