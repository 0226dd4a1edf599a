;; map kernel; 1 x 16 elements per invocation
;; in0: f16[64], in1: f16[64], out0: f16[64]
;; 64 flops, 384 bytes
(module
  (import "env" "memory" (memory 0 65536))
  (func $f32_to_f16 (param $x v128) (result v128)
    (local $size v128) (local $c v128) (local $c_1 v128) (local $c_2 v128) (local $c_3 v128) (local $c_4 v128)
    (local $c_5 v128) (local $c_6 v128) (local $c_7 v128) (local $c_8 v128) (local $c_9 v128)
    (local.set $c (v128.const i32x4 2147483647 2147483647 2147483647 2147483647))
    (local.set $c_1 (v128.const f32x4 -131135.984375 -131135.984375 -131135.984375 -131135.984375))
    (local.set $c_2 (v128.const i32x4 1 1 1 1))
    (local.set $c_3 (v128.const f32x4 0.5 0.5 0.5 0.5))
    (local.set $c_4
      (v128.const f32x4 0.00006103515261202119 0.00006103515261202119 0.00006103515261202119 0.00006103515261202119))
    (local.set $c_5 (v128.const i32x4 32256 32256 32256 32256))
    (local.set $c_6 (v128.const i32x4 31744 31744 31744 31744))
    (local.set $c_7 (v128.const f32x4 inf inf inf inf))
    (local.set $c_8 (v128.const f32x4 65536 65536 65536 65536))
    (local.set $c_9 (v128.const i32x4 32768 32768 32768 32768))
    (local.set $size (v128.and (local.get $x) (local.get $c)))
    (v128.or
      (v128.bitselect
        (v128.bitselect
          (i32x4.shr_u
            (i32x4.add
              (i32x4.add (local.get $size) (local.get $c_1))
              (v128.and (i32x4.shr_u (local.get $size) (i32.const 13)) (local.get $c_2)))
            (i32.const 13))
          (i32x4.sub (f32x4.add (local.get $size) (local.get $c_3)) (local.get $c_3))
          (i32x4.gt_s (local.get $size) (local.get $c_4)))
        (v128.bitselect (local.get $c_5) (local.get $c_6) (i32x4.gt_s (local.get $size) (local.get $c_7)))
        (i32x4.lt_s (local.get $size) (local.get $c_8)))
      (v128.and (i32x4.shr_u (local.get $x) (i32.const 16)) (local.get $c_9))))
  (func $group (param $group i32) (param $in0 i32) (param $in1 i32) (param $out0 i32)
    (local $group_x i32) (local $group_y i32) (local $group_z i32) (local $local_x i32) (local $local_y i32)
    (local $local_z i32) (local $turn i32) (local $idx i32) (local $half v128) (local $c v128) (local $c_1 v128)
    (local $c_2 v128) (local $c_3 v128) (local $x0 v128) (local $x1 v128) (local $add v128) (local $narrow v128)
    (local $idx_1 i32) (local $x0_1 v128) (local $x1_1 v128) (local $add_1 v128) (local $narrow_1 v128)
    (local $idx_2 i32) (local $x0_2 v128) (local $x1_2 v128) (local $add_2 v128) (local $narrow_2 v128)
    (local $idx_3 i32) (local $x0_3 v128) (local $x1_3 v128) (local $add_3 v128) (local $narrow_3 v128)
    (local.set $c (v128.const i32x4 -1879056384 -1879056384 -1879056384 -1879056384))
    (local.set $c_1 (v128.const i32x4 2004877312 2004877312 2004877312 2004877312))
    (local.set $c_2 (v128.const i32x4 260046848 260046848 260046848 260046848))
    (local.set $c_3 (v128.const f32x4 inf inf inf inf))
    (local.set $group_x (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $group_y (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $group_z (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $local_z (i32.const 0))
    (local.set $local_y (i32.const 0))
    (local.set $local_x (i32.const 0))
    (local.set $turn (i32.add (local.get $group_x) (local.get $local_x)))
    (local.set $idx (i32.mul (local.get $turn) (i32.const 4)))
    (local.set $x0
      (v128.or
        (f32x4.mul
          (v128.and
            (local.tee $half
              (i32x4.shl
                (v128.load16x4_s
                  (i32.add (local.get $in0) (i32.shl (i32.mul (local.get $idx) (i32.const 4)) (i32.const 1))))
                (i32.const 13)))
            (local.get $c))
          (local.get $c_1))
        (v128.and (i32x4.eq (v128.and (local.get $half) (local.get $c_2)) (local.get $c_2)) (local.get $c_3))))
    (local.set $x1
      (v128.or
        (f32x4.mul
          (v128.and
            (local.tee $half
              (i32x4.shl
                (v128.load16x4_s
                  (i32.add (local.get $in1) (i32.shl (i32.mul (local.get $idx) (i32.const 4)) (i32.const 1))))
                (i32.const 13)))
            (local.get $c))
          (local.get $c_1))
        (v128.and (i32x4.eq (v128.and (local.get $half) (local.get $c_2)) (local.get $c_2)) (local.get $c_3))))
    (local.set $add (f32x4.add (local.get $x0) (local.get $x1)))
    (v128.store64_lane 0
      (i32.add (local.get $out0) (i32.shl (i32.mul (local.get $idx) (i32.const 4)) (i32.const 1)))
      (i8x16.shuffle 0 1 4 5 8 9 12 13 0 0 0 0 0 0 0 0
        (local.tee $narrow (call $f32_to_f16 (local.get $add)))
        (local.get $narrow)))
    (local.set $idx_1 (i32.add (i32.const 1) (i32.mul (local.get $turn) (i32.const 4))))
    (local.set $x0_1
      (v128.or
        (f32x4.mul
          (v128.and
            (local.tee $half
              (i32x4.shl
                (v128.load16x4_s
                  (i32.add (local.get $in0) (i32.shl (i32.mul (local.get $idx_1) (i32.const 4)) (i32.const 1))))
                (i32.const 13)))
            (local.get $c))
          (local.get $c_1))
        (v128.and (i32x4.eq (v128.and (local.get $half) (local.get $c_2)) (local.get $c_2)) (local.get $c_3))))
    (local.set $x1_1
      (v128.or
        (f32x4.mul
          (v128.and
            (local.tee $half
              (i32x4.shl
                (v128.load16x4_s
                  (i32.add (local.get $in1) (i32.shl (i32.mul (local.get $idx_1) (i32.const 4)) (i32.const 1))))
                (i32.const 13)))
            (local.get $c))
          (local.get $c_1))
        (v128.and (i32x4.eq (v128.and (local.get $half) (local.get $c_2)) (local.get $c_2)) (local.get $c_3))))
    (local.set $add_1 (f32x4.add (local.get $x0_1) (local.get $x1_1)))
    (v128.store64_lane 0
      (i32.add (local.get $out0) (i32.shl (i32.mul (local.get $idx_1) (i32.const 4)) (i32.const 1)))
      (i8x16.shuffle 0 1 4 5 8 9 12 13 0 0 0 0 0 0 0 0
        (local.tee $narrow_1 (call $f32_to_f16 (local.get $add_1)))
        (local.get $narrow_1)))
    (local.set $idx_2 (i32.add (i32.const 2) (i32.mul (local.get $turn) (i32.const 4))))
    (local.set $x0_2
      (v128.or
        (f32x4.mul
          (v128.and
            (local.tee $half
              (i32x4.shl
                (v128.load16x4_s
                  (i32.add (local.get $in0) (i32.shl (i32.mul (local.get $idx_2) (i32.const 4)) (i32.const 1))))
                (i32.const 13)))
            (local.get $c))
          (local.get $c_1))
        (v128.and (i32x4.eq (v128.and (local.get $half) (local.get $c_2)) (local.get $c_2)) (local.get $c_3))))
    (local.set $x1_2
      (v128.or
        (f32x4.mul
          (v128.and
            (local.tee $half
              (i32x4.shl
                (v128.load16x4_s
                  (i32.add (local.get $in1) (i32.shl (i32.mul (local.get $idx_2) (i32.const 4)) (i32.const 1))))
                (i32.const 13)))
            (local.get $c))
          (local.get $c_1))
        (v128.and (i32x4.eq (v128.and (local.get $half) (local.get $c_2)) (local.get $c_2)) (local.get $c_3))))
    (local.set $add_2 (f32x4.add (local.get $x0_2) (local.get $x1_2)))
    (v128.store64_lane 0
      (i32.add (local.get $out0) (i32.shl (i32.mul (local.get $idx_2) (i32.const 4)) (i32.const 1)))
      (i8x16.shuffle 0 1 4 5 8 9 12 13 0 0 0 0 0 0 0 0
        (local.tee $narrow_2 (call $f32_to_f16 (local.get $add_2)))
        (local.get $narrow_2)))
    (local.set $idx_3 (i32.add (i32.const 3) (i32.mul (local.get $turn) (i32.const 4))))
    (local.set $x0_3
      (v128.or
        (f32x4.mul
          (v128.and
            (local.tee $half
              (i32x4.shl
                (v128.load16x4_s
                  (i32.add (local.get $in0) (i32.shl (i32.mul (local.get $idx_3) (i32.const 4)) (i32.const 1))))
                (i32.const 13)))
            (local.get $c))
          (local.get $c_1))
        (v128.and (i32x4.eq (v128.and (local.get $half) (local.get $c_2)) (local.get $c_2)) (local.get $c_3))))
    (local.set $x1_3
      (v128.or
        (f32x4.mul
          (v128.and
            (local.tee $half
              (i32x4.shl
                (v128.load16x4_s
                  (i32.add (local.get $in1) (i32.shl (i32.mul (local.get $idx_3) (i32.const 4)) (i32.const 1))))
                (i32.const 13)))
            (local.get $c))
          (local.get $c_1))
        (v128.and (i32x4.eq (v128.and (local.get $half) (local.get $c_2)) (local.get $c_2)) (local.get $c_3))))
    (local.set $add_3 (f32x4.add (local.get $x0_3) (local.get $x1_3)))
    (v128.store64_lane 0
      (i32.add (local.get $out0) (i32.shl (i32.mul (local.get $idx_3) (i32.const 4)) (i32.const 1)))
      (i8x16.shuffle 0 1 4 5 8 9 12 13 0 0 0 0 0 0 0 0
        (local.tee $narrow_3 (call $f32_to_f16 (local.get $add_3)))
        (local.get $narrow_3))))
  (func $run (param $first i32) (param $end i32) (param $in0 i32) (param $in1 i32) (param $out0 i32)
    (loop
      (call $group (local.get $first) (local.get $in0) (local.get $in1) (local.get $out0))
      (br_if 0 (i32.lt_s (local.tee $first (i32.add (local.get $first) (i32.const 1))) (local.get $end)))))
  (export "run" (func $run)))
