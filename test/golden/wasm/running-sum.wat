;; scan kernel; 16 lines of 64, lanes along position
;; in0: f32[16,64], out0: f32[16,64]
;; 1024 flops, 8192 bytes
(module
  (import "env" "memory" (memory 0 65536))
  (func $group (param $group i32) (param $in0 i32) (param $out0 i32)
    (local $group_x i32) (local $group_y i32) (local $group_z i32) (local $local_x i32) (local $local_y i32)
    (local $local_z i32) (local $unit i32) (local $running f32) (local $idx i32) (local $step i32) (local $in0_at i32)
    (local $out0_at i32) (local $x0 v128) (local $after f32) (local $after_1 f32) (local $after_2 f32)
    (local $after_3 f32) (local $result v128)
    (local.set $group_x (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $group_y (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $group_z (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $local_z (i32.const 0))
    (local.set $local_y (i32.const 0))
    (local.set $local_x (i32.const 0))
    (local.set $unit (i32.add (local.get $group_x) (local.get $local_x)))
    (local.set $running (f32.const 0))
    (local.set $idx (i32.mul (local.get $unit) (i32.const 16)))
    (local.set $step (i32.const 0))
    (local.set $in0_at (i32.add (local.get $in0) (i32.shl (i32.mul (local.get $idx) (i32.const 4)) (i32.const 2))))
    (local.set $out0_at (i32.add (local.get $out0) (i32.shl (i32.mul (local.get $idx) (i32.const 4)) (i32.const 2))))
    (block
      (loop
        (br_if 1 (i32.ge_s (local.get $step) (i32.const 16)))
        (local.set $x0 (v128.load (local.get $in0_at)))
        (local.set $running (f32.add (local.get $running) (f32x4.extract_lane 0 (local.get $x0))))
        (local.set $after (local.get $running))
        (local.set $running (f32.add (local.get $running) (f32x4.extract_lane 1 (local.get $x0))))
        (local.set $after_1 (local.get $running))
        (local.set $running (f32.add (local.get $running) (f32x4.extract_lane 2 (local.get $x0))))
        (local.set $after_2 (local.get $running))
        (local.set $running (f32.add (local.get $running) (f32x4.extract_lane 3 (local.get $x0))))
        (local.set $after_3 (local.get $running))
        (local.set $result
          (f32x4.replace_lane 3
            (f32x4.replace_lane 2
              (f32x4.replace_lane 1 (f32x4.splat (local.get $after)) (local.get $after_1))
              (local.get $after_2))
            (local.get $after_3)))
        (v128.store (local.get $out0_at) (local.get $result))
        (local.set $in0_at (i32.add (local.get $in0_at) (i32.const 16)))
        (local.set $out0_at (i32.add (local.get $out0_at) (i32.const 16)))
        (local.set $step (i32.add (local.get $step) (i32.const 1)))
        (br 0))))
  (func $run (param $first i32) (param $end i32) (param $in0 i32) (param $out0 i32)
    (loop
      (call $group (local.get $first) (local.get $in0) (local.get $out0))
      (br_if 0 (i32.lt_s (local.tee $first (i32.add (local.get $first) (i32.const 1))) (local.get $end)))))
  (export "run" (func $run)))
