#include "run/opening/lent_cuda.h"

#ifdef SPARKLE_WITH_CUDA
#include "backends/cuda/cuda_backend.h"
#endif

namespace sparkle {

#ifdef SPARKLE_WITH_CUDA

namespace {

Result<cuda::CudaBackend*> cuda_of(Backend& backend) {
  if (auto* found = dynamic_cast<cuda::CudaBackend*>(&backend)) return found;
  return Error{Reason::device_unusable,
               "The device '" + backend.device().name + "' is not one of CUDA's, and has no use for its memory or streams."};
}

}  // namespace

Result<std::shared_ptr<Buffer>> wrap_cuda_memory(Backend& backend, uint64_t address, int64_t bytes) {
  SPARKLE_TRY(cuda, cuda_of(backend));
  return cuda->wrap({address, bytes});
}
Result<int> cuda_ordinal(Backend& backend) {
  SPARKLE_TRY(cuda, cuda_of(backend));
  return static_cast<int>(cuda->context().device().handle);
}
Status follow_cuda_stream(Backend& backend, uint64_t stream) {
  SPARKLE_TRY(cuda, cuda_of(backend));
  return cuda->wait_for_stream(stream);
}
Status lead_cuda_stream(Backend& backend, uint64_t stream, Token token) {
  SPARKLE_TRY(cuda, cuda_of(backend));
  return cuda->let_stream_wait(stream, token);
}

#else

namespace {
Error none() { return {Reason::device_unusable, "This build of Sparkle has no CUDA backend."}; }
}  // namespace

Result<std::shared_ptr<Buffer>> wrap_cuda_memory(Backend&, uint64_t, int64_t) { return none(); }
Result<int> cuda_ordinal(Backend&) { return none(); }
Status follow_cuda_stream(Backend&, uint64_t) { return none(); }
Status lead_cuda_stream(Backend&, uint64_t, Token) { return none(); }

#endif

}  // namespace sparkle
