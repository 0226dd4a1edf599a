// The walk: a function called with one wrong argument at a time, everything else valid. What comes of each call is told, so that
// a test says what must.

import { SinterError } from '../../src/errors.ts';
import { builder, pendingHandles, setPending } from '../../src/tensor/handle/recording.ts';
import { zeros } from '../../src/index.ts';
import type { Meaning } from './kinds.ts';
import { wrong, wrongNames } from './wrong.ts';

/** A function and what each of its arguments means. */
export interface Row {
  readonly call: (...args: readonly unknown[]) => unknown;
  readonly places: readonly Meaning[];
}

/** The error that a call throws or rejects with. */
async function outcome(run: () => unknown): Promise<unknown> {
  try {
    await run();
    return undefined;
  } catch (error) {
    return error;
  }
}

function fault(name: string, error: unknown): string | undefined {
  if (error === undefined) return 'nothing is thrown';
  if (!(error instanceof SinterError)) return `a bare ${String(error)}`;
  return error.message.includes(name) ? undefined : `does not name ${name}: ${error.message}`;
}

interface Trial {
  readonly what: string;
  readonly args: readonly unknown[];
  /** Valid here, or refused for what it holds: no bare error. */
  readonly isAccepted: boolean;
  /** What the message must hold besides the name of the function. */
  readonly tells?: string;
}

/** Every call of a row with one wrong thing in it. */
function* trials({ places }: Row): Generator<Trial> {
  const valid = (): unknown[] => places.map(({ sample }) => sample());
  for (const [i, place] of places.entries()) {
    for (const name of wrongNames) {
      const what = `${name} for argument ${i + 1}`;
      const isAccepted = place.accepts.has(name);
      yield { what, args: valid().with(i, wrong[name]()), isAccepted };
    }
    for (const [option, meaning] of Object.entries(place.options ?? {})) {
      for (const name of wrongNames) {
        const what = `${name} for option ${option}`;
        const given = { ...(place.sample() as object), [option]: wrong[name]() };
        yield { what, args: valid().with(i, given), isAccepted: meaning.accepts.has(name) };
      }
      const misspelt = `${option}s`;
      const given = { ...(place.sample() as object), [misspelt]: meaning.sample() };
      yield { what: `option ${misspelt}`, args: valid().with(i, given), isAccepted: false, tells: option };
    }
  }
}

/** Why the valid call fails, if it does. */
export async function validFault({ call, places }: Row): Promise<string[]> {
  const error = await outcome(() => call(...places.map(({ sample }) => sample())));
  return error === undefined ? [] : [`the valid call fails: ${String(error)}`];
}

/** What is wrong with how a function answers wrong arguments. */
export async function faultsOf(name: string, row: Row): Promise<string[]> {
  const faults: string[] = [];
  for (const { what, args, isAccepted, tells } of trials(row)) {
    // What earlier calls recorded is wanted by nobody, and would be looked through at each value given up.
    setPending([]);
    const before = builder().size;
    const error = await outcome(() => row.call(...args));
    if (isAccepted && (error === undefined || error instanceof SinterError)) continue;
    const problem = fault(name, error);
    if (problem !== undefined) faults.push(`${what}: ${problem}`);
    else if (tells !== undefined && !(error as SinterError).message.includes(tells))
      faults.push(`${what}: does not tell '${tells}': ${(error as SinterError).message}`);
    else if (before !== builder().size || pendingHandles().size > 0)
      faults.push(`${what}: something was recorded`);
  }
  // What was valid may be watched, and is judged at the next read.
  await outcome(() => zeros([1]).data());
  return faults;
}
