// While a kernel runs, a fault of the processor is the kernel's: it ends the launch, not the process.
#pragma once

namespace standin {

class TrapScope {
 public:
  TrapScope();
  ~TrapScope();
};

}  // namespace standin
