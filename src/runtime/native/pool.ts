// C of threads that share the workgroups of kernels: the pool of the native device, and of models in C that are built with
// threads. All state lies in memory that the caller gives.

/** What threads of a pool are called, where threads have names. */
export const threadName = 'sinter';

/**
 * A job is cut into chunks. Its word `state` holds the job's number and the chunks that are left: a thread
 * reads the job's fields and then takes a chunk by an exchange that fails if another job has begun
 * meanwhile, so fields are never those of two jobs. The caller begins the next job only when all
 * chunks are done.
 */
export const poolText: string = `#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

typedef void (*kernel_t)(int32_t, int32_t, void *const *, const uint32_t *, void *);

enum { SPINS = 64 };

struct pool {
  /* Number of the job in the upper half, chunks that are left in the lower. */
  _Alignas(64) _Atomic uint64_t state;
  _Alignas(64) _Atomic uint32_t done;
  _Alignas(64) _Atomic uint32_t sleepers;
  _Atomic uint32_t waiting;
  _Atomic uint32_t closed;
  /* Fields of the job, written before its state. */
  _Alignas(64) _Atomic uintptr_t kernel;
  _Atomic uintptr_t buffers;
  _Atomic uintptr_t scalars;
  _Atomic uintptr_t scratch;
  _Atomic uint64_t scratch_bytes;
  _Atomic uint32_t groups;
  _Atomic uint32_t chunk;
  pthread_mutex_t lock;
  pthread_cond_t work;
  pthread_cond_t ended;
  int64_t linger;
  int32_t threads;
  struct worker *workers;
};

struct worker {
  struct pool *pool;
  pthread_t thread;
  int32_t me;
};

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Takes chunks of the current job until none is left. */
static void take(struct pool *pool, int32_t me) {
  uint64_t state = atomic_load_explicit(&pool->state, memory_order_acquire);
  while ((uint32_t)state != 0) {
    kernel_t kernel = (kernel_t)atomic_load_explicit(&pool->kernel, memory_order_relaxed);
    void *const *buffers = (void *const *)atomic_load_explicit(&pool->buffers, memory_order_relaxed);
    const uint32_t *scalars = (const uint32_t *)atomic_load_explicit(&pool->scalars, memory_order_relaxed);
    uintptr_t scratch = atomic_load_explicit(&pool->scratch, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&pool->scratch_bytes, memory_order_relaxed);
    uint32_t groups = atomic_load_explicit(&pool->groups, memory_order_relaxed);
    uint32_t chunk = atomic_load_explicit(&pool->chunk, memory_order_relaxed);
    if (!atomic_compare_exchange_weak_explicit(&pool->state, &state, state - 1, memory_order_acq_rel,
                                               memory_order_acquire))
      continue;
    /* Chunks are taken from the first on. */
    uint32_t chunks = groups / chunk + (groups % chunk != 0);
    uint64_t first = (uint64_t)(chunks - (uint32_t)state) * chunk;
    uint64_t end = first + chunk < groups ? first + chunk : groups;
    void *own = scratch == 0 ? 0 : (void *)(scratch + (uint64_t)me * bytes);
    kernel((int32_t)first, (int32_t)end, buffers, scalars, own);
    /* Once the last chunk counts as done, the fields may be those of another job. */
    uint32_t done = atomic_fetch_add(&pool->done, 1) + 1;
    if (done == chunks && atomic_load(&pool->waiting) != 0) {
      pthread_mutex_lock(&pool->lock);
      pthread_cond_signal(&pool->ended);
      pthread_mutex_unlock(&pool->lock);
    }
    state = atomic_load_explicit(&pool->state, memory_order_acquire);
  }
}

static int idle(struct pool *pool) {
  return (uint32_t)atomic_load(&pool->state) == 0 && atomic_load(&pool->closed) == 0;
}

static void *serve(void *given) {
  struct worker *worker = given;
  struct pool *pool = worker->pool;
  for (;;) {
    take(pool, worker->me);
    /* Stays awake from one job of a program to the next. */
    int64_t until = now() + pool->linger;
    while (idle(pool) && now() < until)
      for (int i = 0; i < SPINS && idle(pool); i++) relax();
    if (idle(pool)) {
      pthread_mutex_lock(&pool->lock);
      atomic_fetch_add(&pool->sleepers, 1);
      while (idle(pool)) pthread_cond_wait(&pool->work, &pool->lock);
      atomic_fetch_sub(&pool->sleepers, 1);
      pthread_mutex_unlock(&pool->lock);
    }
    if (atomic_load(&pool->closed) != 0) return 0;
  }
}

/* Ends the first so many workers. */
static void end_pool(struct pool *pool, int32_t workers) {
  atomic_store(&pool->closed, 1);
  pthread_mutex_lock(&pool->lock);
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
  for (int32_t i = 0; i < workers; i++) pthread_join(pool->workers[i].thread, 0);
  pthread_mutex_destroy(&pool->lock);
  pthread_cond_destroy(&pool->work);
  pthread_cond_destroy(&pool->ended);
}

/* Makes memory a pool of so many threads, the caller's among them; 0 where they cannot be started. */
static int begin_pool(struct pool *pool, struct worker *workers, int32_t threads, int64_t linger) {
  memset(pool, 0, sizeof *pool);
  pool->threads = threads;
  pool->linger = linger;
  pool->workers = workers;
  pthread_mutex_init(&pool->lock, 0);
  pthread_cond_init(&pool->work, 0);
  pthread_cond_init(&pool->ended, 0);
  /* Signals are for the threads of the process; stacks are small by default in some C libraries. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, (size_t)1 << 21);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int32_t started = 0;
  for (; started < threads - 1; started++) {
    struct worker *worker = &workers[started];
    worker->pool = pool;
    worker->me = started + 1;
    if (pthread_create(&worker->thread, &attributes, serve, worker) != 0) break;
#ifdef __linux__
    pthread_setname_np(worker->thread, "${threadName}");
#endif
  }
  pthread_sigmask(SIG_SETMASK, &before, 0);
  pthread_attr_destroy(&attributes);
  if (started == threads - 1) return 1;
  end_pool(pool, started);
  return 0;
}

static int all_done(struct pool *pool, uint32_t chunks) { return atomic_load(&pool->done) == chunks; }

/* Runs a kernel by all threads, each with memory of its own from \`scratch\` on; returns when all chunks are done. */
static void share(struct pool *pool, kernel_t kernel, uint32_t groups, uint32_t chunk, void *const *buffers,
                  const uint32_t *scalars, void *scratch, uint64_t scratch_bytes) {
  atomic_store_explicit(&pool->kernel, (uintptr_t)kernel, memory_order_relaxed);
  atomic_store_explicit(&pool->buffers, (uintptr_t)buffers, memory_order_relaxed);
  atomic_store_explicit(&pool->scalars, (uintptr_t)scalars, memory_order_relaxed);
  atomic_store_explicit(&pool->scratch, (uintptr_t)scratch, memory_order_relaxed);
  atomic_store_explicit(&pool->scratch_bytes, scratch_bytes, memory_order_relaxed);
  uint32_t chunks = groups / chunk + (groups % chunk != 0);
  atomic_store(&pool->done, 0);
  atomic_store_explicit(&pool->groups, groups, memory_order_relaxed);
  atomic_store_explicit(&pool->chunk, chunk, memory_order_relaxed);
  uint64_t number = (atomic_load(&pool->state) >> 32) + 1;
  atomic_store(&pool->state, number << 32 | chunks);
  if (atomic_load(&pool->sleepers) != 0) {
    pthread_mutex_lock(&pool->lock);
    if (chunks > (uint32_t)pool->threads - 1) pthread_cond_broadcast(&pool->work);
    else
      for (uint32_t i = 1; i < chunks; i++) pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->lock);
  }
  take(pool, 0);
  if (pool->linger > 0) {
    int64_t until = now() + pool->linger;
    while (!all_done(pool, chunks) && now() < until)
      for (int i = 0; i < SPINS && !all_done(pool, chunks); i++) relax();
  }
  if (all_done(pool, chunks)) return;
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->waiting, 1);
  while (!all_done(pool, chunks)) pthread_cond_wait(&pool->ended, &pool->lock);
  atomic_store(&pool->waiting, 0);
  pthread_mutex_unlock(&pool->lock);
}
`;
