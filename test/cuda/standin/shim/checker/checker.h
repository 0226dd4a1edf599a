// What is checked beyond the results: bounds and alignment of device memory, races and unwritten reads of shared memory. Kernels
// built with checks call in at every access (hooks.cpp); the executor tells of launches, blocks and of who has waited for whom.
#pragma once

#include "../execution/executor.h"

namespace standin {

void begin_launch_checks(const Launch &launch);
void end_launch_checks();
void begin_block_checks();

/** The running thread passed on what it did before, at a named barrier or an mbarrier (number 16 and up). */
void note_release(unsigned long long object);
/** It has seen what others passed on there. */
void note_acquire(unsigned long long object);
/** The thread went through a barrier, of the whole block or of some of its threads. */
void note_barrier(unsigned thread, int id, bool whole);
/** The thread took part in a collective, of all lanes of its warp or of some. */
void note_exchange(unsigned thread, bool whole);
/** An asynchronous copy was issued, or arrived. */
void note_copy(const void *shared, unsigned bytes, bool arrived);
/** A tile that the thread asked for arrived: who waits for the mbarrier may read it. */
void note_tile(const void *shared, unsigned bytes, unsigned long long barrier, unsigned thread);
void check_copy(const void *shared, const void *source, unsigned bytes, unsigned valid);

enum Access { reads, writes, updates };
/** One access by the running thread; `caller` is the address of the instruction behind it. */
void check_access(const void *address, unsigned bytes, Access access, const void *caller);
/** A fault that the compiler's own checks found. */
void check_failed(const std::string &what, const void *caller);

}  // namespace standin
