// The functions that code built with -fsanitize=thread and -fsanitize=undefined calls, in place of the compiler's own libraries.

#include "checker.h"

using namespace standin;

#define HOOK extern "C" __attribute__((visibility("default"))) void
#define CALLER __builtin_return_address(0)

#define ACCESS(bytes) \
  HOOK __tsan_read##bytes(void *p) { check_access(p, bytes, reads, CALLER); } \
  HOOK __tsan_write##bytes(void *p) { check_access(p, bytes, writes, CALLER); } \
  HOOK __tsan_unaligned_read##bytes(void *p) { check_access(p, bytes, reads, CALLER); } \
  HOOK __tsan_unaligned_write##bytes(void *p) { check_access(p, bytes, writes, CALLER); } \
  HOOK __tsan_volatile_read##bytes(void *p) { check_access(p, bytes, reads, CALLER); } \
  HOOK __tsan_volatile_write##bytes(void *p) { check_access(p, bytes, writes, CALLER); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

HOOK __tsan_read_range(void *p, unsigned long bytes) { check_access(p, bytes, reads, CALLER); }
HOOK __tsan_write_range(void *p, unsigned long bytes) { check_access(p, bytes, writes, CALLER); }
HOOK __tsan_func_entry(void *) {}
HOOK __tsan_func_exit() {}
HOOK __tsan_init() {}
HOOK __tsan_vptr_update(void **, void *) {}
HOOK __tsan_vptr_read(void **) {}

HOOK cuda_touch(const void *p, unsigned bytes, bool write) { check_access(p, bytes, write ? writes : reads, nullptr); }
HOOK cuda_touch_atomic(const void *p, unsigned bytes) { check_access(p, bytes, updates, CALLER); }

// Each gets its own description of the fault; the line is found as for accesses.
HOOK __ubsan_handle_type_mismatch_v1(void *, void *) { check_failed("misaligned vector access, or one through a null pointer", CALLER); }
HOOK __ubsan_handle_out_of_bounds(void *, void *) { check_failed("index outside a local array", CALLER); }
HOOK __ubsan_handle_shift_out_of_bounds(void *, void *, void *) { check_failed("shift by more than the width", CALLER); }
HOOK __ubsan_handle_divrem_overflow(void *, void *, void *) { check_failed("integer division by zero, or of the least number by -1", CALLER); }
HOOK __ubsan_handle_add_overflow(void *, void *, void *) { check_failed("signed overflow of an addition", CALLER); }
HOOK __ubsan_handle_sub_overflow(void *, void *, void *) { check_failed("signed overflow of a subtraction", CALLER); }
HOOK __ubsan_handle_mul_overflow(void *, void *, void *) { check_failed("signed overflow of a multiplication", CALLER); }
HOOK __ubsan_handle_negate_overflow(void *, void *) { check_failed("signed overflow of a negation", CALLER); }
HOOK __ubsan_handle_float_cast_overflow(void *, void *) { check_failed("a float outside the range of the integer it becomes", CALLER); }
HOOK __ubsan_handle_pointer_overflow(void *, void *, void *) { check_failed("pointer arithmetic overflows", CALLER); }

HOOK cuda_acquire() {}
