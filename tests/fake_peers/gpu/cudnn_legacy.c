/* The older calls of the stand-in for cuDNN: algorithm 1 is right, 0 computes nothing, 7 is found to fail. */
#include "cudnn.h"

enum { TENSOR = 0x7e, FILTER, CONVOLUTION, ACTIVATION };
typedef struct {
  int kind, set, type, group, math, mode;
  int64_t sizes[4], pad[2], stride[2], dilation[2];
} Old;
typedef struct {
  int algo, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
} Perf;

#define PAIR(Name, KIND)                                                                   \
  int cudnnCreate##Name##Descriptor(Old** made) {                                          \
    return *made = calloc(1, sizeof **made), (*made)->kind = KIND, (*made)->group = 1, OK; \
  }                                                                                        \
  int cudnnDestroy##Name##Descriptor(Old* d) { return d && d->kind == KIND ? (d->kind = DEAD, OK) : BAD_PARAM; }
PAIR(Tensor, TENSOR)
PAIR(Filter, FILTER)
PAIR(Convolution, CONVOLUTION)
PAIR(Activation, ACTIVATION)

static int is(const Old* d, int kind) { return d && d->kind == kind && d->set; }
static int sized(Old* d, int kind, int type, int a, int b, int c, int e) {
  if (!d || d->kind != kind || kind_of(type) < 0 || a < 1 || b < 1 || c < 1 || e < 1)
    return wrong(BAD_PARAM, "a size or a type");
  d->set = 1, d->type = type;
  return d->sizes[0] = a, d->sizes[1] = b, d->sizes[2] = c, d->sizes[3] = e, OK;
}
int cudnnSetTensor4dDescriptor(Old* d, int format, int type, int n, int c, int h, int w) {
  return format == 1 ? sized(d, TENSOR, type, n, c, h, w) : wrong(NOT_SUPPORTED, "channels are last here");
}
int cudnnSetFilter4dDescriptor(Old* d, int type, int format, int k, int c, int h, int w) {
  return format == 1 ? sized(d, FILTER, type, k, c, h, w) : wrong(NOT_SUPPORTED, "channels are last here");
}
int cudnnSetConvolution2dDescriptor(Old* d, int ph, int pw, int u, int v, int dh, int dw, int mode, int type) {
  if (!d || d->kind != CONVOLUTION || mode != 1 || type != 0) return wrong(BAD_PARAM, "a mode or a type");
  d->pad[0] = ph, d->pad[1] = pw, d->stride[0] = u, d->stride[1] = v, d->dilation[0] = dh, d->dilation[1] = dw;
  return d->set = 1, OK;
}
int cudnnSetConvolutionGroupCount(Old* d, int count) {
  return is(d, CONVOLUTION) && count > 0 ? (d->group = count, OK) : BAD_PARAM;
}
int cudnnSetConvolutionMathType(Old* d, int math) {
  return is(d, CONVOLUTION) && math >= 0 && math < 4 ? (d->math = math, OK) : BAD_PARAM;
}
int cudnnSetActivationDescriptor(Old* d, int mode, int nan, double ceiling) {
  (void)nan, (void)ceiling;
  return d && d->kind == ACTIVATION && (mode == 1 || mode == 5) ? (d->mode = mode, d->set = 1, OK) : BAD_PARAM;
}

static int problem(Problem* p, const Old* x, const void* at, const Old* w, const void* filter, const Old* c, const Old* y,
                   void* out) {
  if (!is(x, TENSOR) || !is(w, FILTER) || !is(c, CONVOLUTION) || !is(y, TENSOR))
    return wrong(BAD_PARAM, "a descriptor is not set");
  if (!is_live(at, 1) || !is_live(filter, 1) || !is_live(out, 1)) return wrong(NULL_POINTER, "memory that is not allocated");
  if (x->sizes[1] != w->sizes[1] * c->group) return wrong(SHAPE_MISMATCH, "groups and channels");
  memset(p, 0, sizeof *p);
  p->x = at, p->w = filter, p->y = out, p->kind = kind_of(x->type);
  for (int i = 0; i < 4; ++i) p->size[i] = x->sizes[i], p->filter[i] = w->sizes[i];
  channels_last(p->xs, p->size[1], p->size[2], p->size[3]);
  channels_last(p->ws, p->filter[1], p->filter[2], p->filter[3]);
  channels_last(p->ys, y->sizes[1], y->sizes[2], y->sizes[3]);
  for (int i = 0; i < 2; ++i) {
    p->out[i] = y->sizes[2 + i], p->pad[i] = c->pad[i], p->stride[i] = c->stride[i], p->dilation[i] = c->dilation[i];
  }
  return refuses("all") ? wrong(NOT_SUPPORTED, "these sizes are not taken") : OK;
}
static int space(Handle* handle, const void* workspace, size_t bytes) {
  if (!handle || handle->magic != HANDLE || !handle->stream) return wrong(NULL_POINTER, "no handle, or one without a stream");
  return bytes && !is_live(workspace, bytes) ? wrong(NULL_POINTER, "a workspace that is too small or not allocated") : OK;
}

int cudnnFindConvolutionForwardAlgorithmEx(Handle* handle, Old* x, const void* at, Old* w, const void* filter, Old* c, Old* y,
                                           void* out, int wanted, int* count, Perf* found, void* workspace, size_t bytes) {
  static const int kFound[] = {0, 1, 7};
  Problem p;
  int status = space(handle, workspace, bytes);
  if (!status) status = problem(&p, x, at, w, filter, c, y, out);
  if (status) return status;
  for (*count = 0; *count < 3 && *count < wanted; ++*count) {
    memset(&found[*count], 0, sizeof *found);
    found[*count].algo = kFound[*count], found[*count].status = kFound[*count] == 7 ? NOT_SUPPORTED : OK;
  }
  return OK;
}
int cudnnGetConvolutionForwardWorkspaceSize(Handle* handle, Old* x, Old* w, Old* c, Old* y, int algorithm, size_t* bytes) {
  (void)algorithm;
  if (!is(x, TENSOR) || !is(w, FILTER) || !is(c, CONVOLUTION) || !is(y, TENSOR)) return BAD_PARAM;
  return *bytes = 64, space(handle, NULL, 0);
}
static void nothing(void* arguments) { (void)arguments; }
int cudnnConvolutionForward(Handle* handle, const float* one, Old* x, const void* at, Old* w, const void* filter, Old* c,
                            int algorithm, void* workspace, size_t bytes, const float* zero, Old* y, void* out) {
  Problem p;
  int status = space(handle, workspace, bytes);
  if (!status && (!one || !zero || *one != 1 || *zero != 0)) status = NULL_POINTER;
  if (!status) status = problem(&p, x, at, w, filter, c, y, out);
  if (!status) enqueue(handle->stream, algorithm == 1 ? convolve : nothing, &p, sizeof p);
  return status;
}
int cudnnConvolutionBiasActivationForward(Handle* handle, const float* one, Old* x, const void* at, Old* w, const void* filter,
                                          Old* c, int algorithm, void* workspace, size_t bytes, const float* zero, Old* z,
                                          const void* added, Old* b, const void* bias, Old* activation, Old* y, void* out) {
  Problem p;
  int status = space(handle, workspace, bytes);
  if (!status && (!one || !zero || *one != 1 || *zero != 0)) status = NULL_POINTER;
  if (!status && (!is(z, TENSOR) || !is(b, TENSOR) || !is(activation, ACTIVATION) || !is_live(added, 1) || !is_live(bias, 1)))
    status = wrong(BAD_PARAM, "what is added, or the activation");
  if (!status && activation->mode == 5 && algorithm != 1) status = wrong(NOT_SUPPORTED, "the identity goes with algorithm 1");
  if (!status) status = problem(&p, x, at, w, filter, c, y, out);
  if (status) return status;
  p.bias = bias, p.relu = activation->mode == 1;
  enqueue(handle->stream, algorithm == 1 ? convolve : nothing, &p, sizeof p);
  return OK;
}
