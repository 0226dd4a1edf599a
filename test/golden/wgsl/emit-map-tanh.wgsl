// map kernel; 4 elements per invocation
// x: f32[1000]

@group(0) @binding(0) var<storage, read> x: array<vec4f, 250>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2u, 250>;
@group(0) @binding(2) var<storage, read_write> mask: array<u32, 250>;
@group(0) @binding(3) var<uniform> scalars: array<vec4u, 1>;

fn near_bits_f32x4(x: vec4f) -> vec4i {
  return bitcast<vec4i>(x + 12582912.0);
}

fn none_i32x4(near: vec4i) -> vec4i {
  return near & vec4i(0x30000000);
}

fn held_f32x4(x: vec4f, none: vec4i) -> vec4f {
  return bitcast<vec4f>(bitcast<vec4i>(x) ^ none);
}

fn expm1_core_f32x4(r: vec4f) -> vec4f {
  let q = 0.4999999701976776 + r * (0.1666654646396637 + r * (0.04166744276881218 + r * (0.008366253226995468 + r * 0.0013869944959878922)));
  return r + r * r * q;
}

fn expm1_wide_f32x4(x: vec4f) -> vec4f {
  let near = near_bits_f32x4(x * 1.4426950408889634);
  let n = near - 0x4b400000;
  let none = none_i32x4(near);
  let r = held_f32x4(x - vec4f(n) * 0.693359375, none) + vec4f(n) * 0.00021219444170128554;
  let half = bitcast<vec4f>((n + 126) * 8388608);
  return 2.0 * held_f32x4(half * expm1_core_f32x4(r) + held_f32x4(half - 0.5, none), none);
}

fn with_sign_f32x4(size: vec4f, sign: vec4f) -> vec4f {
  return bitcast<vec4f>(bitcast<vec4u>(size) | (bitcast<vec4u>(sign) & vec4u(0x80000000u)));
}

fn is_nan_f32x4(x: vec4f) -> vec4<bool> {
  return (bitcast<vec4i>(x) & vec4i(0x7fffffff)) > vec4i(0x7f800000);
}

fn tanh_f32x4(x: vec4f) -> vec4f {
  let size = min(bitcast<vec4i>(x) & vec4i(0x7fffffff), vec4i(0x41200000));
  let d = expm1_wide_f32x4(2.0 * bitcast<vec4f>(size));
  return select(with_sign_f32x4(d / (d + 2.0), x), x, is_nan_f32x4(x));
}

fn nearest_f32x4(x: vec4f) -> vec4i {
  return bitcast<vec4i>(x + 12582912.0) - 0x4b400000;
}

fn half_u32x4(x: vec4f) -> vec4u {
  let bits = bitcast<vec4i>(x) & vec4i(0x7fffffff);
  let normal = bitcast<vec4u>(bits - 0x38000000 + 0xfff + ((bits >> vec4u(13u)) & vec4i(1))) >> vec4u(13u);
  let subnormal = bitcast<vec4u>(nearest_f32x4(bitcast<vec4f>(bits) * 16777216.0));
  let finite = select(normal, subnormal, bits < vec4i(0x38800000));
  let size = select(finite, select(vec4u(0x7c00u), vec4u(0x7e00u), bits > vec4i(0x7f800000)), bits >= vec4i(0x477ff000));
  return size | ((bitcast<vec4u>(x) >> vec4u(16u)) & vec4u(0x8000u));
}

fn pack_f16x4(x: vec4f) -> vec2u {
  let bits = half_u32x4(x);
  return bits.xz | (bits.yw << vec2u(16u));
}

fn pack_bool(x: vec4<bool>) -> u32 {
  let bits = select(vec4u(0u), vec4u(1u, 0x100u, 0x10000u, 0x1000000u), x);
  return bits.x | bits.y | bits.z | bits.w;
}

@compute @workgroup_size(64, 1, 1)
fn map_tanh(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let id = i32(workgroup_id.x) * 64 + i32(local_id.x);
  if (id < 250) {
    let at = id * 4;
    // four neighbours at once
    let x_ = x[at >> 2u];
    let scaled = x_ * vec4f(bitcast<f32>(scalars[0].y));
    y[at >> 2u] = pack_f16x4(tanh_f32x4(scaled));
    mask[at >> 2u] = pack_bool(vec4f(0.0) < scaled);
  }
}
