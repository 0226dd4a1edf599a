// Tensor cores and asynchronous copies of sm_80: what generated sources wrap inline PTX in, as exchanges between the lanes of a
// warp. Which lane holds which element is as in the PTX manual (matrix fragments for mma.m16n8k16 and .m16n8k8, ldmatrix).
#pragma once

// ---- cp.async ----
static inline void cuda_copy_async_sized(void *shared, const void *source, unsigned bytes, unsigned valid) {
  if ((((size_t)shared | (size_t)source) & (bytes - 1)) != 0) cuda_fail("cp.async: misaligned address");
  if (valid > bytes) cuda_fail("cp.async: more bytes to read than to write");
  cuda_copy_async(shared, source, bytes, valid);
}
static inline void cp_async4(void *shared, const void *source, int valid = 4) { cuda_copy_async_sized(shared, source, 4, (unsigned)valid); }
static inline void cp_async8(void *shared, const void *source, int valid = 8) { cuda_copy_async_sized(shared, source, 8, (unsigned)valid); }
static inline void cp_async16(void *shared, const void *source, int valid = 16) { cuda_copy_async_sized(shared, source, 16, (unsigned)valid); }
static inline void cp_async_commit() { cuda_copy_commit(); }
template <int groups> static inline void cp_async_wait() { cuda_copy_wait(groups); }
static inline void cp_async_wait_all() { cuda_copy_wait(-1); }

// ---- ldmatrix: lane i gives the address of row i % 8 of matrix i / 8 ----
template <int count>
CUDA_MACHINE void cuda_load_matrices(unsigned (&result)[count], const void *row, bool transposed, int line) {
  unsigned lane = cuda_machine.lane;
  if (lane < 8 * count && ((size_t)row & 15) != 0) cuda_fail("ldmatrix: misaligned row");
  const unsigned char *lanes = cuda_exchange(0xffffffffu, &row, sizeof row, line);
  for (unsigned matrix = 0; matrix < count; matrix++) {
    unsigned pair = 0;
    for (unsigned half = 0; half < 2; half++) {
      unsigned along = lane % 4 * 2 + half, across = lane / 4;
      const unsigned char *start;
      __builtin_memcpy(&start, lanes + 64 * (matrix * 8 + (transposed ? along : across)), sizeof start);
      unsigned short element;
      const unsigned char *address = start + 2 * (transposed ? across : along);
      cuda_touch(address, 2, false);
      __builtin_memcpy(&element, address, 2);
      pair |= (unsigned)element << 16 * half;
    }
    result[matrix] = pair;
  }
}
static inline void ldmatrix_x1(unsigned (&r)[1], const void *row, CUDA_LINE) { cuda_load_matrices<1>(r, row, false, line); }
static inline void ldmatrix_x2(unsigned (&r)[2], const void *row, CUDA_LINE) { cuda_load_matrices<2>(r, row, false, line); }
static inline void ldmatrix_x4(unsigned (&r)[4], const void *row, CUDA_LINE) { cuda_load_matrices<4>(r, row, false, line); }
static inline void ldmatrix_x1_trans(unsigned (&r)[1], const void *row, CUDA_LINE) { cuda_load_matrices<1>(r, row, true, line); }
static inline void ldmatrix_x2_trans(unsigned (&r)[2], const void *row, CUDA_LINE) { cuda_load_matrices<2>(r, row, true, line); }
static inline void ldmatrix_x4_trans(unsigned (&r)[4], const void *row, CUDA_LINE) { cuda_load_matrices<4>(r, row, true, line); }

// ---- mma: each lane gives its registers of a and b, gets all, and computes its four elements of d ----
struct CudaFragments {
  unsigned a[4], b[2];
};

/** `wide` turns 16 bits into a float. Products are exact in f32, and added in order of k. */
template <class Wide>
CUDA_MACHINE void cuda_multiply_16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], int line, Wide wide) {
  CudaFragments mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const unsigned char *lanes = cuda_exchange(0xffffffffu, &mine, sizeof mine, line);
  unsigned group = cuda_machine.lane / 4, member = cuda_machine.lane % 4;
  // Row `group` and the one 8 below; columns 2 * member and the next.
  float rows[2][16], columns[2][16];
  for (unsigned pair = 0; pair < 8; pair++) {
    CudaFragments of;
    unsigned high = pair / 4;
    __builtin_memcpy(&of, lanes + 64 * (group * 4 + pair % 4), sizeof of);
    for (unsigned row = 0; row < 2; row++)
      for (unsigned half = 0; half < 2; half++)
        rows[row][pair * 2 + half] = wide((unsigned short)(of.a[row + 2 * high] >> 16 * half));
    for (unsigned column = 0; column < 2; column++) {
      __builtin_memcpy(&of, lanes + 64 * ((member * 2 + column) * 4 + pair % 4), sizeof of);
      for (unsigned half = 0; half < 2; half++)
        columns[column][pair * 2 + half] = wide((unsigned short)(of.b[high] >> 16 * half));
    }
  }
  for (unsigned row = 0; row < 2; row++)
    for (unsigned column = 0; column < 2; column++) {
      float sum = 0;
      for (unsigned k = 0; k < 16; k++) sum += rows[row][k] * columns[column][k];
      d[2 * row + column] += sum;
    }
}
static inline void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], CUDA_LINE) {
  cuda_multiply_16(d, a, b, line, [](unsigned short bits) { return cuda_bf16_to_f32(bits); });
}
static inline void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], CUDA_LINE) {
  cuda_multiply_16(d, a, b, line, [](unsigned short bits) { return cuda_f16_to_f32(bits); });
}

/** tf32 is a float of which the hardware reads the upper 19 bits. */
CUDA_MACHINE void cuda_multiply_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], int line) {
  CudaFragments mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const unsigned char *lanes = cuda_exchange(0xffffffffu, &mine, sizeof mine, line);
  unsigned group = cuda_machine.lane / 4, member = cuda_machine.lane % 4;
  auto wide = [](unsigned bits) { return cuda_bits<float>(bits & 0xffffe000u); };
  for (unsigned row = 0; row < 2; row++)
    for (unsigned column = 0; column < 2; column++) {
      float sum = 0;
      for (unsigned k = 0; k < 8; k++) {
        CudaFragments left, right;
        __builtin_memcpy(&left, lanes + 64 * (group * 4 + k % 4), sizeof left);
        __builtin_memcpy(&right, lanes + 64 * ((member * 2 + column) * 4 + k % 4), sizeof right);
        sum += wide(left.a[row + 2 * (k / 4)]) * wide(right.b[k / 4]);
      }
      d[2 * row + column] += sum;
    }
}
static inline void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], CUDA_LINE) {
  cuda_multiply_tf32(d, a, b, line);
}
