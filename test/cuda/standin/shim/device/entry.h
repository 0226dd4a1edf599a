// How the stand-in driver calls a kernel: through a function of one type for all kernels, which takes the launch's parameters as an
// array of addresses; beside it, the sizes of the parameters and the most threads a block may have.
#pragma once

typedef void (*CudaEntry)(void **);

/** Found in a loaded program under the kernel's name with __cuda_kernel behind it. */
struct CudaKernel {
  CudaEntry entry;
  unsigned threads, dynamic_start, parameters;
  const unsigned *sizes;
};

template <class T> struct CudaBare { typedef T type; };
template <class T> struct CudaBare<const T> { typedef T type; };

template <size_t... places> struct CudaPlaces {};
template <size_t n, size_t... places> struct CudaCount : CudaCount<n - 1, n - 1, places...> {};
template <size_t... places> struct CudaCount<0, places...> { typedef CudaPlaces<places...> type; };

template <class... Parameters, size_t... places>
static inline void cuda_call(void (*kernel)(Parameters...), void **values, CudaPlaces<places...>) {
  (void)values;
  kernel(*static_cast<typename CudaBare<Parameters>::type *>(values[places])...);
}
template <class... Parameters>
static inline void cuda_call(void (*kernel)(Parameters...), void **values) {
  cuda_call(kernel, values, typename CudaCount<sizeof...(Parameters)>::type());
}
template <class... Parameters> struct CudaSizes {
  static const unsigned of[sizeof...(Parameters) + 1];
};
template <class... Parameters> const unsigned CudaSizes<Parameters...>::of[] = {sizeof(Parameters)..., 0};
template <class... Parameters>
static constexpr CudaKernel cuda_describe(CudaEntry entry, unsigned threads, unsigned dynamic_start, void (*)(Parameters...)) {
  return {entry, threads, dynamic_start, sizeof...(Parameters), CudaSizes<Parameters...>::of};
}

#define CUDA_KERNEL(path, name, threads, dynamic_start) \
  static void name##__cuda_entry(void **values) { cuda_call(path, values); } \
  extern "C" __attribute__((visibility("default"))) const CudaKernel name##__cuda_kernel = \
      cuda_describe(name##__cuda_entry, threads, dynamic_start, path);
