// sort kernel; 40 lines of 100 keys, places counted by comparisons
// in0: u32[40,100], out0: i32[40,100]
// 256000 flops, 32000 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4u, 1001>;
@group(0) @binding(1) var<storage, read_write> out0: array<i32, 4004>;

@compute @workgroup_size(16, 1, 1)
fn sort_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let id = i32(workgroup_id.x) * 16 + i32(local_id.x);
  if (id < 1000) {
    let line = id / 25;
    let quad = id % 25;
    let idx = line * 25 + quad;
    let x0 = in0[idx];
    let key = x0.x;
    let key_1 = x0.y;
    let key_2 = x0.z;
    let key_3 = x0.w;
    var before = vec4i(0);
    var before_1 = vec4i(0);
    var before_2 = vec4i(0);
    var before_3 = vec4i(0);
    let idx_1 = line * 25;
    for (var quad_1 = 0; quad_1 < quad; quad_1++) {
      let idx_2 = idx_1 + quad_1;
      let x0_1 = in0[idx_2];
      before = before + vec4i(x0_1 <= vec4u(key));
      before_1 = before_1 + vec4i(x0_1 <= vec4u(key_1));
      before_2 = before_2 + vec4i(x0_1 <= vec4u(key_2));
      before_3 = before_3 + vec4i(x0_1 <= vec4u(key_3));
    }
    for (var quad_2 = quad + 1; quad_2 < 25; quad_2++) {
      let idx_3 = idx_1 + quad_2;
      let x0_2 = in0[idx_3];
      before = before + vec4i(x0_2 < vec4u(key));
      before_1 = before_1 + vec4i(x0_2 < vec4u(key_1));
      before_2 = before_2 + vec4i(x0_2 < vec4u(key_2));
      before_3 = before_3 + vec4i(x0_2 < vec4u(key_3));
    }
    let count = before;
    let count_1 = count.x + count.y + (count.z + count.w);
    var place = count_1;
    place = place + i32(key_1 < key);
    place = place + i32(key_2 < key);
    place = place + i32(key_3 < key);
    let count_2 = before_1;
    let count_3 = count_2.x + count_2.y + (count_2.z + count_2.w);
    var place_1 = count_3;
    place_1 = place_1 + i32(key <= key_1);
    place_1 = place_1 + i32(key_2 < key_1);
    place_1 = place_1 + i32(key_3 < key_1);
    let count_4 = before_2;
    let count_5 = count_4.x + count_4.y + (count_4.z + count_4.w);
    var place_2 = count_5;
    place_2 = place_2 + i32(key <= key_2);
    place_2 = place_2 + i32(key_1 <= key_2);
    place_2 = place_2 + i32(key_3 < key_2);
    let count_6 = before_3;
    let count_7 = count_6.x + count_6.y + (count_6.z + count_6.w);
    var place_3 = count_7;
    place_3 = place_3 + i32(key <= key_3);
    place_3 = place_3 + i32(key_1 <= key_3);
    place_3 = place_3 + i32(key_2 <= key_3);
    let at = place;
    let from_ = quad * 4;
    let idx_4 = line * 100 + at;
    out0[idx_4] = from_;
    let at_1 = place_1;
    let from_1 = quad * 4 + 1;
    let idx_5 = line * 100 + at_1;
    out0[idx_5] = from_1;
    let at_2 = place_2;
    let from_2 = quad * 4 + 2;
    let idx_6 = line * 100 + at_2;
    out0[idx_6] = from_2;
    let at_3 = place_3;
    let from_3 = quad * 4 + 3;
    let idx_7 = line * 100 + at_3;
    out0[idx_7] = from_3;
  }
}
