// Arithmetic that CUDA has built in: mathematical functions of float and double, fast approximations (here as exact as the host's),
// bit operations, reinterpretations. Special values follow the CUDA Math API.
#pragma once

extern "C" {
#define CUDA_UNARY(name) \
  double name(double); \
  float name##f(float);
#define CUDA_BINARY(name) \
  double name(double, double); \
  float name##f(float, float);
CUDA_UNARY(acos) CUDA_UNARY(acosh) CUDA_UNARY(asin) CUDA_UNARY(asinh) CUDA_UNARY(atan) CUDA_UNARY(atanh)
CUDA_UNARY(cbrt) CUDA_UNARY(ceil) CUDA_UNARY(cos) CUDA_UNARY(cosh) CUDA_UNARY(erf) CUDA_UNARY(erfc)
CUDA_UNARY(exp) CUDA_UNARY(exp2) CUDA_UNARY(exp10) CUDA_UNARY(expm1) CUDA_UNARY(fabs) CUDA_UNARY(floor)
CUDA_UNARY(lgamma) CUDA_UNARY(log) CUDA_UNARY(log10) CUDA_UNARY(log1p) CUDA_UNARY(log2) CUDA_UNARY(logb)
CUDA_UNARY(nearbyint) CUDA_UNARY(rint) CUDA_UNARY(round) CUDA_UNARY(sin) CUDA_UNARY(sinh) CUDA_UNARY(sqrt)
CUDA_UNARY(tan) CUDA_UNARY(tanh) CUDA_UNARY(tgamma) CUDA_UNARY(trunc)
CUDA_BINARY(atan2) CUDA_BINARY(copysign) CUDA_BINARY(fdim) CUDA_BINARY(fmax) CUDA_BINARY(fmin)
CUDA_BINARY(fmod) CUDA_BINARY(hypot) CUDA_BINARY(nextafter) CUDA_BINARY(pow) CUDA_BINARY(remainder)
#undef CUDA_UNARY
#undef CUDA_BINARY
double fma(double, double, double);
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
double frexp(double, int *);
float frexpf(float, int *);
double modf(double, double *);
float modff(float, float *);
int abs(int);
long labs(long);
long long llabs(long long);
long lrint(double);
long lrintf(float);
}

// ---- reinterpretation ----
template <class To, class From>
static inline To cuda_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
static inline int __float_as_int(float x) { return cuda_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return cuda_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return cuda_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return cuda_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return cuda_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return cuda_bits<double>(x); }
static inline int __double2loint(double x) { return (int)(unsigned)cuda_bits<unsigned long long>(x); }
static inline int __double2hiint(double x) { return (int)(cuda_bits<unsigned long long>(x) >> 32); }
static inline double __hiloint2double(int high, int low) {
  return cuda_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

// ---- tests ----
// CUDA's are overloaded functions (or macros); these work on any floating type.
template <class T> static inline bool isnan(T x) { return __builtin_isnan(x); }
template <class T> static inline bool isinf(T x) { return __builtin_isinf(x); }
template <class T> static inline bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> static inline bool signbit(T x) { return __builtin_signbit(x); }

// ---- single precision beyond the host's library, and the overloads for float ----
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
static inline void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
static inline float fdividef(float x, float y) { return x / y; }
#define CUDA_OVERLOAD1(name) \
  static inline float name(float x) { return name##f(x); }
#define CUDA_OVERLOAD2(name) \
  static inline float name(float x, float y) { return name##f(x, y); }
CUDA_OVERLOAD1(acos) CUDA_OVERLOAD1(acosh) CUDA_OVERLOAD1(asin) CUDA_OVERLOAD1(asinh) CUDA_OVERLOAD1(atan)
CUDA_OVERLOAD1(atanh) CUDA_OVERLOAD1(cbrt) CUDA_OVERLOAD1(ceil) CUDA_OVERLOAD1(cos) CUDA_OVERLOAD1(cosh)
CUDA_OVERLOAD1(erf) CUDA_OVERLOAD1(erfc) CUDA_OVERLOAD1(exp) CUDA_OVERLOAD1(exp2) CUDA_OVERLOAD1(exp10)
CUDA_OVERLOAD1(expm1) CUDA_OVERLOAD1(fabs) CUDA_OVERLOAD1(floor) CUDA_OVERLOAD1(log) CUDA_OVERLOAD1(log10)
CUDA_OVERLOAD1(log1p) CUDA_OVERLOAD1(log2) CUDA_OVERLOAD1(nearbyint) CUDA_OVERLOAD1(rint)
CUDA_OVERLOAD1(round) CUDA_OVERLOAD1(sin) CUDA_OVERLOAD1(sinh) CUDA_OVERLOAD1(sqrt) CUDA_OVERLOAD1(tan)
CUDA_OVERLOAD1(tanh) CUDA_OVERLOAD1(trunc)
CUDA_OVERLOAD2(atan2) CUDA_OVERLOAD2(copysign) CUDA_OVERLOAD2(fmax) CUDA_OVERLOAD2(fmin) CUDA_OVERLOAD2(fmod)
CUDA_OVERLOAD2(pow)
#undef CUDA_OVERLOAD1
#undef CUDA_OVERLOAD2
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
static inline long long abs(long long x) { return llabs(x); }

// ---- approximations ----
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return !(x > 0.0f) ? 0.0f : x > 1.0f ? 1.0f : x; }

// ---- with a rounding mode: to nearest ----
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

// ---- conversions; those to whole numbers saturate, and give 0 for NaN ----
template <class To, class From>
static inline To cuda_saturate(From x, From low, From past) {
  if (x != x) return 0;
  if (x <= low) return (To)low;
  if (x >= past) return (To)(~0ull >> (64 - 8 * sizeof(To) + ((To)-1 < (To)0 ? 1 : 0)));
  return (To)x;
}
static inline int __float2int_rz(float x) { return cuda_saturate<int, float>(x, -2147483648.0f, 2147483648.0f); }
static inline int __float2int_rn(float x) { return __float2int_rz(rintf(x)); }
static inline int __float2int_rd(float x) { return __float2int_rz(floorf(x)); }
static inline int __float2int_ru(float x) { return __float2int_rz(ceilf(x)); }
static inline unsigned __float2uint_rz(float x) { return cuda_saturate<unsigned, float>(x, 0.0f, 4294967296.0f); }
static inline unsigned __float2uint_rn(float x) { return __float2uint_rz(rintf(x)); }
static inline long long __float2ll_rz(float x) { return cuda_saturate<long long, float>(x, -9223372036854775808.0f, 9223372036854775808.0f); }
static inline unsigned long long __float2ull_rz(float x) { return cuda_saturate<unsigned long long, float>(x, 0.0f, 18446744073709551616.0f); }
static inline int __double2int_rz(double x) { return cuda_saturate<int, double>(x, -2147483648.0, 2147483648.0); }
static inline unsigned __double2uint_rz(double x) { return cuda_saturate<unsigned, double>(x, 0.0, 4294967296.0); }
static inline long long __double2ll_rz(double x) { return cuda_saturate<long long, double>(x, -9223372036854775808.0, 9223372036854775808.0); }
static inline unsigned long long __double2ull_rz(double x) { return cuda_saturate<unsigned long long, double>(x, 0.0, 18446744073709551616.0); }
static inline float __double2float_rn(double x) { return (float)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline double __ull2double_rn(unsigned long long x) { return (double)x; }

// ---- whole numbers ----
static inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
static inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long r = 0;
  for (int i = 0; i < 64; i++) r |= (x >> i & 1) << (63 - i);
  return r;
}
static inline unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return result;
}
#define CUDA_EXTREMES(T) \
  static inline T max(T x, T y) { return x > y ? x : y; } \
  static inline T min(T x, T y) { return x < y ? x : y; }
CUDA_EXTREMES(int) CUDA_EXTREMES(unsigned) CUDA_EXTREMES(long) CUDA_EXTREMES(unsigned long)
CUDA_EXTREMES(long long) CUDA_EXTREMES(unsigned long long)
#undef CUDA_EXTREMES
static inline float max(float x, float y) { return fmaxf(x, y); }
static inline float min(float x, float y) { return fminf(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }

// ---- loads and stores with cache hints ----
template <class T> static inline T __ldg(const T *p) { return *p; }
template <class T> static inline T __ldcg(const T *p) { return *p; }
template <class T> static inline T __ldca(const T *p) { return *p; }
template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline void __stcs(T *p, T value) { *p = value; }
template <class T> static inline void __stcg(T *p, T value) { *p = value; }
