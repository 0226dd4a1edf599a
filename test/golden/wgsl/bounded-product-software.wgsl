// dot kernel; [1] 64x64 by 64x64, 2x4 a register tile, k < scalars[0], of m < scalars[0] only
// in0: f32[64,64], in1: f32[64,64], out0: f32[64,64]
// 540672 flops, 49152 bytes

@group(0) @binding(0) var<storage, read> in0: array<f32, 4100>;
@group(0) @binding(1) var<storage, read> in1: array<vec4f, 1025>;
@group(0) @binding(2) var<storage, read_write> out0: array<vec4f, 1025>;
@group(0) @binding(3) var<uniform> scalars: array<vec4u, 1>;

@compute @workgroup_size(8, 1, 1)
fn dot_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let id = i32(workgroup_id.x) * 8 + i32(local_id.x);
  let tile = id >> 4u;
  let tile_n = id & 15;
  let m = tile * 2;
  let m_1 = tile * 2 + 1;
  let max_ = max(bitcast<i32>(scalars[0].x), 0);
  let min_ = min(max_, 64);
  let is_needed = m < min_;
  if (is_needed) {
    var sum_0_0 = vec4f(0.0);
    var sum_1_0 = vec4f(0.0);
    let idx = m * 64;
    let idx_2 = m_1 * 64;
    for (var k = 0; k < min_; k++) {
      let lt = k < bitcast<i32>(scalars[0].x);
      let idx_1 = idx + k;
      let x0 = in0[idx_1];
      let where_ = select(0.0, x0, lt);
      let idx_3 = idx_2 + k;
      let x0_1 = in0[idx_3];
      let where_1 = select(0.0, x0_1, lt);
      let idx_4 = k * 16;
      let idx_5 = tile_n + idx_4;
      let x1 = in1[idx_5];
      let where_2 = select(vec4f(0.0), x1, vec4<bool>(lt));
      sum_0_0 = fma(vec4f(where_), where_2, sum_0_0);
      sum_1_0 = fma(vec4f(where_1), where_2, sum_1_0);
    }
    let result = sum_0_0;
    let idx_6 = m * 16 + tile_n;
    out0[idx_6] = result;
    let result_1 = sum_1_0;
    let idx_7 = m_1 * 16 + tile_n;
    out0[idx_7] = result_1;
  }
}
