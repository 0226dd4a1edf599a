// The functions of NVRTC, with its signatures and results. What it gives as cubin or PTX is the program's text under a header: the
// driver's stand-in builds it again for the mode it is in, or finds it built.

#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "../control.h"
#include "image.h"
#include "program.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace standin;

enum nvrtcResult {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
  NVRTC_ERROR_INTERNAL_ERROR = 11,
};

struct Program {
  std::string text, name, log, image;
  bool real_architecture;
};

std::set<Program *> programs;
std::recursive_mutex mutex;

std::vector<int> architectures() {
  std::vector<int> known;
  for (int one : {50, 52, 60, 61, 70, 75, 80, 86, 87, 88, 89, 90, 100, 103, 120})
    if (one >= settings.oldest_architecture) known.push_back(one);
  return known;
}

/** `sm_90a` is 90 and real; `compute_80` is 80 and virtual. */
bool read_architecture(const std::string &text, Image &image, bool &real) {
  size_t digits = text.compare(0, 3, "sm_") == 0 ? 3 : text.compare(0, 8, "compute_") == 0 ? 8 : 0;
  if (digits == 0) return false;
  real = digits == 3;
  image.capability = std::atoi(text.c_str() + digits);
  image.exact = text.back() == 'a' || text.back() == 'f';
  image.virtual_architecture = !real;
  for (int known : architectures())
    if (known == image.capability) return true;
  return false;
}

const char *const harmless[] = {"--std=", "-std=", "--use_fast_math", "-use_fast_math", "--fmad=", "-fmad=", "--ftz=", "-ftz=", "--prec-div=", "-prec-div=",
                                "--prec-sqrt=", "-prec-sqrt=", "--extra-device-vectorization", "--maxrregcount=", "-maxrregcount=", "--ptxas-options", "-Xptxas",
                                "--restrict", "-restrict", "--device-as-default-execution-space", "-default-device", "--minimal", "-minimal",
                                "--generate-line-info", "-lineinfo", "--device-debug", "-G", "--disable-warnings", "-w", "--diag-suppress=", "-diag-suppress=",
                                "--include-path=", "-I", "--pch", "-pch", "--no-cache", "-no-cache", "--split-compile", "--dopt", "-dopt", "--device-int128", "-device-int128"};

nvrtcResult read_options(int count, const char *const *options, Program &program, Image &image) {
  for (int i = 0; i < count; i++) {
    std::string option = options[i] == nullptr ? "" : options[i];
    auto starts = [&](const char *with) { return option.compare(0, std::strlen(with), with) == 0; };
    if (starts("--gpu-architecture=") || starts("-arch=")) {
      if (read_architecture(option.substr(option.find('=') + 1), image, program.real_architecture)) continue;
      program.log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
      return NVRTC_ERROR_INVALID_OPTION;
    }
    if (starts("--define-macro=")) {
      image.options.push_back("-D" + option.substr(15));
    } else if (starts("-D") || starts("-U")) {
      image.options.push_back(option);
    } else {
      bool known = false;
      for (const char *one : harmless) known = known || starts(one);
      if (known) continue;
      program.log = "nvrtc: error: unrecognized option " + option + " found\n";
      return NVRTC_ERROR_INVALID_OPTION;
    }
  }
  return NVRTC_SUCCESS;
}

}  // namespace

#define ENTER(function) \
  std::lock_guard<std::recursive_mutex> lock(mutex); \
  if (int result = injected(#function)) return static_cast<nvrtcResult>(result);
#define NEED(program) \
  if (programs.count(program) == 0) return NVRTC_ERROR_INVALID_PROGRAM;

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor) {
  ENTER(nvrtcVersion)
  if (major == nullptr || minor == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *major = static_cast<int>(settings.nvrtc_version / 1000);
  *minor = static_cast<int>(settings.nvrtc_version % 1000 / 10);
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  ENTER(nvrtcGetNumSupportedArchs)
  if (count == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *count = static_cast<int>(architectures().size());
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetSupportedArchs(int *list) {
  ENTER(nvrtcGetSupportedArchs)
  if (list == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  for (int known : architectures()) *list++ = known;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCreateProgram(Program **program, const char *text, const char *name, int headers, const char *const *contents,
                                      const char *const *names) {
  ENTER(nvrtcCreateProgram)
  if (program == nullptr || text == nullptr || headers < 0) return NVRTC_ERROR_INVALID_INPUT;
  if (headers > 0 && (contents == nullptr || names == nullptr)) return NVRTC_ERROR_INVALID_INPUT;
  *program = new Program{text, name == nullptr || *name == 0 ? "default_program" : name, "", "", true};
  programs.insert(*program);
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(Program **program) {
  ENTER(nvrtcDestroyProgram)
  if (program == nullptr || programs.erase(*program) == 0) return NVRTC_ERROR_INVALID_PROGRAM;
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  ENTER(nvrtcCompileProgram)
  NEED(program)
  Image image{program->name, program->text, {}, 75, false, true};
  program->image.clear();
  program->log.clear();
  program->real_architecture = false;
  if (nvrtcResult refused = read_options(count, options, *program, image)) return refused;
  Built built = build(image.text, image.name, image.build_options(), settings.check != 0);
  program->log = built.log;
  if (built.file.empty()) return NVRTC_ERROR_COMPILATION;
  program->image = image.write();
  return NVRTC_SUCCESS;
}

static nvrtcResult give(const std::string &text, char *out) {
  if (out == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NVRTC_SUCCESS;
}

static nvrtcResult give_size(const std::string &text, size_t *out) {
  if (out == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *out = text.size() + 1;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBINSize(Program *program, size_t *size) {
  ENTER(nvrtcGetCUBINSize)
  NEED(program)
  if (size == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  // As NVRTC: a virtual architecture has no cubin.
  *size = program->real_architecture && !program->image.empty() ? program->image.size() + 1 : 0;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetCUBIN(Program *program, char *out) {
  ENTER(nvrtcGetCUBIN)
  NEED(program)
  return program->real_architecture && !program->image.empty() ? give(program->image, out) : NVRTC_ERROR_INVALID_PROGRAM;
}
EXPORT nvrtcResult nvrtcGetPTXSize(Program *program, size_t *size) {
  ENTER(nvrtcGetPTXSize)
  NEED(program)
  return program->image.empty() ? NVRTC_ERROR_INVALID_PROGRAM : give_size(program->image, size);
}
EXPORT nvrtcResult nvrtcGetPTX(Program *program, char *out) {
  ENTER(nvrtcGetPTX)
  NEED(program)
  return program->image.empty() ? NVRTC_ERROR_INVALID_PROGRAM : give(program->image, out);
}
EXPORT nvrtcResult nvrtcGetProgramLogSize(Program *program, size_t *size) {
  ENTER(nvrtcGetProgramLogSize)
  NEED(program)
  return give_size(program->log, size);
}
EXPORT nvrtcResult nvrtcGetProgramLog(Program *program, char *out) {
  ENTER(nvrtcGetProgramLog)
  NEED(program)
  return give(program->log, out);
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
    case NVRTC_SUCCESS: return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY: return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_PROGRAM_CREATION_FAILURE: return "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case NVRTC_ERROR_INVALID_INPUT: return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM: return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_OPTION: return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION: return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE: return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    case NVRTC_ERROR_INTERNAL_ERROR: return "NVRTC_ERROR_INTERNAL_ERROR";
  }
  return "NVRTC_ERROR unknown";
}
