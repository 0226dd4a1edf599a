// 16-bit floats as bits, converted as the hardware does: to nearest even, NaN to NaN. Sources keep them as unsigned short; what
// converts them is PTX on the device and these functions here.
#pragma once

static inline float cuda_f16_to_f32(unsigned short bits) {
  unsigned sign = (unsigned)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return cuda_bits<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return cuda_bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
  return cuda_bits<float>(sign | cuda_bits<unsigned>((float)fraction * 0x1p-24f));
}
static inline unsigned short cuda_f32_to_f16(float value) {
  unsigned bits = cuda_bits<unsigned>(value), sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000u) return 0x7fff;
  if (bits >= 0x477ff000u) return (unsigned short)(sign | 0x7c00);
  // Below the normal range the host's own rounding does it, at the exponent where one step is 2^-24.
  if (bits < 0x38800000u)
    return (unsigned short)(sign | (cuda_bits<unsigned>(cuda_bits<float>(bits) + 0.5f) - 0x3f000000u));
  return (unsigned short)(sign | (bits - 0x38000000u + 0xfff + (bits >> 13 & 1)) >> 13);
}
static inline float cuda_bf16_to_f32(unsigned short bits) { return cuda_bits<float>((unsigned)bits << 16); }
static inline unsigned short cuda_f32_to_bf16(float value) {
  unsigned bits = cuda_bits<unsigned>(value);
  if ((bits & 0x7fffffff) > 0x7f800000u) return 0x7fff;
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
