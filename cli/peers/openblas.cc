// OpenBLAS: im2col and one sgemm per image and group, channels first; a 1x1 filter of stride 1 needs no im2col. Its interface
// has no way to pack weights beforehand. The rows of the im2col matrix are shared out over the same number of threads.
// A matrix product is one sgemm.
#include <algorithm>
#include <cstring>

#include "base/system/thread_pool.h"
#include "peers/library.h"
#include "peers/peers.h"

namespace sparkle::cli {
namespace {

// The C interface of BLAS: order, transpositions, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc.
using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
constexpr int kRowMajor = 101, kNoTranspose = 111;

struct OpenBlas {
  std::shared_ptr<Library> library;
  Sgemm sgemm = nullptr;
  std::unique_ptr<ThreadPool> pool;
};

// x in the layout of desc to dense N,C,H,W, and back.
template <class F>
void each_element(const TensorDesc& desc, F visit) {
  const Dims &s = desc.shape, &p = desc.layout.strides;
  int64_t dense = 0;
  for (int64_t n = 0; n < s[0]; ++n)
    for (int64_t c = 0; c < s[1]; ++c)
      for (int64_t h = 0; h < s[2]; ++h)
        for (int64_t w = 0; w < s[3]; ++w) visit(dense++, desc.layout.offset + n * p[0] + c * p[1] + h * p[2] + w * p[3]);
}

class ConvolutionRun final : public PeerRun {
 public:
  ConvolutionRun(const OpenBlas& blas, const PeerLayer& layer) : blas_(blas), call_(layer.call) {
    const Problem& p = call_.problem;
    x_.resize(static_cast<size_t>(call_.inputs[0].elements()));
    y_.resize(static_cast<size_t>(call_.output.elements()));
    each_element(call_.inputs[0], [&](int64_t to, int64_t from) { x_[static_cast<size_t>(to)] = layer.x[from]; });
    w_.assign(layer.w, layer.w + call_.inputs[1].elements());
    bias_.assign(static_cast<size_t>(p.k), 0);
    if (layer.bias) bias_.assign(layer.bias, layer.bias + p.k);
    const Window& w = p.window;
    direct_ = w.taps() == 1 && w.stride[1] == 1 && w.stride[2] == 1 && p.out == p.in;
    if (!direct_) columns_.resize(static_cast<size_t>(p.c / p.groups * w.taps() * p.out[1] * p.out[2]));
  }

  Status run(int64_t calls) override {
    for (int64_t i = 0; i < calls; ++i) convolve();
    return ok();
  }
  Status result(float* y) override {
    each_element(call_.output, [&](int64_t from, int64_t to) { y[to] = y_[static_cast<size_t>(from)]; });
    return ok();
  }
  std::string chose() const override { return direct_ ? "sgemm" : "im2col, sgemm"; }

 private:
  void convolve() {
    const Problem& p = call_.problem;
    const int64_t pixels = p.out[1] * p.out[2], area = p.in[1] * p.in[2];
    const int64_t group_c = p.c / p.groups, group_k = p.k / p.groups, depth = group_c * p.window.taps();
    for (int64_t n = 0; n < p.n; ++n)
      for (int64_t g = 0; g < p.groups; ++g) {
        const float* x = x_.data() + (n * p.c + g * group_c) * area;
        float* y = y_.data() + (n * p.k + g * group_k) * pixels;
        if (!direct_) {
          im2col(x);
          x = columns_.data();
        }
        // The product is added to the bias.
        for (int64_t k = 0; k < group_k; ++k) std::fill_n(y + k * pixels, pixels, bias_[static_cast<size_t>(g * group_k + k)]);
        blas_.sgemm(kRowMajor, kNoTranspose, kNoTranspose, static_cast<int>(group_k), static_cast<int>(pixels),
                    static_cast<int>(depth), 1, w_.data() + g * group_k * depth, static_cast<int>(depth), x,
                    static_cast<int>(pixels), 1, y, static_cast<int>(pixels));
      }
  }

  void im2col(const float* x) {
    const Problem& p = call_.problem;
    const int64_t taps = p.window.taps(), rows = p.c / p.groups * taps;
    const auto row = [&](int64_t i) {
      const int64_t c = i / taps, r = i % taps / p.window.filter[2], s = i % p.window.filter[2];
      const int64_t stride = p.window.stride[2], left = s * p.window.dilation[2] - p.window.pad_begin[2];
      float* to = columns_.data() + i * p.out[1] * p.out[2];
      for (int64_t o = 0; o < p.out[1]; ++o, to += p.out[2]) {
        const int64_t h = o * p.window.stride[1] + r * p.window.dilation[1] - p.window.pad_begin[1];
        if (h < 0 || h >= p.in[1]) {
          std::fill_n(to, p.out[2], 0.0f);
          continue;
        }
        const float* from = x + (c * p.in[1] + h) * p.in[2];
        // Outputs [begin, end) see the image.
        const int64_t begin = std::clamp<int64_t>(left < 0 ? (-left + stride - 1) / stride : 0, 0, p.out[2]);
        const int64_t end = std::clamp<int64_t>(left < p.in[2] ? (p.in[2] - left + stride - 1) / stride : 0, begin, p.out[2]);
        std::fill_n(to, begin, 0.0f);
        if (stride == 1) std::memcpy(to + begin, from + begin + left, static_cast<size_t>(end - begin) * sizeof(float));
        else
          for (int64_t q = begin; q < end; ++q) to[q] = from[q * stride + left];
        std::fill_n(to + end, p.out[2] - end, 0.0f);
      }
    };
    const int tasks = static_cast<int>(std::min<int64_t>(blas_.pool->width(), rows));
    parallel_for(*blas_.pool, tasks, [&](int task, int) {
      for (int64_t i = rows * task / tasks; i < rows * (task + 1) / tasks; ++i) row(i);
    });
  }

  const OpenBlas& blas_;
  AnchorCall call_;
  bool direct_ = false;
  std::vector<float> x_, w_, bias_, columns_, y_;
};

class ProductRun final : public PeerRun {
 public:
  ProductRun(const OpenBlas& blas, const PeerLayer& layer) : blas_(blas), p_(layer.call.problem) {
    a_.assign(layer.x, layer.x + layer.call.inputs[0].elements());
    b_.assign(layer.w, layer.w + layer.call.inputs[1].elements());
    y_.resize(static_cast<size_t>(layer.call.output.elements()));
  }
  Status run(int64_t calls) override {
    for (int64_t i = 0; i < calls; ++i)
      blas_.sgemm(kRowMajor, kNoTranspose, kNoTranspose, static_cast<int>(p_.rows), static_cast<int>(p_.columns),
                  static_cast<int>(p_.depth), 1, a_.data(), static_cast<int>(p_.depth), b_.data(), static_cast<int>(p_.columns),
                  0, y_.data(), static_cast<int>(p_.columns));
    return ok();
  }
  Status result(float* y) override {
    std::copy(y_.begin(), y_.end(), y);
    return ok();
  }
  std::string chose() const override { return "sgemm"; }

 private:
  const OpenBlas& blas_;
  Problem p_;
  std::vector<float> a_, b_, y_;
};

class OpenBlasPeer final : public Peer {
 public:
  OpenBlasPeer(OpenBlas blas, std::string version) : blas_(std::move(blas)), version_(std::move(version)) {}
  std::string name() const override { return "openblas"; }
  std::string version() const override { return version_; }
  Result<std::unique_ptr<PeerRun>> prepare(const PeerLayer& layer) override {
    const Problem& p = layer.call.problem;
    const Error refused{Reason::operator_not_served, "openblas takes part in convolutions of two dimensions and in products."};
    if (p.kind == ProblemKind::matmul) {
      if (p.batch != 1 || p.epilogue.operands() > 0 || p.epilogue.activation != Activation::none) return refused;
      return std::unique_ptr<PeerRun>(std::make_unique<ProductRun>(blas_, layer));
    }
    if (p.kind != ProblemKind::conv || p.rank != 2 || p.epilogue.activation != Activation::none) return refused;
    return std::unique_ptr<PeerRun>(std::make_unique<ConvolutionRun>(blas_, layer));
  }

 private:
  OpenBlas blas_;
  std::string version_;
};

}  // namespace

Result<Peers> open_openblas(const std::string& file, int threads) {
  // Its threads spin 2^26 cycles after each call by default, which would take the others' cores; this is about 0.3 ms.
  ::setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
  OpenBlas blas;
  SPARKLE_TRY(library, Library::open("openblas", file));
  blas.library = std::move(library);
  // Wheels prefix every name.
  const std::string prefix = blas.library->has("scipy_cblas_sgemm") ? "scipy_" : "";
  void (*set_threads)(int) = nullptr;
  char* (*config)() = nullptr;
  SPARKLE_CHECK(blas.library->find(blas.sgemm, (prefix + "cblas_sgemm").c_str()));
  SPARKLE_CHECK(blas.library->find(set_threads, (prefix + "openblas_set_num_threads").c_str()));
  SPARKLE_CHECK(blas.library->find(config, (prefix + "openblas_get_config").c_str()));
  set_threads(threads);
  blas.pool = std::make_unique<ThreadPool>(ThreadPoolOptions{.threads = threads, .flush_denormals = true});
  std::string version = config();
  while (!version.empty() && version.back() == ' ') version.pop_back();
  Peers peers;
  peers.push_back(std::make_unique<OpenBlasPeer>(std::move(blas), std::move(version)));
  return peers;
}

}  // namespace sparkle::cli
