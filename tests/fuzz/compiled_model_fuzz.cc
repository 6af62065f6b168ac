// libFuzzer: any text as one section of a compiled file whose hashes are right - the first byte says which, and whether the
// file's host does some steps - or any bytes as a whole file: opened, planned, compared and, if it is accepted, run. Built with
// SPARKLE_SANITIZE=ON.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "families/registry.h"
#include "networks/zoo.h"
#include "prepare/compile_model.h"
#include "run/session.h"
#include "prepare/compiled_model.h"

namespace {

using namespace sparkle;

struct Base {
  std::shared_ptr<Backend> backend;
  SessionOptions options;
  std::vector<std::byte> file;
  CompiledHeader header;
};

std::shared_ptr<Backend> device_without(const std::string& denylist) {
  Device device;
  device.name = "fuzz";
  MathUnit unit{"avx2", UnitKind::vector_fma, 1, 8, 1};
  unit.registers = 16;
  device.units.push_back(unit);
  device.denylist = denylist;
  return cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(1));
}

Base made(bool with_host) {
  std::string denylist;
  if (with_host)
    for (const Variant& variant : info(Family::pool).variants) denylist += "pool/" + std::string(variant.name) + " ";
  Base base;
  base.backend = device_without(denylist);
  if (with_host)
    base.options.open_host = [](const std::shared_ptr<Backend>&) -> Result<std::shared_ptr<Backend>> {
      return device_without("");
    };
  Graph graph = std::move(*zoo_network("tiny_chain", {}));
  std::vector<Dims> shapes;
  for (TensorId id : graph.inputs) shapes.push_back(graph.tensor(id).shape);
  const std::string path = (std::filesystem::temp_directory_path() / ("fuzz_" + std::to_string(::getpid()))).string();
  const auto done = compile_model(std::move(graph), base.backend, base.options, shapes, path);
  if (!done.ok() || done->plan->host.empty() == with_host) std::abort();
  {
    auto mapped = MappedFile::open(path);
    if (!mapped.ok()) std::abort();
    base.file.assign(mapped->bytes().begin(), mapped->bytes().end());
  }
  std::filesystem::remove(path);
  base.header = *read_compiled_header(base.file, "base");
  return base;
}

const Base& base_file(bool with_host) {
  static const Base alone = made(false), helped = made(true);
  return with_host ? helped : alone;
}
const Base& base_of(uint8_t first) { return base_file(first / kCompiledSections % 2 != 0); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Base& base = base_of(data[0]);
  const auto given = std::as_bytes(std::span(data + 1, size - 1));
  std::vector<std::byte> file(given.begin(), given.end());
  const size_t section = data[0] % kCompiledSections;
  if (section > 0) {
    file = base.file;
    CompiledHeader header = base.header;
    header.sections[section] = {file.size(), given.size(), hash_bytes(given)};
    file.insert(file.end(), given.begin(), given.end());
    header.file_bytes = file.size();
    const auto begin = compiled_header(header);
    std::copy(begin.begin(), begin.end(), file.begin());
  }
  const auto refused = [](const Error& error) {
    if (error.message.empty()) std::abort();
    return 0;
  };
  const auto model = CompiledModel::from_memory(file, "fuzz");
  if (!model.ok()) return refused(model.error());
  auto session = Session::open(*model, base.backend, base.options);
  if (!session.ok()) return refused(session.error());
  (void)(*model)->check_weights();
  std::vector<HostTensor> inputs;
  for (const SessionInput& in : (*session)->inputs()) {
    if (in.shape.product() > 1 << 20) return 0;
    inputs.push_back(HostTensor::zeros(in.dtype, in.shape));
  }
  const auto result = (*session)->run(inputs);
  return result.ok() ? 0 : refused(result.error());
}

// Changes start from a section as it was written, one time of eight; its number stays.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (most < 2) return size;
  if (seed % 8 == 0 || size < 2) {
    const bool with_host = seed / 8 % 2 != 0;
    const Base& base = base_file(with_host);
    const size_t section = 1 + seed / 16 % (kCompiledSections - 1);
    const std::string_view text = section_text(base.file, base.header, static_cast<CompiledSection>(section));
    size = 1 + std::min(text.size(), most - 1);
    data[0] = static_cast<uint8_t>(section + (with_host ? kCompiledSections : 0));
    std::copy_n(text.data(), size - 1, data + 1);
  }
  return 1 + LLVMFuzzerMutate(data + 1, size - 1, most - 1);
}
