// dot kernel; [1] 64x64 by 64x64, 64x64x16 tiles in workgroup memory
// in0: f32[64,64], in1: f32[64,64], in2: f32[64], out0: f32[64,64]
// 532480 flops, 49408 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 1025>;
@group(0) @binding(1) var<storage, read> in1: array<vec4f, 1025>;
@group(0) @binding(2) var<storage, read> in2: array<vec4f, 17>;
@group(0) @binding(3) var<storage, read_write> out0: array<vec4f, 1025>;
var<workgroup> tile_lhs: array<f32, 1024>;
var<workgroup> tile_rhs: array<vec4f, 256>;

fn any_nan_f32x4(a: vec4f, b: vec4f) -> vec4<bool> {
  return max(bitcast<vec4i>(a) & vec4i(0x7fffffff), bitcast<vec4i>(b) & vec4i(0x7fffffff)) > vec4i(0x7f800000);
}

fn max_f32x4(a: vec4f, b: vec4f) -> vec4f {
  return select(select(b, a, b < a), a + b, any_nan_f32x4(a, b));
}

@compute @workgroup_size(16, 16, 1)
fn dot_max_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let local = i32(local_id.y) * 16 + i32(local_id.x);
  let first_m = i32(workgroup_id.y) * 64;
  let first_n = i32(workgroup_id.x) * 64;
  var sum_0_0 = vec4f(0.0);
  var sum_1_0 = vec4f(0.0);
  var sum_2_0 = vec4f(0.0);
  var sum_3_0 = vec4f(0.0);
  let row = local / 4;
  let place = local % 4;
  let at = first_m + row;
  let idx = at * 64;
  let line = place * 4;
  let line_1 = local / 16;
  let place_1 = local % 16;
  let quad_1 = first_n / 4 + place_1;
  let idx_2 = quad_1 * 4;
  for (var k0 = 0; k0 < 64; k0 += 16) {
    let quad = k0 / 4 + place;
    let idx_1 = idx + quad * 4;
    let x0 = in0[idx_1 >> 2u];
    tile_lhs[line * 64 + row] = x0.x;
    tile_lhs[(line + 1) * 64 + row] = x0.y;
    tile_lhs[(line + 2) * 64 + row] = x0.z;
    tile_lhs[(line + 3) * 64 + row] = x0.w;
    let k = k0 + line_1;
    let idx_3 = idx_2 + k * 64;
    let x1 = in1[idx_3 >> 2u];
    tile_rhs[line_1 * 16 + place_1] = x1;
    workgroupBarrier();
    for (var kk = 0; kk < 16; kk++) {
      let line_2 = kk * 64;
      let at_1 = line_2 + i32(local_id.y) * 4;
      let lhs = vec4f(tile_lhs[at_1], tile_lhs[at_1 + 1], tile_lhs[at_1 + 2], tile_lhs[at_1 + 3]);
      let rhs = tile_rhs[(line_2 + i32(local_id.x) * 4) >> 2u];
      sum_0_0 = fma(vec4f(lhs.x), rhs, sum_0_0);
      sum_1_0 = fma(vec4f(lhs.y), rhs, sum_1_0);
      sum_2_0 = fma(vec4f(lhs.z), rhs, sum_2_0);
      sum_3_0 = fma(vec4f(lhs.w), rhs, sum_3_0);
    }
    workgroupBarrier();
  }
  let quad_2 = i32(workgroup_id.x) * 16 + i32(local_id.x);
  if (quad_2 < 16) {
    let m = first_m + i32(local_id.y) * 4;
    let result = sum_0_0;
    let idx_4 = quad_2 * 4;
    let x2 = in2[idx_4 >> 2u];
    let add = result + x2;
    let max_ = max_f32x4(add, vec4f(0.0));
    let idx_5 = idx_4 + m * 64;
    out0[idx_5 >> 2u] = max_;
    let m_1 = first_m + i32(local_id.y) * 4 + 1;
    let result_1 = sum_1_0;
    let add_1 = result_1 + x2;
    let max_1 = max_f32x4(add_1, vec4f(0.0));
    let idx_6 = idx_4 + m_1 * 64;
    out0[idx_6 >> 2u] = max_1;
    let m_2 = first_m + i32(local_id.y) * 4 + 2;
    let result_2 = sum_2_0;
    let add_2 = result_2 + x2;
    let max_2 = max_f32x4(add_2, vec4f(0.0));
    let idx_7 = idx_4 + m_2 * 64;
    out0[idx_7 >> 2u] = max_2;
    let m_3 = first_m + i32(local_id.y) * 4 + 3;
    let result_3 = sum_3_0;
    let add_3 = result_3 + x2;
    let max_3 = max_f32x4(add_3, vec4f(0.0));
    let idx_8 = idx_4 + m_3 * 64;
    out0[idx_8 >> 2u] = max_3;
  }
}
