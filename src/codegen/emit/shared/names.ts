// Identifiers for a Loop's buffers and variables in a language: names that clash with its words,
// with what the emitter itself uses, or with a buffer, get a trailing underscore.

import type { Loop } from '../../loop/loop.ts';
import { declaredIn } from '../../loop/walk.ts';

/** Spellings of a Loop's buffers, variables and entry point. */
export interface Names {
  /** Of a buffer, a tile map or a row of mbarriers. */
  buffer(name: string): string;
  variable(name: string): string;
  /** A variable of the emitter's own, unlike all others. */
  fresh(hint: string): string;
}

/** Gives every name of the Loop a unique spelling; buffers first, so that they keep their names. */
export function nameTable(loop: Loop, isTaken: (name: string) => boolean): Names {
  const used = new Set<string>();
  const claim = (name: string): string => {
    let safe = /^_+[^_]/.test(name) ? name.replace(/^_+/, '_') : name.replace(/^_+$/, 'blank');
    while (isTaken(safe) || used.has(safe)) safe += '_';
    used.add(safe);
    return safe;
  };
  const fresh = (hint: string): string => {
    let name = hint;
    for (let i = 1; used.has(name) || isTaken(name); i++) name = `${hint}_${i}`;
    used.add(name);
    return name;
  };
  const spelled = (names: Iterable<string>): Map<string, string> => {
    const map = new Map<string, string>();
    for (const name of names) if (!map.has(name)) map.set(name, claim(name));
    return map;
  };
  // Variables may have the entry point's name, which nothing else refers to.
  used.add(loop.name);
  const { buffers: arrays, tileMaps = [], mbarriers = [] } = loop;
  const buffers = spelled([...arrays, ...tileMaps, ...mbarriers].map(({ name }) => name));
  used.delete(loop.name);
  const variables = spelled(declaredIn(loop.body));
  return {
    buffer: (name) => buffers.get(name) ?? name,
    variable: (name) => variables.get(name) ?? name,
    fresh,
  };
}
