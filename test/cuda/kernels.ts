// Kernels written by hand for tests of the stand-in, in the manner of generated ones.

/** out[row] = sum of the row, by shuffles and shared memory; the row is walked twice, so that shared memory is used again. */
export const reduceRows = `// y[row] = sum(x[row])
namespace k_module {
__device__ __forceinline__ float warp_sum(float value) {
  for (int by = 16; by > 0; by >>= 1) value += __shfl_xor_sync(0xffffffffu, value, by);
  return value;
}
extern "C" __global__ void __launch_bounds__(128) k(const float *__restrict__ x, float *out, int n) {
  __shared__ float parts[4];
  float sum = 0.0f;
  for (int half = 0; half < 2; half++) {
    float mine = 0.0f;
    for (int i = (int)threadIdx.x + half * 128; i < n; i += 256) mine += x[blockIdx.x * n + i];
    sum = warp_sum(mine + (half == 1 ? sum / 128.0f : 0.0f));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads(); // stored
    sum = parts[0] + parts[1] + parts[2] + parts[3];
    __syncthreads(); // read
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
}
`;

/** Each warp writes its half of shared memory and reads the other's. */
export const attentive = `extern "C" __global__ void __launch_bounds__(64) k(float *y) {
  __shared__ float both[64];
  both[threadIdx.x] = (float)threadIdx.x;
  bar_sync(1, 64);
  y[threadIdx.x] = both[63 - threadIdx.x];
}
`;

/** c[64,64] (f32) = a[64,96] (bf16, rows) · b[96,64] (bf16, rows), in one block of four warps; three stages of cp.async. */
export const matmulBf16 = `#define STAGES 3
#define PAD 8
namespace k_module {
typedef unsigned short bf16;
extern "C" __global__ void __launch_bounds__(128) k(const bf16 *__restrict__ a, const bf16 *__restrict__ b, float *c, int depth) {
  extern __shared__ __align__(16) bf16 tiles[];
  bf16 *left = tiles, *right = tiles + STAGES * 64 * (32 + PAD);
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5, m0 = (warp >> 1) * 32, n0 = (warp & 1) * 32, steps = depth / 32;
  auto fetch = [&](int stage, int k0) {
    for (int i = t; i < 256; i += 128) {
      cp_async16(left + (stage * 64 + i / 4) * (32 + PAD) + i % 4 * 8, a + (i / 4) * depth + k0 + i % 4 * 8);
      cp_async16(right + (stage * 32 + i / 8) * (64 + PAD) + i % 8 * 8, b + (k0 + i / 8) * 64 + i % 8 * 8);
    }
  };
  float sums[2][4][4] = {};
  for (int s = 0; s < STAGES - 1; s++) {
    if (s < steps) fetch(s, s * 32);
    cp_async_commit();
  }
  for (int step = 0; step < steps; step++) {
    cp_async_wait<STAGES - 2>();
    __syncthreads(); // stage
    const int next = step + STAGES - 1;
    if (next < steps) fetch(next % STAGES, next * 32);
    cp_async_commit();
    const bf16 *l = left + step % STAGES * 64 * (32 + PAD), *r = right + step % STAGES * 32 * (64 + PAD);
    for (int k = 0; k < 32; k += 16) {
      unsigned fa[2][4], fb[4][2];
      for (int i = 0; i < 2; i++) ldmatrix_x4(fa[i], l + (m0 + i * 16 + (lane & 15)) * (32 + PAD) + k + (lane >> 4) * 8);
      for (int j = 0; j < 2; j++) {
        unsigned four[4];
        ldmatrix_x4_trans(four, r + (k + (lane & 15)) * (64 + PAD) + n0 + j * 16 + (lane >> 4) * 8);
        fb[2 * j][0] = four[0], fb[2 * j][1] = four[1], fb[2 * j + 1][0] = four[2], fb[2 * j + 1][1] = four[3];
      }
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) mma_m16n8k16_bf16(sums[i][j], fa[i], fb[j]);
    }
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++) {
      const int row = m0 + i * 16 + (lane >> 2), column = n0 + j * 8 + (lane & 3) * 2;
      *reinterpret_cast<float2 *>(c + row * 64 + column) = make_float2(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<float2 *>(c + (row + 8) * 64 + column) = make_float2(sums[i][j][2], sums[i][j][3]);
    }
}
}
`;

/** Upper halves of floats, as bf16. */
export function toBf16(values: Float32Array): Uint16Array {
  return Uint16Array.from(new Uint32Array(values.buffer.slice(0)), (bits) => bits >>> 16);
}

export function fromBf16(bits: Uint16Array): Float32Array {
  return new Float32Array(Uint32Array.from(bits, (half) => half << 16).buffer);
}

/** Inputs for `matmulBf16`, its launch, and what it must give. */
export function product(): {
  readonly launch: {
    readonly block: readonly [number];
    readonly dynamic: number;
    readonly buffers: readonly Float32Array[];
    readonly rest: readonly { readonly i32: number }[];
  };
  readonly expected: Float32Array;
} {
  const [m, n, depth] = [64, 64, 96];
  const wave = (size: number, by: number): Uint16Array =>
    toBf16(Float32Array.from({ length: size }, (_, i) => Math.sin(i * by)));
  const [a, b] = [wave(m * depth, 0.37), wave(depth * n, 0.71)];
  const [fa, fb] = [fromBf16(a), fromBf16(b)];
  const expected = new Float32Array(m * n);
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let k = 0; k < depth; k++) sum += fa[i * depth + k]! * fb[k * n + j]!;
      expected[i * n + j] = sum;
    }
  const words = (halves: Uint16Array): Float32Array => new Float32Array(halves.buffer);
  const dynamic = 3 * (64 * 40 + 32 * 72) * 2;
  return {
    launch: {
      block: [128],
      dynamic,
      buffers: [words(a), words(b), new Float32Array(m * n)],
      rest: [{ i32: depth }],
    },
    expected,
  };
}
