// C of the native device itself: threads that share workgroups, and the interpreter of plans. Compiled
// once a machine and kept like kernels. All state lies in the pool that `sinter_open` gives.

import { poolText } from './pool.ts';

/** Which operation of a plan begins, and how many words follow. */
export const planWords = {
  dispatch: 0,
  copy: 1,
  clear: 2,
  repeat: 3,
} as const;

/** Words of a dispatch before the addresses of its buffers. */
export const dispatchHead = 8;

export const supportText: string = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
${poolText}
enum { MOST_BUFFERS = 256 };

/* A pool of so many threads, the caller's among them; 0 where they cannot be started. */
__attribute__((visibility("default"))) uintptr_t sinter_open(int32_t threads, int64_t linger) {
  /* The code stays as long as the process: threads run it even where the caller is dropped without an end. */
  Dl_info here;
  if (dladdr((void *)(uintptr_t)sinter_open, &here) != 0) dlopen(here.dli_fname, RTLD_NOW | RTLD_NODELETE);
  size_t bytes = (sizeof(struct pool) + 63) / 64 * 64;
  struct pool *pool = aligned_alloc(64, bytes);
  struct worker *workers = calloc((size_t)threads, sizeof(struct worker));
  if (pool != 0 && workers != 0 && begin_pool(pool, workers, threads, linger)) return (uintptr_t)pool;
  free(workers);
  free(pool);
  return 0;
}

__attribute__((visibility("default"))) int32_t sinter_close(uintptr_t pool) {
  struct pool *it = (struct pool *)pool;
  end_pool(it, it->threads - 1);
  free(it->workers);
  free(it);
  return 0;
}

/* The address of memory that a typed array views. */
__attribute__((visibility("default"))) uintptr_t sinter_address(void *memory) { return (uintptr_t)memory; }

static void run(struct pool *pool, const int64_t *at, const int64_t *end, uint8_t *base) {
  void *buffers[MOST_BUFFERS];
  while (at < end) {
    switch (at[0]) {
      case ${planWords.dispatch}: {
        /* kernel, groups, chunk, scalars, scratch, bytes of scratch, buffers */
        int64_t count = at[7];
        for (int64_t i = 0; i < count; i++) buffers[i] = base + at[${dispatchHead} + i];
        const uint32_t *scalars = at[4] < 0 ? 0 : (const uint32_t *)(void *)(base + at[4]);
        void *scratch = at[5] < 0 ? 0 : base + at[5];
        kernel_t kernel = (kernel_t)at[1];
        if (at[3] == 0) kernel(0, (int32_t)at[2], buffers, scalars, scratch);
        else share(pool, kernel, (uint32_t)at[2], (uint32_t)at[3], buffers, scalars, scratch, (uint64_t)at[6]);
        at += ${dispatchHead} + count;
        break;
      }
      case ${planWords.copy}:
        memmove(base + at[2], base + at[1], (size_t)at[3]);
        at += 4;
        break;
      case ${planWords.clear}:
        memset(base + at[1], 0, (size_t)at[2]);
        at += 3;
        break;
      default: {
        /* repeat: times, guard, words of the body */
        const int64_t *body = at + 4;
        for (int64_t time = 0; time < at[1]; time++) {
          int32_t guard = 1;
          if (at[2] >= 0) memcpy(&guard, base + at[2], 4);
          if (guard == 0) break;
          run(pool, body, body + at[3], base);
        }
        at = body + at[3];
      }
    }
  }
}

/* Runs a plan over the memory at \`base\`. */
__attribute__((visibility("default"))) int32_t sinter_run(uintptr_t pool, const int64_t *plan, int64_t words,
                                                          uint8_t *base) {
  run((struct pool *)pool, plan, plan + words, base);
  return 0;
}
`;
