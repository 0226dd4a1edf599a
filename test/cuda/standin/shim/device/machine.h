// What a kernel knows of the machine that runs it: who and where the running thread is, and the operations at which threads wait
// for each other. The stand-in library defines all of this (execute/); a loaded program finds it there.
#pragma once

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

/** The thread that runs now. Switching threads rewrites it. */
struct CudaMachine {
  uint3 thread, block;
  dim3 block_size, grid_size;
  unsigned linear, lane, warp;
};

extern "C" {
extern CudaMachine cuda_machine;
/** Where dynamic shared memory lies: from a place on that is a multiple of what the kernel declares, and of no more. */
extern unsigned char cuda_dynamic_shared[];

/** Waits at named barrier `id` for `count` threads; count 0: for all of the block. `line` of the source must agree. */
void cuda_barrier(int id, int count, int line);
/** Arrives at a named barrier without waiting. */
void cuda_barrier_arrive(int id, int count);
/** Each lane of `mask` gives `bytes` (at most 64) and gets all: those of lane i start at result + 64 * i. */
const unsigned char *cuda_exchange(unsigned mask, const void *value, unsigned bytes, int line);
/** Waits until the 64-bit word differs from `seen`. */
void cuda_wait_word(const unsigned long long *word, unsigned long long seen, int line);
/** What other threads wrote before is visible from here on: for the race checker. */
void cuda_acquire();

/** An asynchronous copy of `bytes`, of which `valid` come from `source`, the others being zero. It happens when waited for. */
void cuda_copy_async(void *shared, const void *source, unsigned bytes, unsigned valid);
void cuda_copy_commit();
/** Waits for all but the newest `groups` committed groups; negative: for all copies. */
void cuda_copy_wait(int groups);

/** Tells the checker of an access which the compiler does not instrument. */
void cuda_touch(const void *address, unsigned bytes, bool write);
/** Ends the launch as failed. */
void cuda_fail(const char *message);
}

static inline void __trap() { cuda_fail("__trap()"); }

#define threadIdx (cuda_machine.thread)
#define blockIdx (cuda_machine.block)
#define blockDim (cuda_machine.block_size)
#define gridDim (cuda_machine.grid_size)
#define warpSize 32

/** Code of the machine's, not of the kernel: its accesses are not checked. */
#define CUDA_MACHINE static __attribute__((noinline, no_sanitize("thread"), no_sanitize("undefined"), unused))
