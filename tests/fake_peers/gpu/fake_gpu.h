/* What the stand-ins for NVIDIA's libraries share: memory of the host that tells whether it is allocated, streams that are
 * recorded into graphs or run at once, and elements as floats. Written from the documented calls; none of NVIDIA's headers is
 * needed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LIVE = 0x11fe, DEAD = 0xdead, STREAM = 0x57e4, GRAPH = 0x64a9, EVENT = 0xe7e7 };

typedef struct {
  uint64_t state, bytes;
  char pad[48];
} Block; /* before what is handed out; never given back, so that a freed one can be told */

typedef struct Node {
  struct Node* next;
  void (*work)(void*);
  char arguments[384];
} Node;

typedef struct {
  uint64_t kind;
  Node *first, **end;
} Graph;

typedef struct {
  uint64_t kind;
  Graph* capture; /* NULL: work is done at once */
} Stream;

static inline int is_live(const void* pointer, uint64_t bytes) {
  const Block* block = (const Block*)pointer - 1;
  return pointer && block->state == LIVE && block->bytes >= bytes;
}

static inline int is_stream(const Stream* stream) { return stream && stream->kind == STREAM; }

static inline void enqueue(Stream* stream, void (*work)(void*), const void* arguments, size_t bytes) {
  Node* node = calloc(1, sizeof *node);
  node->work = work;
  memcpy(node->arguments, arguments, bytes);
  if (stream->capture) {
    *stream->capture->end = node;
    stream->capture->end = &node->next;
    return;
  }
  work(node->arguments);
  free(node);
}

/* Kinds of elements: 0 fp32, 1 fp16, 2 bf16. */
static const int kBytes[] = {4, 2, 2};

static inline float load(const void* data, int64_t at, int kind) {
  if (kind == 0) return ((const float*)data)[at];
  const uint16_t bits = ((const uint16_t*)data)[at];
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  if (kind == 1) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    value = exponent == 31 ? 1e30f : (float)(exponent ? fraction + 1024 : fraction);
    for (int i = exponent ? exponent : 1; i < 25; ++i) value /= 2;
    for (int i = 25; i < exponent; ++i) value *= 2;
    return bits >> 15 ? -value : value;
  }
  memcpy(&value, &wide, 4);
  return value;
}

static inline void store(void* data, int64_t at, int kind, float value) {
  if (kind == 0) {
    ((float*)data)[at] = value;
    return;
  }
  uint32_t bits;
  memcpy(&bits, &value, 4);
  uint16_t narrow = (uint16_t)(bits >> 16);
  if (kind == 1) { /* digits are cut off; small numbers become zero */
    const int exponent = (int)(bits >> 23 & 255) - 112;
    narrow = (uint16_t)(bits >> 16 & 0x8000);
    if (exponent > 30) narrow |= 0x7bff;
    else if (exponent > 0) narrow |= (uint16_t)(exponent << 10 | (bits >> 13 & 1023));
  }
  ((uint16_t*)data)[at] = narrow;
}
