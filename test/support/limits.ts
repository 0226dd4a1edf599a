// How long a test waits for one thing before it counts as hung. Nothing else is judged by this: a test that says how long work takes
// measures processor time (cpu-time.ts), and what takes too long as a whole is ended by the run (test/run/).

/** Milliseconds that a test waits for one thing, such as a process or a page, so that it says what did not come. */
export const waitLimit = 300_000;
