// With this header in front (-include), a host C++ compiler accepts CUDA C as NVRTC does: qualifiers, built-in variables, vector
// types, intrinsics. It includes nothing of the host's, so that names which NVRTC lacks stay unknown here too, and so that a kernel
// compiles in the time that the compiler needs to start.
#pragma once

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __constant__ static
// All shared variables of a program lie in one section; its symbols say which kernel each belongs to. Dynamic shared memory (an
// extern array) is rewritten by the stand-in for NVRTC before it gets here.
#define __shared__ static __attribute__((section("cuda_shared")))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

#include "vectors.h"

#include "machine.h"

#include "arithmetic.h"

// What a program does not mention is left out (CUDA_NO_…, see parts_of in ../compiler/build.cpp): reading it takes the compiler as
// long as a kernel of average length.
#ifndef CUDA_NO_ATOMICS
#include "atomics.h"
#endif
#ifndef CUDA_NO_WARP
#include "warp.h"
#endif
#ifndef CUDA_NO_HALF
#include "half.h"
#endif
#ifndef CUDA_NO_TENSOR_CORE
#include "tensor_core.h"
#endif
#ifndef CUDA_NO_HOPPER
#include "hopper.h"
#endif

#include "entry.h"
