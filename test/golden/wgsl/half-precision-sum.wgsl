// map kernel; 1 x 4 elements per invocation
// in0: f16[64], in1: f16[64], out0: f16[64]
// 64 flops, 384 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec2u, 17>;
@group(0) @binding(1) var<storage, read> in1: array<vec2u, 17>;
@group(0) @binding(2) var<storage, read_write> out0: array<vec2u, 17>;

fn unpack_f16(word: u32) -> vec2f { return unpack2x16float(word); }

fn unpack_f16x4(words: vec2u) -> vec4f { return vec4f(unpack_f16(words.x), unpack_f16(words.y)); }

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

@compute @workgroup_size(64, 1, 1)
fn map_add_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let quad = i32(workgroup_id.x) * 64 + i32(local_id.x);
  if (quad < 16) {
    let x0 = unpack_f16x4(in0[quad]);
    let x1 = unpack_f16x4(in1[quad]);
    let add = x0 + x1;
    out0[quad] = pack_f16x4(add);
  }
}
