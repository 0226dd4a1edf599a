// What NCCL does to elements of several ranks, by its numbers of types and operations.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace standin {

/** 0 for a type that is none. */
size_t bytes_of(int type);
bool can_fold(int type, int op);
/** Combines `count` elements of each block, from byte `start` on. Each element begins at another rank, as parts of a ring do. */
void fold(int type, int op, const std::vector<std::string> &blocks, size_t start, void *to, size_t count);

}  // namespace standin
