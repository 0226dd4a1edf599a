// Sums, products, minima and maxima of elements, in an order that callers cannot count on.

#include "folding.h"

#include <cstring>
#include <type_traits>

namespace standin {

namespace {

enum Type { i8, u8, i32, u32, i64, u64, f16, f32, f64, bf16 };
enum Op { sum, prod, max, min };

template <class T> T combine(int op, T a, T b) {
  // Integers wrap.
  if constexpr (std::is_integral_v<T>) {
    using Bits = unsigned long long;
    if (op == sum) return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
    if (op == prod) return static_cast<T>(static_cast<Bits>(a) * static_cast<Bits>(b));
  }
  if (op == sum) return a + b;
  if (op == prod) return a * b;
  return op == max ? (a > b ? a : b) : (a < b ? a : b);
}

template <class T> void fold_as(int op, const std::vector<std::string> &blocks, size_t start, void *to, size_t count) {
  size_t ranks = blocks.size();
  for (size_t i = 0; i < count; i++) {
    T result{}, next;
    for (size_t k = 0; k < ranks; k++) {
      std::memcpy(&next, blocks[(i + k) % ranks].data() + start + i * sizeof(T), sizeof(T));
      result = k == 0 ? next : combine(op, result, next);
    }
    std::memcpy(static_cast<char *>(to) + i * sizeof(T), &result, sizeof(T));
  }
}

}  // namespace

size_t bytes_of(int type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return type >= 0 && type < 10 ? sizes[type] : 0;
}

bool can_fold(int type, int op) {
  bool is_float = type == f32 || type == f64;
  return bytes_of(type) > 0 && type != f16 && type != bf16 && op >= sum && op <= min && (!is_float || op <= prod);
}

void fold(int type, int op, const std::vector<std::string> &blocks, size_t start, void *to, size_t count) {
  switch (type) {
    case i8: return fold_as<signed char>(op, blocks, start, to, count);
    case u8: return fold_as<unsigned char>(op, blocks, start, to, count);
    case i32: return fold_as<int>(op, blocks, start, to, count);
    case u32: return fold_as<unsigned>(op, blocks, start, to, count);
    case i64: return fold_as<long long>(op, blocks, start, to, count);
    case u64: return fold_as<unsigned long long>(op, blocks, start, to, count);
    case f32: return fold_as<float>(op, blocks, start, to, count);
    case f64: return fold_as<double>(op, blocks, start, to, count);
    default: return;
  }
}

}  // namespace standin
