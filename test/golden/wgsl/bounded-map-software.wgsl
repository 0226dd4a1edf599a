// map kernel; 2 x 4 elements per invocation, of (i / 16) % 64 < scalars[0] only
// in0: f32[4,64,16], out0: f32[4,64,16]
// 4096 flops, 32768 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 1025>;
@group(0) @binding(1) var<storage, read_write> out0: array<vec4f, 1025>;
@group(0) @binding(2) var<uniform> scalars: array<vec4u, 1>;

@compute @workgroup_size(16, 1, 1)
fn map_neg_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let quad = i32(workgroup_id.x) * 32 + i32(local_id.x);
  let next = (i32(workgroup_id.x) + 1) * 32;
  let max_ = max(bitcast<i32>(scalars[0].x), 0);
  let min_ = min(max_, 64);
  for (var quad_1 = quad; quad_1 < next; quad_1 += 16) {
    let idx = quad_1 >> 2u;
    let idx_1 = idx & 63;
    let is_needed = idx_1 < min_;
    if (is_needed) {
      let x0 = in0[quad_1];
      let neg = -x0;
      out0[quad_1] = neg;
    }
  }
}
