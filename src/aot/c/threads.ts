// `model_threads.c`: threads that share the work of calls, for models that are built with them. The pool is that of the native
// device, in memory that the caller gives; `digits_start` begins it and `digits_stop` ends it.

import { poolText } from '../../runtime/native/pool.ts';
import { alignment } from './memory.ts';
import type { CModel } from './model.ts';
import { macro } from './names.ts';

/** Bytes for a pool and for each of its threads, at least: types of threads differ from system to system. */
const poolBytes = 1024;
const threadBytes = 64;

/** Nanoseconds that a thread stays awake for the next kernel: waking one takes 5 to 50 µs. */
const linger = 100_000;

/** Bytes that threads need: for all of them, and for each. */
export function threadsMemory({ memory }: CModel): { readonly fixed: number; readonly each: number } {
  return { fixed: poolBytes, each: threadBytes + memory.scratchBytes };
}

/** What the header declares for threads. */
export function threadsHeader(model: CModel, most: number): string {
  const { prefix } = model;
  const { fixed, each } = threadsMemory(model);
  const name = (text: string): string => macro(prefix, text);
  return `/* Threads share the work of calls between ${prefix}_start and ${prefix}_stop. This many at most, and the bytes that they need. */
#define ${name('MOST_THREADS')} ${most}
#define ${name('THREADS_BYTES')}(threads) (${fixed}u + (size_t)(threads) * ${each}u)

/* Lets so many threads share the work of each call with this context, the thread that calls among them. The memory has
   ${name('THREADS_BYTES')}(threads) bytes, begins at a multiple of ${alignment}, and is theirs until ${prefix}_stop. Results are the same
   for any number of threads. */
int ${prefix}_start(${prefix} *ctx, int threads, void *memory, size_t bytes);

/* Ends the threads of a context. Call it before ${prefix}_init begins the context anew, and before its memory goes. */
int ${prefix}_stop(${prefix} *ctx);

`;
}

/** The name of the function that runs a kernel by the threads of a context. */
export function shareName({ prefix }: CModel): string {
  return `${prefix}__share`;
}

/** Its declaration, without an end. */
export function shareSignature(model: CModel): string {
  return `void ${shareName(model)}(void *given, void (*kernel)(int32_t, int32_t, void *const *, const uint32_t *, void *), int32_t groups, int32_t chunk, void *const *buffers, const uint32_t *scalars, void *own)`;
}

/** `model_threads.c`. */
export function threadsText(model: CModel, ready: string): string {
  const { prefix, producer, memory } = model;
  const code = (text: string): string => macro(prefix, text);
  const scratch = memory.scratchBytes;
  return `/* Made by ${producer}: see ${prefix}.h. Threads that share the work of calls. */
#define _GNU_SOURCE
#include "${prefix}.h"

#include <unistd.h>
${poolText}
_Static_assert(sizeof(struct pool) <= ${poolBytes}, "a pool has less room than it needs");
_Static_assert(sizeof(struct worker) <= ${threadBytes}, "a thread has less room than it needs");

int ${prefix}_start(${prefix} *ctx, int threads, void *memory, size_t bytes)
{
  if (ctx == NULL || memory == NULL) return ${code('E_NULL')};
  if ((uintptr_t)(void *)ctx % ${alignment} != 0 || (uintptr_t)memory % ${alignment} != 0) return ${code('E_ALIGNMENT')};
  if (ctx->ready != ${ready}) return ${code('E_STATE')};
  if (ctx->pool != NULL || threads < 1 || threads > ${code('MOST_THREADS')}) return ${code('E_THREADS')};
  if (bytes < ${code('THREADS_BYTES')}(threads)) return ${code('E_SIZE')};
  struct worker *workers = (void *)((unsigned char *)memory + ${poolBytes});
  /* Threads that share processors do not wait awake. */
  int64_t linger = threads <= sysconf(_SC_NPROCESSORS_ONLN) ? ${linger} : 0;
  if (!begin_pool(memory, workers, threads, linger)) return ${code('E_THREADS')};
  ctx->pool = memory;
  return ${code('OK')};
}

int ${prefix}_stop(${prefix} *ctx)
{
  if (ctx == NULL) return ${code('E_NULL')};
  if (ctx->ready != ${ready}) return ${code('E_STATE')};
  if (ctx->pool == NULL) return ${code('OK')};
  struct pool *pool = ctx->pool;
  end_pool(pool, pool->threads - 1);
  ctx->pool = NULL;
  return ${code('OK')};
}

${shareSignature(model)};
${shareSignature(model)}
{
  struct pool *pool = given;
  if (pool == NULL || pool->threads == 1) {
    kernel(0, groups, buffers, scalars, own);
    return;
  }
${
  scratch === 0
    ? `  share(pool, kernel, (uint32_t)groups, (uint32_t)chunk, buffers, scalars, own, 0);
`
    : `  unsigned char *room = (unsigned char *)given + ${poolBytes} + (size_t)pool->threads * ${threadBytes};
  share(pool, kernel, (uint32_t)groups, (uint32_t)chunk, buffers, scalars, own == NULL ? own : room, ${scratch});
`
}}
`;
}
