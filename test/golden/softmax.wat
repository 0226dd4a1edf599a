;; row kernel; 64 rows of 256, lanes along column, 1 invocation a row
;; in0: f32[64,256], out0: f32[64,256]
;; 245760 flops, 131072 bytes
(module
  (import "env" "memory" (memory 0))
  (func $group (param $group i32) (param $in0 i32) (param $out0 i32)
    (local $group_x i32) (local $group_y i32) (local $group_z i32) (local $local_x i32) (local $local_y i32)
    (local $local_z i32) (local $unit i32) (local $c v128) (local $max v128) (local $idx i32) (local $step i32)
    (local $in0_at i32) (local $x0 v128) (local $max_1 v128) (local $max_2 f32) (local $c_1 v128) (local $sum v128)
    (local $step_1 i32) (local $in0_at_1 i32) (local $x0_1 v128) (local $sub v128) (local $c_2 v128) (local $c_3 v128)
    (local $exp_2 v128) (local $c_4 v128) (local $c_5 v128) (local $exp_3 v128) (local $exp_4 v128) (local $c_6 v128)
    (local $c_7 v128) (local $exp_5 v128) (local $c_8 v128) (local $c_9 v128) (local $c_10 v128) (local $c_11 v128)
    (local $c_12 v128) (local $c_13 v128) (local $c_14 v128) (local $exp v128) (local $sum_1 v128) (local $sum_2 f32)
    (local $step_2 i32) (local $in0_at_2 i32) (local $out0_at i32) (local $x0_2 v128) (local $sub_1 v128)
    (local $exp_6 v128) (local $exp_7 v128) (local $exp_8 v128) (local $exp_9 v128) (local $exp_1 v128)
    (local $div v128)
    (local.set $c (v128.const f32x4 -inf -inf -inf -inf))
    (local.set $c_1 (v128.const i32x4 0 0 0 0))
    (local.set $c_2 (v128.const f32x4 -87.5 -87.5 -87.5 -87.5))
    (local.set $c_3 (v128.const f32x4 89 89 89 89))
    (local.set $c_4 (v128.const f32x4 1.4426950216293335 1.4426950216293335 1.4426950216293335 1.4426950216293335))
    (local.set $c_5 (v128.const f32x4 12582912 12582912 12582912 12582912))
    (local.set $c_6 (v128.const f32x4 0.693145751953125 0.693145751953125 0.693145751953125 0.693145751953125))
    (local.set $c_7
      (v128.const f32x4 0.000001428606765330187 0.000001428606765330187 0.000001428606765330187 0.000001428606765330187))
    (local.set $c_8
      (v128.const f32x4 0.0027629078831523657 0.0027629078831523657 0.0027629078831523657 0.0027629078831523657))
    (local.set $c_9 (v128.const f32x4 0.01673749089241028 0.01673749089241028 0.01673749089241028 0.01673749089241028))
    (local.set $c_10 (v128.const f32x4 0.08333677798509598 0.08333677798509598 0.08333677798509598 0.08333677798509598))
    (local.set $c_11 (v128.const f32x4 0.3333304226398468 0.3333304226398468 0.3333304226398468 0.3333304226398468))
    (local.set $c_12 (v128.const f32x4 0.9999998807907104 0.9999998807907104 0.9999998807907104 0.9999998807907104))
    (local.set $c_13 (v128.const f32x4 2 2 2 2))
    (local.set $c_14 (v128.const f32x4 0.5 0.5 0.5 0.5))
    (local.set $group_x (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $group_y (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $group_z (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $local_z (i32.const 0))
    (local.set $local_y (i32.const 0))
    (local.set $local_x (i32.const 0))
    (local.set $unit (local.get $group_x))
    (local.set $max (local.get $c))
    (local.set $idx (i32.mul (local.get $unit) (i32.const 64)))
    (local.set $step (i32.const 0))
    (local.set $in0_at (i32.add (local.get $in0) (i32.shl (i32.mul (local.get $idx) (i32.const 4)) (i32.const 2))))
    (loop
      (local.set $x0 (v128.load (local.get $in0_at)))
      (local.set $max (f32x4.max (local.get $max) (local.get $x0)))
      (local.set $in0_at (i32.add (local.get $in0_at) (i32.const 16)))
      (br_if 0 (i32.lt_s (local.tee $step (i32.add (local.get $step) (i32.const 1))) (i32.const 64))))
    (local.set $max_1 (local.get $max))
    (local.set $max_2
      (f32.max
        (f32.max (f32x4.extract_lane 0 (local.get $max_1)) (f32x4.extract_lane 1 (local.get $max_1)))
        (f32.max (f32x4.extract_lane 2 (local.get $max_1)) (f32x4.extract_lane 3 (local.get $max_1)))))
    (local.set $sum (local.get $c_1))
    (local.set $step_1 (i32.const 0))
    (local.set $in0_at_1 (i32.add (local.get $in0) (i32.shl (i32.mul (local.get $idx) (i32.const 4)) (i32.const 2))))
    (loop
      (local.set $x0_1 (v128.load (local.get $in0_at_1)))
      (local.set $sub (f32x4.sub (local.get $x0_1) (f32x4.splat (local.get $max_2))))
      (local.set $exp_2 (f32x4.pmin (f32x4.pmax (local.get $sub) (local.get $c_2)) (local.get $c_3)))
      (local.set $exp_3 (f32x4.add (f32x4.mul (local.get $exp_2) (local.get $c_4)) (local.get $c_5)))
      (local.set $exp_4 (f32x4.sub (local.get $exp_3) (local.get $c_5)))
      (local.set $exp_5
        (f32x4.sub
          (f32x4.sub (local.get $exp_2) (f32x4.mul (local.get $exp_4) (local.get $c_6)))
          (f32x4.mul (local.get $exp_4) (local.get $c_7))))
      (local.set $exp
        (f32x4.mul
          (f32x4.add
            (f32x4.mul
              (local.get $exp_5)
              (f32x4.add
                (f32x4.mul
                  (local.get $exp_5)
                  (f32x4.add
                    (f32x4.mul
                      (local.get $exp_5)
                      (f32x4.add
                        (f32x4.mul
                          (local.get $exp_5)
                          (f32x4.add
                            (f32x4.mul
                              (local.get $exp_5)
                              (f32x4.add (f32x4.mul (local.get $exp_5) (local.get $c_8)) (local.get $c_9)))
                            (local.get $c_10)))
                        (local.get $c_11)))
                    (local.get $c_12)))
                (local.get $c_13)))
            (local.get $c_13))
          (i32x4.add (i32x4.shl (local.get $exp_3) (i32.const 23)) (local.get $c_14))))
      (local.set $sum (f32x4.add (local.get $sum) (local.get $exp)))
      (local.set $in0_at_1 (i32.add (local.get $in0_at_1) (i32.const 16)))
      (br_if 0 (i32.lt_s (local.tee $step_1 (i32.add (local.get $step_1) (i32.const 1))) (i32.const 64))))
    (local.set $sum_1 (local.get $sum))
    (local.set $sum_2
      (f32.add
        (f32.add (f32x4.extract_lane 0 (local.get $sum_1)) (f32x4.extract_lane 1 (local.get $sum_1)))
        (f32.add (f32x4.extract_lane 2 (local.get $sum_1)) (f32x4.extract_lane 3 (local.get $sum_1)))))
    (local.set $step_2 (i32.const 0))
    (local.set $in0_at_2 (i32.add (local.get $in0) (i32.shl (i32.mul (local.get $idx) (i32.const 4)) (i32.const 2))))
    (local.set $out0_at (i32.add (local.get $out0) (i32.shl (i32.mul (local.get $idx) (i32.const 4)) (i32.const 2))))
    (loop
      (local.set $x0_2 (v128.load (local.get $in0_at_2)))
      (local.set $sub_1 (f32x4.sub (local.get $x0_2) (f32x4.splat (local.get $max_2))))
      (local.set $exp_6 (f32x4.pmin (f32x4.pmax (local.get $sub_1) (local.get $c_2)) (local.get $c_3)))
      (local.set $exp_7 (f32x4.add (f32x4.mul (local.get $exp_6) (local.get $c_4)) (local.get $c_5)))
      (local.set $exp_8 (f32x4.sub (local.get $exp_7) (local.get $c_5)))
      (local.set $exp_9
        (f32x4.sub
          (f32x4.sub (local.get $exp_6) (f32x4.mul (local.get $exp_8) (local.get $c_6)))
          (f32x4.mul (local.get $exp_8) (local.get $c_7))))
      (local.set $exp_1
        (f32x4.mul
          (f32x4.add
            (f32x4.mul
              (local.get $exp_9)
              (f32x4.add
                (f32x4.mul
                  (local.get $exp_9)
                  (f32x4.add
                    (f32x4.mul
                      (local.get $exp_9)
                      (f32x4.add
                        (f32x4.mul
                          (local.get $exp_9)
                          (f32x4.add
                            (f32x4.mul
                              (local.get $exp_9)
                              (f32x4.add (f32x4.mul (local.get $exp_9) (local.get $c_8)) (local.get $c_9)))
                            (local.get $c_10)))
                        (local.get $c_11)))
                    (local.get $c_12)))
                (local.get $c_13)))
            (local.get $c_13))
          (i32x4.add (i32x4.shl (local.get $exp_7) (i32.const 23)) (local.get $c_14))))
      (local.set $div (f32x4.div (local.get $exp_1) (f32x4.splat (local.get $sum_2))))
      (v128.store (local.get $out0_at) (local.get $div))
      (local.set $in0_at_2 (i32.add (local.get $in0_at_2) (i32.const 16)))
      (local.set $out0_at (i32.add (local.get $out0_at) (i32.const 16)))
      (br_if 0 (i32.lt_s (local.tee $step_2 (i32.add (local.get $step_2) (i32.const 1))) (i32.const 64)))))
  (func $run (param $first i32) (param $end i32) (param $in0 i32) (param $out0 i32)
    (loop
      (call $group (local.get $first) (local.get $in0) (local.get $out0))
      (br_if 0 (i32.lt_s (local.tee $first (i32.add (local.get $first) (i32.const 1))) (local.get $end)))))
  (export "run" (func $run)))
