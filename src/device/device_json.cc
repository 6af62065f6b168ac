#include "device/device_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/printable.h"
#include "base/files/read_file.h"

namespace sparkle {

namespace {

using Json = nlohmann::ordered_json;

// Bounds of what a sane document holds: they keep the planner's products of sizes far from overflow.
constexpr int kMostInt = 1 << 24, kMostTile = 1 << 10;
constexpr int64_t kMostBytes = int64_t{1} << 60;
constexpr double kMostRate = 1e24;
constexpr size_t kMostEntries = 64, kLongestText = 4096;
constexpr int64_t kLargestFile = 1 << 20;

bool is_text(const std::string& text) { return text.size() <= kLongestText && printable(text, kLongestText) == text; }

// The schema: each record's fields once, for the writer and the reader.
template <class V>
void visit(V& v, MemoryLevel& l) {
  v("name", l.name);
  v("bytes", l.bytes);
  v("bytes_per_second", l.bytes_per_second);
  v("total_bytes_per_second", l.total_bytes_per_second);
  v("copy_bytes_per_second", l.copy_bytes_per_second);
  v("shared_by_cores", l.shared_by, 1);
  v("filled_by_hand", l.filled_by_hand);
}

template <class V>
void visit(V& v, MathUnit& u) {
  v("name", u.name);
  v("kind", u.kind);
  v("m", u.m, 1, kMostTile);
  v("n", u.n, 1, kMostTile);
  v("k", u.k, 1, kMostTile);
  v("input", u.input);
  v("accumulator", u.accumulator);
  v("flops_per_second", u.flops_per_second);
  v("total_flops_per_second", u.total_flops_per_second);
  v("registers", u.registers);
}

template <class V>
void visit(V& v, DeviceLimits& l) {
  v("max_threads_per_group", l.max_threads_per_group);
  v("shared_bytes_per_group", l.shared_bytes_per_group);
  v("subgroup_size", l.subgroup_size);
  v("matrix_subgroup_size", l.matrix_subgroup_size);
  v("registers_per_thread", l.registers_per_thread);
  v("schedulers_per_core", l.schedulers_per_core);
  v("max_buffer_bytes", l.max_buffer_bytes);
}

template <class V>
void visit(V& v, KernelPace& p) {
  v("name", p.name);
  v("unit", p.unit);
  v("ratio", p.ratio);
}

template <class V>
void visit(V& v, Device& d) {
  v("name", d.name);
  v("kind", d.kind);
  v("vendor", d.vendor);
  v("architecture", d.architecture);
  v("driver", d.driver);
  v("banned", d.denylist);
  v("cores", d.cores, 1);
  v("thread_note", d.thread_note);
  v("clock_hz", d.clock_hz);
  v("launch_seconds", d.launch_seconds);
  v("link_bytes_per_second", d.link_bytes_per_second);
  v("link_seconds", d.link_seconds);
  v("compiles", d.compiles);
  v("calibrated", d.calibrated);
  v("memory", d.memory);
  v("units", d.units);
  v("paces", d.paces);
  v("limits", d.limits);
}

template <class T>
concept Record = std::is_same_v<T, MemoryLevel> || std::is_same_v<T, MathUnit> || std::is_same_v<T, DeviceLimits> ||
                 std::is_same_v<T, KernelPace>;

struct Writer {
  Json object = Json::object();

  template <class T>
  static Json write(T record) {
    Writer inner;
    visit(inner, record);
    return std::move(inner.object);
  }
  // The bounds are the reader's business.
  template <class T>
  void operator()(const char* key, T& value, int = 0, int = 0) {
    if constexpr (Record<T>) {
      if (!(value == T{})) object[key] = write(value);
    } else if constexpr (requires { value.begin()->name; }) {
      if (!value.empty()) object[key] = Json::array();
      for (auto& entry : value) object[key].push_back(write(entry));
    } else if constexpr (std::is_enum_v<T>) {
      object[key] = std::string(name_of(value));
    } else {
      // Fields whose default is 1 are written always: a tile of 1 x 16 x 1 reads better than one of n=16.
      if (!(value == T{})) object[key] = value;
    }
  }
};

bool parse_name(std::string_view text, DeviceKind& kind) {
  for (DeviceKind k : {DeviceKind::cpu, DeviceKind::vulkan, DeviceKind::cuda})
    if (name_of(k) == text) return kind = k, true;
  return false;
}
bool parse_name(std::string_view text, UnitKind& kind) {
  for (UnitKind k : {UnitKind::vector_fma, UnitKind::dot_product, UnitKind::matrix})
    if (name_of(k) == text) return kind = k, true;
  return false;
}
bool parse_name(std::string_view text, DType& type) {
  const auto parsed = dtype_from(text);
  if (parsed) type = *parsed;
  return parsed.has_value();
}

constexpr std::string_view choices(DeviceKind) { return "cpu, vulkan or cuda"; }
constexpr std::string_view choices(UnitKind) { return "vector_fma, dot_product or matrix"; }
constexpr std::string_view choices(DType) { return "an element type such as f32, f16, bf16, i8 or i32"; }

// What documents of earlier versions say beside: nothing was ever decided by it, so it is read over.
using Names = std::set<std::string, std::less<>>;
Names former(const MemoryLevel&) { return {"line_bytes"}; }
Names former(const MathUnit&) { return {"alignment_elements", "latency_cycles"}; }
Names former(const KernelPace&) { return {}; }
Names former(const DeviceLimits&) { return {}; }

struct Reader {
  const Json& object;
  std::string path;  // of the object in the document: "memory[2]"; empty at the top
  std::string& problem;
  Names known{};

  std::string place(std::string_view key) const { return path.empty() ? std::string(key) : path + '.' + std::string(key); }

  void fail(const std::string& where, const Json& found, std::string_view wanted) {
    if (!problem.empty()) return;
    std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 37) + "...";
    problem = where + " is " + text + ", but must be " + std::string(wanted) + '.';
  }

  template <class T>
  void operator()(const char* key, T& field, int least = 0, int most = kMostInt) {
    known.insert(key);
    const auto found = object.find(key);
    if (found == object.end() || !problem.empty()) return;
    const Json& value = *found;
    const std::string where = place(key);
    if constexpr (Record<T>) {
      record(value, where, field);
    } else if constexpr (requires { field.begin()->name; }) {
      list(value, where, field);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (value.is_boolean()) field = value.template get<bool>();
      else fail(where, value, "true or false");
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (value.is_string() && is_text(value.template get_ref<const std::string&>())) field = value.template get<std::string>();
      else fail(where, value, "a text of at most " + std::to_string(kLongestText) + " bytes without control characters");
    } else if constexpr (std::is_enum_v<T>) {
      if (!value.is_string() || !parse_name(value.template get_ref<const std::string&>(), field))
        fail(where, value, choices(T{}));
    } else if constexpr (std::is_integral_v<T>) {
      const int64_t largest = std::is_same_v<T, int64_t> ? kMostBytes : most;
      const bool whole = value.is_number_integer() &&
                         (!value.is_number_unsigned() || value.template get<uint64_t>() <= static_cast<uint64_t>(kMostBytes));
      if (whole && value.template get<int64_t>() >= least && value.template get<int64_t>() <= largest)
        field = value.template get<T>();
      else fail(where, value, "a whole number from " + std::to_string(least) + " to " + std::to_string(largest));
    } else {
      static_assert(std::is_same_v<T, double>);
      const double number = value.is_number() ? value.template get<double>() : -1;
      if (number >= 0 && number <= kMostRate) field = number == 0 ? 0.0 : number;  // no negative zero
      else fail(where, value, "a number from 0 to 1e24");
    }
  }

  template <class R>
  void record(const Json& value, const std::string& where, R& field) {
    if (!value.is_object()) return fail(where, value, "an object");
    Reader inner{value, where, problem, former(field)};
    visit(inner, field);
    inner.reject_unknown();
  }

  template <class R>
  void list(const Json& value, const std::string& where, std::vector<R>& field) {
    if (!value.is_array() || value.size() > kMostEntries)
      return fail(where, value, "an array of at most " + std::to_string(kMostEntries) + " objects");
    std::set<std::string> names;
    for (size_t i = 0; i < value.size() && problem.empty(); ++i) {
      const std::string entry = where + '[' + std::to_string(i) + ']';
      R item;
      record(value[i], entry, item);
      if (problem.empty() && (item.name.empty() || !names.insert(item.name).second))
        problem = entry + ".name is '" + item.name + "', but must be a name that no other entry has.";
      field.push_back(std::move(item));
    }
  }

  void reject_unknown() {
    for (const auto& item : object.items())
      if (problem.empty() && !known.contains(item.key()))
        problem = place(item.key().substr(0, 60)) + " is not a field of " + std::string(kDeviceSchema) + '.';
  }
};

}  // namespace

std::string device_to_json(const Device& device, std::string_view source, std::span<const std::string> tried) {
  Json document = Json::object();
  document["schema"] = std::string(kDeviceSchema);
  if (!source.empty()) document["source"] = std::string(source);
  document.update(Writer::write(device));
  if (!tried.empty()) document["tried"] = std::vector<std::string>(tried.begin(), tried.end());
  // Bytes of a driver's name that are no UTF-8 become a replacement character.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

// What the specification of Vulkan promises of any device.
constexpr int kLeastThreadsPerGroup = 128;

Result<Device> device_from_json(std::string_view text) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::exception& exception) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    std::string what = exception.what();
    if (const size_t bracket = what.find("] "); bracket != std::string::npos) what.erase(0, bracket + 2);
    return Error{Reason::bad_format, "The device description is not JSON: " + what + '.'};
  }
  if (!document.is_object()) return Error{Reason::bad_format, "The device description must be a JSON object."};
  const auto schema = document.find("schema");
  if (schema == document.end() || *schema != std::string(kDeviceSchema))
    return Error{Reason::bad_format, "schema must be \"" + std::string(kDeviceSchema) + "\" in a device description."};
  Device device;
  std::string problem;
  // Descriptions of earlier versions asked for roofs where kernels were not whole: by_roofs is read over, kernels count.
  Reader reader{document, {}, problem, {"schema", "source", "tried", "by_roofs"}};
  visit(reader, device);
  reader.reject_unknown();
  if (!problem.empty()) return Error{Reason::bad_format, std::move(problem)};
  int& threads = device.limits.max_threads_per_group;  // what Device::has_workgroups asks
  if (device.kind == DeviceKind::cpu && threads > 0)
    return Error{Reason::bad_format, "limits.max_threads_per_group is for GPUs: leave it out where kind is \"cpu\"."};
  if (device.kind != DeviceKind::cpu && threads == 0) threads = kLeastThreadsPerGroup;
  return device;
}

Result<Device> load_device(const std::string& path) {
  SPARKLE_TRY(text, read_file(path, {"device description", kLargestFile}));
  auto device = device_from_json(text);
  if (!device.ok()) return Error{device.error().reason, path + ": " + device.error().message};
  return device;
}

}  // namespace sparkle
