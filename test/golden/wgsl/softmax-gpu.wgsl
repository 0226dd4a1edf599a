// row-reduction kernel; 64 rows of 256, lanes along column, 64 invocations a row, kept in registers
// in0: f32[64,256], out0: f32[64,256]
// 245760 flops, 131072 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 4097>;
@group(0) @binding(1) var<storage, read_write> out0: array<vec4f, 4097>;
var<workgroup> partial_f32: array<f32, 128>;

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

@compute @workgroup_size(64, 1, 1)
fn row_reduction_div_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let unit = i32(workgroup_id.x);
  let step = i32(local_id.x);
  let idx = unit * 64 + step;
  let x0 = in0[idx];
  let max_ = max_f32(max_f32(x0.x, x0.y), max_f32(x0.z, x0.w));
  partial_f32[step] = max_;
  workgroupBarrier();
  if (i32(local_id.x) < 8) {
    let partial_ = partial_f32[step];
    var max_1 = partial_;
    for (var other = i32(local_id.x) + 8; other < 64; other += 8) {
      let partial_1 = partial_f32[other];
      max_1 = max_f32(max_1, partial_1);
    }
    partial_f32[step] = max_1;
  }
  workgroupBarrier();
  let partial_2 = partial_f32[0];
  var max_2 = partial_2;
  for (var other_1 = 1; other_1 < 8; other_1++) {
    let partial_3 = partial_f32[other_1];
    max_2 = max_f32(max_2, partial_3);
  }
  let max_3 = max_2;
  let sub = x0 - vec4f(max_3);
  let power = sub * vec4f(1.4426950216293335);
  let exp = exp2_f32x4(power);
  let sum = exp.x + exp.y + (exp.z + exp.w);
  let slot = i32(local_id.x) + 64;
  partial_f32[slot] = sum;
  workgroupBarrier();
  if (i32(local_id.x) < 8) {
    let partial_4 = partial_f32[slot];
    var sum_1 = partial_4;
    for (var other_2 = i32(local_id.x) + 8; other_2 < 64; other_2 += 8) {
      let slot_1 = other_2 + 64;
      let partial_5 = partial_f32[slot_1];
      sum_1 = sum_1 + partial_5;
    }
    partial_f32[slot] = sum_1;
  }
  workgroupBarrier();
  let partial_6 = partial_f32[64];
  var sum_2 = partial_6;
  for (var other_3 = 1; other_3 < 8; other_3++) {
    let slot_2 = other_3 + 64;
    let partial_7 = partial_f32[slot_2];
    sum_2 = sum_2 + partial_7;
  }
  let sum_3 = sum_2;
  let share = 1.0 / sum_3;
  let div = exp * vec4f(share);
  out0[idx] = div;
}
