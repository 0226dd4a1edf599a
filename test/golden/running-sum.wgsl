// scan kernel; 16 lines of 64
// in0: f32[16,64], out0: f32[16,64]
// 1024 flops, 8192 bytes

@group(0) @binding(0) var<storage, read> in0: array<f32, 1028>;
@group(0) @binding(1) var<storage, read_write> out0: array<f32, 1028>;

@compute @workgroup_size(64, 1, 1)
fn scan_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let id = i32(workgroup_id.x) * 64 + i32(local_id.x);
  if (id < 16) {
    var running = 0.0;
    let idx = id * 64;
    for (var step = 0; step < 64; step++) {
      let idx_1 = idx + step;
      let x0 = in0[idx_1];
      let before = running;
      running = running + x0;
      let after = running;
      out0[idx_1] = after;
    }
  }
}
