// Copies of tiles poison their destination when they are issued, and arrive as late as they can: when no thread of the block could go
// on without one. An mbarrier's phase is over when all have arrived whom it expects, and all bytes that they announced.

#include "tiles.h"

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "../driver/arena.h"
#include "../checker/checker.h"
#include "../control.h"
#include "executor.h"
#include "waiting.h"
#include "../device/tensor-map.h"

namespace standin {

namespace {

/** What is written where an mbarrier is, so that others who write there are noticed. */
const unsigned long long mark = 0x6d62617272696572ull;

struct MBarrier {
  unsigned long long phase;
  int expected, missing;
  long long bytes;
};

struct TileCopy {
  unsigned char *to;
  CudaTensorMap map;
  int at[5];
  unsigned long long *barrier;
  unsigned thread;
};

std::unordered_map<unsigned long long *, MBarrier> mbarriers;
std::vector<TileCopy> copies;
/** What threads have cleared and not published: until then it is NaN. */
std::unordered_map<unsigned, std::vector<unsigned short *>> cleared;
const unsigned short half_nan = 0x7fc0;

MBarrier &at(unsigned long long *word) {
  auto found = mbarriers.find(word);
  if (found == mbarriers.end()) abandon(719, "an mbarrier is used that was not made");
  if (*word != mark) abandon(719, "an mbarrier was overwritten");
  return found->second;
}

void complete(MBarrier &barrier) {
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  barrier.phase++;
  barrier.missing = barrier.expected;
}

unsigned box_bytes(const CudaTensorMap &map) {
  unsigned bytes = map.bytes;
  for (unsigned axis = 0; axis < map.rank; axis++) bytes *= map.box[axis];
  return bytes;
}

/** Calls `f(destination, source)` for each element of the box; the source is null outside the tensor. */
template <class F>
void each_element(const TileCopy &copy, F f) {
  const CudaTensorMap &map = copy.map;
  unsigned count = box_bytes(map) / map.bytes;
  for (unsigned i = 0; i < count; i++) {
    uint64_t source = map.address;
    bool inside = true;
    unsigned rest = i;
    for (unsigned axis = 0; axis < map.rank; axis++) {
      long long place = copy.at[axis] + static_cast<long long>(rest % map.box[axis]);
      rest /= map.box[axis];
      inside = inside && place >= 0 && place <= map.sizes[axis];
      source += static_cast<uint64_t>(place) * map.strides[axis];
    }
    uint64_t to = reinterpret_cast<uint64_t>(copy.to) + static_cast<uint64_t>(i) * map.bytes;
    if (map.swizzle == 3) to = swizzled(to);
    f(reinterpret_cast<unsigned char *>(to), inside ? reinterpret_cast<const unsigned char *>(source) : nullptr);
  }
}

}  // namespace

void begin_tiles() {
  mbarriers.clear();
  copies.clear();
  cleared.clear();
}

bool tiles_are_done() { return copies.empty(); }

bool land_tile() {
  if (copies.empty()) return false;
  size_t chosen = settings.order == random_order ? next_random() % copies.size() : 0;
  TileCopy copy = copies[chosen];
  copies.erase(copies.begin() + static_cast<long>(chosen));
  unsigned bytes = copy.map.bytes;
  each_element(copy, [&](unsigned char *to, const unsigned char *source) {
    if (source == nullptr) std::memset(to, 0, bytes);
    else std::memcpy(to, source, bytes);
  });
  note_tile(copy.to, box_bytes(copy.map), reinterpret_cast<unsigned long long>(copy.barrier), copy.thread);
  auto found = mbarriers.find(copy.barrier);
  if (found == mbarriers.end()) return true;
  found->second.bytes -= box_bytes(copy.map);
  complete(found->second);
  return true;
}

}  // namespace standin

using namespace standin;
#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void cuda_mbarrier_init(unsigned long long *word, int count) {
  if (reinterpret_cast<uint64_t>(word) % 8 != 0) abandon(716, "misaligned mbarrier");
  if (count < 1 || count >= 1 << 20) abandon(719, "an mbarrier counts 1 to 2^20 - 1, not " + std::to_string(count));
  *word = mark;
  note_copy(word, 8, true);
  mbarriers[word] = {0, count, count, 0};
}

EXPORT void cuda_mbarrier_arrive(unsigned long long *word, int bytes) {
  MBarrier &barrier = at(word);
  barrier.bytes += bytes;
  if (barrier.missing == 0) abandon(719, "more threads arrive at an mbarrier than it expects");
  note_release(reinterpret_cast<unsigned long long>(word));
  barrier.missing--;
  complete(barrier);
}

EXPORT void cuda_mbarrier_wait(unsigned long long *word, int parity, int line) {
  if (parity != 0 && parity != 1) abandon(719, "a phase's parity is 0 or 1, not " + std::to_string(parity));
  MBarrier &barrier = at(word);
  while ((barrier.phase & 1) == static_cast<unsigned>(parity)) wait_until_changed(&barrier.phase, barrier.phase, line);
  note_acquire(reinterpret_cast<unsigned long long>(word));
}

EXPORT void cuda_copy_tile(void *to, const CudaTensorMap *map, unsigned long long *word, const int *where, int axes) {
  at(word);
  if (map->rank != static_cast<unsigned>(axes)) abandon(719, "a map of " + std::to_string(map->rank) + " axes is used with " + std::to_string(axes));
  uint64_t address = reinterpret_cast<uint64_t>(to);
  if (address % (map->swizzle == 0 ? 128 : 1024) != 0) abandon(716, "a tile begins where its pieces would not lie as the map says");
  if (map->swizzle == 1 || map->swizzle == 2) abandon(719, "tiles of lines of 128 bytes are modelled only");
  TileCopy copy = {static_cast<unsigned char *>(to), *map, {}, word, cuda_machine.linear};
  for (int axis = 0; axis < axes; axis++) copy.at[axis] = where[axis];
  each_element(copy, [&](unsigned char *, const unsigned char *source) {
    if (source != nullptr && !is_live(reinterpret_cast<uint64_t>(source), copy.map.bytes))
      abandon(700, "a tile is copied from memory " + describe_address(reinterpret_cast<uint64_t>(source)));
  });
  note_copy(to, box_bytes(*map), false);
  std::memset(to, 0xff, box_bytes(*map));
  copies.push_back(copy);
}

EXPORT void cuda_clear_tile(void *tiles, int element) {
  uint64_t place = swizzled(reinterpret_cast<uint64_t>(tiles) + 2 * static_cast<uint64_t>(element));
  auto half = reinterpret_cast<unsigned short *>(place);
  check_access(half, 2, writes, nullptr);
  *half = half_nan;
  cleared[cuda_machine.linear].push_back(half);
}

EXPORT void cuda_publish_tiles() {
  for (unsigned short *half : cleared[cuda_machine.linear]) *half = 0;
  cleared.erase(cuda_machine.linear);
}
