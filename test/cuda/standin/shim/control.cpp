// Settings, counters and injected errors, by name. Their first values come from STANDIN_SETTINGS (order=3,check=1).

#include "control.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace standin {

Settings settings;
Counters counters;

namespace {

struct Injection {
  std::string function;
  int result, skip, times;
};

std::vector<Injection> injections;
std::string last_story;
unsigned long long random_state = 88172645463325252ull;
bool silent = false;

const std::map<std::string, long long *> &names() {
  static const std::map<std::string, long long *> table = {
      {"order", &settings.order},
      {"seed", &settings.seed},
      {"check", &settings.check},
      {"eager", &settings.eager},
      {"devices", &settings.devices},
      {"capability", &settings.capability},
      {"driver_version", &settings.driver_version},
      {"nvrtc_version", &settings.nvrtc_version},
      {"oldest_architecture", &settings.oldest_architecture},
      {"device_bytes", &settings.device_bytes},
      {"calls", &counters.calls},
      {"compiles", &counters.compiles},
      {"built", &counters.built},
      {"launches", &counters.launches},
      {"graph_launches", &counters.graph_launches},
      {"blocks", &counters.blocks},
      {"switches", &counters.switches},
      {"bytes_read", &counters.bytes_read},
      {"bytes_written", &counters.bytes_written},
      {"live_buffers", &counters.live_buffers},
      {"live_bytes", &counters.live_bytes},
      {"pinned_buffers", &counters.pinned_buffers},
      {"modules", &counters.modules},
      {"streams", &counters.streams},
      {"events", &counters.events},
      {"graphs", &counters.graphs},
  };
  return table;
}

/** Programs find the machine, and the compiler's hooks, in this library: its names are made visible to what is loaded later. */
__attribute__((constructor)) void begin() {
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&begin), &self) != 0)
    dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  const char *text = std::getenv("STANDIN_SETTINGS");
  std::string list = text == nullptr ? "" : text;
  for (size_t at = 0; at < list.size();) {
    size_t end = list.find(',', at);
    if (end == std::string::npos) end = list.size();
    std::string item = list.substr(at, end - at);
    size_t equals = item.find('=');
    auto found = names().find(item.substr(0, equals));
    if (equals != std::string::npos && found != names().end()) *found->second = std::atoll(item.c_str() + equals + 1);
    at = end + 1;
  }
}

}  // namespace

int injected(const char *function) {
  for (Injection &one : injections) {
    if (one.times == 0 || one.function != function) continue;
    if (one.skip > 0) {
      one.skip--;
      continue;
    }
    one.times--;
    return one.result;
  }
  return 0;
}

void tell(const std::string &story) {
  last_story = story;
  if (!silent) std::fprintf(stderr, "CUDA stand-in: %s\n", story.c_str());
}

unsigned long long next_random() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

/** Returns 0, or 1 where there is no such setting. */
EXPORT int standin_set(const char *name, long long value) {
  if (std::strcmp(name, "silent") == 0) return silent = value != 0, 0;
  auto found = names().find(name);
  if (found == names().end()) return 1;
  *found->second = value;
  if (found->second == &settings.seed) random_state = 88172645463325252ull ^ static_cast<unsigned long long>(value) << 20;
  return 0;
}

EXPORT long long standin_get(const char *name) {
  auto found = names().find(name);
  return found == names().end() ? -1 : *found->second;
}

/** After `skip` calls of `function` (or runs of a kernel: `kernel`), the next `times` give `result`. */
EXPORT void standin_inject(const char *function, int result, int skip, int times) {
  injections.push_back({function, result, skip, times});
}

EXPORT void standin_heal() { injections.clear(); }

/** What the last failure was, in words; valid until the next. */
EXPORT const char *standin_story() { return last_story.c_str(); }

}  // namespace standin
