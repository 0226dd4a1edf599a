// What pages cost until their first result: each is opened several times by turns, so that what else the machine does meets
// all of them alike.

import { openVisitor, type Sent, type Visit, type Visitor } from './visit.ts';
import type { BuiltPage } from './build.ts';
import type { Chromium } from '../../test/support/browser/chromium.ts';

/** A page on a device. */
export interface Figures {
  readonly page: string;
  readonly device: string;
  /** Of all bodies as sent, the page's own among them. */
  readonly bytes: number;
  readonly requests: number;
  /** From the beginning of the navigation to the first result: the median, and each. */
  readonly ms: number;
  readonly times: readonly number[];
  readonly sent: readonly Sent[];
}

/** A page that is to be measured. */
export interface Subject {
  readonly name: string;
  readonly page: BuiltPage;
  /** Whether it printed what it should. */
  readonly isRight: (values: readonly number[]) => boolean;
}

export interface Plan {
  readonly devices: readonly Device[];
  readonly repeat: number;
  readonly note?: (text: string) => void;
}

/** `default` is what a page has that chooses none. */
export const devices = ['wasm', 'webgpu:software', 'default'] as const;
export type Device = (typeof devices)[number];

export interface Measured {
  readonly figures: readonly Figures[];
  /** What did not run, or printed something else. */
  readonly problems: readonly string[];
}

/**
 * Visits every page on every device. The first round is not counted: a browser that has just begun is busy with itself, and starts the
 * process of its GPU when a page first asks for it.
 */
export async function measure(
  browser: Chromium,
  subjects: readonly Subject[],
  plan: Plan,
): Promise<Measured> {
  const visitor = await openVisitor(browser);
  const figures: Figures[] = [];
  const problems: string[] = [];
  try {
    for (const device of plan.devices) {
      const visits = new Map(subjects.map((subject) => [subject, [] as Visit[]]));
      for (let round = 0; round <= plan.repeat; round++) {
        for (const [subject, seen] of visits) {
          plan.note?.(`${subject.name} on ${device}, visit ${round} of ${plan.repeat}`);
          const visit = await checked(visitor, subject, device);
          if (typeof visit === 'string') {
            problems.push(`${subject.name} on ${device}: ${visit}`);
            visits.delete(subject);
          } else if (round > 0) seen.push(visit);
        }
      }
      for (const [{ name }, seen] of visits) figures.push(figuresOf(name, device, seen));
    }
  } finally {
    await visitor.close();
  }
  return { figures, problems };
}

/** A visit, or what was wrong with it. */
async function checked(visitor: Visitor, subject: Subject, device: Device): Promise<Visit | string> {
  try {
    const visit = await visitor.visit(subject.page, device === 'default' ? undefined : device);
    return subject.isRight(visit.values) ? visit : `prints ${visit.values.join(', ')}`;
  } catch (error) {
    return (error as Error).message.split('\n')[0]!;
  }
}

function figuresOf(page: string, device: string, visits: readonly Visit[]): Figures {
  // Of all visits the one that asked for most: which files are on their way at the first result may differ.
  const { sent } = visits.toSorted((a, b) => bytesOf(b.sent) - bytesOf(a.sent))[0]!;
  const times = visits.map(({ ms }) => ms);
  return {
    page,
    device,
    bytes: bytesOf(sent),
    requests: sent.length,
    ms: median(times),
    times,
    sent,
  };
}

/** Bytes of all files. */
export function bytesOf(sent: readonly Sent[]): number {
  return sent.reduce((sum, { bytes }) => sum + bytes, 0);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
