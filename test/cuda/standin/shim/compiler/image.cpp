// The form of an image: a line of facts, a line per option, an empty line, the program's text, and a zero byte.

#include "image.h"

#include <cstring>
#include <sstream>

namespace standin {

static const char *const magic = "stand-in image";

std::vector<std::string> Image::build_options() const {
  std::vector<std::string> all = options;
  all.push_back("-D__CUDA_ARCH__=" + std::to_string(capability * 10));
  return all;
}

std::string Image::write() const {
  std::ostringstream out;
  out << magic << ' ' << capability << ' ' << exact << ' ' << virtual_architecture << ' ' << options.size() << '\n' << name << '\n';
  for (const std::string &option : options) out << option << '\n';
  out << text;
  return out.str();
}

bool read_image(const void *bytes, Image &image) {
  auto text = static_cast<const char *>(bytes);
  if (text == nullptr || std::strncmp(text, magic, std::strlen(magic)) != 0) return false;
  std::istringstream in(text + std::strlen(magic));
  size_t count = 0;
  in >> image.capability >> image.exact >> image.virtual_architecture >> count;
  in.ignore();
  std::getline(in, image.name);
  image.options.resize(count);
  for (std::string &option : image.options) std::getline(in, option);
  image.text.assign(std::istreambuf_iterator<char>(in), {});
  return true;
}

}  // namespace standin
