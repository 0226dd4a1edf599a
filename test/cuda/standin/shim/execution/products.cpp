// Products of warp groups: each thread keeps what it has begun, reads the tiles and adds to its sums only when it waits, as late as
// the hardware might; until then its sums are NaN. Which sums a thread has is as the PTX manual lays down for wgmma.m64nNk16.

#include "products.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "../checker/checker.h"
#include "executor.h"
#include "tiles.h"
#include "waiting.h"

namespace standin {

namespace {

const int steps = 16;
const unsigned group_threads = 128;

struct Operand {
  const unsigned char *start;
  bool across;
  int panel;

  /** Of one row or column of the product, at step k. */
  const unsigned char *address(int free, int k) const {
    uint64_t linear = reinterpret_cast<uint64_t>(start);
    linear += across ? static_cast<uint64_t>(free / 64 * panel + k * 128 + free % 64 * 2) : static_cast<uint64_t>(free * 128 + k * 2);
    return reinterpret_cast<const unsigned char *>(swizzled(linear));
  }
};

struct Product {
  /** The left operand lies in registers: how many of the thread's products before it have one there. In memory: -1. */
  int in_registers;
  Operand lhs, rhs;
  bool is_bf16;
  std::vector<float4 *> sums;
};

struct ThreadProducts {
  std::vector<Product> open;
  std::vector<std::vector<Product>> groups;
  /** The thread's part of left operands in registers, one after the other. */
  std::vector<uint4> words;
  /** What sums that are under way hold. */
  std::unordered_map<float4 *, float4> flying;
  /** Those that the last wait finished: the checker is told of them. */
  std::vector<Product> finished;
  bool fenced;
};

/** How many threads of each warp group have come to a wait, and how often all have. */
struct Meeting {
  unsigned arrived;
  unsigned long long generation;
};

std::vector<ThreadProducts> all;
Meeting meetings[8];

float widened(unsigned short bits, bool is_bf16) {
  unsigned wide = static_cast<unsigned>(bits) << 16;
  if (!is_bf16) {
    unsigned sign = wide & 0x80000000u, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 0) return (sign != 0 ? -1.0f : 1.0f) * static_cast<float>(fraction) * 0x1p-24f;
    wide = exponent == 31 ? sign | 0x7f800000u | fraction << 13 : sign | (exponent + 112) << 23 | fraction << 13;
  }
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

void read_line(const Operand &operand, int free, bool is_bf16, float (&line)[steps]) {
  for (int k = 0; k < steps; k++) {
    unsigned short bits;
    std::memcpy(&bits, operand.address(free, k), sizeof bits);
    line[k] = widened(bits, is_bf16);
  }
}

/** One lane of each warp tells the checker what its warp reads. */
void touch(const Product &product, unsigned warp) {
  for (int k = 0; k < steps; k++) {
    for (int row = 0; row < 16 && product.in_registers < 0; row++) check_access(product.lhs.address(static_cast<int>(warp) * 16 + row, k), 2, reads, nullptr);
    for (int column = 0; column < 8 * static_cast<int>(product.sums.size()); column++) check_access(product.rhs.address(column, k), 2, reads, nullptr);
  }
}

/** Two rows of a left operand in registers: each of the four threads that share them has four steps of each. */
void read_words(unsigned thread, const Product &product, float (&rows)[2][steps]) {
  for (unsigned place = 0; place < 4; place++) {
    uint4 all_words = all[thread / 4 * 4 + place].words[static_cast<size_t>(product.in_registers)];
    const unsigned words[] = {all_words.x, all_words.y, all_words.z, all_words.w};
    for (unsigned word = 0; word < 4; word++) {
      float *pair = &rows[word % 2][2 * place + 8 * (word / 2)];
      pair[0] = widened(static_cast<unsigned short>(words[word]), product.is_bf16);
      pair[1] = widened(static_cast<unsigned short>(words[word] >> 16), product.is_bf16);
    }
  }
}

void multiply(unsigned thread, const Product &product) {
  ThreadProducts &mine = all[thread];
  unsigned warp = thread / 32 % 4, lane = thread % 32;
  float rows[2][steps], column[steps];
  if (product.in_registers >= 0) read_words(thread, product, rows);
  for (int half = 0; half < 2 && product.in_registers < 0; half++) read_line(product.lhs, static_cast<int>(warp * 16 + lane / 4 + 8 * half), product.is_bf16, rows[half]);
  for (size_t part = 0; part < product.sums.size(); part++) {
    float *sum = &mine.flying[product.sums[part]].x;
    for (int side = 0; side < 2; side++) {
      read_line(product.rhs, static_cast<int>(8 * part + lane % 4 * 2) + side, product.is_bf16, column);
      for (int half = 0; half < 2; half++) {
        float total = 0;
        for (int k = 0; k < steps; k++) total += rows[half][k] * column[k];
        sum[2 * half + side] += total;
      }
    }
  }
}

/** Does the oldest groups of products of a thread, until `groups` are left. */
void finish(unsigned thread, size_t groups) {
  ThreadProducts &mine = all[thread];
  mine.finished.clear();
  while (mine.groups.size() > groups) {
    for (const Product &product : mine.groups.front()) {
      multiply(thread, product);
      mine.finished.push_back(product);
    }
    mine.groups.erase(mine.groups.begin());
  }
  std::unordered_map<float4 *, float4> still;
  auto keep = [&](const Product &product) {
    for (float4 *sum : product.sums) still.emplace(sum, mine.flying[sum]);
  };
  for (const auto &group : mine.groups)
    for (const Product &product : group) keep(product);
  for (const Product &product : mine.open) keep(product);
  for (const auto &[sum, value] : mine.flying)
    if (still.count(sum) == 0) *sum = value;
  mine.flying = std::move(still);
  if (mine.flying.empty()) mine.fenced = false;
}

void check_operand(const void *start) {
  if (reinterpret_cast<uint64_t>(start) % 16 != 0) abandon(716, "a product's operand begins at no multiple of 16 bytes");
}

}  // namespace

void begin_products(unsigned threads) {
  all.resize(threads);
  for (ThreadProducts &one : all) one = ThreadProducts{};
  for (Meeting &meeting : meetings) meeting.arrived = 0;
}

}  // namespace standin

using namespace standin;
#define EXPORT extern "C" __attribute__((visibility("default")))

static void begin_product(Product product) {
  ThreadProducts &mine = all[cuda_machine.linear];
  if (!mine.fenced) abandon(719, "a product begins before a fence made its sums known");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float4 *sum : product.sums) {
    // Products that follow each other on the same sums need no wait between them.
    if (mine.flying.emplace(sum, *sum).second) *sum = {nan, nan, nan, nan};
  }
  mine.open.push_back(std::move(product));
}

EXPORT void cuda_product(const void *lhs, const void *rhs, bool lhs_across, bool rhs_across, int panel, bool is_bf16, float4 *const *sums, int count) {
  check_operand(lhs);
  check_operand(rhs);
  begin_product({-1, {static_cast<const unsigned char *>(lhs), lhs_across, panel}, {static_cast<const unsigned char *>(rhs), rhs_across, panel}, is_bf16, {sums, sums + count}});
}

EXPORT void cuda_product_of_words(uint4 lhs, const void *rhs, bool rhs_across, int panel, bool is_bf16, float4 *const *sums, int count) {
  check_operand(rhs);
  std::vector<uint4> &words = all[cuda_machine.linear].words;
  words.push_back(lhs);
  begin_product({static_cast<int>(words.size()) - 1, {}, {static_cast<const unsigned char *>(rhs), rhs_across, panel}, is_bf16, {sums, sums + count}});
}

EXPORT void cuda_product_fence() { all[cuda_machine.linear].fenced = true; }

EXPORT void cuda_product_commit() {
  ThreadProducts &mine = all[cuda_machine.linear];
  mine.groups.push_back(std::move(mine.open));
  mine.open.clear();
}

EXPORT void cuda_product_wait(int groups, int line) {
  // What a warp group has begun is done for all of its threads at once, when the last of them waits.
  unsigned thread = cuda_machine.linear, first = thread / group_threads * group_threads;
  Meeting &meeting = meetings[thread / group_threads];
  unsigned long long generation = meeting.generation;
  if (++meeting.arrived == group_threads) {
    for (unsigned other = first; other < first + group_threads; other++) finish(other, static_cast<size_t>(groups));
    meeting.arrived = 0;
    meeting.generation++;
  } else {
    wait_until_changed(&meeting.generation, generation, line);
  }
  if (thread % 32 != 0) return;
  for (const Product &product : all[thread].finished) touch(product, thread / 32 % 4);
}

EXPORT void cuda_product_settle(float4 *) {}
