// Circles of imports. What lies side by side in a folder, files and folders with all that is in them, imports one way; a circle of
// files is one in the folder that holds them all. Types count, and so does what a call of `import` loads. Comes in: the imports of
// the sources. Goes out: the circles that they make, and the imports that make those of today. `npx tsx test/structure/circles.ts`
// prints the counts.

import { pathToFileURL } from 'node:url';
import { sources } from './source.ts';

/** That one file imports another, `src/ir/attrs.ts → src/ir/region.ts`. */
export type Step = `${string} → ${string}`;

/** Every import of a file of src by another. */
export function allSteps(): Step[] {
  return [...sources.values()].flatMap(({ path, imports }) =>
    imports
      .filter(({ target }) => target !== undefined && target !== path)
      .map(({ target }): Step => `${path} → ${target!}`),
  );
}

/** What of one folder imports what beside it, and by which files. */
type Room = Map<string, Map<string, Step>>;

/** Folders by their paths: each import belongs to the lowest folder that has both of its files. */
function roomsOf(steps: Iterable<Step>): Map<string, Room> {
  const rooms = new Map<string, Room>();
  for (const step of steps) {
    const [from, to] = step.split(' → ').map((path) => path.split('/')) as [string[], string[]];
    const at = from.findIndex((part, i) => part !== to[i]);
    const folder = from.slice(0, at).join('/');
    const room: Room = rooms.get(folder) ?? new Map();
    rooms.set(folder, room);
    const side = room.get(from[at]!) ?? new Map<string, Step>();
    room.set(from[at]!, side);
    if (!side.has(to[at]!)) side.set(to[at]!, step);
  }
  return rooms;
}

/** The shortest way in a room from one of its members back to itself. */
function wayBack(room: Room, start: string): Step[] | undefined {
  const ways = new Map<string, readonly Step[]>([[start, []]]);
  for (const [at, way] of ways) {
    for (const [next, step] of room.get(at) ?? []) {
      if (next === start) return [...way, step];
      if (!ways.has(next)) ways.set(next, [...way, step]);
    }
  }
  return undefined;
}

/** For each folder, a shortest circle through each of its members that are in one, each circle once. */
export function circlesOf(steps: Iterable<Step>): string[] {
  return [...roomsOf(steps)].flatMap(([folder, room]) => {
    const found = [...room.keys()].flatMap((member) => {
      const way = wayBack(room, member);
      return way === undefined ? [] : [[...way].sort().join('; ')];
    });
    return [...new Set(found)].map((circle) => `in ${folder}: ${circle}`);
  });
}

/** What of a list of imports is not among these, or closes no circle with those that are in no list. */
export function staleOf(list: readonly Step[], steps: readonly Step[]): Step[] {
  const listed = new Set(list);
  const others = steps.filter((step) => !listed.has(step));
  return list.filter((step) => !steps.includes(step) || circlesOf([...others, step]).length === 0);
}

/** Members of circles, by folder: how many files and folders stand in one. */
function membersOf(steps: Iterable<Step>): Map<string, string[]> {
  const members = new Map<string, string[]>();
  for (const [folder, room] of roomsOf(steps)) {
    const inside = [...room.keys()].filter((member) => wayBack(room, member) !== undefined);
    if (inside.length > 0) members.set(folder, inside.toSorted());
  }
  return members;
}

/**
 * Imports that close circles today. This list only shrinks: a new circle is mended rather than listed, and an import that closes none
 * any more leaves the list.
 */
export const closing: readonly Step[] = [];

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const [folder, members] of membersOf(allSteps())) console.log(`${folder}: ${members.join(' ')}`);
  console.log(`${allSteps().length} imports, ${closing.length} of which close circles`);
}
