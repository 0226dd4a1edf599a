/* An image classifier from ONNX runs in C alone: README.md says how to build it. It reads a picture from a file of
   ONNX (TensorProto), runs the model, prints the best classes, and compares the result with another such file. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "squeezenet.h"

enum { PIXELS = 3 * 224 * 224, CLASSES = 1000, SHOWN = 3, CALLS = 10 };

static squeezenet model;
static unsigned char weights[SQUEEZENET_WEIGHTS_BYTES] __attribute__((aligned(64)));
static float image[PIXELS], expected[CLASSES], result[CLASSES];

static void fail(const char *name, const char *what)
{
  fprintf(stderr, "%s: %s\n", name, what);
  exit(2);
}

static size_t read_file(const char *name, unsigned char *to, size_t most)
{
  FILE *file = fopen(name, "rb");
  if (file == NULL) fail(name, "there is no such file");
  size_t bytes = fread(to, 1, most, file);
  if (ferror(file) || fgetc(file) != EOF) fail(name, "the file is longer than expected");
  fclose(file);
  return bytes;
}

/* A number of seven bits a byte, the low ones first. Moves `at` behind it. */
static uint64_t number(const unsigned char *bytes, size_t end, size_t *at, const char *name)
{
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (*at == end) break;
    unsigned char byte = bytes[(*at)++];
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return value;
  }
  fail(name, "the file is damaged");
  return 0;
}

/* The floats of a TensorProto: field 2 is the type (1 is f32), field 9 has the elements as they lie in memory. */
static void read_tensor(const char *name, float *to, size_t count)
{
  static unsigned char bytes[PIXELS * sizeof(float) + 1024];
  size_t end = read_file(name, bytes, sizeof bytes);
  int found = 0;
  for (size_t at = 0; at < end;) {
    uint64_t key = number(bytes, end, &at, name);
    if ((key & 7) == 0) {
      uint64_t value = number(bytes, end, &at, name);
      if (key >> 3 == 2 && value != 1) fail(name, "expected a tensor of f32");
    } else if ((key & 7) == 2) {
      uint64_t length = number(bytes, end, &at, name);
      if (length > end - at) fail(name, "the file is damaged");
      if (key >> 3 == 9) {
        if (length != count * sizeof(float)) fail(name, "the tensor has another number of elements than the model");
        memcpy(to, bytes + at, count * sizeof(float));
        found = 1;
      }
      at += (size_t)length;
    } else {
      fail(name, "the file is no tensor of ONNX");
    }
  }
  if (!found) fail(name, "the tensor has no elements as raw data");
}

static double milliseconds(void)
{
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int main(int argc, char **argv)
{
  if (argc != 4) {
    fprintf(stderr, "usage: %s squeezenet.bin input.pb output.pb\n", argv[0]);
    return 2;
  }
  size_t bytes = read_file(argv[1], weights, sizeof weights);
  int code = squeezenet_init(&model, weights, bytes);
  if (code != SQUEEZENET_OK) fail(argv[1], squeezenet_error(code));
  read_tensor(argv[2], image, PIXELS);
  read_tensor(argv[3], expected, CLASSES);

  double least = INFINITY;
  for (int i = 0; i < CALLS; i++) {
    double start = milliseconds();
    code = squeezenet_run(&model, image, result);
    if (code != SQUEEZENET_OK) fail(argv[0], squeezenet_error(code));
    least = fmin(least, milliseconds() - start);
  }

  int wrong = 0;
  double furthest = 0;
  for (int i = 0; i < CLASSES; i++) {
    double difference = fabs((double)result[i] - (double)expected[i]);
    /* Written so that NaN is wrong. */
    if (!(difference <= 1e-7 + 1e-3 * fabs((double)expected[i]))) wrong++;
    furthest = fmax(furthest, difference);
  }
  printf("classes");
  for (int k = 0; k < SHOWN; k++) {
    int best = 0;
    for (int i = 1; i < CLASSES; i++)
      if (result[i] > result[best]) best = i;
    printf(" %d (%.3f)", best, (double)result[best]);
    result[best] = -INFINITY;
  }
  printf("\n%d of %d results are wrong, and the furthest is off by %.1e\n", wrong, CLASSES, furthest);
  printf("%.1f ms a call, the least of %d\n", least, CALLS);
  return wrong == 0 ? 0 : 1;
}
