// Each compilation with what it is of and why it was needed: for `SINTER_LOG=compiles`, which
// writes a line for each, and for profiles.

import { SessionPart } from '../session.ts';
import { counts } from './stats.ts';

/** A program that was compiled. */
export interface CompileEvent {
  /** The function, or `recorded operations`. */
  readonly what: string;
  /** `first call`, `third size of axis 0 of x: 64 after 32, 16`. */
  readonly why: string;
  readonly device: string;
  readonly kernels: number;
  readonly milliseconds: number;
  /** When it began, by `performance.now()`. */
  readonly start: number;
}

/** What a program is of, and why it is compiled: evaluated only where it is reported. */
export type About = () => { readonly what: string; readonly why: string };

/**
 * Of a program whose reason is known. A function of its own: programs live long, and must not hold
 * what stands around their making.
 */
export function about(what: string, why: string): About {
  return () => ({ what, why });
}

/** Of one more program for what another is of. */
export function alsoAbout(other: About, remark: string): About {
  return () => {
    const { what, why } = other();
    return { what, why: `${why}; ${remark}` };
  };
}

/** Of a program whose reason is put into words when it is asked for. */
export function aboutLater(what: string, why: () => string): About {
  return () => ({ what, why: why() });
}

type Listener = (event: CompileEvent) => void;
/** Who hears of the compilations of a session. */
const listening = new SessionPart(() => new Set<Listener>());

/** Calls `listener` at every compilation of this session, until the function that this gives is called. */
export function onCompile(listener: Listener): () => void {
  const listeners = listening.current;
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Notes a compilation. */
export function noteCompile(timed: Omit<CompileEvent, 'what' | 'why'>, about: About): void {
  counts.programs += 1;
  counts.kernels += timed.kernels;
  counts.compileMilliseconds += timed.milliseconds;
  const isLogged = logs('compiles');
  const listeners = listening.current;
  if (!isLogged && listeners.size === 0) return;
  const event = { ...timed, ...about() };
  if (isLogged) console.warn(lineOf(event));
  for (const listener of listeners) listener(event);
}

/** Whether compilations are reported now. */
export function areCompilesWatched(): boolean {
  return listening.current.size > 0 || logs('compiles');
}

/** `sinter: compiled step for wasm: 12 kernels, 35 ms: first call`. */
export function lineOf({ what, why, device, kernels, milliseconds }: CompileEvent): string {
  const time = `${milliseconds.toFixed(0)} ms`;
  return `sinter: compiled ${what} for ${device}: ${counted(kernels, 'kernel')}, ${time}: ${why}`;
}

/** `1 kernel`, `12 kernels`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Whether `SINTER_LOG` names this, alone or among others with commas between them. */
function logs(topic: string): boolean {
  const named = typeof process === 'undefined' ? undefined : process.env?.['SINTER_LOG'];
  return named !== undefined && named.split(',').some((name) => name.trim() === topic);
}
