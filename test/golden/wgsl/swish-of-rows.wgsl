// map kernel; 1 x 4 elements per invocation
// in0: f32[64,32], in1: f32[32], out0: f32[64,32]
// 32768 flops, 16512 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 513>;
@group(0) @binding(1) var<storage, read> in1: array<vec4f, 9>;
@group(0) @binding(2) var<storage, read_write> out0: array<vec4f, 513>;

fn near_bits_f32x4(x: vec4f) -> vec4i {
  return bitcast<vec4i>(x + 12582912.0);
}

fn held_f32x4(x: vec4f, none: vec4i) -> vec4f {
  return bitcast<vec4f>(bitcast<vec4i>(x) ^ none);
}

fn none_i32x4(near: vec4i) -> vec4i {
  return near & vec4i(0x30000000);
}

fn expm1_core_f32x4(r: vec4f) -> vec4f {
  let q = 0.4999999701976776 + r * (0.1666654646396637 + r * (0.04166744276881218 + r * (0.008366253226995468 + r * 0.0013869944959878922)));
  return r + r * r * q;
}

fn exp_core_f32x4(x: vec4f) -> vec4f {
  let near = near_bits_f32x4(x * 1.4426950408889634);
  let n = near - 0x4b400000;
  let r = held_f32x4(x - vec4f(n) * 0.693359375, none_i32x4(near)) + vec4f(n) * 0.00021219444170128554;
  let bits = bitcast<vec4i>(1.0 + expm1_core_f32x4(r)) + n * 8388608;
  return bitcast<vec4f>(clamp(bits, vec4i(0), vec4i(0x7f800000)));
}

fn between_f32x4(x: vec4f, low: u32, high: i32) -> vec4f {
  return bitcast<vec4f>(min(bitcast<vec4i>(min(bitcast<vec4u>(x), vec4u(low))), vec4i(high)));
}

fn is_nan_f32x4(x: vec4f) -> vec4<bool> {
  return (bitcast<vec4i>(x) & vec4i(0x7fffffff)) > vec4i(0x7f800000);
}

fn exp_f32x4(x: vec4f) -> vec4f {
  return select(exp_core_f32x4(between_f32x4(x, 0xc3480000u, 0x42b20000)), x, is_nan_f32x4(x));
}

@compute @workgroup_size(64, 1, 1)
fn map_mul_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let quad = i32(workgroup_id.x) * 64 + i32(local_id.x);
  let x0 = in0[quad];
  let idx = quad & 7;
  let x1 = in1[idx];
  let add = x0 + x1;
  let neg = -add;
  let exp = exp_f32x4(neg);
  let add_1 = exp + vec4f(1.0);
  let recip = vec4f(1.0) / add_1;
  let mul = add * recip;
  out0[quad] = mul;
}
