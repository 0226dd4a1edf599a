// scan kernel; 16 lines of 64, lanes along position
// in0: f32[16,64], out0: f32[16,64]
// 1024 flops, 8192 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 257>;
@group(0) @binding(1) var<storage, read_write> out0: array<vec4f, 257>;

@compute @workgroup_size(16, 1, 1)
fn scan_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let unit = i32(workgroup_id.x) * 16 + i32(local_id.x);
  var running = 0.0;
  let idx = unit * 16;
  for (var step = 0; step < 16; step++) {
    let idx_1 = idx + step;
    let x0 = in0[idx_1];
    running = running + x0.x;
    let after = running;
    running = running + x0.y;
    let after_1 = running;
    running = running + x0.z;
    let after_2 = running;
    running = running + x0.w;
    let after_3 = running;
    let result = vec4f(after, after_1, after_2, after_3);
    out0[idx_1] = result;
  }
}
