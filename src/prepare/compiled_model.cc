#include "prepare/compiled_model.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/system/out_of_memory.h"
#include "device/device_json.h"
#include "device/memory_curve.h"
#include "graph/graph_text.h"

namespace sparkle {
namespace {

struct ConstantLine {
  int64_t at = 0, bytes = 0;
  std::string hash;
  template <class V>
  void visit(V& v) {
    v("at", at), v("bytes", bytes), v("hash", hash);
  }
};
struct ValueLine {
  int tensor = 0;
  int64_t at = 0, bytes = 0;
  std::string hash;
  template <class V>
  void visit(V& v) {
    v("tensor", tensor), v("at", at), v("bytes", bytes), v("hash", hash);
  }
};

bool parse_hex(std::string_view text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Zeros that take no memory until somebody writes, which nobody does.
std::shared_ptr<std::byte[]> no_values(int64_t bytes) {
  void* memory = std::calloc(static_cast<size_t>(bytes) + 64, 1);
  if (!memory) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

// What a plan depends on of a machine: everything but measured rates and notes.
Device without_rates(Device device) {
  device.driver.clear();
  device.denylist.clear();                             // kernels of the file's plan are tried where it is opened
  if (device.has_workgroups()) remove_caches(device);  // measured like rates
  device.paces.clear();
  device.clock_hz = device.launch_seconds = device.link_bytes_per_second = device.link_seconds = 0;
  device.calibrated = device.compiles = false;
  device.thread_note.clear();
  for (MemoryLevel& level : device.memory)
    level.bytes_per_second = level.total_bytes_per_second = level.copy_bytes_per_second = 0;
  for (MathUnit& unit : device.units) unit.flops_per_second = unit.total_flops_per_second = 0;
  return device;
}

std::string threads(int count) { return std::to_string(count) + (count == 1 ? " thread" : " threads"); }

std::string unit_names(const Device& device) {
  std::string names;
  for (const MathUnit& unit : device.units) names += (names.empty() ? "" : ", ") + unit.name;
  return names.empty() ? "none" : names;
}

}  // namespace

struct CompiledModel::Source {
  std::optional<MappedFile> mapped;
  std::shared_ptr<std::byte[]> copied;
};

std::string to_line(const PackedConstant& c) {
  return "constant " + to_text(ConstantLine{c.at, c.bytes, hex(c.hash)}) + " key=" + (c.key.empty() ? "-" : c.key) + "\n";
}
std::string to_line(const KeptValue& v) { return "value " + to_text(ValueLine{v.tensor, v.at, v.bytes, hex(v.hash)}) + "\n"; }

Result<Graph> planning_graph(std::string_view text, const std::vector<std::span<const std::byte>>& values) {
  SPARKLE_TRY(graph, graph_from_text(text));
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    GraphTensor& t = graph.tensors[i];
    if (!t.constant) continue;
    const int64_t bytes = t.constant->size_bytes();
    const bool kept = i < values.size() && static_cast<int64_t>(values[i].size()) == bytes && bytes > 0;
    if (kept) {
      SPARKLE_TRY(value, allocate_tensor(t.dtype, t.shape, "The constant '" + t.name + "'"));
      std::memcpy(value.bytes.get(), values[i].data(), values[i].size());
      if (t.dtype == DType::boolean)  // a bool object must hold 0 or 1
        for (int64_t e = 0; e < bytes; ++e) value.data<uint8_t>()[e] &= 1;
      t.constant = std::move(value);
    } else {
      t.constant->bytes = no_values(bytes);
    }
  }
  return infer_again(std::move(graph));
}

std::string plan_text_with(Plan& plan, std::span<const uint64_t> hashes) {
  for (size_t i = 0; i < plan.constants.size(); ++i) {
    plan.constants[i].value.bytes.reset();
    plan.constants[i].hash = i < hashes.size() ? hashes[i] : 0;
  }
  return to_text(plan);
}

Error CompiledModel::damaged(const std::string& what) const {
  return {Reason::bad_format, "'" + name_ + "' is damaged: " + what + "; compile the model again."};
}

Result<std::shared_ptr<const CompiledModel>> CompiledModel::open(const std::string& path) {
  SPARKLE_TRY(mapped, MappedFile::open(path, MappedFile::Pages::touched));
  auto source = std::make_shared<Source>();
  source->mapped.emplace(std::move(mapped));
  const auto bytes = source->mapped->bytes();
  return guard_memory("Opening the compiled model", [&] { return read(std::move(source), bytes, path); });
}

Result<std::shared_ptr<const CompiledModel>> CompiledModel::from_memory(std::span<const std::byte> bytes,
                                                                        const std::string& name) {
  return guard_memory("Opening the compiled model", [&]() -> Result<std::shared_ptr<const CompiledModel>> {
    SPARKLE_TRY(copy, allocate_tensor(DType::u8, {static_cast<int64_t>(bytes.size())}, "The compiled model"));
    if (!bytes.empty()) std::memcpy(copy.bytes.get(), bytes.data(), bytes.size());
    auto source = std::make_shared<Source>();
    source->copied = copy.bytes;
    return read(source, {copy.bytes.get(), bytes.size()}, name);
  });
}

Result<std::shared_ptr<const CompiledModel>> CompiledModel::read(std::shared_ptr<const Source> source,
                                                                 std::span<const std::byte> file, const std::string& name) {
  SPARKLE_TRY(header, read_compiled_header(file, name));
  const std::shared_ptr<CompiledModel> model(new CompiledModel);
  model->name_ = name;
  model->source_ = std::move(source);
  const SectionPlace& weights = header[CompiledSection::weights];
  model->weights_ = file.subspan(weights.at, weights.bytes);
  const auto text = [&](CompiledSection section) { return section_text(file, header, section); };
  const auto told = [&](const char* what, const Error& error) {
    return model->damaged("its " + std::string(what) + " cannot be read (" + error.message.substr(0, 200) + ")");
  };
  auto options = from_text<CompileOptions>(text(CompiledSection::options));
  if (!options.ok()) return told("options", options.error());
  model->options_ = std::move(*options);
  auto device = device_from_json(text(CompiledSection::device));
  if (!device.ok()) return told("device", device.error());
  model->device_ = std::move(*device);
  if (const auto host = text(CompiledSection::host); !host.empty()) {
    auto cpu = device_from_json(host);
    if (!cpu.ok()) return told("host", cpu.error());
    if (cpu->has_workgroups()) return model->damaged("its host is no CPU");
    model->host_ = std::move(*cpu);
  }
  if (const auto tuning = text(CompiledSection::tuning); !tuning.empty()) {
    auto store = TuningStore::parse(tuning, TuningStore::header_for(model->device_));
    if (!store.ok()) return told("tuning store", store.error());
    model->tuning_ = std::make_unique<TuningStore>(std::move(*store));
  }
  model->plan_text_ = text(CompiledSection::plan);
  // Values kept for planning, then the graph that needs them.
  std::vector<std::span<const std::byte>> values;
  for (std::string_view rest = text(CompiledSection::constants); !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const bool is_value = line.starts_with("value "), is_constant = line.starts_with("constant ");
    const auto inside = [&](int64_t at, int64_t bytes) {
      const auto all = static_cast<int64_t>(model->weights_.size());
      return at >= 0 && bytes >= 0 && at % kCompiledAlignment == 0 && at <= all && bytes <= all - at;
    };
    if (is_value) {
      auto kept = from_text<ValueLine>(line.substr(6));
      uint64_t hash = 0;
      if (!kept.ok() || kept->tensor < 0 || kept->tensor > 1 << 24 || !inside(kept->at, kept->bytes) ||
          !parse_hex(kept->hash, hash))
        return model->damaged("a kept value lies outside of it");
      if (hash_bytes(model->weights_.subspan(static_cast<size_t>(kept->at), static_cast<size_t>(kept->bytes))) != hash)
        return model->damaged("a kept value is not what was written");
      if (values.size() <= static_cast<size_t>(kept->tensor)) values.resize(static_cast<size_t>(kept->tensor) + 1);
      values[static_cast<size_t>(kept->tensor)] =
          model->weights_.subspan(static_cast<size_t>(kept->at), static_cast<size_t>(kept->bytes));
      continue;
    }
    const size_t key = line.find(" key=");
    auto constant = is_constant && key != std::string_view::npos ? from_text<ConstantLine>(line.substr(9, key - 9))
                                                                 : Result<ConstantLine>(Error{Reason::bad_format, ""});
    PackedConstant packed;
    if (!constant.ok() || !parse_hex(constant->hash, packed.hash))
      return model->damaged("its list of constants cannot be read");
    packed.at = constant->at, packed.bytes = constant->bytes;
    // A line behind each constant: whole-vector readers may look there.
    if (!inside(packed.at, packed.bytes) || !inside(packed.at, packed.bytes + kCompiledAlignment))
      return model->damaged("a constant lies outside of it");
    packed.key = line.substr(key + 5);
    if (packed.key == "-") packed.key.clear();
    model->constants_.push_back(std::move(packed));
  }
  auto graph = planning_graph(text(CompiledSection::graph), values);
  if (!graph.ok()) return told("graph", graph.error());
  model->graph_ = std::move(*graph);
  return std::shared_ptr<const CompiledModel>(model);
}

Status CompiledModel::check_device(const Device& here) const { return check_same(device_, here); }
Status CompiledModel::check_host(const Device& here) const { return host_ ? check_same(*host_, here) : ok(); }

Status CompiledModel::check_same(const Device& there, const Device& here) const {
  const auto refused = [&](const std::string& what) {
    return Error{Reason::device_unusable, "'" + name_ + "' was compiled for " + what + "; compile the model for this one."};
  };
  if (!same_machine(there, here))
    return refused("the device '" + there.name + "' (" + there.architecture + "), this is '" + here.name + "' (" +
                   here.architecture + ")");
  if (there.cores != here.cores) {
    return Error{Reason::device_unusable, "'" + name_ + "' was compiled for " + threads(there.cores) + ", here are " +
                                              threads(here.cores) + "; give --threads " + std::to_string(there.cores) +
                                              " (the option threads of a device), or compile the model for " +
                                              threads(here.cores) + "."};
  }
  if (there.compiles && !here.compiles) return refused("a machine that compiles programs (NVRTC), which is not at hand here");
  const Device want = without_rates(there), have = without_rates(here);
  if (want.units != have.units)
    return refused("a machine with the math units " + unit_names(want) + ", this one has " + unit_names(have));
  if (want.memory != have.memory) {
    for (size_t i = 0; i < want.memory.size() && i < have.memory.size(); ++i)
      if (want.memory[i] != have.memory[i])
        return refused("a machine whose " + want.memory[i].name + " holds " + std::to_string(want.memory[i].bytes) +
                       " bytes shared by " + std::to_string(want.memory[i].shared_by) + ", here " + have.memory[i].name +
                       " holds " + std::to_string(have.memory[i].bytes) + " shared by " +
                       std::to_string(have.memory[i].shared_by));
    return refused("a machine with other levels of memory");
  }
  return want == have ? ok() : Status(refused("a machine with other limits"));
}

Result<Plan> CompiledModel::plan() const {
  auto plan = make_plan(graph_, device_, {options_, tuning_.get(), host()});
  if (!plan.ok()) return damaged("its graph cannot be planned (" + plan.error().message.substr(0, 200) + ")");
  const auto hashes = constant_hashes(plan_text_);
  if (!hashes.ok()) return damaged("its plan cannot be read (" + hashes.error().message.substr(0, 200) + ")");
  if (plan_text_with(*plan, *hashes) != plan_text_)
    return Error{Reason::bad_format,
                 "'" + name_ + "' holds a plan that this build of Sparkle would not make; compile the model again."};
  return plan;
}

Result<std::vector<std::span<const std::byte>>> CompiledModel::constants(const Plan& plan,
                                                                         std::span<const ConstantUse> uses) const {
  if (uses.size() != constants_.size())
    return damaged("it holds " + std::to_string(constants_.size()) + " constants, its plan takes " +
                   std::to_string(uses.size()));
  std::vector<std::span<const std::byte>> found;
  for (size_t i = 0; i < uses.size(); ++i) {
    const PackedConstant& have = constants_[i];
    const HostTensor& value = plan.constants[uses[i].constant].value;
    const int64_t packed = uses[i].kernel->packed_bytes(uses[i].input);
    const std::string key = packed > 0 ? uses[i].kernel->packed_key(uses[i].input) : std::string();
    if (have.key != key || have.bytes != (packed > 0 ? packed : value.size_bytes()))
      return Error{Reason::bad_format, "'" + name_ + "' holds the constant '" + plan.constants[uses[i].constant].name +
                                           "' in another form than this build of Sparkle packs; compile the model again."};
    found.push_back(weights_.subspan(static_cast<size_t>(have.at), static_cast<size_t>(have.bytes)));
    if (packed == 0 && value.dtype == DType::boolean)
      for (const std::byte b : found.back())
        if (b > std::byte{1}) return damaged("a truth value is neither 0 nor 1");
  }
  return found;
}

Status CompiledModel::check_weights() const {
  for (const PackedConstant& c : constants_)
    if (hash_bytes(weights_.subspan(static_cast<size_t>(c.at), static_cast<size_t>(c.bytes))) != c.hash)
      return damaged("the weights at byte " + std::to_string(kCompiledWeightsAt + c.at) + " are not what was written");
  return ok();
}

}  // namespace sparkle
