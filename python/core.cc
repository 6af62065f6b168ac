// sparkle._core: the C++ interface as Python sees it. Arrays come and go without copies; the interpreter lock is released while
// Sparkle works. What is pleasant to use is made of this in sparkle/*.py.
#include "core.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace {

using namespace core;

// Inputs of a call: tensors on memory that the arrays beside them keep alive.
struct Given {
  std::vector<Array> arrays;
  std::vector<sparkle::Tensor> tensors;
};

Given take(const sparkle::Session& session, const Objects& objects) {
  const auto infos = session.inputs();
  Given given;
  for (size_t n = 0; n < objects.size(); ++n) {
    const bool known = n < infos.size();
    Borrowed b = borrow(objects[n], known ? std::optional(infos[n].type) : std::nullopt,
                        "The input " + (known ? "'" + infos[n].name + "'" : std::to_string(n)));
    given.tensors.push_back(std::move(b.tensor));
    given.arrays.push_back(std::move(b.array));
  }
  return given;
}

// "float32 1x3x4".
std::string text_of(sparkle::Type type, const sparkle::Shape& shape) {
  std::string text = name_of(type);
  for (size_t a = 0; a < shape.size(); ++a) text += (a == 0 ? " " : "x") + std::to_string(shape[a]);
  return text;
}

void upload(sparkle::DeviceTensor& to, const Borrowed& from) {
  if (from.tensor.type() != to.type() || from.tensor.shape() != to.shape())
    throw sparkle::Exception(SPARKLE_BAD_INPUT, "The tensor is " + text_of(to.type(), to.shape()) + ", " +
                                                    text_of(from.tensor.type(), from.tensor.shape()) + " was given.");
  const nb::gil_scoped_release release;
  to.upload(from.tensor);
}

// Runs on tensors of the device: into `places`, or into new ones. values[i]: the array that inputs[i] was made of, or None.
std::vector<sparkle::DeviceTensor> run_on_device(const sparkle::Session& session,
                                                 const std::vector<sparkle::DeviceTensor>& inputs, const Objects& values,
                                                 const std::optional<std::vector<sparkle::DeviceTensor>>& places) {
  std::vector<Borrowed> borrowed;
  std::vector<sparkle_device_tensor> from, to(session.outputs().size());
  for (size_t n = 0; n < inputs.size(); ++n) {
    from.push_back(inputs[n].c());
    if (n >= values.size() || values[n].is_none()) continue;
    borrowed.push_back(borrow(values[n], inputs[n].type(), "The input " + std::to_string(n)));
    from.back().values = borrowed.back().tensor.data();
  }
  if (places) {
    to.clear();
    for (const sparkle::DeviceTensor& t : *places) to.push_back(t.c());
  }
  {
    const nb::gil_scoped_release release;
    sparkle::detail::check(sparkle_session_run_on_device(session.c(), from.data(), from.size(), to.data(), to.size()));
  }
  std::vector<sparkle::DeviceTensor> results;
  if (places) return results;
  for (const sparkle_device_tensor& t : to)
    results.emplace_back(static_cast<sparkle::Type>(t.type), sparkle::Shape(t.shape, t.shape + t.rank),
                         sparkle::Buffer(t.buffer));
  return results;
}

// What a device tensor shares with another library's array keeps that.
struct Lent {
  nb::ndarray<nb::c_contig> array;
};

// A device tensor on the memory of an array - an object that speaks DLPack, or a capsule of it - and what keeps that memory.
std::pair<sparkle::DeviceTensor, Lent> share(const sparkle::Device& device, const nb::object& object) {
  Lent lent;
  if (!nb::try_cast(object, lent.array, false))
    throw sparkle::Exception(SPARKLE_BAD_INPUT,
                             "What was given is no dense row-major array that may be written; make it contiguous first.");
  const sparkle::Type type = type_of(lent.array.dtype());
  sparkle::Shape shape(lent.array.shape_ptr(), lent.array.shape_ptr() + lent.array.ndim());
  const sparkle::Tensor described(type, shape, nullptr);
  const auto bytes = static_cast<int64_t>(std::max<size_t>(described.bytes(), 1));
  void* const data = lent.array.data();
  sparkle::Buffer buffer = lent.array.device_type() == nb::device::cuda::value
                               ? sparkle::Buffer::of_cuda(device, reinterpret_cast<uintptr_t>(data), bytes)
                               : sparkle::Buffer(device, data, bytes);
  return {sparkle::DeviceTensor(type, std::move(shape), std::move(buffer)), std::move(lent)};
}

// The memory of a device tensor as a capsule of DLPack. `ordinal`: of the CUDA device; -1: the host can read it.
nb::object lend(const sparkle::DeviceTensor& t, int ordinal) {
  const nb::capsule owner(new sparkle::DeviceTensor(t),
                          [](void* p) noexcept { delete static_cast<sparkle::DeviceTensor*>(p); });
  uint64_t address = 0;
  if (ordinal >= 0) sparkle::detail::check(sparkle_buffer_cuda(t.buffer().c(), &address));
  void* const data = ordinal < 0 ? t.buffer().host() : reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  const std::vector<size_t> shape(t.shape().begin(), t.shape().end());
  nb::dlpack::dtype type = dtype_of(t.type());
  if (t.type() == sparkle::Type::bf16) type.code = kBfloat;
  return nb::cast(nb::ndarray<>(data, shape.size(), shape.data(), owner, nullptr, type,
                                ordinal < 0 ? nb::device::cpu::value : nb::device::cuda::value, ordinal < 0 ? 0 : ordinal));
}

nb::list describe(const std::vector<sparkle::TensorInfo>& infos) {
  nb::list list;
  for (const sparkle::TensorInfo& t : infos) {
    nb::list shape;
    for (size_t a = 0; a < t.shape.size(); ++a) {
      if (t.shape[a] >= 0) {
        shape.append(t.shape[a]);
      } else if (t.axis_names[a].empty()) {
        shape.append(nb::none());
      } else {
        shape.append(t.axis_names[a]);
      }
    }
    list.append(nb::make_tuple(t.name, name_of(t.type), t.rank_known ? nb::object(shape) : nb::none()));
  }
  return list;
}

// Items under way; results come to Python functions, by a thread of the pipeline's.
class Pipeline {
 public:
  Pipeline(const sparkle::Session& session, int depth, int waiting) : session_(session) {
    sparkle_pipeline_options options{};
    options.size = sizeof options, options.depth = depth, options.waiting = waiting;
    sparkle::detail::check(sparkle_pipeline_open(session.c(), &options, &pipeline_));
  }
  // Shared by several sessions.
  Pipeline(const std::vector<sparkle::Session>& sessions, int depth, int waiting, const std::string& split,
           const std::string& fallback, int64_t items)
      : session_(sessions.at(0)), sessions_(sessions.size()) {
    sparkle_pipeline_options options{};
    options.size = sizeof options, options.depth = depth, options.waiting = waiting;
    options.split = split.c_str(), options.fallback = fallback.c_str(), options.items = items;
    std::vector<sparkle_session*> list;
    for (const sparkle::Session& session : sessions) list.push_back(session.c());
    sparkle::detail::check(sparkle_pipeline_open_shared(list.data(), list.size(), &options, &pipeline_));
  }
  ~Pipeline() { close(); }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // `done`: called with the outputs, "" and "", or with None, a code and a sentence.
  void submit(const Objects& inputs, const nb::object& done) {
    if (!pipeline_) throw sparkle::Exception(SPARKLE_BAD_USAGE, "The pipeline is closed and takes no more items.");
    auto item = std::make_unique<Item>(Item{take(session_, inputs), done});
    std::vector<sparkle_tensor> tensors;
    for (const sparkle::Tensor& t : item->given.tensors) tensors.push_back(t.c());
    Item* const raw = item.release();  // the result may be there before this returns
    const sparkle_status status =
        unlocked([&] { return sparkle_pipeline_submit(pipeline_, tensors.data(), tensors.size(), &Pipeline::hand_back, raw); });
    if (status != SPARKLE_OK) delete raw;
    sparkle::detail::check(status);
  }
  void drain() {
    if (pipeline_) unlocked([&] { return sparkle_pipeline_drain(pipeline_); });
  }
  // (used, lost, items, predicted, seconds) of each session.
  nb::list shares() const {
    nb::list list;
    for (size_t i = 0; pipeline_ && i < sessions_; ++i) {
      sparkle_pipeline_share share{};
      share.size = sizeof share;
      sparkle::detail::check(sparkle_pipeline_get_share(pipeline_, i, &share));
      list.append(nb::make_tuple(share.used != 0, share.lost != 0, share.items, share.predicted, share.seconds));
    }
    return list;
  }
  std::string why() const {
    if (!pipeline_ || sessions_ == 0) return {};
    char* text = nullptr;
    sparkle::detail::check(sparkle_pipeline_why(pipeline_, &text));
    return sparkle::detail::take_text(text);
  }
  void close() {
    sparkle_pipeline* const pipeline = std::exchange(pipeline_, nullptr);
    const nb::gil_scoped_release release;
    sparkle_pipeline_close(pipeline);
  }

 private:
  struct Item {
    Given given;
    nb::object done;
  };
  static void hand_back(void* user, sparkle_status status, const char* sentence, sparkle_value** outputs, size_t count) {
    std::vector<sparkle::Tensor> tensors;
    for (size_t i = 0; i < count; ++i) tensors.emplace_back(outputs[i]);
    const nb::gil_scoped_acquire held;
    const std::unique_ptr<Item> item(static_cast<Item*>(user));
    try {
      if (status != SPARKLE_OK) {
        item->done(nb::none(), sparkle_status_name(status), sentence);
        return;
      }
      nb::list list;
      for (const sparkle::Tensor& t : tensors) list.append(array_of(t));
      item->done(list, "", "");
    } catch (nb::python_error& e) {
      e.discard_as_unraisable("the result of an item");
    }
  }
  sparkle::Session session_;
  size_t sessions_ = 0;  // of a shared one
  sparkle_pipeline* pipeline_ = nullptr;
};

}  // namespace

NB_MODULE(_core, m) {
  m.def("version", &sparkle::version);
  m.def("devices", [] {
    char* json = nullptr;
    sparkle::detail::check(unlocked([&] { return sparkle_device_list(&json); }));
    return sparkle::detail::take_text(json);
  });
  m.def(
      "set_log",
      [](const nb::object& function) {
        static auto* const target = new nb::object;  // never destroyed: the interpreter ends before the process does
        unlocked([] { sparkle::set_log({}); });      // what is being said may wait for the interpreter
        *target = function;
        if (function.is_none()) return;
        sparkle::set_log([](sparkle_log_level level, const char* sentence) {
          const nb::gil_scoped_acquire held;
          try {
            (*target)(level == SPARKLE_LOG_WARNING, sentence);
          } catch (nb::python_error& e) {
            e.discard_as_unraisable("what Sparkle logs");
          }
        });
      },
      nb::arg("function").none());
  nb::exception<sparkle::Exception> error(m, "CoreError", PyExc_RuntimeError);
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void* type) {
        try {
          std::rethrow_exception(p);
        } catch (const sparkle::Exception& e) {
          PyErr_SetObject(static_cast<PyObject*>(type), nb::make_tuple(e.code(), e.what()).ptr());
        }
      },
      error.ptr());

  nb::class_<sparkle::Device>(m, "Device")
      .def(
          "__init__",
          [](sparkle::Device* self, const std::string& name, int threads, bool calibrate, const std::string& fallback) {
            sparkle::DeviceOptions options;
            options.name = name;
            options.threads = threads;
            options.calibrate = calibrate;
            options.fallback = fallback;
            new (self) sparkle::Device(unlocked([&] { return sparkle::Device(options); }));
          },
          nb::arg("name"), nb::arg("threads"), nb::arg("calibrate"), nb::arg("fallback"))
      .def("describe", &sparkle::Device::describe)
      .def("cuda_ordinal",
           [](const sparkle::Device& device) {
             int32_t ordinal = 0;
             sparkle::detail::check(sparkle_device_cuda(device.c(), &ordinal));
             return ordinal;
           })
      .def("follow_cuda_stream", &sparkle::Device::follow_cuda_stream, nb::arg("stream"))
      .def("traffic", [](const sparkle::Device& device) {
        const sparkle_traffic traffic = device.traffic();
        return nb::make_tuple(traffic.copies, traffic.host_transfers);
      });

  nb::class_<sparkle::DeviceTensor>(m, "DeviceTensor")
      .def(
          "__init__",
          [](sparkle::DeviceTensor* self, const sparkle::Device& device, const std::string& dtype,
             const sparkle::Shape& shape) {
            new (self) sparkle::DeviceTensor(unlocked([&] { return sparkle::DeviceTensor(device, type_named(dtype), shape); }));
          },
          nb::arg("device"), nb::arg("dtype"), nb::arg("shape"))
      .def("dtype", [](const sparkle::DeviceTensor& t) { return name_of(t.type()); })
      .def("shape", [](const sparkle::DeviceTensor& t) { return t.shape(); })
      .def(
          "write", [](sparkle::DeviceTensor& t, const nb::object& array) { upload(t, borrow(array, t.type(), "The tensor")); },
          nb::arg("array"))
      .def("lend", &lend, nb::arg("ordinal"))
      .def("read", [](const sparkle::DeviceTensor& t) { return array_of(unlocked([&] { return t.download(); })); });

  nb::class_<Lent>(m, "Lent");
  m.def("share", &share, nb::arg("device"), nb::arg("array"));
  m.def(
      "upload",
      [](const sparkle::Device& device, const std::string& dtype, const nb::object& array) {
        const sparkle::Type type = type_named(dtype);
        const Borrowed from = borrow(array, type, "The tensor");
        sparkle::DeviceTensor t = unlocked([&] { return sparkle::DeviceTensor(device, type, from.tensor.shape()); });
        upload(t, from);
        return t;
      },
      nb::arg("device"), nb::arg("dtype"), nb::arg("array"));

  {  // All there are: one more does not compile before Python has it below.
    [[maybe_unused]] const auto& [precision, algorithm, variant, tuning, memory_budget, plan_cache_bytes, accuracy, nonfinite,
                                  fusion, fallback] = sparkle::SessionOptions();
  }
  nb::class_<sparkle::SessionOptions>(m, "SessionOptions")
      .def(nb::init<>())
      .def_rw("precision", &sparkle::SessionOptions::precision)
      .def_rw("algorithm", &sparkle::SessionOptions::algorithm)
      .def_rw("variant", &sparkle::SessionOptions::variant)
      .def_rw("fusion", &sparkle::SessionOptions::fusion)
      .def_rw("fallback", &sparkle::SessionOptions::fallback)
      .def_rw("memory_budget", &sparkle::SessionOptions::memory_budget)
      .def_rw("accuracy", &sparkle::SessionOptions::accuracy)
      .def_rw("tuning", &sparkle::SessionOptions::tuning)
      .def_rw("plan_cache_bytes", &sparkle::SessionOptions::plan_cache_bytes)
      .def_rw("nonfinite", &sparkle::SessionOptions::nonfinite);

  m.def(
      "choose_device",
      [](const std::string& path, int threads, int64_t rows, const sparkle::NamedShapes& shapes,
         const sparkle::SessionOptions& session) {
        return unlocked([&] { return sparkle::choose_device(path, {threads, rows, shapes, session}); });
      },
      nb::arg("path"), nb::arg("threads"), nb::arg("rows"), nb::arg("shapes"), nb::arg("session"));

  m.def(
      "compile",
      [](const sparkle::Device& device, const std::string& path, const std::string& output,
         const std::vector<std::vector<int64_t>>& shapes, const sparkle::SessionOptions& options) {
        std::vector<sparkle::Tensor> inputs;
        for (const std::vector<int64_t>& shape : shapes) inputs.emplace_back(sparkle::Type::f32, shape, nullptr);
        unlocked([&] {
          sparkle::compile(device, path, output, inputs, options);
          return 0;
        });
      },
      nb::arg("device"), nb::arg("path"), nb::arg("output"), nb::arg("shapes"), nb::arg("options"));

  {  // All there are, as above.
    [[maybe_unused]] const auto& [precision, target, only, calibration, proof, max_extra, multiple, percentile, min_cosine,
                                  min_agreement, keep_wide, shapes] = sparkle::FixOptions();
    [[maybe_unused]] const auto& [shapes_of_inputs, threads, measure] = sparkle::CheckOptions();
    [[maybe_unused]] const auto& [seconds, runs, check] = sparkle::MeasureOptions();
  }
  nb::class_<sparkle::FixOptions>(m, "FixOptions")
      .def(nb::init<>())
      .def_rw("precision", &sparkle::FixOptions::precision)
      .def_rw("target", &sparkle::FixOptions::target)
      .def_rw("only", &sparkle::FixOptions::only)
      .def_rw("calibration", &sparkle::FixOptions::calibration)
      .def_rw("proof", &sparkle::FixOptions::proof)
      .def_rw("max_extra", &sparkle::FixOptions::max_extra)
      .def_rw("multiple", &sparkle::FixOptions::multiple)
      .def_rw("percentile", &sparkle::FixOptions::percentile)
      .def_rw("min_cosine", &sparkle::FixOptions::min_cosine)
      .def_rw("min_agreement", &sparkle::FixOptions::min_agreement)
      .def_rw("keep_wide", &sparkle::FixOptions::keep_wide)
      .def_rw("shapes", &sparkle::FixOptions::shapes);

  m.def(
      "fix",
      [](const sparkle::Device& device, const std::string& path, const std::string& output, const sparkle::FixOptions& options,
         const Objects& samples) {
        std::vector<Borrowed> borrowed;
        std::vector<sparkle::Tensor> tensors;
        for (size_t n = 0; n < samples.size(); ++n) {
          borrowed.push_back(borrow(samples[n], std::nullopt, "The sample " + std::to_string(n)));
          tensors.push_back(borrowed.back().tensor);
        }
        return unlocked([&] { return sparkle::fix(device, path, output, options, tensors); });
      },
      nb::arg("device"), nb::arg("path"), nb::arg("output"), nb::arg("options"), nb::arg("samples"));

  m.def(
      "check",
      [](const std::string& path, const std::string& targets, const sparkle::NamedShapes& shapes, int threads, bool measure) {
        std::string html;
        std::string json = unlocked([&] { return sparkle::check(path, targets, {shapes, threads, measure}, &html); });
        return std::make_pair(std::move(json), std::move(html));
      },
      nb::arg("path"), nb::arg("targets"), nb::arg("shapes"), nb::arg("threads"), nb::arg("measure"));

  m.def(
      "evaluate",
      [](const sparkle::Device& device, const std::string& expression, const std::vector<std::string>& names,
         const Objects& objects) {
        std::vector<Borrowed> borrowed;
        std::vector<std::pair<std::string, sparkle::Tensor>> operands;
        for (size_t n = 0; n < objects.size() && n < names.size(); ++n) {
          borrowed.push_back(borrow(objects[n], std::nullopt, "The operand '" + names[n] + "'"));
          operands.emplace_back(names[n], borrowed.back().tensor);
        }
        return array_of(unlocked([&] { return sparkle::eval(device, expression, operands); }));
      },
      nb::arg("device"), nb::arg("expression"), nb::arg("names"), nb::arg("arrays"));

  nb::class_<sparkle::Session>(m, "Session")
      .def(
          "__init__",
          [](sparkle::Session* self, const sparkle::Device& device, const std::optional<std::string>& path,
             const std::optional<nb::bytes>& model, const sparkle::SessionOptions& options) {
            const void* bytes = model ? model->data() : nullptr;
            const size_t size = model ? model->size() : 0;
            new (self) sparkle::Session(unlocked([&] {
              return path ? sparkle::Session(device, *path, options) : sparkle::Session(device, bytes, size, options);
            }));
          },
          nb::arg("device"), nb::arg("path").none(), nb::arg("model").none(), nb::arg("options"))
      .def(
          "move_to", [](sparkle::Session& s, const sparkle::Device& device) { unlocked([&] { s.move_to(device); }); },
          nb::arg("device"))
      .def("events",
           [](const sparkle::Session& s) {
             nb::list list;
             for (const sparkle::Event& e : s.events())
               list.append(nb::make_tuple(e.what, e.from, e.to, e.reason, e.cost, e.layer, e.message));
             return list;
           })
      .def("inputs", [](const sparkle::Session& s) { return describe(s.inputs()); })
      .def("outputs", [](const sparkle::Session& s) { return describe(s.outputs()); })
      .def(
          "run",
          [](sparkle::Session& s, const Objects& inputs) {
            const Given given = take(s, inputs);
            const auto results = unlocked([&] { return s.run(given.tensors); });
            nb::list list;
            for (const sparkle::Tensor& t : results) list.append(array_of(t));
            return list;
          },
          nb::arg("inputs"))
      .def(
          "run_into",
          [](sparkle::Session& s, const Objects& inputs, const Objects& places) {
            const auto infos = s.outputs();
            const Given given = take(s, inputs);
            std::vector<Borrowed> borrowed;
            std::vector<sparkle::Tensor> to;
            for (size_t n = 0; n < places.size(); ++n) {
              const auto type = n < infos.size() ? std::optional(infos[n].type) : std::nullopt;
              borrowed.push_back(borrow(places[n], type, "The place of output " + std::to_string(n)));
              to.push_back(borrowed.back().tensor);
            }
            const nb::gil_scoped_release release;
            s.run_into(given.tensors, to);
          },
          nb::arg("inputs"), nb::arg("places"))
      .def("run_on_device", &run_on_device, nb::arg("inputs"), nb::arg("values"), nb::arg("places").none())
      .def(
          "peak_bytes",
          [](sparkle::Session& s, const Objects& inputs) {
            const Given given = take(s, inputs);
            return unlocked([&] { return s.peak_bytes(given.tensors); });
          },
          nb::arg("inputs"))
      .def(
          "explain",
          [](sparkle::Session& s, const Objects& inputs, bool as_json) {
            const Given given = take(s, inputs);
            return unlocked([&] { return s.explain(given.tensors, as_json); });
          },
          nb::arg("inputs"), nb::arg("as_json"))
      .def(
          "plan",
          [](sparkle::Session& s, const Objects& inputs) {
            const Given given = take(s, inputs);
            return unlocked([&] { return s.plan(given.tensors); });
          },
          nb::arg("inputs"))
      .def(
          "report",
          [](sparkle::Session& s, const Objects& inputs, double seconds, int runs, const std::string& check) {
            const Given given = take(s, inputs);
            std::string html, trace;
            std::string json = unlocked([&] { return s.measure(given.tensors, {seconds, runs, check}, &html, &trace); });
            return std::make_tuple(std::move(json), std::move(html), std::move(trace));
          },
          nb::arg("inputs"), nb::arg("seconds"), nb::arg("runs"), nb::arg("check"));

  nb::class_<Pipeline>(m, "Pipeline")
      .def(nb::init<const sparkle::Session&, int, int>(), nb::arg("session"), nb::arg("depth"), nb::arg("waiting"))
      .def(nb::init<const std::vector<sparkle::Session>&, int, int, const std::string&, const std::string&, int64_t>(),
           nb::arg("sessions"), nb::arg("depth"), nb::arg("waiting"), nb::arg("split"), nb::arg("fallback"), nb::arg("items"))
      .def("shares", &Pipeline::shares)
      .def("why", &Pipeline::why)
      .def("drain", &Pipeline::drain)
      .def("submit", &Pipeline::submit, nb::arg("inputs"), nb::arg("done"))
      .def("close", &Pipeline::close);

  core::bind_vision(m);
}
