// map kernel; 1 x 4 elements per invocation
// in0: f32[252], in1: f32[252], in2: f32[252], in3: f32[252], out0: f32[764], out1: i32[]
// 1693 flops, 2608 bytes

@group(0) @binding(0) var<storage, read> in0: array<vec4f, 64>;
@group(0) @binding(1) var<storage, read> in1: array<vec4f, 64>;
@group(0) @binding(2) var<storage, read> in2: array<vec4f, 64>;
@group(0) @binding(3) var<storage, read> in3: array<vec4f, 64>;
@group(0) @binding(4) var<storage, read_write> out0: array<vec4f, 192>;
@group(0) @binding(5) var<storage, read_write> out1: array<i32, 8>;
@group(0) @binding(6) var<uniform> scalars: array<vec4u, 1>;

@compute @workgroup_size(64, 1, 1)
fn map_x3_add_0(@builtin(workgroup_id) workgroup_id: vec3u, @builtin(local_invocation_id) local_id: vec3u) {
  let quad = i32(workgroup_id.x) * 64 + i32(local_id.x);
  if (quad < 63) {
    let x0 = in0[quad];
    let mul = x0 * vec4f(0.8999999761581421);
    let x1 = in1[quad];
    let mul_1 = x1 * vec4f(0.10000000149011612);
    let add = mul + mul_1;
    let x2 = in2[quad];
    let mul_2 = x2 * vec4f(0.9900000095367432);
    let mul_3 = x1 * x1;
    let mul_4 = mul_3 * vec4f(0.009999999776482582);
    let add_1 = mul_2 + mul_4;
    let x3 = in3[quad];
    let add_2 = bitcast<i32>(scalars[0].x) + 1;
    let cast_ = f32(add_2);
    let recip = 1.0 / cast_;
    let sqrt_ = sqrt(add_1);
    let add_3 = sqrt_ + vec4f(9.99999993922529e-9f);
    let div = add / add_3;
    let mul_5 = vec4f(recip) * div;
    let sub = x3 - mul_5;
    out0[quad] = add;
    let idx = 64 + quad;
    out0[idx] = add_1;
    let idx_1 = 128 + quad;
    out0[idx_1] = sub;
  }
  if (i32(workgroup_id.x) * 64 + i32(local_id.x) == 0) {
    let add_4 = bitcast<i32>(scalars[0].x) + 1;
    out1[0] = add_4;
  }
}
