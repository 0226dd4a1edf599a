// How long something may take before it counts as hung, for tests of any kind. Nothing else is judged by these: a test that
// says how long work takes measures processor time (cpu-time.ts), and one that waits for something waits until it is there.

/** Milliseconds that a test or a hook may take: many times what the slowest needs on a machine with other work to do. */
export const testLimit = 600_000;

/** Milliseconds that a test waits for one thing, such as a process or a page: less, so that it says what did not come. */
export const waitLimit = 300_000;
