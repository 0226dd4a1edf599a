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

/**
 * c[m,64] (f32) = a[m,k] (bf16) · b[64,k]ᵀ (bf16): workgroups that stay, one warp group that copies tiles of 64 steps of k into two
 * slots, two that multiply 64 rows each.
 */
export const matmulTiles = `#define STAGES 2
namespace k_module {
extern "C" __global__ void __launch_bounds__(384) k(const __grid_constant__ TileMap map_a, const __grid_constant__ TileMap map_b, float *c, int tiles, int rounds) {
  extern __shared__ __align__(1024) unsigned short memory[];
  __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
  unsigned short *a = memory, *b = memory + STAGES * 128 * 64;
  const int group = threadIdx.x / 128, lane = threadIdx.x % 128;
  if (threadIdx.x == 0)
    for (int i = 0; i < STAGES; i++) {
      mbarrier_init(full + i, 1);
      mbarrier_init(empty + i, 8);
    }
  __syncthreads();
  auto tile_at = [](const void *at) { return (unsigned long long)shared_address(at) >> 4 | 64ull << 32 | 1ull << 62; };
  int slot = 0, parity = 0;
  if (group == 0) {
    if (lane == 0)
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
        for (int round = 0; round < rounds; round++) {
          mbarrier_wait(empty + slot, parity ^ 1);
          mbarrier_arrive_with(full + slot, (128 + 64) * 64 * 2);
          copy_tile_2d(a + slot * 128 * 64, map_a, full + slot, round * 64, tile * 128);
          copy_tile_2d(b + slot * 64 * 64, map_b, full + slot, round * 64, 0);
          if (++slot == STAGES) slot = 0, parity ^= 1;
        }
    return;
  }
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float4 d0 = make_float4(0, 0, 0, 0), d1 = d0, d2 = d0, d3 = d0, d4 = d0, d5 = d0, d6 = d0, d7 = d0;
    for (int round = 0; round < rounds; round++) {
      mbarrier_wait(full + slot, parity);
      settle(d0, d1, d2, d3, d4, d5, d6, d7);
      wgmma_fence();
      for (int k = 0; k < 64; k += 16)
        wgmma_n64_bf16<0, 0>(tile_at(a + (slot * 128 + (group - 1) * 64) * 64 + k), tile_at(b + slot * 64 * 64 + k), d0, d1, d2, d3, d4, d5, d6, d7);
      wgmma_commit();
      wgmma_wait<0>();
      settle(d0, d1, d2, d3, d4, d5, d6, d7);
      if (lane % 32 == 0) mbarrier_arrive(empty + slot);
      if (++slot == STAGES) slot = 0, parity ^= 1;
    }
    const int row = tile * 128 + (group - 1) * 64 + lane / 32 * 16 + lane % 32 / 4;
    const float4 parts[8] = {d0, d1, d2, d3, d4, d5, d6, d7};
    for (int part = 0; part < 8; part++) {
      float *at = c + row * 64 + part * 8 + lane % 4 * 2;
      *reinterpret_cast<float2 *>(at) = make_float2(parts[part].x, parts[part].y);
      *reinterpret_cast<float2 *>(at + 8 * 64) = make_float2(parts[part].z, parts[part].w);
    }
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

/** Sines, as bf16. */
function wave(size: number, by: number): Uint16Array {
  return toBf16(Float32Array.from({ length: size }, (_, i) => Math.sin(i * by)));
}

/** Inputs for `matmulTiles`, and what it must give. */
export function tileProduct(
  m: number,
  n: number,
  depth: number,
): { readonly a: Uint16Array; readonly b: Uint16Array; readonly expected: Float32Array } {
  const [a, b] = [wave(m * depth, 0.37), wave(n * depth, 0.71)];
  const [fa, fb] = [fromBf16(a), fromBf16(b)];
  const expected = new Float32Array(m * n);
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let k = 0; k < depth; k++) sum += fa[i * depth + k]! * fb[j * depth + k]!;
      expected[i * n + j] = sum;
    }
  return { a, b, expected };
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
