;; map kernel; 2 x 16 elements per invocation
;; in0: f32[64,32], in1: f32[32], out0: f32[64,32]
;; 32768 flops, 16512 bytes
(module
  (import "env" "memory" (memory 0 65536))
  (func $group (param $group i32) (param $in0 i32) (param $in1 i32) (param $out0 i32)
    (local $group_x i32) (local $group_y i32) (local $group_z i32) (local $local_x i32) (local $local_y i32)
    (local $local_z i32) (local $turn i32) (local $next i32) (local $turn_1 i32) (local $end i32) (local $in0_at i32)
    (local $out0_at i32) (local $x0 v128) (local $idx_1 i32) (local $idx_2 i32) (local $x1 v128) (local $add v128)
    (local $neg v128) (local $c v128) (local $c_1 v128) (local $exp_4 v128) (local $c_2 v128) (local $c_3 v128)
    (local $exp_5 v128) (local $exp_6 v128) (local $c_4 v128) (local $c_5 v128) (local $exp_7 v128) (local $c_6 v128)
    (local $c_7 v128) (local $c_8 v128) (local $c_9 v128) (local $c_10 v128) (local $c_11 v128) (local $exp v128)
    (local $c_12 v128) (local $add_1 v128) (local $recip v128) (local $mul v128) (local $x0_1 v128) (local $idx_4 i32)
    (local $x1_1 v128) (local $add_2 v128) (local $neg_1 v128) (local $exp_8 v128) (local $exp_9 v128)
    (local $exp_10 v128) (local $exp_11 v128) (local $exp_1 v128) (local $add_3 v128) (local $recip_1 v128)
    (local $mul_1 v128) (local $x0_2 v128) (local $idx_6 i32) (local $x1_2 v128) (local $add_4 v128) (local $neg_2 v128)
    (local $exp_12 v128) (local $exp_13 v128) (local $exp_14 v128) (local $exp_15 v128) (local $exp_2 v128)
    (local $add_5 v128) (local $recip_2 v128) (local $mul_2 v128) (local $x0_3 v128) (local $idx_8 i32)
    (local $x1_3 v128) (local $add_6 v128) (local $neg_3 v128) (local $exp_16 v128) (local $exp_17 v128)
    (local $exp_18 v128) (local $exp_19 v128) (local $exp_3 v128) (local $add_7 v128) (local $recip_3 v128)
    (local $mul_3 v128)
    (local.set $c (v128.const f32x4 -87.5 -87.5 -87.5 -87.5))
    (local.set $c_1 (v128.const f32x4 89 89 89 89))
    (local.set $c_2 (v128.const f32x4 1.4426950216293335 1.4426950216293335 1.4426950216293335 1.4426950216293335))
    (local.set $c_3 (v128.const f32x4 12583038 12583038 12583038 12583038))
    (local.set $c_4 (v128.const f32x4 0.693145751953125 0.693145751953125 0.693145751953125 0.693145751953125))
    (local.set $c_5
      (v128.const f32x4 0.000001428606765330187 0.000001428606765330187 0.000001428606765330187 0.000001428606765330187))
    (local.set $c_6
      (v128.const f32x4 0.0027629078831523657 0.0027629078831523657 0.0027629078831523657 0.0027629078831523657))
    (local.set $c_7 (v128.const f32x4 0.01673749089241028 0.01673749089241028 0.01673749089241028 0.01673749089241028))
    (local.set $c_8 (v128.const f32x4 0.08333677798509598 0.08333677798509598 0.08333677798509598 0.08333677798509598))
    (local.set $c_9 (v128.const f32x4 0.3333304226398468 0.3333304226398468 0.3333304226398468 0.3333304226398468))
    (local.set $c_10 (v128.const f32x4 0.9999998807907104 0.9999998807907104 0.9999998807907104 0.9999998807907104))
    (local.set $c_11 (v128.const f32x4 2 2 2 2))
    (local.set $c_12 (v128.const f32x4 1 1 1 1))
    (local.set $group_x (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $group_y (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $group_z (local.get $group))
    (local.set $group (i32.const 0))
    (local.set $local_z (i32.const 0))
    (local.set $local_y (i32.const 0))
    (local.set $local_x (i32.const 0))
    (local.set $turn (i32.add (i32.mul (local.get $group_x) (i32.const 2)) (local.get $local_x)))
    (local.set $next (i32.mul (i32.add (local.get $group_x) (i32.const 1)) (i32.const 2)))
    (local.set $end (local.get $next))
    (local.set $turn_1 (local.get $turn))
    (local.set $in0_at (i32.add (local.get $in0) (i32.shl (i32.mul (local.get $turn) (i32.const 16)) (i32.const 2))))
    (local.set $out0_at (i32.add (local.get $out0) (i32.shl (i32.mul (local.get $turn) (i32.const 16)) (i32.const 2))))
    (if (i32.lt_s (local.get $turn_1) (local.get $end))
      (then
        (loop
          (local.set $x0 (v128.load (local.get $in0_at)))
          (local.set $idx_1 (i32.and (local.get $turn_1) (i32.const 1)))
          (local.set $idx_2 (i32.mul (local.get $idx_1) (i32.const 4)))
          (local.set $x1
            (v128.load (i32.add (local.get $in1) (i32.shl (i32.mul (local.get $idx_2) (i32.const 4)) (i32.const 2)))))
          (local.set $add (f32x4.add (local.get $x0) (local.get $x1)))
          (local.set $neg (f32x4.neg (local.get $add)))
          (local.set $exp_4 (f32x4.pmin (f32x4.pmax (local.get $neg) (local.get $c)) (local.get $c_1)))
          (local.set $exp_5 (f32x4.add (f32x4.mul (local.get $exp_4) (local.get $c_2)) (local.get $c_3)))
          (local.set $exp_6 (f32x4.sub (local.get $exp_5) (local.get $c_3)))
          (local.set $exp_7
            (f32x4.sub
              (f32x4.sub (local.get $exp_4) (f32x4.mul (local.get $exp_6) (local.get $c_4)))
              (f32x4.mul (local.get $exp_6) (local.get $c_5))))
          (local.set $exp
            (f32x4.mul
              (f32x4.add
                (f32x4.mul
                  (local.get $exp_7)
                  (f32x4.add
                    (f32x4.mul
                      (local.get $exp_7)
                      (f32x4.add
                        (f32x4.mul
                          (local.get $exp_7)
                          (f32x4.add
                            (f32x4.mul
                              (local.get $exp_7)
                              (f32x4.add
                                (f32x4.mul
                                  (local.get $exp_7)
                                  (f32x4.add (f32x4.mul (local.get $exp_7) (local.get $c_6)) (local.get $c_7)))
                                (local.get $c_8)))
                            (local.get $c_9)))
                        (local.get $c_10)))
                    (local.get $c_11)))
                (local.get $c_11))
              (i32x4.shl (local.get $exp_5) (i32.const 23))))
          (local.set $add_1 (f32x4.add (local.get $exp) (local.get $c_12)))
          (local.set $recip (f32x4.div (local.get $c_12) (local.get $add_1)))
          (local.set $mul (f32x4.mul (local.get $add) (local.get $recip)))
          (v128.store (local.get $out0_at) (local.get $mul))
          (local.set $x0_1 (v128.load offset=16 (local.get $in0_at)))
          (local.set $idx_4 (i32.add (i32.const 1) (local.get $idx_2)))
          (local.set $x1_1
            (v128.load (i32.add (local.get $in1) (i32.shl (i32.mul (local.get $idx_4) (i32.const 4)) (i32.const 2)))))
          (local.set $add_2 (f32x4.add (local.get $x0_1) (local.get $x1_1)))
          (local.set $neg_1 (f32x4.neg (local.get $add_2)))
          (local.set $exp_8 (f32x4.pmin (f32x4.pmax (local.get $neg_1) (local.get $c)) (local.get $c_1)))
          (local.set $exp_9 (f32x4.add (f32x4.mul (local.get $exp_8) (local.get $c_2)) (local.get $c_3)))
          (local.set $exp_10 (f32x4.sub (local.get $exp_9) (local.get $c_3)))
          (local.set $exp_11
            (f32x4.sub
              (f32x4.sub (local.get $exp_8) (f32x4.mul (local.get $exp_10) (local.get $c_4)))
              (f32x4.mul (local.get $exp_10) (local.get $c_5))))
          (local.set $exp_1
            (f32x4.mul
              (f32x4.add
                (f32x4.mul
                  (local.get $exp_11)
                  (f32x4.add
                    (f32x4.mul
                      (local.get $exp_11)
                      (f32x4.add
                        (f32x4.mul
                          (local.get $exp_11)
                          (f32x4.add
                            (f32x4.mul
                              (local.get $exp_11)
                              (f32x4.add
                                (f32x4.mul
                                  (local.get $exp_11)
                                  (f32x4.add (f32x4.mul (local.get $exp_11) (local.get $c_6)) (local.get $c_7)))
                                (local.get $c_8)))
                            (local.get $c_9)))
                        (local.get $c_10)))
                    (local.get $c_11)))
                (local.get $c_11))
              (i32x4.shl (local.get $exp_9) (i32.const 23))))
          (local.set $add_3 (f32x4.add (local.get $exp_1) (local.get $c_12)))
          (local.set $recip_1 (f32x4.div (local.get $c_12) (local.get $add_3)))
          (local.set $mul_1 (f32x4.mul (local.get $add_2) (local.get $recip_1)))
          (v128.store offset=16 (local.get $out0_at) (local.get $mul_1))
          (local.set $x0_2 (v128.load offset=32 (local.get $in0_at)))
          (local.set $idx_6 (i32.add (i32.const 2) (local.get $idx_2)))
          (local.set $x1_2
            (v128.load (i32.add (local.get $in1) (i32.shl (i32.mul (local.get $idx_6) (i32.const 4)) (i32.const 2)))))
          (local.set $add_4 (f32x4.add (local.get $x0_2) (local.get $x1_2)))
          (local.set $neg_2 (f32x4.neg (local.get $add_4)))
          (local.set $exp_12 (f32x4.pmin (f32x4.pmax (local.get $neg_2) (local.get $c)) (local.get $c_1)))
          (local.set $exp_13 (f32x4.add (f32x4.mul (local.get $exp_12) (local.get $c_2)) (local.get $c_3)))
          (local.set $exp_14 (f32x4.sub (local.get $exp_13) (local.get $c_3)))
          (local.set $exp_15
            (f32x4.sub
              (f32x4.sub (local.get $exp_12) (f32x4.mul (local.get $exp_14) (local.get $c_4)))
              (f32x4.mul (local.get $exp_14) (local.get $c_5))))
          (local.set $exp_2
            (f32x4.mul
              (f32x4.add
                (f32x4.mul
                  (local.get $exp_15)
                  (f32x4.add
                    (f32x4.mul
                      (local.get $exp_15)
                      (f32x4.add
                        (f32x4.mul
                          (local.get $exp_15)
                          (f32x4.add
                            (f32x4.mul
                              (local.get $exp_15)
                              (f32x4.add
                                (f32x4.mul
                                  (local.get $exp_15)
                                  (f32x4.add (f32x4.mul (local.get $exp_15) (local.get $c_6)) (local.get $c_7)))
                                (local.get $c_8)))
                            (local.get $c_9)))
                        (local.get $c_10)))
                    (local.get $c_11)))
                (local.get $c_11))
              (i32x4.shl (local.get $exp_13) (i32.const 23))))
          (local.set $add_5 (f32x4.add (local.get $exp_2) (local.get $c_12)))
          (local.set $recip_2 (f32x4.div (local.get $c_12) (local.get $add_5)))
          (local.set $mul_2 (f32x4.mul (local.get $add_4) (local.get $recip_2)))
          (v128.store offset=32 (local.get $out0_at) (local.get $mul_2))
          (local.set $x0_3 (v128.load offset=48 (local.get $in0_at)))
          (local.set $idx_8 (i32.add (i32.const 3) (local.get $idx_2)))
          (local.set $x1_3
            (v128.load (i32.add (local.get $in1) (i32.shl (i32.mul (local.get $idx_8) (i32.const 4)) (i32.const 2)))))
          (local.set $add_6 (f32x4.add (local.get $x0_3) (local.get $x1_3)))
          (local.set $neg_3 (f32x4.neg (local.get $add_6)))
          (local.set $exp_16 (f32x4.pmin (f32x4.pmax (local.get $neg_3) (local.get $c)) (local.get $c_1)))
          (local.set $exp_17 (f32x4.add (f32x4.mul (local.get $exp_16) (local.get $c_2)) (local.get $c_3)))
          (local.set $exp_18 (f32x4.sub (local.get $exp_17) (local.get $c_3)))
          (local.set $exp_19
            (f32x4.sub
              (f32x4.sub (local.get $exp_16) (f32x4.mul (local.get $exp_18) (local.get $c_4)))
              (f32x4.mul (local.get $exp_18) (local.get $c_5))))
          (local.set $exp_3
            (f32x4.mul
              (f32x4.add
                (f32x4.mul
                  (local.get $exp_19)
                  (f32x4.add
                    (f32x4.mul
                      (local.get $exp_19)
                      (f32x4.add
                        (f32x4.mul
                          (local.get $exp_19)
                          (f32x4.add
                            (f32x4.mul
                              (local.get $exp_19)
                              (f32x4.add
                                (f32x4.mul
                                  (local.get $exp_19)
                                  (f32x4.add (f32x4.mul (local.get $exp_19) (local.get $c_6)) (local.get $c_7)))
                                (local.get $c_8)))
                            (local.get $c_9)))
                        (local.get $c_10)))
                    (local.get $c_11)))
                (local.get $c_11))
              (i32x4.shl (local.get $exp_17) (i32.const 23))))
          (local.set $add_7 (f32x4.add (local.get $exp_3) (local.get $c_12)))
          (local.set $recip_3 (f32x4.div (local.get $c_12) (local.get $add_7)))
          (local.set $mul_3 (f32x4.mul (local.get $add_6) (local.get $recip_3)))
          (v128.store offset=48 (local.get $out0_at) (local.get $mul_3))
          (local.set $in0_at (i32.add (local.get $in0_at) (i32.const 64)))
          (local.set $out0_at (i32.add (local.get $out0_at) (i32.const 64)))
          (br_if 0 (i32.lt_s (local.tee $turn_1 (i32.add (local.get $turn_1) (i32.const 1))) (local.get $end)))))))
  (func $run (param $first i32) (param $end i32) (param $in0 i32) (param $in1 i32) (param $out0 i32)
    (loop
      (call $group (local.get $first) (local.get $in0) (local.get $in1) (local.get $out0))
      (br_if 0 (i32.lt_s (local.tee $first (i32.add (local.get $first) (i32.const 1))) (local.get $end)))))
  (export "run" (func $run)))
