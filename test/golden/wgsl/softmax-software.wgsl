// row-reduction kernel; 64 rows of 256, lanes along column, 1 invocation a row
// in0: f32[64,256], out0: f32[64,256]
// 245760 flops, 131072 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 4097>;
@group(0) @binding(1) var<storage, read_write> out0: array<vec4f, 4097>;

fn inf_f32x4() -> vec4f {
  var bits = vec4u(0x7f800000u);
  return bitcast<vec4f>(bits);
}

fn any_nan_f32x4(a: vec4f, b: vec4f) -> vec4<bool> {
  return max(bitcast<vec4i>(a) & vec4i(0x7fffffff), bitcast<vec4i>(b) & vec4i(0x7fffffff)) > vec4i(0x7f800000);
}

fn max_f32x4(a: vec4f, b: vec4f) -> vec4f {
  return select(select(b, a, b < a), a + b, any_nan_f32x4(a, b));
}

fn any_nan_f32(a: f32, b: f32) -> bool {
  return max(bitcast<i32>(a) & 0x7fffffff, bitcast<i32>(b) & 0x7fffffff) > 0x7f800000;
}

fn max_f32(a: f32, b: f32) -> f32 {
  return select(select(b, a, b < a), a + b, any_nan_f32(a, b));
}

fn is_nan_f32x4(x: vec4f) -> vec4<bool> {
  return (bitcast<vec4i>(x) & vec4i(0x7fffffff)) > vec4i(0x7f800000);
}

fn exp2_f32x4(x: vec4f) -> vec4f {
  return select(exp2(x), x, is_nan_f32x4(x));
}

@compute @workgroup_size(4, 1, 1)
fn row_reduction_div_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let unit = i32(workgroup_id.x) * 4 + i32(local_id.x);
  var max_ = -inf_f32x4();
  let idx = unit * 64;
  for (var step = 0; step < 64; step++) {
    let idx_1 = idx + step;
    let x0 = in0[idx_1];
    max_ = max_f32x4(max_, x0);
  }
  let max_1 = max_;
  let max_2 = max_f32(max_f32(max_1.x, max_1.y), max_f32(max_1.z, max_1.w));
  var sum = vec4f(0.0);
  for (var step_1 = 0; step_1 < 64; step_1++) {
    let idx_2 = idx + step_1;
    let x0_1 = in0[idx_2];
    let sub = x0_1 - vec4f(max_2);
    let power = sub * vec4f(1.4426950216293335);
    let exp = exp2_f32x4(power);
    sum = sum + exp;
  }
  let sum_1 = sum;
  let sum_2 = sum_1.x + sum_1.y + (sum_1.z + sum_1.w);
  let share = 1.0 / sum_2;
  for (var step_2 = 0; step_2 < 64; step_2++) {
    let idx_3 = idx + step_2;
    let x0_2 = in0[idx_3];
    let sub_1 = x0_2 - vec4f(max_2);
    let power_1 = sub_1 * vec4f(1.4426950216293335);
    let exp_1 = exp2_f32x4(power_1);
    let div = exp_1 * vec4f(share);
    out0[idx_3] = div;
  }
}
