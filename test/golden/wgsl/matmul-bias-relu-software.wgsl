// dot kernel; [1] 64x64 by 64x64, 1x4 a register tile
// in0: f32[64,64], in1: f32[64,64], in2: f32[64], out0: f32[64,64]
// 532480 flops, 49408 bytes

@group(0) @binding(0) var<storage, read> in0: array<f32, 4100>;
@group(0) @binding(1) var<storage, read> in1: array<vec4f, 1025>;
@group(0) @binding(2) var<storage, read> in2: array<vec4f, 17>;
@group(0) @binding(3) var<storage, read_write> out0: array<vec4f, 1025>;

fn any_nan_f32x4(a: vec4f, b: vec4f) -> vec4<bool> {
  return max(bitcast<vec4i>(a) & vec4i(0x7fffffff), bitcast<vec4i>(b) & vec4i(0x7fffffff)) > vec4i(0x7f800000);
}

fn max_f32x4(a: vec4f, b: vec4f) -> vec4f {
  return select(select(b, a, b < a), a + b, any_nan_f32x4(a, b));
}

@compute @workgroup_size(8, 1, 1)
fn dot_max_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let id = i32(workgroup_id.x) * 8 + i32(local_id.x);
  let tile = id >> 4u;
  let tile_n = id & 15;
  var sum_0_0 = vec4f(0.0);
  let idx = tile * 64;
  for (var k = 0; k < 64; k++) {
    let idx_1 = idx + k;
    let x0 = in0[idx_1];
    let idx_2 = k * 16;
    let idx_3 = tile_n + idx_2;
    let x1 = in1[idx_3];
    sum_0_0 = fma(vec4f(x0), x1, sum_0_0);
  }
  let result = sum_0_0;
  let x2 = in2[tile_n];
  let add = result + x2;
  let max_ = max_f32x4(add, vec4f(0.0));
  let idx_4 = tile * 16 + tile_n;
  out0[idx_4] = max_;
}
