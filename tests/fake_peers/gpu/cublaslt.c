/* A stand-in for libcublasLt: products by plain loops, matrices column by column, and an error for each use out of order. Of
 * what its heuristics list the first computes nothing, the second is right, the third is said to be unusable. */
#include "fake_gpu.h"

enum { OK, NOT_INITIALIZED, INVALID_VALUE = 7, NOT_SUPPORTED = 15, HANDLE = 0x17 };
typedef struct {
  uint64_t magic;
} Handle;
typedef struct {
  uint64_t magic;
  int compute, transposed[2], epilogue;
  const void* bias;
} Desc;
typedef struct {
  uint64_t magic;
  int type, batch;
  int64_t rows, columns, stride, batch_stride;
} Layout;
typedef struct {
  uint64_t magic, bytes;
} Preference;
typedef struct {
  uint64_t algo[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} Heuristic;
typedef struct {
  const char *a, *b, *bias;
  char* d;
  int64_t rows, columns, inner, strides[3], batch_strides[3];
  int kind, batch, turned[2], relu;
} Product;

static void multiply(void* arguments) {
  const Product* p = arguments;
  for (int n = 0; n < p->batch; ++n)
    for (int64_t j = 0; j < p->columns; ++j)
      for (int64_t i = 0; i < p->rows; ++i) {
        float sum = p->bias ? load(p->bias, i, p->kind) : 0;
        for (int64_t c = 0; c < p->inner; ++c) {
          const int64_t a = p->turned[0] ? i * p->strides[0] + c : c * p->strides[0] + i;
          const int64_t b = p->turned[1] ? c * p->strides[1] + j : j * p->strides[1] + c;
          sum += load(p->a, n * p->batch_strides[0] + a, p->kind) * load(p->b, n * p->batch_strides[1] + b, p->kind);
        }
        store(p->d, n * p->batch_strides[2] + j * p->strides[2] + i, p->kind, p->relu && sum < 0 ? 0 : sum);
      }
}
static void nothing(void* arguments) { (void)arguments; }
static int kind_of(int type) { return type == 0 ? 0 : type == 2 ? 1 : type == 14 ? 2 : -1; }

size_t cublasLtGetVersion(void) { return 130000; }
const char* cublasLtGetStatusName(int status) { return status ? "CUBLAS_STATUS_STAND_IN" : "CUBLAS_STATUS_SUCCESS"; }

#define MADE(Type, made) (*(made) = calloc(1, sizeof(Type)), (*(made))->magic = LIVE)
int cublasLtCreate(Handle** made) { return *made = calloc(1, sizeof **made), (*made)->magic = HANDLE, OK; }
int cublasLtDestroy(Handle* h) { return h && h->magic == HANDLE ? (h->magic = DEAD, OK) : NOT_INITIALIZED; }
int cublasLtMatmulDescCreate(Desc** made, int compute, int scale) {
  if ((compute != 68 && compute != 77) || scale != 0) return INVALID_VALUE;
  MADE(Desc, made);
  return (*made)->compute = compute, (*made)->epilogue = 1, OK;
}
int cublasLtMatmulDescSetAttribute(Desc* d, int name, const void* value, size_t bytes) {
  if (!d || d->magic != LIVE || !value || bytes != (name == 8 ? 8u : 4u)) return INVALID_VALUE;
  if (name == 3 || name == 4) return d->transposed[name - 3] = *(const int*)value, OK;
  if (name == 7) return d->epilogue = *(const int*)value, OK;
  return name == 8 ? (d->bias = *(void* const*)value, OK) : INVALID_VALUE;
}
int cublasLtMatmulDescDestroy(Desc* d) { return d && d->magic == LIVE ? (d->magic = DEAD, OK) : INVALID_VALUE; }
int cublasLtMatrixLayoutCreate(Layout** made, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  if (kind_of(type) < 0 || !rows || !columns || stride < (int64_t)rows) return INVALID_VALUE;
  MADE(Layout, made);
  (*made)->type = type, (*made)->batch = 1, (*made)->rows = (int64_t)rows, (*made)->columns = (int64_t)columns;
  return (*made)->stride = stride, OK;
}
int cublasLtMatrixLayoutSetAttribute(Layout* d, int name, const void* value, size_t bytes) {
  if (!d || d->magic != LIVE || !value) return INVALID_VALUE;
  if (name == 5 && bytes == 4) return d->batch = *(const int*)value, OK;
  return name == 6 && bytes == 8 ? (d->batch_stride = *(const int64_t*)value, OK) : INVALID_VALUE;
}
int cublasLtMatrixLayoutDestroy(Layout* d) { return d && d->magic == LIVE ? (d->magic = DEAD, OK) : INVALID_VALUE; }
int cublasLtMatmulPreferenceCreate(Preference** made) { return MADE(Preference, made), OK; }
int cublasLtMatmulPreferenceSetAttribute(Preference* d, int name, const void* value, size_t bytes) {
  if (!d || d->magic != LIVE || !value || name != 1 || bytes != 8) return INVALID_VALUE;
  return d->bytes = *(const uint64_t*)value, OK;
}
int cublasLtMatmulPreferenceDestroy(Preference* d) { return d && d->magic == LIVE ? (d->magic = DEAD, OK) : INVALID_VALUE; }

static int described(Product* p, const Handle* h, const Desc* d, const Layout* a, const Layout* b, const Layout* c,
                     const Layout* out) {
  if (!h || h->magic != HANDLE) return NOT_INITIALIZED;
  if (!d || d->magic != LIVE || !a || !b || !c || !out) return INVALID_VALUE;
  if (a->magic != LIVE || b->magic != LIVE || c->magic != LIVE || out->magic != LIVE) return INVALID_VALUE;
  p->turned[0] = d->transposed[0], p->turned[1] = d->transposed[1];
  p->rows = p->turned[0] ? a->columns : a->rows, p->inner = p->turned[0] ? a->rows : a->columns;
  p->columns = p->turned[1] ? b->rows : b->columns;
  if ((p->turned[1] ? b->columns : b->rows) != p->inner || out->rows != p->rows || out->columns != p->columns)
    return INVALID_VALUE;
  if (d->epilogue != 1 && d->epilogue != 4 && d->epilogue != 6) return NOT_SUPPORTED;
  if ((d->epilogue & 4) && !is_live(d->bias, (uint64_t)p->rows * kBytes[kind_of(out->type)])) return INVALID_VALUE;
  p->bias = d->epilogue & 4 ? d->bias : NULL, p->relu = d->epilogue == 6, p->kind = kind_of(out->type), p->batch = out->batch;
  const Layout* all[] = {a, b, out};
  for (int i = 0; i < 3; ++i) {
    if (all[i]->batch != out->batch || all[i]->type != out->type) return INVALID_VALUE;
    p->strides[i] = all[i]->stride, p->batch_strides[i] = all[i]->batch_stride;
  }
  return OK;
}

int cublasLtMatmulAlgoGetHeuristic(Handle* h, Desc* d, Layout* a, Layout* b, Layout* c, Layout* out, Preference* preference,
                                   int wanted, Heuristic* found, int* count) {
  Product p = {0};
  const int status = described(&p, h, d, a, b, c, out);
  if (status) return status;
  if (!preference || preference->magic != LIVE || !found || !count || wanted < 1) return INVALID_VALUE;
  for (*count = 0; *count < wanted && *count < 3; ++*count) {
    memset(&found[*count], 0, sizeof *found);
    found[*count].algo[0] = 0xa190 + (uint64_t)*count, found[*count].state = *count == 2 ? NOT_SUPPORTED : OK;
    found[*count].workspace = preference->bytes < 64 ? 0 : 64;
  }
  return OK;
}
int cublasLtMatmul(Handle* h, Desc* d, const float* one, const void* a, Layout* a_layout, const void* b, Layout* b_layout,
                   const float* zero, const void* c, Layout* c_layout, void* out, Layout* layout, const uint64_t* algo,
                   void* workspace, size_t bytes, Stream* stream) {
  Product p = {0};
  const int status = described(&p, h, d, a_layout, b_layout, c_layout, layout);
  if (status) return status;
  if (!one || !zero || *one != 1 || *zero != 0 || !is_stream(stream) || !is_live(workspace, bytes)) return INVALID_VALUE;
  if (!is_live(a, 1) || !is_live(b, 1) || !is_live(c, 1) || !is_live(out, 1)) return INVALID_VALUE;
  if (!algo || algo[0] < 0xa190 || algo[0] > 0xa191) return INVALID_VALUE;
  p.a = a, p.b = b, p.d = out;
  enqueue(stream, algo[0] == 0xa190 ? nothing : multiply, &p, sizeof p);
  return OK;
}
