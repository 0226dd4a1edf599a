// Files by which processes meet, in memory where the folder is.

#include "files.h"

#include <cstdio>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

namespace standin {

void write_file(const std::string &path, const std::string &bytes) {
  std::string part = path + ".part";
  FILE *file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) return;
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  std::rename(part.c_str(), path.c_str());
}

std::string read_file(const std::string &path) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0) return "";
  std::string bytes(static_cast<size_t>(found.st_size), '\0');
  if (!read_start(path, &bytes[0], bytes.size())) return "";
  return bytes;
}

bool read_start(const std::string &path, void *to, size_t bytes) {
  FILE *file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  size_t read = std::fread(to, 1, bytes, file);
  std::fclose(file);
  return read == bytes;
}

bool exists(const std::string &path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0;
}

void remove_folder(const std::string &path) {
  DIR *folder = opendir(path.c_str());
  if (folder == nullptr) return;
  while (dirent *entry = readdir(folder)) unlink((path + "/" + entry->d_name).c_str());
  closedir(folder);
  rmdir(path.c_str());
}

}  // namespace standin
