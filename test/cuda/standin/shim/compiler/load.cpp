// Loads built programs. What a kernel's shared memory is, is read from the object's symbols: a variable of a kernel is named after
// it (_ZZ1kE4tile, in the section cuda_shared).

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <link.h>

#include "program.h"

namespace standin {

struct DescribedKernel {
  void (*entry)(void **);
  unsigned threads, dynamic_start, parameters;
  const unsigned *sizes;
};

uint64_t load_address(const void *inside) {
  Dl_info info;
  return dladdr(inside, &info) == 0 ? 0 : reinterpret_cast<uint64_t>(info.dli_fbase);
}

namespace {

struct Symbol {
  std::string name;
  uint64_t value, size;
  bool shared;
};

std::vector<Symbol> symbols_of(const std::string &file) {
  std::ifstream stream(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  std::vector<Symbol> symbols;
  if (bytes.size() < sizeof(Elf64_Ehdr)) return symbols;
  auto header = reinterpret_cast<const Elf64_Ehdr *>(bytes.data());
  auto sections = reinterpret_cast<const Elf64_Shdr *>(bytes.data() + header->e_shoff);
  const char *section_names = bytes.data() + sections[header->e_shstrndx].sh_offset;
  for (int i = 0; i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    auto table = reinterpret_cast<const Elf64_Sym *>(bytes.data() + sections[i].sh_offset);
    const char *names = bytes.data() + sections[sections[i].sh_link].sh_offset;
    for (size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); k++) {
      bool placed = table[k].st_shndx != SHN_UNDEF && table[k].st_shndx < header->e_shnum;
      bool shared = placed && std::strcmp(section_names + sections[table[k].st_shndx].sh_name, "cuda_shared") == 0;
      if (placed && table[k].st_name != 0) symbols.push_back({names + table[k].st_name, table[k].st_value, table[k].st_size, shared});
    }
  }
  return symbols;
}

/** Of `_ZZ4nameE4tile_0`: the kernel's name and the variable's; false for other forms. */
bool parse(const std::string &mangled, std::string &kernel, std::string &variable) {
  if (mangled.compare(0, 3, "_ZZ") != 0) return false;
  auto take = [&](size_t &at, std::string &into) {
    size_t length = 0, digits = at;
    while (at < mangled.size() && mangled[at] >= '0' && mangled[at] <= '9') length = length * 10 + static_cast<size_t>(mangled[at++] - '0');
    if (at == digits || at + length > mangled.size()) return false;
    into = mangled.substr(at, length);
    at += length;
    return true;
  };
  size_t at = 3;
  if (!take(at, kernel) || at >= mangled.size() || mangled[at] != 'E') return false;
  return take(++at, variable);
}

}  // namespace

LoadedProgram *load(const std::string &file, bool checked, std::string &why) {
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = dlerror();
    return nullptr;
  }
  auto *program = new LoadedProgram{library, {}};
  auto *map = static_cast<link_map *>(library);
  std::vector<Symbol> symbols = symbols_of(file);
  const std::string suffix = "__cuda_kernel";
  for (const Symbol &symbol : symbols) {
    if (symbol.name.size() <= suffix.size() || symbol.name.compare(symbol.name.size() - suffix.size(), suffix.size(), suffix) != 0) continue;
    auto *described = static_cast<const DescribedKernel *>(dlsym(library, symbol.name.c_str()));
    if (described == nullptr) continue;
    auto kernel = std::make_unique<Kernel>();
    kernel->name = symbol.name.substr(0, symbol.name.size() - suffix.size());
    kernel->entry = described->entry;
    kernel->threads = described->threads;
    kernel->parameters.assign(described->sizes, described->sizes + described->parameters);
    kernel->dynamic_start = described->dynamic_start;
    kernel->static_bytes = 0;
    kernel->checked = checked;
    kernel->file = file;
    program->kernels[kernel->name] = std::move(kernel);
  }
  for (const Symbol &symbol : symbols) {
    if (!symbol.shared || symbol.size == 0) continue;
    std::string owner, name;
    bool known = parse(symbol.name, owner, name);
    for (auto &[kernel_name, kernel] : program->kernels) {
      if (known && owner != kernel_name && program->kernels.count(owner) != 0) continue;
      kernel->shared.push_back({known ? name : symbol.name, reinterpret_cast<unsigned char *>(map->l_addr + symbol.value), symbol.size});
      kernel->static_bytes += symbol.size;
    }
  }
  return program;
}

}  // namespace standin
