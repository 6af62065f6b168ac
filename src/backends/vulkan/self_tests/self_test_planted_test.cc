// Kernels that are wrong in ways that a self-test may fail to see are planted into every variant that runs here: each is found.
#include <map>
#include <optional>

#include "backends/vulkan/self_tests/self_test_samples_testing.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/registry.h"

namespace sparkle::vulkan {
namespace {

enum class Fault {
  none,
  nothing,     // computes nothing
  half,        // writes the first half of the rows
  fourth,      // reads every fourth channel of the first operand
  inherits,    // gives the answer of its first run again
  first_only,  // right on its first run; computes nothing from then on
};
constexpr std::pair<Fault, const char*> kFaults[] = {
    {Fault::none, "none"},     {Fault::nothing, "nothing"},   {Fault::half, "half"},
    {Fault::fourth, "fourth"}, {Fault::inherits, "inherits"}, {Fault::first_only, "first_only"},
};

bool sums_channels(Family family) {
  return family == Family::gemm || family == Family::winograd || family == Family::fft || family == Family::depthwise ||
         family == Family::deform;
}

struct PlantedKernel final : Kernel {
  PlantedKernel(std::unique_ptr<Kernel> kernel, const Stage& s) : inner(std::move(kernel)), stage(s) {}
  int64_t workspace_bytes() const override { return inner->workspace_bytes(); }
  int64_t packed_bytes(int input) const override { return inner->packed_bytes(input); }
  std::string packed_key(int input) const override { return inner->packed_key(input); }
  void pack(int input, const std::byte* from, std::byte* to, Executor& executor) const override {
    inner->pack(input, from, to, executor);
  }
  std::unique_ptr<Kernel> inner;
  Stage stage;
  mutable int runs = 0;
  mutable std::vector<std::vector<std::byte>> answers;  // of the first run
};
struct PlantedProgram final : Program {
  Launch launch;
  std::unique_ptr<Program> inner;
};

// Takes programs of one launch, and waits for them.
class PlantedBackend final : public VulkanBackend {
 public:
  PlantedBackend(VulkanBackend& inner, Fault fault) : inner_(inner), fault_(fault) {}
  int64_t runs = 0;

  const Device& device() const override { return inner_.device(); }
  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override { return inner_.allocate(bytes, kind); }
  Result<std::shared_ptr<Buffer>> import(void* memory, int64_t bytes) override { return inner_.import(memory, bytes); }
  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) override {
    SPARKLE_TRY(kernel, inner_.compile(stage, schedule, constants));
    return std::unique_ptr<Kernel>(std::make_unique<PlantedKernel>(std::move(kernel), stage));
  }
  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override {
    auto program = std::make_unique<PlantedProgram>();
    program->launch = launches[0];
    Launch own = launches[0];
    own.kernel = static_cast<const PlantedKernel*>(own.kernel)->inner.get();
    SPARKLE_TRY(inner, inner_.record({&own, 1}));
    program->inner = std::move(inner);
    return std::unique_ptr<Program>(std::move(program));
  }
  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    const auto& planted = static_cast<const PlantedProgram&>(program);
    const auto& kernel = static_cast<const PlantedKernel&>(*planted.launch.kernel);
    const bool first = kernel.runs++ == 0;
    ++runs;
    if (fault_ == Fault::nothing || (fault_ == Fault::first_only && !first)) return options.after;
    const auto at = [&](const Binding& b) { return slots[static_cast<size_t>(b.slot)]; };
    Buffer &x = *at(planted.launch.inputs[0]), &y = *at(planted.launch.outputs[0]);
    const std::vector<std::byte> x_before = bytes_of(x), y_before = bytes_of(y);
    if (fault_ == Fault::fourth) put(x, every_fourth(kernel.stage.inputs[0], x_before));
    SPARKLE_TRY(token, inner_.submit(*planted.inner, slots, options));
    SPARKLE_CHECK(inner_.wait(token));
    put(x, x_before);
    if (fault_ == Fault::half) put(y, first_half(kernel.stage.outputs[0], bytes_of(y), y_before));
    for (size_t i = 0; fault_ == Fault::inherits && i < planted.launch.outputs.size(); ++i) {
      Buffer& output = *at(planted.launch.outputs[i]);
      if (first) kernel.answers.push_back(bytes_of(output));
      else put(output, kernel.answers[i]);
    }
    return token;
  }
  Result<Token> copy(std::span<const CopyRegion> regions, Token after) override { return inner_.copy(regions, after); }
  bool done(Token token) override { return inner_.done(token); }
  Status wait(Token token, std::chrono::nanoseconds timeout) override { return inner_.wait(token, timeout); }
  Result<std::vector<StepTime>> timestamps(Token token) override { return inner_.timestamps(token); }
  Executor& executor() override { return inner_.executor(); }
  Counters counters() const override { return inner_.counters(); }
  Result<std::shared_ptr<Buffer>> wrap(const LentBuffer& lent) override { return inner_.wrap(lent); }
  const Context& context() const override { return inner_.context(); }
  void keep_until(Token token, std::vector<std::shared_ptr<void>> kept) override { inner_.keep_until(token, std::move(kept)); }
  bool lost() const override { return inner_.lost(); }
  Status settle(std::chrono::nanoseconds timeout) override { return inner_.settle(timeout); }
  Status try_lines(const std::string& lines) override { return inner_.try_lines(lines); }
  std::vector<std::string> findings() const override { return inner_.findings(); }
  std::vector<std::string> speeds() const override { return inner_.speeds(); }
  Status calibrate() override { return inner_.calibrate(); }
  void set_rates(const Device& device) override { inner_.set_rates(device); }
  Pipelines& pipelines() override { return inner_.pipelines(); }

 private:
  std::vector<std::byte> bytes_of(Buffer& buffer) {
    std::vector<std::byte> bytes(static_cast<size_t>(buffer.bytes()));
    download(inner_, buffer, bytes.data(), buffer.bytes());
    return bytes;
  }
  void put(Buffer& buffer, const std::vector<std::byte>& bytes) {
    const auto from = uploaded(inner_, bytes.data(), static_cast<int64_t>(bytes.size()));
    const CopyRegion region{from.get(), 0, &buffer, 0, static_cast<int64_t>(bytes.size())};
    const auto token = inner_.copy({&region, 1}, {});
    EXPECT_TRUE(token.ok() && inner_.wait(*token).ok());
  }
  static std::vector<std::byte> every_fourth(const TensorDesc& desc, std::vector<std::byte> bytes) {
    const int axis = desc.shape.size() >= 4 ? 1 : desc.shape.size() - 1;
    for_each_index(desc.shape, [&](const Dims& at) {
      if (at[axis] % 4 != 0) std::memset(element_at({bytes.data(), desc}, at), 0, static_cast<size_t>(size_of(desc.dtype)));
    });
    return bytes;
  }
  // Along the longest axis.
  static std::vector<std::byte> first_half(const TensorDesc& desc, std::vector<std::byte> bytes,
                                           std::vector<std::byte> before) {
    int axis = 0;
    for (int i = 1; i < desc.shape.size(); ++i)
      if (desc.shape[i] > desc.shape[axis]) axis = i;
    for_each_index(desc.shape, [&](const Dims& at) {
      if (at[axis] >= desc.shape[axis] / 2)
        std::memcpy(element_at({bytes.data(), desc}, at), element_at({before.data(), desc}, at),
                    static_cast<size_t>(size_of(desc.dtype)));
    });
    return bytes;
  }

  VulkanBackend& inner_;
  Fault fault_;
};

TEST(VulkanSelfTests, PlantedFaultsAreFound) {
  SPARKLE_NEEDS_VULKAN(backend);
  std::map<std::string, int> found;
  for (int f = 0; f < kFamilies; ++f) {
    const auto family = static_cast<Family>(f);
    for (const Variant& v : info(family).variants) {
      if (!v.runs_on(backend->device())) continue;
      for (SelfTest t : samples(family)) {
        if (!schedule_for(t, v, backend->device())) continue;
        for (const auto& [fault, name] : kFaults) {
          if (fault == Fault::fourth && !sums_channels(family)) continue;
          PlantedBackend planted(*backend, fault);
          const Status ran = run_self_test(planted, t, std::chrono::minutes(1));
          if (planted.runs == 0) break;  // not on this device
          EXPECT_EQ(ran.ok(), fault == Fault::none) << name << ": " << t.to_text();
          if (!ran.ok()) {
            EXPECT_EQ(ran.error().reason, Reason::failed_probe) << name << ": " << ran.error().message;
            ++found[name];
          }
        }
        break;  // one of each variant
      }
    }
  }
  for (const auto& [name, count] : found) std::printf("%-10s found in %d variants\n", name.c_str(), count);
  EXPECT_GT(found["fourth"], 5);
}

}  // namespace
}  // namespace sparkle::vulkan
