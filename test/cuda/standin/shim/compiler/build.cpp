// Builds programs by the host's compiler into a folder that outlives the process, one for each version of these sources: a program is
// built once for its text and its options. Several processes may build at once; a file appears whole or not at all.

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <initializer_list>
#include <sys/stat.h>
#include <unistd.h>

#include "../control.h"
#include "program.h"

#ifndef STANDIN_HEADERS
#error "STANDIN_HEADERS: the folder of the headers for kernels"
#endif
#ifndef STANDIN_COMPILER
#define STANDIN_COMPILER "c++"
#endif
#ifndef STANDIN_PROGRAMS
#define STANDIN_PROGRAMS "/tmp/sinter-cuda-programs"
#endif

namespace standin {

namespace {

/** FNV-1a, in 128 bits. */
std::string digest(const std::string &text) {
  unsigned __int128 hash = static_cast<unsigned __int128>(0x6c62272e07bb0142ull) << 64 | 0x62b821756295c58dull;
  const unsigned __int128 prime = static_cast<unsigned __int128>(1) << 88 | 0x13b;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hash >> 64), static_cast<unsigned long long>(hash));
  return hex;
}

std::string folder() {
  mkdir(STANDIN_PROGRAMS, 0700);
  return STANDIN_PROGRAMS;
}

std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string quoted(const std::string &text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

const char *plain_flags =
    " -x c++ -std=c++17 -O1 -fPIC -fvisibility=hidden -w -ffp-contract=off -fno-math-errno -fno-exceptions"
    " -fno-asynchronous-unwind-tables -fno-strict-aliasing -nostdinc -nostdinc++ -DSINTER_HOST";
const char *check_flags =
    " -g1 -fsanitize=thread -fsanitize=alignment,bounds-strict,shift,integer-divide-by-zero,signed-integer-overflow -fno-sanitize=vptr";

bool mentions(const std::string &text, std::initializer_list<const char *> words) {
  for (const char *word : words)
    if (text.find(word) != std::string::npos) return true;
  return false;
}

/** Which headers a program needs nothing of, by the words in it: macros that leave them out. */
std::string left_out(const std::string &text) {
  bool hopper = mentions(text, {"TileMap", "mbarrier", "copy_tile", "wgmma", "settle", "_registers", "shared_address", "begins_at"});
  bool tensor_core = hopper || mentions(text, {"cp_async", "ldmatrix", "mma_"});
  bool half = tensor_core || mentions(text, {"f16"});
  bool warp = tensor_core || mentions(text, {"__sync", "_sync", "bar_", "__threadfence", "__nanosleep", "__activemask"});
  std::string flags;
  if (!mentions(text, {"atomic"})) flags += " -DCUDA_NO_ATOMICS";
  if (!warp) flags += " -DCUDA_NO_WARP";
  if (!half) flags += " -DCUDA_NO_HALF";
  if (!tensor_core) flags += " -DCUDA_NO_TENSOR_CORE";
  if (!hopper) flags += " -DCUDA_NO_HOPPER";
  return flags;
}

}  // namespace

Built build(const std::string &text, const std::string &name, const std::vector<std::string> &options, bool checked) {
  std::string flags = plain_flags;
  if (checked) flags += check_flags;
  for (const std::string &option : options) flags += " " + quoted(option);
  std::string stem = folder() + "/" + digest(text + "\n" + name + "\n" + flags + "\n" STANDIN_COMPILER);
  std::string object = stem + ".so", log = stem + ".log", errors = stem + ".errors";
  counters.compiles++;
  if (access(object.c_str(), R_OK) == 0) return {object, read_file(log)};
  if (access(errors.c_str(), R_OK) == 0) return {"", read_file(errors)};

  Source source = read_source(text);
  counters.built++;
  std::string mine = stem + "." + std::to_string(getpid());
  {
    std::ofstream file(mine + ".cu");
    file << "#line 1 \"" << name << "\"\n" << source.text << "\n#line 1 \"kernels of " << name << "\"\n";
    for (const FoundKernel &kernel : source.kernels)
      file << "CUDA_KERNEL(" << kernel.path << ", " << kernel.name << ", " << (kernel.threads.empty() ? "1024" : "(" + kernel.threads + ")") << ", "
           << start_of_dynamic(kernel.alignment) << ")\n";
  }
  // Linked apart: with -fsanitize the compiler would add libraries whose functions stand in hooks.cpp. The linker itself starts in
  // half the time that the compiler takes to start it.
  std::string object_file = quoted(mine + ".o"), shared = quoted(mine + ".so"), told = quoted(mine + ".log");
  std::string link = "{ ld -shared -o " + shared + " " + object_file + " 2>>" + told + " || " STANDIN_COMPILER " -shared -nostdlib -o " +
                     shared + " " + object_file + " 2>>" + told + "; }";
  auto run = [&](const std::string &without) {
    std::string command = STANDIN_COMPILER + flags + without + " -include " + quoted(STANDIN_HEADERS "/cuda_host.h") + " -c -o " +
                          object_file + " " + quoted(mine + ".cu") + " 2>" + told + " && " + link;
    return std::system(command.c_str());
  };
  // What is wrong with a program is said with all headers there.
  std::string without = left_out(text);
  int status = run(without);
  if (status != 0 && !without.empty()) status = run("");
  unlink((mine + ".cu").c_str());
  unlink((mine + ".o").c_str());
  std::string words = read_file(mine + ".log");
  rename((mine + ".log").c_str(), (status == 0 ? log : errors).c_str());
  if (status != 0) return {"", words};
  rename((mine + ".so").c_str(), object.c_str());
  return {object, words};
}

}  // namespace standin
