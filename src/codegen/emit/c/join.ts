// Many kernels' texts as one translation unit: every guard block once, before the kernels.

/** One text of those of several kernels, each of which `emitC` wrote. What is there once needs no guards. */
export function joinC(sources: readonly string[]): string {
  const seen = new Set<string>();
  const shared: string[] = [];
  const kernels = sources.map((source) => {
    const { blocks, rest } = apart(source);
    for (const { guard, lines } of blocks) {
      if (seen.has(guard)) continue;
      seen.add(guard);
      shared.push(lines.join('\n'));
    }
    return rest.replaceAll(/\n{3,}/g, '\n\n').trim();
  });
  return `${['#include <stdint.h>', ...shared, ...kernels].join('\n\n')}\n`;
}

interface Block {
  readonly guard: string;
  readonly lines: readonly string[];
}

/** The guard blocks of a text, and what is left without them and the headers. */
function apart(source: string): { readonly blocks: readonly Block[]; readonly rest: string } {
  const blocks: Block[] = [];
  const rest: string[] = [];
  const lines = source.split('\n');
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    const guard = /^#ifndef (SINTER_\w+)$/.exec(line)?.[1];
    if (guard === undefined) {
      if (!line.startsWith('#include ')) rest.push(line);
      continue;
    }
    const first = i;
    for (let depth = 1; depth > 0;) {
      i += 1;
      if (lines[i]!.startsWith('#if')) depth += 1;
      if (lines[i]!.startsWith('#endif')) depth -= 1;
    }
    // What a kernel is declared as, others may say.
    const isOpen = guard === 'SINTER_KERNEL';
    blocks.push({ guard, lines: isOpen ? lines.slice(first, i + 1) : lines.slice(first + 2, i) });
  }
  return { blocks, rest: rest.join('\n') };
}
