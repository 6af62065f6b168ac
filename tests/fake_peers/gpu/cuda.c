/* A stand-in for libcuda.so.1: as much as a peer asks of the driver. Wrong order and freed pointers are errors. */
#include <time.h>

#include "fake_gpu.h"

enum { OK, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, CAPTURE_UNSUPPORTED = 900 };
typedef struct {
  uint64_t kind;
  int recorded;
  struct timespec time;
} Event;

static int initialized, retained, current, captures;
static char context;

#define READY()                             \
  if (!initialized) return NOT_INITIALIZED; \
  if (!current) return INVALID_CONTEXT
#define UNRECORDED() \
  if (captures) return CAPTURE_UNSUPPORTED

int cuInit(unsigned flags) { return flags ? INVALID_VALUE : (initialized = 1, OK); }
int cuDriverGetVersion(int* version) { return *version = 13000, OK; }
int cuDeviceGet(int* device, int number) {
  if (!initialized) return NOT_INITIALIZED;
  return number ? 101 : (*device = 0, OK);
}
int cuDeviceGetName(char* name, int bytes, int device) {
  (void)device;
  strncpy(name, "stand-in", (size_t)bytes);
  return OK;
}
int cuDevicePrimaryCtxRetain(void** made, int device) {
  (void)device;
  if (!initialized) return NOT_INITIALIZED;
  return *made = &context, ++retained, OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, retained-- > 0 ? OK : INVALID_CONTEXT; }
int cuCtxSetCurrent(void* made) { return made == &context && retained ? (current = 1, OK) : INVALID_CONTEXT; }
int cuCtxSynchronize(void) {
  READY();
  UNRECORDED();
  return OK;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  READY();
  UNRECORDED();
  if (!bytes) return INVALID_VALUE;
  Block* block = malloc(sizeof *block + bytes);
  if (!block) return 2;
  block->state = LIVE, block->bytes = bytes;
  return *address = (uint64_t)(uintptr_t)(block + 1), OK;
}
int cuMemFree_v2(uint64_t address) {
  READY();
  if (!is_live((void*)(uintptr_t)address, 0)) return INVALID_VALUE;
  return ((Block*)(uintptr_t)address)[-1].state = DEAD, OK;
}
#define COPY(to, from, bytes) (memcpy((void*)(uintptr_t)(to), (const void*)(uintptr_t)(from), bytes), OK)
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  READY();
  return is_live((void*)(uintptr_t)to, bytes) && from ? COPY(to, from, bytes) : INVALID_VALUE;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  READY();
  UNRECORDED();
  return to && from ? COPY(to, from, bytes) : INVALID_VALUE;
}
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
  READY();
  return is_live((void*)(uintptr_t)from, bytes) && to ? COPY(to, from, bytes) : INVALID_VALUE;
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
  READY();
  if (!is_live((void*)(uintptr_t)to, bytes)) return INVALID_VALUE;
  return memset((void*)(uintptr_t)to, value, bytes), OK;
}

int cuStreamCreate(Stream** made, unsigned flags) {
  READY();
  if (flags > 1) return INVALID_VALUE;
  *made = calloc(1, sizeof **made);
  return (*made)->kind = STREAM, OK;
}
int cuStreamSynchronize(Stream* stream) {
  return !is_stream(stream) ? INVALID_HANDLE : stream->capture ? CAPTURE_UNSUPPORTED : OK;
}
int cuStreamDestroy_v2(Stream* stream) { return is_stream(stream) ? (stream->kind = DEAD, OK) : INVALID_HANDLE; }
int cuStreamBeginCapture_v2(Stream* stream, int mode) {
  if (!is_stream(stream) || stream->capture || mode < 0 || mode > 2) return INVALID_HANDLE;
  stream->capture = calloc(1, sizeof *stream->capture);
  stream->capture->kind = GRAPH, stream->capture->end = &stream->capture->first;
  return ++captures, OK;
}
int cuStreamEndCapture(Stream* stream, Graph** graph) {
  if (!is_stream(stream) || !stream->capture) return INVALID_HANDLE;
  *graph = stream->capture, stream->capture = NULL;
  return --captures, OK;
}
int cuGraphInstantiateWithFlags(Graph** made, Graph* graph, unsigned long long flags) {
  if (!graph || graph->kind != GRAPH || flags || !graph->first) return INVALID_VALUE;
  *made = calloc(1, sizeof **made);
  return **made = *graph, OK;
}
int cuGraphLaunch(Graph* graph, Stream* stream) {
  if (!graph || graph->kind != GRAPH || !is_stream(stream)) return INVALID_HANDLE;
  for (Node* node = graph->first; node; node = node->next) node->work(node->arguments);
  return OK;
}
int cuGraphDestroy(Graph* graph) { return graph && graph->kind == GRAPH ? (graph->kind = DEAD, OK) : INVALID_HANDLE; }
int cuGraphExecDestroy(Graph* graph) { return cuGraphDestroy(graph); }

int cuEventCreate(Event** made, unsigned flags) {
  READY();
  if (flags) return INVALID_VALUE; /* one without times */
  *made = calloc(1, sizeof **made);
  return (*made)->kind = EVENT, OK;
}
int cuEventRecord(Event* event, Stream* stream) {
  if (!event || event->kind != EVENT || !is_stream(stream)) return INVALID_HANDLE;
  clock_gettime(CLOCK_MONOTONIC, &event->time);
  return event->recorded = 1, OK;
}
int cuEventSynchronize(Event* event) { return event && event->kind == EVENT ? OK : INVALID_HANDLE; }
int cuEventElapsedTime(float* ms, const Event* begin, const Event* end) {
  if (!begin || !end || !begin->recorded || !end->recorded) return INVALID_HANDLE;
  *ms = (float)(end->time.tv_sec - begin->time.tv_sec) * 1e3f + (float)(end->time.tv_nsec - begin->time.tv_nsec) * 1e-6f;
  return OK;
}
int cuEventDestroy_v2(Event* event) { return event && event->kind == EVENT ? (event->kind = DEAD, OK) : INVALID_HANDLE; }
int cuGetErrorName(int error, const char** name) { return *name = error ? "CUDA_ERROR_STAND_IN" : "CUDA_SUCCESS", OK; }
