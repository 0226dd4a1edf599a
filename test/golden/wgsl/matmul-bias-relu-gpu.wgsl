// dot kernel; [1] 512x512 by 512x512, 64x64x16 tiles in workgroup memory, 4x8 an invocation
// in0: f32[512,512], in1: f32[512,512], in2: f32[512], out0: f32[512,512]
// 268959744 flops, 3147776 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 65537>;
@group(0) @binding(1) var<storage, read> in1: array<vec4f, 65537>;
@group(0) @binding(2) var<storage, read> in2: array<vec4f, 129>;
@group(0) @binding(3) var<storage, read_write> out0: array<vec4f, 65537>;
var<workgroup> tile_lhs: array<vec4f, 256>;
var<workgroup> tile_rhs: array<vec4f, 256>;

fn any_nan_f32x4(a: vec4f, b: vec4f) -> vec4<bool> {
  return max(bitcast<vec4i>(a) & vec4i(0x7fffffff), bitcast<vec4i>(b) & vec4i(0x7fffffff)) > vec4i(0x7f800000);
}

fn max_f32x4(a: vec4f, b: vec4f) -> vec4f {
  return select(select(b, a, b < a), a + b, any_nan_f32x4(a, b));
}

@compute @workgroup_size(8, 16, 1)
fn dot_max_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let local = i32(local_id.y) * 8 + i32(local_id.x);
  let first_m = i32(workgroup_id.y) * 64;
  let first_n = i32(workgroup_id.x) * 64;
  var sum_0_0 = vec4f(0.0);
  var sum_0_1 = vec4f(0.0);
  var sum_1_0 = vec4f(0.0);
  var sum_1_1 = vec4f(0.0);
  var sum_2_0 = vec4f(0.0);
  var sum_2_1 = vec4f(0.0);
  var sum_3_0 = vec4f(0.0);
  var sum_3_1 = vec4f(0.0);
  let line = local >> 4u;
  let place = local & 15;
  let quad = (first_n >> 2u) + place;
  let unit = local + 128;
  let line_1 = unit >> 4u;
  let place_1 = unit & 15;
  let quad_1 = (first_n >> 2u) + place_1;
  for (var k0 = 0; k0 < 512; k0 += 16) {
    if (local < 64) {
      let row = local >> 2u;
      let column = local & 3;
      let kquad = (k0 >> 2u) + column;
      let at = first_m + row * 4;
      let idx = at * 128 + kquad;
      let x0 = in0[idx];
      let at_1 = first_m + (row * 4 + 1);
      let idx_1 = at_1 * 128 + kquad;
      let x0_1 = in0[idx_1];
      let at_2 = first_m + (row * 4 + 2);
      let idx_2 = at_2 * 128 + kquad;
      let x0_2 = in0[idx_2];
      let at_3 = first_m + (row * 4 + 3);
      let idx_3 = at_3 * 128 + kquad;
      let x0_3 = in0[idx_3];
      tile_lhs[column * 4 * 16 + row] = vec4f(x0.x, x0_1.x, x0_2.x, x0_3.x);
      tile_lhs[(column * 4 + 1) * 16 + row] = vec4f(x0.y, x0_1.y, x0_2.y, x0_3.y);
      tile_lhs[(column * 4 + 2) * 16 + row] = vec4f(x0.z, x0_1.z, x0_2.z, x0_3.z);
      tile_lhs[(column * 4 + 3) * 16 + row] = vec4f(x0.w, x0_1.w, x0_2.w, x0_3.w);
    }
    let k = k0 + line;
    let idx_4 = k * 128;
    let idx_5 = quad + idx_4;
    let x1 = in1[idx_5];
    tile_rhs[line * 16 + place] = x1;
    let k_1 = k0 + line_1;
    let idx_6 = k_1 * 128;
    let idx_7 = quad_1 + idx_6;
    let x1_1 = in1[idx_7];
    tile_rhs[line_1 * 16 + place_1] = x1_1;
    workgroupBarrier();
    for (var kk = 0; kk < 16; kk += 4) {
      let lhs = tile_lhs[kk * 16 + i32(local_id.y)];
      let rhs = tile_rhs[kk * 16 + i32(local_id.x)];
      let rhs_1 = tile_rhs[kk * 16 + (i32(local_id.x) + 8)];
      sum_0_0 = fma(vec4f(lhs.x), rhs, sum_0_0);
      sum_0_1 = fma(vec4f(lhs.x), rhs_1, sum_0_1);
      sum_1_0 = fma(vec4f(lhs.y), rhs, sum_1_0);
      sum_1_1 = fma(vec4f(lhs.y), rhs_1, sum_1_1);
      sum_2_0 = fma(vec4f(lhs.z), rhs, sum_2_0);
      sum_2_1 = fma(vec4f(lhs.z), rhs_1, sum_2_1);
      sum_3_0 = fma(vec4f(lhs.w), rhs, sum_3_0);
      sum_3_1 = fma(vec4f(lhs.w), rhs_1, sum_3_1);
      let lhs_1 = tile_lhs[(kk + 1) * 16 + i32(local_id.y)];
      let rhs_2 = tile_rhs[(kk + 1) * 16 + i32(local_id.x)];
      let rhs_3 = tile_rhs[(kk + 1) * 16 + (i32(local_id.x) + 8)];
      sum_0_0 = fma(vec4f(lhs_1.x), rhs_2, sum_0_0);
      sum_0_1 = fma(vec4f(lhs_1.x), rhs_3, sum_0_1);
      sum_1_0 = fma(vec4f(lhs_1.y), rhs_2, sum_1_0);
      sum_1_1 = fma(vec4f(lhs_1.y), rhs_3, sum_1_1);
      sum_2_0 = fma(vec4f(lhs_1.z), rhs_2, sum_2_0);
      sum_2_1 = fma(vec4f(lhs_1.z), rhs_3, sum_2_1);
      sum_3_0 = fma(vec4f(lhs_1.w), rhs_2, sum_3_0);
      sum_3_1 = fma(vec4f(lhs_1.w), rhs_3, sum_3_1);
      let lhs_2 = tile_lhs[(kk + 2) * 16 + i32(local_id.y)];
      let rhs_4 = tile_rhs[(kk + 2) * 16 + i32(local_id.x)];
      let rhs_5 = tile_rhs[(kk + 2) * 16 + (i32(local_id.x) + 8)];
      sum_0_0 = fma(vec4f(lhs_2.x), rhs_4, sum_0_0);
      sum_0_1 = fma(vec4f(lhs_2.x), rhs_5, sum_0_1);
      sum_1_0 = fma(vec4f(lhs_2.y), rhs_4, sum_1_0);
      sum_1_1 = fma(vec4f(lhs_2.y), rhs_5, sum_1_1);
      sum_2_0 = fma(vec4f(lhs_2.z), rhs_4, sum_2_0);
      sum_2_1 = fma(vec4f(lhs_2.z), rhs_5, sum_2_1);
      sum_3_0 = fma(vec4f(lhs_2.w), rhs_4, sum_3_0);
      sum_3_1 = fma(vec4f(lhs_2.w), rhs_5, sum_3_1);
      let lhs_3 = tile_lhs[(kk + 3) * 16 + i32(local_id.y)];
      let rhs_6 = tile_rhs[(kk + 3) * 16 + i32(local_id.x)];
      let rhs_7 = tile_rhs[(kk + 3) * 16 + (i32(local_id.x) + 8)];
      sum_0_0 = fma(vec4f(lhs_3.x), rhs_6, sum_0_0);
      sum_0_1 = fma(vec4f(lhs_3.x), rhs_7, sum_0_1);
      sum_1_0 = fma(vec4f(lhs_3.y), rhs_6, sum_1_0);
      sum_1_1 = fma(vec4f(lhs_3.y), rhs_7, sum_1_1);
      sum_2_0 = fma(vec4f(lhs_3.z), rhs_6, sum_2_0);
      sum_2_1 = fma(vec4f(lhs_3.z), rhs_7, sum_2_1);
      sum_3_0 = fma(vec4f(lhs_3.w), rhs_6, sum_3_0);
      sum_3_1 = fma(vec4f(lhs_3.w), rhs_7, sum_3_1);
    }
    workgroupBarrier();
  }
  let quad_2 = i32(workgroup_id.x) * 16 + i32(local_id.x);
  let m = first_m + i32(local_id.y) * 4;
  let result = sum_0_0;
  let x2 = in2[quad_2];
  let add = result + x2;
  let max_ = max_f32x4(add, vec4f(0.0));
  let idx_8 = m * 128 + quad_2;
  out0[idx_8] = max_;
  let m_1 = first_m + (i32(local_id.y) * 4 + 1);
  let result_1 = sum_1_0;
  let add_1 = result_1 + x2;
  let max_1 = max_f32x4(add_1, vec4f(0.0));
  let idx_9 = m_1 * 128 + quad_2;
  out0[idx_9] = max_1;
  let m_2 = first_m + (i32(local_id.y) * 4 + 2);
  let result_2 = sum_2_0;
  let add_2 = result_2 + x2;
  let max_2 = max_f32x4(add_2, vec4f(0.0));
  let idx_10 = m_2 * 128 + quad_2;
  out0[idx_10] = max_2;
  let m_3 = first_m + (i32(local_id.y) * 4 + 3);
  let result_3 = sum_3_0;
  let add_3 = result_3 + x2;
  let max_3 = max_f32x4(add_3, vec4f(0.0));
  let idx_11 = m_3 * 128 + quad_2;
  out0[idx_11] = max_3;
  let quad_3 = i32(workgroup_id.x) * 16 + (i32(local_id.x) + 8);
  let result_4 = sum_0_1;
  let x2_1 = in2[quad_3];
  let add_4 = result_4 + x2_1;
  let max_4 = max_f32x4(add_4, vec4f(0.0));
  let idx_12 = m * 128 + quad_3;
  out0[idx_12] = max_4;
  let result_5 = sum_1_1;
  let add_5 = result_5 + x2_1;
  let max_5 = max_f32x4(add_5, vec4f(0.0));
  let idx_13 = m_1 * 128 + quad_3;
  out0[idx_13] = max_5;
  let result_6 = sum_2_1;
  let add_6 = result_6 + x2_1;
  let max_6 = max_f32x4(add_6, vec4f(0.0));
  let idx_14 = m_2 * 128 + quad_3;
  out0[idx_14] = max_6;
  let result_7 = sum_3_1;
  let add_7 = result_7 + x2_1;
  let max_7 = max_f32x4(add_7, vec4f(0.0));
  let idx_15 = m_3 * 128 + quad_3;
  out0[idx_15] = max_7;
}
