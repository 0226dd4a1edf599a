// What every library that is measured finds in its environment.

/**
 * Freed memory stays in the process. By default the C library gives large results back to the system and fetches them anew at each
 * call, which can take longer than computing them; it hardly concerns Sinter, whose memory is a pool.
 */
export const environment: Readonly<Record<string, string>> = {
  MALLOC_TRIM_THRESHOLD_: String(2 ** 32),
  MALLOC_MMAP_THRESHOLD_: String(2 ** 32),
  MALLOC_TOP_PAD_: String(2 ** 28),
};
