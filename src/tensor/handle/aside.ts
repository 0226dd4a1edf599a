// Pending values that an evaluation has set aside, because they share nothing with the value that was read.
// They may never be read, so they are held by weak references: what your program has dropped is collected
// with its graph. A later evaluation visits them only if it computes values that are connected with them.
// For that, nodes know their group of values (union-find), and recording a graph that connects two groups
// joins them.

import type { Node } from '../../ir/graph.ts';
import type { Aside, Handle } from './handle.ts';
import { recorded, type RecordingState } from './recorded.ts';
import type { StoredValue } from '../storage/storage.ts';

class Held extends WeakRef<Handle> implements Aside {
  readonly #among: Set<Aside>;

  constructor(handle: Handle, among: Set<Aside>) {
    super(handle);
    this.#among = among;
    among.add(this);
    forgotten.register(handle, this);
  }

  leave(): void {
    this.#among.delete(this);
  }

  get isThere(): boolean {
    return this.#among.has(this);
  }
}

/** What the values of a group are computed from, and the session that they wait in. */
interface Reads {
  readonly storages: StoredValue[];
  readonly state: RecordingState;
}

/** Values that are computed together, should one of them be asked for. */
export class Group {
  #parent: Group | undefined = undefined;
  #handles: Held[] = [];
  /** An object of its own, which outlives the group. */
  readonly #reads: Reads = { storages: [], state: recorded() };
  #isOpen = true;

  constructor() {
    collected.register(this, this.#reads);
  }

  /** The group that this one has become a part of. */
  get root(): Group {
    // Union by size with path compression: paths are short, and shorter the next time.
    return this.#parent === undefined ? this : (this.#parent = this.#parent.root);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The values that the program still holds. */
  handles(): Handle[] {
    const held = this.#handles.map((item) => [item, item.deref()] as const);
    // A handle that is held by another reference than this one has left the group.
    return held.flatMap(([item, handle]) => {
      const isHere = handle?.state.kind === 'aside' && handle.state.held === item;
      return isHere ? [handle] : [];
    });
  }

  add(handle: Handle): void {
    const held = new Held(handle, this.#reads.state.aside);
    handle.setAside(held);
    this.#handles.push(held);
  }

  /** Notes that its values need this one. */
  read(storage: StoredValue): void {
    storage.readers += 1;
    this.#reads.storages.push(storage);
  }

  /** Two groups become one; gives it. */
  join(other: Group): Group {
    const [one, two] = [this.root, other.root];
    if (one === two) return one;
    const [large, small] = one.#handles.length < two.#handles.length ? [two, one] : [one, two];
    for (const held of small.#handles) if (held.isThere) large.#handles.push(held);
    for (const storage of small.#reads.storages) large.#reads.storages.push(storage);
    small.#handles = [];
    small.#reads.storages.length = 0;
    small.#parent = large;
    return large;
  }

  /** Its values are to be computed: they are aside no more. */
  close(): Handle[] {
    const handles = this.handles();
    for (const handle of handles) handle.takeBack();
    this.#handles = [];
    this.#isOpen = false;
    release(this.#reads);
    return handles;
  }
}

const groups = new WeakMap<Node, Group>();
/** Of values that the program has dropped, how they were held. */
const forgotten = new FinalizationRegistry<Aside>((held) => held.leave());
/** Of groups that nothing refers to any more, what they would have read. */
const collected = new FinalizationRegistry<Reads>(release);

/** Values that nothing aside reads any more since this was asked last. */
export function takeUnread(): StoredValue[] {
  const state = recorded();
  const found = state.unread;
  state.unread = [];
  return found;
}

function release({ storages, state: { unread } }: Reads): void {
  for (const storage of storages) {
    storage.readers -= 1;
    if (storage.readers === 0) unread.push(storage);
  }
  storages.length = 0;
}

/** The group that the node's value would be computed with. */
export function groupOf(node: Node): Group | undefined {
  const group = groups.get(node)?.root;
  return group?.isOpen === true ? group : undefined;
}

export function bindGroup(node: Node, group: Group): void {
  groups.set(node, group);
}

/** How many values are aside. */
export function asideCount(): number {
  return recorded().aside.size;
}

/** The oldest value that is aside. */
export function oldestAside(): Handle | undefined {
  for (const held of recorded().aside) {
    const handle = held.deref();
    if (handle !== undefined) return handle;
    held.leave();
  }
  return undefined;
}
