// What a script is made of: its bytes by the module that they come from, read off the bundler's source map, and those by the
// folders of the package, its rooms and what is in them.

import * as path from 'node:path';

/** What of a source map is read (https://tc39.es/ecma426/). */
export interface SourceMap {
  readonly sources: readonly (string | null)[];
  readonly mappings: string;
}

/** Bytes that no module accounts for: the bundler's own. */
const own = 'the bundler';

/** How many bytes of a script come from which module, by absolute path; the map's sources are relative to `folder`. */
export function bytesBySource(code: string, map: SourceMap, folder: string): ReadonlyMap<string, number> {
  const names = map.sources.map((source) =>
    source === null || source.startsWith('\0') ? own : path.resolve(folder, source),
  );
  const bytes = new Map<string, number>();
  const count = (name: string, text: string): void => {
    if (text !== '') bytes.set(name, (bytes.get(name) ?? 0) + Buffer.byteLength(text));
  };
  const groups = map.mappings.split(';');
  let source = 0;
  for (const [i, line] of code.split(/(?<=\n)/).entries()) {
    // A segment's bytes reach to the next one. Columns begin anew on each line, sources do not.
    let [column, name] = [0, own];
    for (const segment of (groups[i] ?? '').split(',').filter((text) => text !== '')) {
      const [columns, sources] = numbersOf(segment);
      const next = column + columns!;
      count(name, line.slice(column, next));
      column = next;
      source += sources ?? 0;
      name = sources === undefined ? own : names[source]!;
    }
    count(name, line.slice(column));
  }
  return bytes;
}

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Base 64 VLQ: five bits a digit, the lowest first, a sixth says that more follow; the lowest bit of all is the sign. */
function numbersOf(segment: string): number[] {
  const numbers: number[] = [];
  let [value, shift] = [0, 0];
  for (const digit of segment) {
    const bits = digits.indexOf(digit);
    value += (bits & 31) << shift;
    shift += 5;
    if ((bits & 32) !== 0) continue;
    numbers.push((value & 1) === 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}

/** The room of a module: its first `levels` folders in the package's `dist`, or the package that it is of. */
export function roomOf(module: string, levels: number): string {
  const inside = /\/node_modules\/sinter\/dist\/(.*)$/.exec(module)?.[1];
  if (inside === undefined) {
    const other = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(module)?.[1];
    return other ?? (module === own ? own : 'the page');
  }
  const folders = inside.split('/').slice(0, -1);
  return folders.length === 0 ? 'src/*.ts' : `src/${folders.slice(0, levels).join('/')}`;
}

/** Bytes by room at both levels, the greatest first: each room, and under it its folders. */
export function bytesByRoom(modules: Iterable<readonly [string, number]>): readonly RoomBytes[] {
  const list = [...modules];
  const sum = (levels: number): Map<string, number> => {
    const sums = new Map<string, number>();
    for (const [module, bytes] of list) {
      const room = roomOf(module, levels);
      sums.set(room, (sums.get(room) ?? 0) + bytes);
    }
    return sums;
  };
  const greatestFirst = (sums: Iterable<[string, number]>): [string, number][] =>
    [...sums].toSorted((a, b) => b[1] - a[1]);
  const inner = sum(2);
  return greatestFirst(sum(1)).map(([room, bytes]) => ({
    room,
    bytes,
    folders: greatestFirst([...inner].filter(([folder]) => folder.startsWith(`${room}/`))),
  }));
}

/** A room and its folders; files that lie in the room itself are in no folder. */
export interface RoomBytes {
  readonly room: string;
  readonly bytes: number;
  readonly folders: readonly (readonly [string, number])[];
}
