// What passes from the stand-in for NVRTC to the one for the driver in place of machine code.
#pragma once

#include <string>
#include <vector>

namespace standin {

struct Image {
  std::string name, text;
  std::vector<std::string> options;
  int capability;
  /** Built for this capability only (sm_90a). */
  bool exact;
  bool virtual_architecture;

  std::vector<std::string> build_options() const;
  std::string write() const;
};

/** False where the bytes are no image. */
bool read_image(const void *bytes, Image &image);

}  // namespace standin
