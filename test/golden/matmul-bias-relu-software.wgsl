// dot kernel; [1] 16x32 by 32x16, 2x4 a register tile
// in0: f32[16,32], in1: f32[32,16], in2: f32[16], out0: f32[16,16]
// 16896 flops, 5184 bytes

@group(0) @binding(0) var<storage, read> in0: array<f32, 516>;
@group(0) @binding(1) var<storage, read> in1: array<vec4f, 129>;
@group(0) @binding(2) var<storage, read> in2: array<vec4f, 5>;
@group(0) @binding(3) var<storage, read_write> out0: array<vec4f, 65>;

fn any_nan_f32x4(a: vec4f, b: vec4f) -> vec4<bool> {
  return max(bitcast<vec4i>(a) & vec4i(0x7fffffff), bitcast<vec4i>(b) & vec4i(0x7fffffff)) > vec4i(0x7f800000);
}

fn max_f32x4(a: vec4f, b: vec4f) -> vec4f {
  return select(select(b, a, b < a), a + b, any_nan_f32x4(a, b));
}

@compute @workgroup_size(8, 1, 1)
fn dot_max_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let id = i32(workgroup_id.x) * 8 + i32(local_id.x);
  let tile_n = id % 4;
  let tile = id / 4;
  let tile_m = tile % 8;
  let batch = tile / 8;
  let m = tile_m * 2;
  let m_1 = tile_m * 2 + 1;
  var sum_0_0 = vec4f(0.0);
  var sum_1_0 = vec4f(0.0);
  let idx = m * 32;
  let idx_2 = m_1 * 32;
  let idx_4 = tile_n * 4;
  for (var k = 0; k < 32; k++) {
    let idx_1 = idx + k;
    let x0 = in0[idx_1];
    let idx_3 = idx_2 + k;
    let x0_1 = in0[idx_3];
    let idx_5 = idx_4 + k * 16;
    let x1 = in1[idx_5 >> 2u];
    sum_0_0 = fma(vec4f(x0), x1, sum_0_0);
    sum_1_0 = fma(vec4f(x0_1), x1, sum_1_0);
  }
  let result = sum_0_0;
  let x2 = in2[idx_4 >> 2u];
  let add = result + x2;
  let max_ = max_f32x4(add, vec4f(0.0));
  let idx_6 = m * 16 + tile_n * 4;
  out0[idx_6 >> 2u] = max_;
  let result_1 = sum_1_0;
  let add_1 = result_1 + x2;
  let max_1 = max_f32x4(add_1, vec4f(0.0));
  let idx_7 = m_1 * 16 + tile_n * 4;
  out0[idx_7 >> 2u] = max_1;
}
