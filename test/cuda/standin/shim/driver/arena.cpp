// Device memory in one reserved range of addresses, and the table of page-locked host memory.

#include "arena.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>

#include "../control.h"

namespace standin {

namespace {

const uint64_t arena_bytes = uint64_t{1} << 40, page = 4096;
uint64_t arena, arena_next;

/** By start. What was freed stays in the table, as empty, until its address could be confused no more. */
std::map<uint64_t, size_t> live, freed;
std::map<uint64_t, size_t> pinned;

uint64_t up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

const std::pair<const uint64_t, size_t> *at_or_below(const std::map<uint64_t, size_t> &table, uint64_t address) {
  auto found = table.upper_bound(address);
  return found == table.begin() ? nullptr : &*--found;
}

bool within(const std::map<uint64_t, size_t> &table, uint64_t address, size_t bytes) {
  auto found = at_or_below(table, address);
  return found != nullptr && address + bytes <= found->first + found->second;
}

}  // namespace

uint64_t take_memory(size_t bytes) {
  if (counters.live_bytes + static_cast<long long>(bytes) > settings.device_bytes) return 0;
  if (arena == 0) {
    void *space = mmap(nullptr, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return 0;
    arena = arena_next = reinterpret_cast<uint64_t>(space);
  }
  uint64_t rounded = up(bytes, 256), pages = up(rounded, page);
  if (arena_next + pages + page > arena + arena_bytes) return 0;
  uint64_t base = arena_next, start = base + pages - rounded;
  if (mprotect(reinterpret_cast<void *>(base), pages, PROT_READ | PROT_WRITE) != 0) return 0;
  arena_next += pages + page;
  std::memset(reinterpret_cast<void *>(start), 0xff, rounded);
  live[start] = bytes;
  counters.live_buffers++;
  counters.live_bytes += static_cast<long long>(bytes);
  return start;
}

bool give_memory(uint64_t address) {
  auto found = live.find(address);
  if (found == live.end()) return false;
  uint64_t base = address / page * page, pages = up(address + found->second - base, page);
  madvise(reinterpret_cast<void *>(base), pages, MADV_DONTNEED);
  mprotect(reinterpret_cast<void *>(base), pages, PROT_NONE);
  counters.live_buffers--;
  counters.live_bytes -= static_cast<long long>(found->second);
  freed[address] = found->second;
  live.erase(found);
  return true;
}

void give_all_memory() {
  while (!live.empty()) give_memory(live.begin()->first);
}

bool in_arena(uint64_t address) { return address - arena < arena_bytes && arena != 0; }

bool is_live(uint64_t address, size_t bytes) { return within(live, address, bytes); }

bool buffer_around(uint64_t address, uint64_t *start, size_t *bytes) {
  auto found = at_or_below(live, address);
  if (found == nullptr || address >= found->first + found->second) return false;
  *start = found->first;
  *bytes = found->second;
  return true;
}

std::string describe_address(uint64_t address) {
  auto near = at_or_below(live, address), old = at_or_below(freed, address);
  if (old != nullptr && address < old->first + old->second)
    return "in a freed buffer of " + std::to_string(old->second) + " bytes";
  if (near != nullptr && address < near->first + near->second)
    return "at byte " + std::to_string(address - near->first) + " of a buffer of " + std::to_string(near->second) + " bytes";
  if (near != nullptr && address - near->first - near->second < 1 << 20)
    return std::to_string(address - near->first - near->second) + " bytes behind a buffer of " +
           std::to_string(near->second) + " bytes";
  auto next = live.upper_bound(address);
  if (next != live.end() && next->first - address < 1 << 20)
    return std::to_string(next->first - address) + " bytes before a buffer of " + std::to_string(next->second) + " bytes";
  return "outside every buffer";
}

void *take_pinned(size_t bytes) {
  void *memory = std::aligned_alloc(page, up(bytes, page));
  if (memory != nullptr) std::memset(memory, 0xff, bytes);
  if (memory != nullptr) pin(memory, bytes);
  return memory;
}

bool give_pinned(void *memory) {
  if (!unpin(memory)) return false;
  std::free(memory);
  return true;
}

bool is_pinned(const void *memory, size_t bytes) { return within(pinned, reinterpret_cast<uint64_t>(memory), bytes); }

bool pin(void *memory, size_t bytes) {
  if (is_pinned(memory, 1)) return false;
  pinned[reinterpret_cast<uint64_t>(memory)] = bytes;
  counters.pinned_buffers++;
  return true;
}

bool unpin(void *memory) {
  if (pinned.erase(reinterpret_cast<uint64_t>(memory)) == 0) return false;
  counters.pinned_buffers--;
  return true;
}

}  // namespace standin
