// Node only, for the software adapter: waits without occupying a core. While a promise of Dawn is pending,
// Dawn polls in every iteration of the event loop, which takes a core from the adapter, which computes on the
// same cores. Here the thread sleeps between iterations, for a small part of the time that it has waited
// already.

/** Before this the thread does not sleep: small kernels take less. */
const AWAKE_MS = 0.25;
/** A wait takes at most a sixteenth longer than it has to. */
const PART = 1 / 16;
/** The longest sleep, because timers and sockets of the process wait for its end. */
const LONGEST_MS = 1;

const bell = new Int32Array(new SharedArrayBuffer(4));
let waiting = 0;
let since = 0;
let isDozing = false;

/** The promise's outcome; the thread sleeps between turns of the event loop until it is there. */
export async function patiently<T>(promise: Promise<T>): Promise<T> {
  since = performance.now();
  waiting += 1;
  if (!isDozing) doze();
  try {
    return await promise;
  } finally {
    waiting -= 1;
    since = performance.now();
  }
}

/** Sleeps a little, then lets the event loop turn, until nothing is awaited. */
function doze(): void {
  isDozing = waiting > 0;
  if (!isDozing) return;
  const waited = performance.now() - since;
  if (waited > AWAKE_MS) Atomics.wait(bell, 0, 0, Math.min(LONGEST_MS, waited * PART));
  // Unreferenced: this never keeps a process alive that Dawn would let end.
  setImmediate(doze).unref();
}
