// sort kernel; 40 lines of 100 keys, 4 a workgroup
// in0: u32[40,100], out0: i32[40,100]
// 256000 flops, 32000 bytes

@group(0) @binding(0) var<storage, read> in0: array<u32, 4004>;
@group(0) @binding(1) var<storage, read_write> out0: array<i32, 4004>;
var<workgroup> keys: array<u32, 512>;
var<workgroup> order: array<i32, 512>;

fn shl_i32(a: i32, count: i32) -> i32 {
  return select(a << bitcast<u32>(count), 0, bitcast<u32>(count) > 31u);
}

@compute @workgroup_size(256, 1, 1)
fn sort_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let first = i32(workgroup_id.x) * 4;
  for (var e = i32(local_id.x); e < 512; e += 256) {
    let line = first + (e >> 7u);
    let pos = e & 127;
    let inside = pos < 100;
    var key = 4294967295u;
    if (inside) {
      let idx = line * 100 + pos;
      let x0 = in0[idx];
      key = x0;
    }
    keys[e] = key;
    order[e] = pos;
  }
  for (var stage = 1; stage < 8; stage++) {
    let run = shl_i32(1, stage);
    var reach = run;
    for (var step = 0; step < stage; step++) {
      workgroupBarrier();
      reach = reach >> 1u;
      for (var pair = i32(local_id.x); pair < 256; pair += 256) {
        let one = pair * 2 - (pair & (reach - 1));
        let other = one + reach;
        let a = keys[one];
        let c = keys[other];
        let i = order[one];
        let j = order[other];
        if ((c < a || (c == a && j < i)) == ((one & run & 127) == 0)) {
          keys[one] = c;
          keys[other] = a;
          order[one] = j;
          order[other] = i;
        }
      }
    }
  }
  workgroupBarrier();
  for (var e_1 = i32(local_id.x); e_1 < 512; e_1 += 256) {
    let line_1 = first + (e_1 >> 7u);
    let pos_1 = e_1 & 127;
    let inside_1 = pos_1 < 100;
    if (inside_1) {
      let place = order[e_1];
      let idx_1 = line_1 * 100 + pos_1;
      out0[idx_1] = place;
    }
  }
}
