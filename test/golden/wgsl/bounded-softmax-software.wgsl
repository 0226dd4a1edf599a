// row-reduction kernel; 64 rows of 256, lanes along column, 1 invocation a row, column < scalars[0]
// in0: f32[64,256], out0: f32[64,256]
// 278528 flops, 131072 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 4097>;
@group(0) @binding(1) var<storage, read_write> out0: array<vec4f, 4097>;
@group(0) @binding(2) var<uniform> scalars: array<vec4u, 1>;

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
  let max_ = max(bitcast<i32>(scalars[0].x), 0);
  let min_ = min(max_, 256);
  let max_1 = max(min_, 1);
  let end_step = min(((max_1 + 3) >> 2u), 64);
  let unit = i32(workgroup_id.x) * 4 + i32(local_id.x);
  var max_2 = -inf_f32x4();
  let idx_2 = unit * 64;
  for (var step = 0; step < end_step; step++) {
    let idx = step * 4;
    let idx_1 = vec4i(idx) + vec4i(0, 1, 2, 3);
    let lt = idx_1 < vec4i(bitcast<i32>(scalars[0].x));
    let idx_3 = idx_2 + step;
    let x0 = in0[idx_3];
    let where_ = select(-inf_f32x4(), x0, lt);
    max_2 = max_f32x4(max_2, where_);
  }
  let max_3 = max_2;
  let max_4 = max_f32(max_f32(max_3.x, max_3.y), max_f32(max_3.z, max_3.w));
  var sum = vec4f(0.0);
  for (var step_1 = 0; step_1 < end_step; step_1++) {
    let idx_4 = step_1 * 4;
    let idx_5 = vec4i(idx_4) + vec4i(0, 1, 2, 3);
    let lt_1 = idx_5 < vec4i(bitcast<i32>(scalars[0].x));
    let idx_6 = idx_2 + step_1;
    let x0_1 = in0[idx_6];
    let where_1 = select(-inf_f32x4(), x0_1, lt_1);
    let sub = where_1 - vec4f(max_4);
    let power = sub * vec4f(1.4426950216293335);
    let exp = exp2_f32x4(power);
    sum = sum + exp;
  }
  let sum_1 = sum;
  let sum_2 = sum_1.x + sum_1.y + (sum_1.z + sum_1.w);
  let share = 1.0 / sum_2;
  for (var step_2 = 0; step_2 < end_step; step_2++) {
    let idx_7 = step_2 * 4;
    let idx_8 = vec4i(idx_7) + vec4i(0, 1, 2, 3);
    let lt_2 = idx_8 < vec4i(bitcast<i32>(scalars[0].x));
    let idx_9 = idx_2 + step_2;
    let x0_2 = in0[idx_9];
    let where_2 = select(-inf_f32x4(), x0_2, lt_2);
    let sub_1 = where_2 - vec4f(max_4);
    let power_1 = sub_1 * vec4f(1.4426950216293335);
    let exp_1 = exp2_f32x4(power_1);
    let div = exp_1 * vec4f(share);
    out0[idx_9] = div;
  }
  let first_left = (end_step - 0) >> 0u;
  for (var step_3 = first_left; step_3 < 64; step_3++) {
    let idx_10 = step_3 * 4;
    let idx_11 = vec4i(idx_10) + vec4i(0, 1, 2, 3);
    let lt_3 = idx_11 < vec4i(bitcast<i32>(scalars[0].x));
    let idx_12 = idx_2 + step_3;
    let x0_3 = in0[idx_12];
    let where_3 = select(-inf_f32x4(), x0_3, lt_3);
    let sub_2 = where_3 - vec4f(max_4);
    let power_2 = sub_2 * vec4f(1.4426950216293335);
    let exp_2 = exp2_f32x4(power_2);
    let div_1 = exp_2 * vec4f(share);
    out0[idx_12] = div_1;
  }
}
