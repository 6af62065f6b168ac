/* What both parts of the stand-in for cuDNN share: statuses, handles, and a convolution by plain loops. */
#include "fake_gpu.h"

enum {
  OK,
  BAD_PARAM = 2000,
  NULL_POINTER = 2002,
  NOT_FINALIZED = 2004,
  SHAPE_MISMATCH = 2008,
  ATTRIBUTE_TYPE = 2010,
  NOT_SUPPORTED = 3000
};
enum { HANDLE = 0x4a4d };

typedef struct {
  int magic;
  Stream* stream;
} Handle;
typedef struct {
  const char *x, *w, *bias;
  char* y;
  int64_t size[4], filter[4], out[2], pad[2], stride[2], dilation[2]; /* x: N C H W; w: K C R S */
  int64_t xs[4], ws[4], ys[4];                                        /* strides of these axes */
  int kind, relu;
} Problem;

extern const char* fake_last;
static inline int wrong(int status, const char* sentence) { return fake_last = sentence, status; }

static inline int64_t place(const int64_t* strides, int64_t a, int64_t b, int64_t c, int64_t d) {
  return strides[0] * a + strides[1] * b + strides[2] * c + strides[3] * d;
}
static inline void channels_last(int64_t* strides, int64_t c, int64_t h, int64_t w) {
  strides[0] = c * h * w, strides[1] = 1, strides[2] = w * c, strides[3] = c;
}
static inline void convolve(void* arguments) {
  const Problem* p = arguments;
  const int64_t *s = p->size, *f = p->filter, k_of = f[0] / (s[1] / f[1]);
  for (int64_t n = 0; n < s[0]; ++n)
    for (int64_t y = 0; y < p->out[0]; ++y)
      for (int64_t x = 0; x < p->out[1]; ++x)
        for (int64_t k = 0; k < f[0]; ++k) {
          float sum = p->bias ? load(p->bias, k, p->kind) : 0;
          for (int64_t r = 0; r < f[2]; ++r)
            for (int64_t q = 0; q < f[3]; ++q) {
              const int64_t h = y * p->stride[0] + r * p->dilation[0] - p->pad[0],
                            w = x * p->stride[1] + q * p->dilation[1] - p->pad[1];
              if (h < 0 || h >= s[2] || w < 0 || w >= s[3]) continue;
              for (int64_t c = 0; c < f[1]; ++c)
                sum += load(p->x, place(p->xs, n, k / k_of * f[1] + c, h, w), p->kind) *
                       load(p->w, place(p->ws, k, c, r, q), p->kind);
            }
          store(p->y, place(p->ys, n, k, y, x), p->kind, p->relu && sum < 0 ? 0 : sum);
        }
}
static inline int kind_of(int type) { return type == 0 ? 0 : type == 2 ? 1 : type == 9 ? 2 : -1; }
static inline int refuses(const char* what) {
  const char* said = getenv("FAKE_CUDNN_REFUSES");
  return said && (strcmp(said, what) == 0 || strcmp(said, "all") == 0);
}
