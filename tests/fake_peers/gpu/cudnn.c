/* A stand-in for libcudnn.so.9's graph API and older convolution calls: plain loops, and an error for each use out of order. Of
 * its engines 0 rounds operands (as it says), 1 is right, 2 computes nothing and is the fastest, 3 is for no card.
 * FAKE_CUDNN_REFUSES=graph: no graph is taken; =all: the older calls are not either. */
#include "cudnn.h"

enum {
  POINTWISE,
  CONVOLUTION,
  ENGINE,
  CONFIG,
  HEURISTICS,
  PLAN,
  OP_CONVOLUTION = 10,
  OP_POINTWISE = 13,
  OP_GRAPH = 15,
  PACK,
  TENSOR
};
enum { MAGIC = 0xc0d };

typedef struct {
  int name, type;
  int64_t count;
  union {
    int64_t i[8];
    int32_t n[16];
    void* p[8];
    char bytes[64];
  } v;
} Attribute;
typedef struct Descriptor {
  int magic, type, finalized, count, engine;
  struct Descriptor* graph; /* of a configuration */
  Attribute attributes[8];
} Descriptor;
static void nothing(void* arguments) { (void)arguments; }

const char* fake_last = "";

size_t cudnnGetVersion(void) { return 91900; }
const char* cudnnGetErrorString(int status) { return status ? "CUDNN_STATUS_STAND_IN" : "CUDNN_STATUS_SUCCESS"; }
void cudnnGetLastErrorString(char* text, size_t bytes) { strncpy(text, fake_last, bytes); }
int cudnnCreate(Handle** made) { return *made = calloc(1, sizeof **made), (*made)->magic = HANDLE, OK; }
int cudnnDestroy(Handle* handle) { return handle && handle->magic == HANDLE ? (handle->magic = 0, OK) : BAD_PARAM; }
int cudnnSetStream(Handle* handle, Stream* stream) {
  if (!handle || handle->magic != HANDLE || !is_stream(stream)) return wrong(BAD_PARAM, "no handle, or no stream");
  return handle->stream = stream, OK;
}

int cudnnBackendCreateDescriptor(int type, Descriptor** made) {
  *made = calloc(1, sizeof **made);
  (*made)->magic = MAGIC, (*made)->type = type;
  return OK;
}
int cudnnBackendDestroyDescriptor(Descriptor* d) { return d && d->magic == MAGIC ? (d->magic = DEAD, OK) : BAD_PARAM; }

static Attribute* get(Descriptor* d, int name) {
  for (int i = 0; i < d->count; ++i)
    if (d->attributes[i].name == name) return &d->attributes[i];
  return NULL;
}
static size_t bytes_of(int type) { /* of an element */
  switch (type) {
    case 0:
    case 3:
    case 6:
    case 15: return 8;
    case 1:
    case 4:
    case 7:
    case 8:
    case 11:
    case 14: return 4;
    case 2: return 1;
    default: return 0;
  }
}
static const struct {
  int name, type, count;
} kTypes[] = {{0, 14, 1},   {1, 1, 1},    {100, 1, 1},  {101, 7, 1},   {102, 3, 2},   {103, 3, 2},  {104, 3, 2},
              {105, 3, 2},  {106, 3, 1},  {200, 8, 1},  {201, 15, 1},  {400, 0, 1},   {401, 15, 1}, {700, 4, 1},
              {701, 4, 1},  {702, 15, 1}, {703, 15, 1}, {704, 15, 1},  {705, 15, 1},  {750, 15, 1}, {751, 15, 1},
              {752, 15, 1}, {753, 15, 1}, {800, 0, 1},  {801, 15, -1}, {900, 3, 1},   {901, 1, 1},  {902, 3, 4},
              {903, 3, 4},  {906, 3, 1},  {907, 2, 1},  {1000, 3, -1}, {1001, 6, -1}, {1003, 6, 1}};

int cudnnBackendSetAttribute(Descriptor* d, int name, int type, int64_t count, const void* values) {
  if (!d || d->magic != MAGIC || !values) return wrong(NULL_POINTER, "no descriptor, or no values");
  if (d->finalized) return wrong(BAD_PARAM, "the descriptor is finalised already");
  size_t i = 0;
  while (i < sizeof kTypes / sizeof *kTypes && kTypes[i].name != name) ++i;
  if (i == sizeof kTypes / sizeof *kTypes || kTypes[i].type != type || (kTypes[i].count > 0 && kTypes[i].count != count))
    return wrong(ATTRIBUTE_TYPE, "an attribute of another type or number of elements");
  if (count < 1 || (size_t)count * bytes_of(type) > sizeof d->attributes->v) return wrong(BAD_PARAM, "too many elements");
  Attribute* a = get(d, name);
  if (!a) a = &d->attributes[d->count++];
  a->name = name, a->type = type, a->count = count;
  memcpy(&a->v, values, (size_t)count * bytes_of(type));
  return OK;
}

static Descriptor* other(Descriptor* d, int name, int type) { /* a finalised one that an attribute names, or NULL */
  Attribute* a = get(d, name);
  Descriptor* found = a ? a->v.p[0] : NULL;
  return found && found->magic == MAGIC && found->type == type && found->finalized ? found : NULL;
}
static int has_all(Descriptor* d, const int* names) {
  for (; *names >= 0; ++names)
    if (!get(d, *names)) return 0;
  return 1;
}
static int has_handle(Descriptor* d, int name) {
  Attribute* a = get(d, name);
  const Handle* handle = a ? a->v.p[0] : NULL;
  return handle && handle->magic == HANDLE;
}
int cudnnBackendFinalize(Descriptor* d) {
  static const int tensor[] = {900, 901, 902, 903, 906, -1}, convolution[] = {100, 101, 102, 103, 104, 105, 106, -1};
  static const int pointwise[] = {0, 1, -1}, scales[] = {700, 701, -1}, pack[] = {1000, 1001, 1003, -1};
  if (!d || d->magic != MAGIC || d->finalized) return wrong(BAD_PARAM, "no descriptor, or one that is finalised");
  int ok = 1;
  if (d->type == TENSOR) ok = has_all(d, tensor) && kind_of(get(d, 901)->v.n[0]) >= 0;
  else if (d->type == CONVOLUTION) ok = has_all(d, convolution) && get(d, 101)->v.n[0] == 1 && get(d, 106)->v.i[0] == 2;
  else if (d->type == POINTWISE) ok = has_all(d, pointwise);
  else if (d->type == OP_CONVOLUTION) {
    Descriptor *x = other(d, 704, TENSOR), *w = other(d, 703, TENSOR), *y = other(d, 705, TENSOR),
               *c = other(d, 702, CONVOLUTION);
    if (!x || !w || !y || !c || !has_all(d, scales)) return wrong(NOT_FINALIZED, "an operand is missing or not finalised");
    for (int i = 0; i < 2; ++i) {
      const int64_t seen = (get(w, 902)->v.i[2 + i] - 1) * get(c, 102)->v.i[i] + 1;
      const int64_t out =
          (get(x, 902)->v.i[2 + i] + get(c, 104)->v.i[i] + get(c, 105)->v.i[i] - seen) / get(c, 103)->v.i[i] + 1;
      if (out != get(y, 902)->v.i[2 + i]) return wrong(SHAPE_MISMATCH, "the output has another size");
    }
  } else if (d->type == OP_POINTWISE) {
    Descriptor* p = other(d, 750, POINTWISE);
    if (!p || !other(d, 751, TENSOR) || !other(d, 753, TENSOR))
      return wrong(NOT_FINALIZED, "an operand is missing or not finalised");
    ok = (get(p, 0)->v.n[0] == 0) == (other(d, 752, TENSOR) != NULL);
  } else if (d->type == OP_GRAPH) {
    Attribute* nodes = get(d, 801);
    if (!has_handle(d, 800) || !nodes) return wrong(NULL_POINTER, "a graph without handle or operations");
    for (int64_t i = 0; i < nodes->count; ++i)
      if (!((Descriptor*)nodes->v.p[i])->finalized) return wrong(NOT_FINALIZED, "an operation is not finalised");
    if (refuses("graph")) return wrong(NOT_SUPPORTED, "this graph is not taken");
  } else if (d->type == HEURISTICS) {
    ok = other(d, 201, OP_GRAPH) && get(d, 200);
  } else if (d->type == PLAN) {
    Descriptor* config = other(d, 401, CONFIG);
    if (!config || !has_handle(d, 400)) return wrong(NOT_FINALIZED, "a plan without handle or configuration");
    if (config->engine == 3) return wrong(NOT_SUPPORTED, "no card has this engine");
  } else if (d->type == PACK) {
    ok = has_all(d, pack) && get(d, 1000)->count == get(d, 1001)->count;
    for (int64_t i = 0; ok && i < get(d, 1001)->count; ++i)
      if (!is_live(get(d, 1001)->v.p[i], 1)) return wrong(NULL_POINTER, "a pointer to memory that is not allocated");
  } else {
    ok = 0;
  }
  if (!ok) return wrong(BAD_PARAM, "an attribute is missing or wrong");
  return d->finalized = 1, OK;
}

static const int kListed[4][3] = {{1, 2, 0}, {0}, {3}, {2, 0, 1}}; /* engines by mode: instant, B, fallback, A */
static const int kCounts[4] = {3, 0, 1, 3};

int cudnnBackendGetAttribute(Descriptor* d, int name, int type, int64_t wanted, int64_t* count, void* values) {
  if (!d || d->magic != MAGIC || !count) return wrong(NULL_POINTER, "no descriptor, or no count");
  if (!d->finalized) return wrong(NOT_FINALIZED, "the descriptor is not finalised");
  if (name == 202 && type == 15) {
    const int mode = get(d, 200)->v.n[0];
    *count = kCounts[mode];
    for (int64_t i = 0; i < *count && i < wanted; ++i) {
      Descriptor* config = ((Descriptor**)values)[i];
      if (!config || config->type != CONFIG) return wrong(BAD_PARAM, "no descriptor of a configuration to write to");
      config->engine = kListed[mode][i], config->graph = other(d, 201, OP_GRAPH), config->finalized = 1;
    }
  } else if (name == 300 && type == 15 && wanted == 1) {
    Descriptor* engine = ((Descriptor**)values)[0];
    if (!engine || engine->type != ENGINE) return wrong(BAD_PARAM, "no descriptor of an engine to write to");
    *count = 1, engine->engine = d->engine, engine->finalized = 1;
  } else if (name == 1301 && type == 3 && wanted == 1) {
    *count = 1, *(int64_t*)values = d->engine;
  } else if (name == 1303 && type == 11) {
    *count = d->engine == 0;
    if (*count && wanted) *(int*)values = 0;
  } else if (name == 402 && type == 3 && wanted == 1) {
    *count = 1, *(int64_t*)values = 128;
  } else {
    return wrong(ATTRIBUTE_TYPE, "an attribute that is not known, or of another type");
  }
  return OK;
}

int cudnnBackendExecute(Handle* handle, Descriptor* plan, Descriptor* pack) {
  if (!handle || handle->magic != HANDLE || !handle->stream) return wrong(NULL_POINTER, "no handle, or one without a stream");
  if (!plan || plan->type != PLAN || !plan->finalized || !pack || pack->type != PACK || !pack->finalized)
    return wrong(NOT_FINALIZED, "the plan or the pack is not finalised");
  Descriptor* config = other(plan, 401, CONFIG);
  Attribute *ids = get(pack, 1000), *pointers = get(pack, 1001);
  if (!config || !is_live(get(pack, 1003)->v.p[0], 128))
    return wrong(NULL_POINTER, "a workspace that is too small or not allocated");
  for (int64_t i = 0; i < pointers->count; ++i)
    if (!is_live(pointers->v.p[i], 1)) return wrong(NULL_POINTER, "a pointer to memory that is not allocated");
  Attribute* nodes = get(config->graph, 801);
  Descriptor* op = nodes->v.p[0];
  Descriptor *x = other(op, 704, TENSOR), *w = other(op, 703, TENSOR), *y = other(op, 705, TENSOR),
             *c = other(op, 702, CONVOLUTION);
  Problem p = {0};
  Descriptor* last = other(nodes->v.p[nodes->count - 1], nodes->count > 1 ? 753 : 705, TENSOR);
  for (int i = 0; i < 4; ++i) {
    p.size[i] = get(x, 902)->v.i[i], p.filter[i] = get(w, 902)->v.i[i];
    p.xs[i] = get(x, 903)->v.i[i], p.ws[i] = get(w, 903)->v.i[i], p.ys[i] = get(last, 903)->v.i[i];
  }
  for (int i = 0; i < 2; ++i) {
    p.out[i] = get(y, 902)->v.i[2 + i], p.pad[i] = get(c, 105)->v.i[i], p.stride[i] = get(c, 103)->v.i[i];
    p.dilation[i] = get(c, 102)->v.i[i];
  }
  p.kind = kind_of(get(x, 901)->v.n[0]), p.relu = nodes->count == 3;
  for (int64_t i = 0; i < ids->count; ++i) {
    const char* at = pointers->v.p[i];
    if (ids->v.i[i] == 1) p.x = at;
    if (ids->v.i[i] == 2) p.w = at;
    if (ids->v.i[i] == 3) p.bias = at;
    if (ids->v.i[i] == 4) p.y = (char*)at;
  }
  if (!p.x || !p.w || !p.y || (nodes->count > 1) != (p.bias != NULL))
    return wrong(BAD_PARAM, "the pack lacks a tensor of the graph");
  enqueue(handle->stream, config->engine == 2 ? nothing : convolve, &p, sizeof p);
  return OK;
}
