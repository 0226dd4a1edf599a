// What the ranks of a world tell rank 0 beside their collectives, and what it makes of that: which collectives all have come to, who
// calls something else, who does not come. It moves no bytes of tensors. Only texts go in and out, so that tests need no network.

import { lateness, latenessHint, ranksInWords } from '../call.ts';

/** The ranks of a collective, of those on streams or of those between hosts: each have turns of their own. */
export interface LedgerGroup {
  readonly channel: 'stream' | 'host';
  readonly ranks: readonly number[];
}

/** A value under a name, for all. */
interface LedgerValue {
  readonly kind: 'value';
  readonly name: string;
  readonly value: string;
}

/** A rank has failed. */
interface LedgerFailure {
  readonly kind: 'failed';
  readonly problem: string;
  readonly hint?: string;
}

/** What a rank tells. */
export type LedgerNote =
  | LedgerValue
  | LedgerFailure
  /** It calls a collective, the `turn`-th of the group; between hosts with the block that it brings, in base64. */
  | {
      readonly kind: 'call';
      readonly group: LedgerGroup;
      readonly turn: number;
      readonly words: string;
      readonly block?: string;
    }
  /** It has waited for others in this turn for so many milliseconds, and gives up. */
  | { readonly kind: 'late'; readonly group: LedgerGroup; readonly turn: number; readonly timeout: number }
  /** It comes to no further collective. */
  | { readonly kind: 'left' };

/** What ranks are told. */
export type LedgerAnswer =
  | LedgerValue
  | LedgerFailure
  /** All ranks have come to the turn; between hosts with the blocks of all, in the order of the group. */
  | {
      readonly kind: 'met';
      readonly group: LedgerGroup;
      readonly turn: number;
      readonly blocks?: readonly string[];
    };

/** `stream 0,1`. */
export function nameOfGroup({ channel, ranks }: LedgerGroup): string {
  return `${channel} ${ranks.join()}`;
}

interface Came {
  readonly words: string;
  readonly block: string | undefined;
}

/** A turn that not all have come to. */
interface Turn {
  readonly group: LedgerGroup;
  readonly turn: number;
  readonly came: Map<number, Came>;
}

const sameOrder = 'the same collectives in the same order on all ranks';

export class Ledger {
  readonly #size: number;
  readonly #send: (rank: number, answer: LedgerAnswer) => void;
  readonly #values = new Map<string, string>();
  readonly #turns = new Map<string, Turn>();
  readonly #ended = new Map<number, 'left' | 'lost'>();
  #failure: LedgerFailure | undefined;

  /** `send` tells a rank, where that is there. */
  constructor(size: number, send: (rank: number, answer: LedgerAnswer) => void) {
    this.#size = size;
    this.#send = send;
  }

  /** Whether no rank but these will say anything more. */
  isOver(ranks: readonly number[]): boolean {
    return this.#all().every((rank) => this.#ended.has(rank) || ranks.includes(rank));
  }

  /** A rank is there from now on: it hears what others have heard. */
  join(rank: number): void {
    for (const [name, value] of this.#values) this.#send(rank, { kind: 'value', name, value });
    if (this.#failure !== undefined) this.#send(rank, this.#failure);
  }

  take(rank: number, note: LedgerNote): void {
    switch (note.kind) {
      case 'value':
        this.#values.set(note.name, note.value);
        return this.#tellAll(note);
      case 'call':
        return this.#come(rank, note);
      case 'late':
        return this.#late(note);
      case 'failed':
        return this.#fail(note.problem, note.hint);
      case 'left':
        if (!this.#ended.has(rank)) this.#end(rank, 'left');
        return undefined;
    }
  }

  /** A rank is not there any more. Where it has not left before, all hear that. */
  lose(rank: number): void {
    if (this.#ended.has(rank)) return;
    this.#end(rank, 'lost');
    if (!this.isOver([])) this.#fail(`rank ${rank} has ended`);
  }

  #all(): readonly number[] {
    return Array.from({ length: this.#size }, (_, rank) => rank);
  }

  #tellAll(answer: LedgerAnswer): void {
    for (const rank of this.#all()) this.#send(rank, answer);
  }

  #fail(problem: string, hint?: string): void {
    if (this.#failure !== undefined) return;
    this.#failure = { kind: 'failed', problem, ...(hint !== undefined && { hint }) };
    this.#tellAll(this.#failure);
  }

  #come(rank: number, { group, turn, words, block }: Extract<LedgerNote, { readonly kind: 'call' }>): void {
    const key = `${nameOfGroup(group)} ${turn}`;
    const known = this.#turns.get(key);
    const { came } = known ?? { came: new Map<number, Came>() };
    if (known === undefined) this.#turns.set(key, { group, turn, came });
    came.set(rank, { words, block });
    const other = [...came].find(([, call]) => call.words !== words);
    if (other !== undefined) return this.#fail(differences(group, came), sameOrder);
    if (came.size < group.ranks.length) return this.#miss(this.#turns.get(key)!);
    this.#turns.delete(key);
    const blocks = group.ranks.flatMap((member) => came.get(member)!.block ?? []);
    const met = { kind: 'met', group, turn, ...(group.channel === 'host' && { blocks }) } as const;
    for (const member of group.ranks) this.#send(member, met);
  }

  /** Fails where a turn waits for a rank that has ended. */
  #miss({ group, came }: Turn): void {
    const gone = group.ranks.find((rank) => this.#ended.has(rank) && !came.has(rank));
    const [waiting] = came;
    if (gone === undefined || waiting === undefined) return;
    const [rank, { words }] = waiting;
    this.#fail(`rank ${gone} has ended, and rank ${rank} waits for it in ${words}`);
  }

  #end(rank: number, how: 'left' | 'lost'): void {
    this.#ended.set(rank, how);
    for (const turn of this.#turns.values()) this.#miss(turn);
  }

  #late({ group, turn, timeout }: Extract<LedgerNote, { readonly kind: 'late' }>): void {
    const found = this.#turns.get(`${nameOfGroup(group)} ${turn}`);
    // All have come in the last moment.
    if (found === undefined) return;
    const { came } = found;
    const missing = group.ranks.filter((rank) => !came.has(rank));
    const [{ words }] = [...came.values()] as [Came];
    const elsewhere = missing.flatMap((rank) => {
      const other = [...this.#turns.values()].find((one) => one.came.has(rank));
      return other === undefined ? [] : [`; rank ${rank} has waited in ${other.came.get(rank)!.words}`];
    });
    this.#fail(lateness(missing, words, timeout) + elsewhere.join(''), latenessHint);
  }
}

/** `ranks 0,1 call … where rank 2 calls …`. */
function differences({ ranks }: LedgerGroup, came: ReadonlyMap<number, Came>): string {
  const there = ranks.filter((rank) => came.has(rank));
  const said = [...new Set(there.map((rank) => came.get(rank)!.words))].map((words) => {
    const those = there.filter((rank) => came.get(rank)!.words === words);
    return `${ranksInWords(those)} ${those.length === 1 ? 'calls' : 'call'} ${words}`;
  });
  return said.join(' where ');
}
