// The walk of docs/design/walk.md from `x.matmul(w).add(b).relu()` to a dispatched kernel is what happens: the program runs under V8's
// debugger, and each line's function must be entered in this order, called by the function that the line stands under, with no function
// of ours between the two that has a name.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { readText, root } from './source.ts';
import type { Hop, Sight } from './walk/tracer.ts';

/** The lines of the walk: a name, indented below its caller's, and its file; lines without a file are the program's. */
function walk(): Hop[] {
  const text = readText('docs/design/walk.md').split('```')[1]!;
  const hops: Hop[] = [];
  const above: { readonly depth: number; readonly place: number }[] = [];
  for (const line of text.split('\n')) {
    const found = /^( *)(#?\w+) +([\w/-]+\.ts)\b/.exec(line);
    if (found === null) {
      above.length = 0;
      continue;
    }
    const [, indent, name, file] = found as unknown as [string, string, string, string];
    while (above.length > 0 && above.at(-1)!.depth >= indent.length) above.pop();
    hops.push({ name, file, parent: above.at(-1)?.place });
    above.push({ depth: indent.length, place: hops.length - 1 });
  }
  return hops;
}

/** The first hop that the program does not take from the one it stands under, and what happened instead. */
function wrong(hops: readonly Hop[]): string | undefined {
  const script = fileURLToPath(new URL('walk/follow.ts', import.meta.url));
  const args = ['--import', 'tsx', script, JSON.stringify(hops)];
  const printed = execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  const { lost, sights } = JSON.parse(printed) as {
    readonly lost: readonly string[];
    readonly sights: readonly Sight[];
  };
  if (lost.length > 0) return lost.join('\n');
  const missed = sights.findIndex(({ reached }) => !reached);
  if (missed < 0) return undefined;
  const { name, file } = hops[missed]!;
  return `${name} ${file} is called by ${sights[missed]!.callers.join(', ') || 'nobody after the hop before'}`;
}

test('each hop of the walk is entered, in order, from the one it stands under', () => {
  const hops = walk();
  expect(hops.length).toBeGreaterThan(60);
  expect(wrong(hops)).toBeUndefined();
});

test('a hop that is left out, and hops in another order, are found', () => {
  const hops = walk();
  const product = hops.findIndex(({ name }) => name === 'product');
  /** The same without `product`: what it calls stands under its caller. */
  const shorter = hops
    .map((hop) => (hop.parent === product ? { ...hop, parent: product - 1 } : hop))
    .filter((_, i) => i !== product)
    .map(({ parent, ...hop }) =>
      parent === undefined ? hop : { ...hop, parent: parent > product ? parent - 1 : parent },
    );
  expect(wrong(shorter as Hop[])).toMatch(/^apply .* is called by product tensor\/ops\/product\/matmul\.ts/);
  const optimise = hops.findIndex(({ name }) => name === 'optimise');
  const assemble = hops.findIndex(({ name }) => name === 'assemble');
  const last = { ...hops[optimise]! };
  expect(wrong([...hops.slice(0, optimise), hops[assemble]!, last])).toMatch(/^optimise .* nobody/);
});
