// What the processor must have for a builtin of the compiler, as the macros that compilers define for it. `__has_builtin` alone does not
// say it: some compilers know builtins that they refuse to compile for the processor that they were told.

import { CompilerBug } from '../../../errors.ts';

const vnni = '((defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__))';

/** By the beginning of what follows `__builtin_ia32_`; the first row that fits counts. */
const needs: readonly (readonly [name: RegExp, condition: string])[] = [
  [/^vpdpwssd_v16/, 'defined(__AVX512VNNI__)'],
  [/^vpdpwssd_/, vnni],
  [/^pmaddwd512/, 'defined(__AVX512BW__)'],
  [/^pmaddwd256/, 'defined(__AVX2__)'],
  [/^pmaddwd128/, 'defined(__SSE2__)'],
  [/^(\w+512_mask|rndscalep[sd]_mask|ps512_ps)$/, 'defined(__AVX512F__)'],
  [/^vcvtph2ps(256)?$/, 'defined(__F16C__)'],
  [/^vfmaddp[sd](256)?$/, 'defined(__FMA__)'],
  [/^(min|max|sqrt|round)p[sd]256$/, 'defined(__AVX__)'],
  [/^roundp[sd]$/, 'defined(__SSE4_1__)'],
  [/^(min|max|sqrt)p[sd]$/, 'defined(__SSE2__)'],
];

/** What the preprocessor asks before a builtin is used; undefined for builtins of every processor. */
export function conditionOf(builtin: string): string | undefined {
  const name = /^__builtin_ia32_(\w+)/.exec(builtin)?.[1];
  if (name === undefined) return undefined;
  const row = needs.find(([pattern]) => pattern.test(name));
  if (row === undefined) throw new CompilerBug('C', `no processor is known for ${builtin}`);
  return row[1];
}
