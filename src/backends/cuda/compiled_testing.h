// For tests of programs that are compiled at run time: NVRTC's model in the place of the library, and stages of the pointwise
// family run in the functional model, their bytes handed back.
#pragma once

#include "backends/cpu/test_tensor.h"
#include "backends/cuda/cuda_testing.h"
#include "backends/cuda/stages/pointwise_text.h"
#include "families/pointwise/arithmetic.h"
#include "families/pointwise/pointwise.h"
#include "families/registry.h"

namespace sparkle::cuda {

class CompiledPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const library = ::dlopen(SPARKLE_NVRTC_MODEL, RTLD_NOW);
    ASSERT_TRUE(library) << ::dlerror();
    const auto compiler = reinterpret_cast<const char* (*)()>(::dlsym(library, "nvrtc_model_compiler"));
    if (!*compiler()) GTEST_SKIP() << "SKIP: the compiler that built this is not there any more";
  }
  const With nvrtc_{"SPARKLE_NVRTC", SPARKLE_NVRTC_MODEL};
};

// A tensor in host memory, poisoned between its elements.
struct CompiledOperand {
  TensorDesc desc;
  std::vector<std::byte> bytes;
  explicit CompiledOperand(const TensorDesc& d)
      : desc(d),
        bytes(static_cast<size_t>(std::max<int64_t>(1, extent(d.shape, d.layout)) * size_of(d.dtype)), std::byte{0xff}) {}
  TensorView view() { return {bytes.data(), desc}; }
  double at(const Dims& index) { return load_element(desc.dtype, element_at(view(), index)); }
};

inline Schedule pointwise_schedule(const std::string& variant) { return LoopSchedule{variant, "fma-f32", 0}; }

// The output's bytes behind a run of a kernel of the stage.
inline Result<std::vector<std::byte>> output_of(CudaBackend& backend, const Stage& stage, const Schedule& schedule,
                                                std::vector<CompiledOperand>& inputs) {
  SPARKLE_TRY(kernel, backend.compile(stage, schedule, 0));
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Buffer*> slots;
  Launch launch;
  launch.kernel = kernel.get();
  const auto add = [&](const std::vector<std::byte>& bytes) {
    buffers.push_back(uploaded(backend, bytes.data(), static_cast<int64_t>(bytes.size())));
    slots.push_back(buffers.back().get());
    return Binding{static_cast<int>(slots.size()) - 1, 0};
  };
  for (CompiledOperand& input : inputs) launch.inputs.push_back(add(input.bytes));
  CompiledOperand output(stage.outputs[0]);
  launch.outputs.push_back(add(output.bytes));
  launch.workspace = launch.outputs[0];
  SPARKLE_TRY(program, backend.record({&launch, 1}));
  SPARKLE_TRY(token, backend.submit(*program, slots, {}));
  SPARKLE_CHECK(backend.wait(token));
  download(backend, *slots.back(), output.bytes.data(), static_cast<int64_t>(output.bytes.size()));
  return output.bytes;
}

}  // namespace sparkle::cuda
