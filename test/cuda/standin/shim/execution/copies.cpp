// cp.async: a copy poisons its destination when it is issued, and happens when the thread waits for its group. So a wait that is
// too lax reads NaN, and a copy into a buffer that others still read destroys what they read.

#include "copies.h"

#include <cstring>
#include <vector>

#include "../checker/checker.h"
#include "executor.h"

namespace standin {

namespace {

struct Copy {
  unsigned char *to;
  const unsigned char *from;
  unsigned bytes, valid;
  int group;
};

struct Queue {
  std::vector<Copy> copies;
  /** Number of the group that is being filled. */
  int group;
};

std::vector<Queue> queues;

/** Does the copies of groups below `end`. */
void finish(Queue &queue, int end) {
  size_t left = 0;
  for (const Copy &copy : queue.copies) {
    if (copy.group >= end) {
      queue.copies[left++] = copy;
      continue;
    }
    std::memcpy(copy.to, copy.from, copy.valid);
    std::memset(copy.to + copy.valid, 0, copy.bytes - copy.valid);
    note_copy(copy.to, copy.bytes, true);
  }
  queue.copies.resize(left);
}

}  // namespace

void begin_copies(unsigned threads) {
  queues.resize(threads);
  for (Queue &queue : queues) {
    queue.copies.clear();
    queue.group = 0;
  }
}

void finish_copies(unsigned thread) {
  if (!queues[thread].copies.empty()) finish(queues[thread], queues[thread].group + 1);
}

}  // namespace standin

using namespace standin;
#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void cuda_copy_async(void *shared, const void *source, unsigned bytes, unsigned valid) {
  check_copy(shared, source, bytes, valid);
  Queue &queue = queues[cuda_machine.linear];
  std::memset(shared, 0xff, bytes);
  note_copy(shared, bytes, false);
  queue.copies.push_back({static_cast<unsigned char *>(shared), static_cast<const unsigned char *>(source), bytes, valid, queue.group});
}

EXPORT void cuda_copy_commit() { queues[cuda_machine.linear].group++; }

EXPORT void cuda_copy_wait(int groups) {
  Queue &queue = queues[cuda_machine.linear];
  finish(queue, groups < 0 ? queue.group + 1 : queue.group - groups);
}
