// map kernel; 1 x 4 elements per invocation
// in0: f32[64,32], in1: f32[32], out0: f32[64,32]
// 32768 flops, 16512 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 513>;
@group(0) @binding(1) var<storage, read> in1: array<vec4f, 9>;
@group(0) @binding(2) var<storage, read_write> out0: array<vec4f, 513>;

fn high_f32x4(x: vec4f) -> vec4f {
  return bitcast<vec4f>(bitcast<vec4u>(x) & vec4u(0xfffff000u));
}

fn is_nan_f32x4(x: vec4f) -> vec4<bool> {
  return (bitcast<vec4i>(x) & vec4i(0x7fffffff)) > vec4i(0x7f800000);
}

fn exp_f32x4(x: vec4f) -> vec4f {
  let t = x * 1.4426950408889634;
  let y = exp2(t);
  let head = high_f32x4(x);
  let lost = ((head * 1.4423828125 - t) + (x - head) * 1.4423828125) + x * 0.00031222839606925845;
  return select(select(y, y * (1.0 + lost * 0.6931471805599453), abs(x) < vec4f(88.7228)), x, is_nan_f32x4(x));
}

@compute @workgroup_size(64, 1, 1)
fn map_mul_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let quad = i32(workgroup_id.x) * 64 + i32(local_id.x);
  let idx = quad * 4;
  let x0 = in0[idx >> 2u];
  let idx_1 = quad % 8;
  let idx_2 = idx_1 * 4;
  let x1 = in1[idx_2 >> 2u];
  let add = x0 + x1;
  let neg = -add;
  let exp = exp_f32x4(neg);
  let add_1 = exp + vec4f(1.0);
  let recip = vec4f(1.0) / add_1;
  let mul = add * recip;
  out0[idx >> 2u] = mul;
}
