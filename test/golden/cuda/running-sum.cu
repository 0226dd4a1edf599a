// scan kernel; 16 lines of 64, 16 invocations a line, 1 round(s)
// in0: f32[16,64], out0: f32[16,64]
// 1024 flops, 8192 bytes

namespace scan_0_module {

__device__ __forceinline__ float4 load_f32x4(const float *from) {
  return *reinterpret_cast<const float4 *>(from);
}

__device__ __forceinline__ void store_f32x4(float *to, float4 value) {
  *reinterpret_cast<float4 *>(to) = value;
}

extern "C" __global__ void __launch_bounds__(64)
scan_0(const float *__restrict__ in0, float *out0) {
  __shared__ __align__(16) float totals[128];
  const int line = int(blockIdx.x) * 4 + int(threadIdx.y);
  const int base = int(threadIdx.y) * 32 + int(threadIdx.x);
  const int turn = int(threadIdx.x);
  const int idx = line * 16 + turn;
  const float4 x0 = load_f32x4(in0 + idx * 4);
  const float sum = x0.x;
  const float sum_1 = sum + x0.y;
  const float sum_2 = sum_1 + x0.z;
  const float sum_3 = sum_2 + x0.w;
  totals[base] = sum_3;
  __syncthreads();
  const float mine = totals[base];
  float total = mine;
  if (1 <= int(threadIdx.x)) {
    total = totals[base + -1] + mine;
  }
  totals[base + 16] = total;
  __syncthreads();
  const float mine_1 = totals[base + 16];
  float total_1 = mine_1;
  if (2 <= int(threadIdx.x)) {
    total_1 = totals[base + 14] + mine_1;
  }
  totals[base] = total_1;
  __syncthreads();
  const float mine_2 = totals[base];
  float total_2 = mine_2;
  if (4 <= int(threadIdx.x)) {
    total_2 = totals[base + -4] + mine_2;
  }
  totals[base + 16] = total_2;
  __syncthreads();
  const float mine_3 = totals[base + 16];
  float total_3 = mine_3;
  if (8 <= int(threadIdx.x)) {
    total_3 = totals[base + 8] + mine_3;
  }
  totals[base] = total_3;
  __syncthreads();
  float before = 0.0f;
  if (0 < int(threadIdx.x)) {
    before = totals[base + -1];
  }
  const float prefix = before;
  const float4 result = float4{prefix + sum, prefix + sum_1, prefix + sum_2, prefix + sum_3};
  store_f32x4(out0 + idx * 4, result);
}

}
