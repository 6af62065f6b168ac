// Modules are loaded when a kernel of theirs is asked for; one that the driver refuses takes its own kernels along and no
// others.
#include "backends/cuda/driver/functions.h"

#include <gtest/gtest.h>

#include "backends/cuda/cuda_testing.h"
#include "backends/self_tests/variant_self_tests.h"

namespace sparkle::cuda {
namespace {

constexpr char kCode[] = "code";
const CodeImage kImages[] = {
    {"fill", std::as_bytes(std::span(kCode)), "sparkle_fill_words\n"},
    {"softmax", std::as_bytes(std::span(kCode)), "sparkle_reduce_rows_f32\nsparkle_softmax_rows\n"},
    {"newer_sm90a", std::as_bytes(std::span(kCode)), "sparkle_rotary_rows\n"},
    {"other_sm100a", std::as_bytes(std::span(kCode)), "sparkle_normalize_rows\n"},
};

std::shared_ptr<Functions> functions_of(std::span<const CodeImage> images) {
  auto driver = Driver::open(12000);
  EXPECT_TRUE(driver.ok());
  auto context = Context::open(*driver, 0);
  EXPECT_TRUE(context.ok());
  auto functions = Functions::open(*context, images);
  EXPECT_TRUE(functions.ok());
  return *functions;
}

TEST(CudaFunctions, AModuleIsLoadedWhenAKernelOfItIsAskedFor) {
  const auto functions = functions_of(kImages);
  EXPECT_EQ(functions->modules_loaded(), 0u);
  EXPECT_TRUE(functions->get("sparkle_softmax_rows", 0).ok());
  EXPECT_EQ(functions->modules_loaded(), 1u);
  EXPECT_TRUE(functions->get("sparkle_softmax_rows", 100 << 10).ok());
  EXPECT_EQ(functions->modules_loaded(), 1u);
  EXPECT_TRUE(functions->get("sparkle_fill_words", 0).ok());
  EXPECT_EQ(functions->modules_loaded(), 2u);
}

// A name that begins or ends another is not that one.
TEST(CudaFunctions, NamesAreWhole) {
  const auto functions = functions_of(kImages);
  for (const char* name : {"sparkle_softmax_row", "softmax_rows", "sparkle", "sparkle_copy"}) {
    const auto found = functions->get(name, 0);
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(found.error().reason, Reason::backend_lacks_variant);
    EXPECT_NE(found.error().message.find("this build has no CUDA kernel"), std::string::npos) << found.error().message;
  }
  EXPECT_EQ(functions->modules_loaded(), 0u);
}

TEST(CudaFunctions, ARefusedModuleTakesItsOwnKernelsAlong) {
  for (const CuResult refusal : {CuResult::unsupported_ptx_version, CuResult::no_binary_for_gpu, CuResult::invalid_ptx,
                                 CuResult::jit_compilation_disabled}) {
    const auto functions = functions_of(kImages);
    fail_next("cuModuleLoadData", refusal);
    for (int again = 0; again < 2; ++again) {  // it is not tried again
      const auto found = functions->get("sparkle_fill_words", 0);
      ASSERT_FALSE(found.ok());
      EXPECT_EQ(found.error().reason, Reason::backend_lacks_variant);
      EXPECT_NE(found.error().message.find("'sparkle_fill_words' is not there: loading the kernels 'fill' said "),
                std::string::npos)
          << found.error().message;
    }
    EXPECT_TRUE(functions->get("sparkle_softmax_rows", 0).ok());
  }
}

TEST(CudaFunctions, WhatIsNoRefusalIsNotKept) {
  const auto functions = functions_of(kImages);
  fail_next("cuModuleLoadData", CuResult::out_of_memory);
  const auto found = functions->get("sparkle_fill_words", 0);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().reason, Reason::out_of_memory);
  EXPECT_TRUE(functions->get("sparkle_fill_words", 0).ok());
}

TEST(CudaFunctions, CodeForOneArchitectureIsForThatOne) {
  const auto functions = functions_of(kImages);
  EXPECT_TRUE(functions->get("sparkle_rotary_rows", 0).ok());
  const auto found = functions->get("sparkle_normalize_rows", 0);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().reason, Reason::backend_lacks_variant);
  EXPECT_NE(found.error().message.find("for compute capability 10.0 alone, and 'NVIDIA H200' has 9.0"), std::string::npos)
      << found.error().message;
  EXPECT_EQ(functions->modules_loaded(), 1u);
}

// A variant whose kernels are refused is denied with the driver's words, and another takes its place.
TEST(CudaFunctions, AVariantOfARefusedModuleIsDenied) {
  const auto backend = test_backend([](const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
    Workshop with_images = shop;
    with_images.functions = functions_of(std::span(kImages).first(1));
    fail_next("cuModuleLoadData", CuResult::unsupported_ptx_version);
    const auto refused = with_images.functions->get("sparkle_fill_words", 0);
    if (!refused.ok()) return Result<CudaKernelPtr>(refused.error());
    return make_kernel(stage, schedule, with_images, constants);
  });
  ASSERT_TRUE(backend);
  SelfTest t = self_test_forms(Family::copy)[0];
  t.schedule = LoopSchedule{"units", "fma-f32", 0};
  const std::vector<Stage> stages = stages_of(t);
  const ScheduledStage asked{&stages[0], &t.schedule};
  const Status tried = backend->try_out({&asked, 1});
  ASSERT_FALSE(tried.ok());
  EXPECT_EQ(tried.error().reason, Reason::failed_probe);
  EXPECT_NE(tried.error().message.find("'sparkle_fill_words' is not there"), std::string::npos) << tried.error().message;
  EXPECT_NE(backend->device().denylist.find("copy/units"), std::string::npos);
  EXPECT_FALSE(backend->lost());
}

}  // namespace
}  // namespace sparkle::cuda
