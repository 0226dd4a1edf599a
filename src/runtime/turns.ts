// Yields to the event loop, for devices that compute in the calling thread: there, a loop that awaits a read
// in every step would never yield. Timers, messages and the rendering of pages need that, and so does garbage
// collection: an object that a WeakRef has returned stays alive until the current iteration of the event loop
// ends.

/** Milliseconds without a turn after which the event loop gets one: half a frame of a page. */
const patience = 8;

export class Turns {
  #last = performance.now();

  /** Lets other tasks run if none could for a while. */
  async give(): Promise<void> {
    if (performance.now() - this.#last < patience) return;
    await nextTask();
    this.#last = performance.now();
  }
}

/** Resolves in a task of its own: at once, where timers would wait. */
export function nextTask(): Promise<void> {
  if (typeof setImmediate === 'function') return new Promise((resolve) => void setImmediate(resolve));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    const arrived = (): void => {
      port1.close();
      resolve();
    };
    port1.addEventListener('message', arrived, { once: true });
    port1.start();
    port2.postMessage(undefined);
  });
}
