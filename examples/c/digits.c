/* A perceptron learns handwritten digits in C alone: README.md says how to build it. It trains on all images of a
   folder but the last 2,000, on which it measures after each epoch, and writes what it learned to digits.state. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "digits.h"

enum { BATCH = 64, SEEN = 100, HELD = 2000, PIXELS = 784, CLASSES = 10 };

static digits model;
static unsigned char weights[DIGITS_WEIGHTS_BYTES] __attribute__((aligned(64)));

static void check(int code)
{
  if (code == DIGITS_OK) return;
  fprintf(stderr, "%s\n", code == DIGITS_E_INDEX ? model.what : digits_error(code));
  exit(1);
}

/* The bytes of a file behind its head. */
static unsigned char *read_file(const char *folder, const char *name, size_t head, size_t *count)
{
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    fprintf(stderr, "%s: no such file\n", path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  *count = (size_t)ftell(file) - head;
  fseek(file, (long)head, SEEK_SET);
  unsigned char *bytes = malloc(*count);
  if (bytes == NULL || fread(bytes, 1, *count, file) != *count) {
    fprintf(stderr, "%s: cannot be read\n", path);
    exit(1);
  }
  fclose(file);
  return bytes;
}

static void to_floats(float *to, const unsigned char *pixels)
{
  for (int i = 0; i < PIXELS; i++) to[i] = (float)pixels[i] / 255.0f;
}

/* How many of the images are told right. */
static int right(const unsigned char *pixels, const unsigned char *labels, size_t count)
{
  static float images[SEEN * PIXELS], logits[SEEN * CLASSES];
  int sum = 0;
  for (size_t start = 0; start + SEEN <= count; start += SEEN) {
    for (size_t i = 0; i < SEEN; i++) to_floats(images + i * PIXELS, pixels + (start + i) * PIXELS);
    check(digits_predict(&model, images, logits));
    for (size_t i = 0; i < SEEN; i++) {
      int best = 0;
      for (int k = 1; k < CLASSES; k++)
        if (logits[i * CLASSES + (size_t)k] > logits[i * CLASSES + (size_t)best]) best = k;
      sum += best == labels[start + i];
    }
  }
  return sum;
}

int main(int argc, char **argv)
{
  static float images[BATCH * PIXELS];
  static int32_t chosen[BATCH];
  if (argc != 3) {
    fprintf(stderr, "usage: %s WEIGHTS-FOLDER MNIST-FOLDER\n", argv[0]);
    return 2;
  }
  size_t bytes, count, unused;
  unsigned char *file = read_file(argv[1], "digits.bin", 0, &bytes);
  if (bytes == sizeof weights) memcpy(weights, file, bytes);
  check(digits_init(&model, weights, bytes));
  unsigned char *labels = read_file(argv[2], "t10k-labels-idx1-ubyte", 8, &count);
  unsigned char *pixels = read_file(argv[2], "t10k-images-idx3-ubyte", 16, &unused);
  size_t trained = count - HELD;
  uint32_t *order = malloc(trained * sizeof *order);
  if (order == NULL) return 1;
  for (uint32_t i = 0; i < trained; i++) order[i] = i;
  uint64_t random = 1;
  for (int epoch = 1; epoch <= 5; epoch++) {
    for (size_t i = trained - 1; i > 0; i--) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      size_t k = (size_t)(random >> 33) % (i + 1);
      uint32_t held = order[i];
      order[i] = order[k];
      order[k] = held;
    }
    double sum = 0;
    int steps = 0;
    for (size_t start = 0; start + BATCH <= trained; start += BATCH, steps++) {
      for (size_t i = 0; i < BATCH; i++) {
        to_floats(images + i * PIXELS, pixels + (size_t)order[start + i] * PIXELS);
        chosen[i] = labels[order[start + i]];
      }
      float loss[1];
      check(digits_train(&model, images, chosen, loss));
      sum += (double)loss[0];
    }
    int found = right(pixels + trained * PIXELS, labels + trained, HELD);
    printf("epoch %d  loss %.4f  held images right %.2f %%\n", epoch, sum / steps, 100.0 * found / HELD);
  }
  FILE *saved = fopen("digits.state", "wb");
  if (saved == NULL || fwrite(digits_state(&model), DIGITS_STATE_BYTES, 1, saved) != 1) return 1;
  fclose(saved);
  free(file);
  free(labels);
  free(pixels);
  free(order);
  return 0;
}
