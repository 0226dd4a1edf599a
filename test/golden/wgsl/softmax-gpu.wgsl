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
  let exp = exp_f32x4(sub);
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
  let div = exp / vec4f(sum_3);
  out0[idx] = div;
}
