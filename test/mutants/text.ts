// What a mutant does to the text of its file, and what is wrong with one that does not fit there any more.

import type { Mutant } from './mutants.ts';

/** A mutant that cannot be made. */
export class MutantError extends Error {}

/** The text with the mutant in it. Throws MutantError unless what it replaces occurs exactly once. */
export function mutated({ name, file, find, replace }: Mutant, text: string): string {
  const count = text.split(find).length - 1;
  if (count !== 1) {
    const hint =
      count === 0
        ? `the code has moved on: find where ${file} or another source decides this now`
        : 'take more of the line or of its neighbours into it';
    throw new MutantError(
      `${name}: \`find\` occurs ${count} times in ${file}, not once: ${find}\n  try: ${hint}`,
    );
  }
  const at = text.indexOf(find);
  return text.slice(0, at) + replace + text.slice(at + find.length);
}
