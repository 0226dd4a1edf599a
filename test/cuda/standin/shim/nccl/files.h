// Files by which processes meet: each appears whole or not at all.
#pragma once

#include <cstddef>
#include <string>

namespace standin {

void write_file(const std::string &path, const std::string &bytes);
std::string read_file(const std::string &path);
/** The first bytes of a file; false where there is none. */
bool read_start(const std::string &path, void *to, size_t bytes);
bool exists(const std::string &path);
void remove_folder(const std::string &path);

}  // namespace standin
