// sparkle._core: the C++ interface as Python sees it. Arrays come and go without copies; the interpreter lock is released while
// Sparkle works. What is pleasant to use is made of this in sparkle/__init__.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <sparkle/sparkle.hpp>

namespace nb = nanobind;

namespace {

// Any array that speaks the buffer protocol or DLPack, dense and row-major, in host memory.
using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Objects = std::vector<nb::object>;

constexpr uint8_t kBfloat = static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat), kBool = 6;

sparkle::Type type_of(nb::dlpack::dtype d) {
  using sparkle::Type;
  const int bits = d.bits;
  switch (d.code) {
    case static_cast<uint8_t>(nb::dlpack::dtype_code::Float):
      if (bits == 32) return Type::f32;
      if (bits == 16) return Type::f16;
      if (bits == 64) return Type::f64;
      break;
    case kBfloat: return Type::bf16;
    case static_cast<uint8_t>(nb::dlpack::dtype_code::Int):
      return bits == 8 ? Type::i8 : bits == 16 ? Type::i16 : bits == 32 ? Type::i32 : Type::i64;
    case static_cast<uint8_t>(nb::dlpack::dtype_code::UInt):
      return bits == 8 ? Type::u8 : bits == 16 ? Type::u16 : bits == 32 ? Type::u32 : Type::u64;
    case kBool: return Type::boolean;
    default: break;
  }
  throw sparkle::Exception(SPARKLE_NOT_SERVED, "Arrays of this element type cannot be taken.");
}

nb::dlpack::dtype dtype_of(sparkle::Type type) {
  using sparkle::Type;
  const auto make = [&](nb::dlpack::dtype_code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sparkle::size_of(type)), 1};
  };
  switch (type) {
    case Type::f32:
    case Type::f16:
    case Type::f64: return make(nb::dlpack::dtype_code::Float);
    case Type::i8:
    case Type::i16:
    case Type::i32:
    case Type::i64: return make(nb::dlpack::dtype_code::Int);
    case Type::boolean: return nb::dlpack::dtype{kBool, 8, 1};
    default: return make(nb::dlpack::dtype_code::UInt);
  }
}

const char* name_of(sparkle::Type type) {
  static constexpr const char* kNames[] = {"float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16",
                                           "int32", "uint32", "int64", "uint64", "bool",
                                           // those of the ml_dtypes package
                                           "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
                                           "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2"};
  return kNames[static_cast<int>(type)];
}

// The type of NumPy whose elements hold the bits of a type that NumPy lacks; other types are their own.
sparkle::Type bits_of(sparkle::Type type) {
  if (type == sparkle::Type::bf16) return sparkle::Type::u16;
  return type >= sparkle::Type::f8e4m3fn ? sparkle::Type::u8 : type;
}

// Inputs of a call: tensors on memory that the arrays beside them keep alive.
struct Given {
  std::vector<Array> arrays;
  std::vector<sparkle::Tensor> tensors;
};

// NumPy has no bfloat16 and no type below 16 bits but the 8-bit integers: where the model wants one, the bits come as unsigned
// integers.
Given take(const sparkle::Session& session, const Objects& objects) {
  const auto infos = session.inputs();
  Given given;
  for (size_t n = 0; n < objects.size(); ++n) {
    Array a;
    if (!nb::try_cast(objects[n], a)) {
      const std::string name = n < infos.size() ? "'" + infos[n].name + "'" : std::to_string(n);
      throw sparkle::Exception(SPARKLE_BAD_INPUT, "The input " + name + " is no dense row-major array in host memory.");
    }
    sparkle::Shape shape;
    for (size_t i = 0; i < a.ndim(); ++i) shape.push_back(static_cast<int64_t>(a.shape(i)));
    sparkle::Type type = type_of(a.dtype());
    if (n < infos.size() && type == bits_of(infos[n].type)) type = infos[n].type;
    given.tensors.emplace_back(type, std::move(shape), const_cast<void*>(a.data()));
    given.arrays.push_back(std::move(a));
  }
  return given;
}

// The tensor's memory as an array that owns it; types that NumPy lacks as their bits.
nb::object array_of(const sparkle::Tensor& t) {
  auto* owner = new std::shared_ptr<void>(t.owner());
  const nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<std::shared_ptr<void>*>(p); });
  std::vector<size_t> shape(t.shape().begin(), t.shape().end());
  return nb::cast(nb::ndarray<nb::numpy>(t.data(), shape.size(), shape.data(), capsule, nullptr, dtype_of(bits_of(t.type()))));
}

template <class F>
auto unlocked(F&& work) {
  const nb::gil_scoped_release release;
  return work();
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

}  // namespace

NB_MODULE(_core, m) {
  m.def("version", &sparkle::version);
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
          [](sparkle::Device* self, const std::string& name, int threads, bool calibrate) {
            sparkle::DeviceOptions options;
            options.name = name;
            options.threads = threads;
            options.calibrate = calibrate;
            new (self) sparkle::Device(unlocked([&] { return sparkle::Device(options); }));
          },
          nb::arg("name"), nb::arg("threads"), nb::arg("calibrate"))
      .def("describe", &sparkle::Device::describe);

  m.def(
      "compile",
      [](const sparkle::Device& device, const std::string& path, const std::string& output,
         const std::vector<std::vector<int64_t>>& shapes, const std::string& algorithm, const std::string& variant,
         int64_t memory_budget, double accuracy, const std::string& tuning) {
        sparkle::SessionOptions options;
        options.algorithm = algorithm;
        options.variant = variant;
        options.memory_budget = memory_budget;
        options.accuracy = accuracy;
        options.tuning = tuning;
        std::vector<sparkle::Tensor> inputs;
        for (const std::vector<int64_t>& shape : shapes) inputs.emplace_back(sparkle::Type::f32, shape, nullptr);
        unlocked([&] {
          sparkle::compile(device, path, output, inputs, options);
          return 0;
        });
      },
      nb::arg("device"), nb::arg("path"), nb::arg("output"), nb::arg("shapes"), nb::arg("algorithm"), nb::arg("variant"),
      nb::arg("memory_budget"), nb::arg("accuracy"), nb::arg("tuning"));

  m.def(
      "evaluate",
      [](const sparkle::Device& device, const std::string& expression, const std::vector<std::string>& names,
         const Objects& objects) {
        std::vector<Array> arrays(objects.size());
        std::vector<std::pair<std::string, sparkle::Tensor>> operands;
        for (size_t n = 0; n < objects.size(); ++n) {
          if (n >= names.size() || !nb::try_cast(objects[n], arrays[n]))
            throw sparkle::Exception(SPARKLE_BAD_INPUT, "The operand '" + (n < names.size() ? names[n] : std::to_string(n)) +
                                                            "' is no dense row-major array in host memory.");
          sparkle::Shape shape;
          for (size_t i = 0; i < arrays[n].ndim(); ++i) shape.push_back(static_cast<int64_t>(arrays[n].shape(i)));
          operands.emplace_back(
              names[n], sparkle::Tensor(type_of(arrays[n].dtype()), std::move(shape), const_cast<void*>(arrays[n].data())));
        }
        return array_of(unlocked([&] { return sparkle::eval(device, expression, operands); }));
      },
      nb::arg("device"), nb::arg("expression"), nb::arg("names"), nb::arg("arrays"));

  nb::class_<sparkle::Session>(m, "Session")
      .def(
          "__init__",
          [](sparkle::Session* self, const sparkle::Device& device, const std::optional<std::string>& path,
             const std::optional<nb::bytes>& model, const std::string& precision, const std::string& algorithm,
             const std::string& variant, int64_t memory_budget, double accuracy, const std::string& tuning,
             int64_t plan_cache_bytes) {
            sparkle::SessionOptions options;
            options.precision = precision;
            options.algorithm = algorithm;
            options.variant = variant;
            options.memory_budget = memory_budget;
            options.accuracy = accuracy;
            options.tuning = tuning;
            options.plan_cache_bytes = plan_cache_bytes;
            const void* bytes = model ? model->data() : nullptr;
            const size_t size = model ? model->size() : 0;
            new (self) sparkle::Session(unlocked([&] {
              return path ? sparkle::Session(device, *path, options) : sparkle::Session(device, bytes, size, options);
            }));
          },
          nb::arg("device"), nb::arg("path").none(), nb::arg("model").none(), nb::arg("precision"), nb::arg("algorithm"),
          nb::arg("variant"), nb::arg("memory_budget"), nb::arg("accuracy"), nb::arg("tuning"), nb::arg("plan_cache_bytes"))
      .def(
          "move_to", [](sparkle::Session& s, const sparkle::Device& device) { unlocked([&] { s.move_to(device); }); },
          nb::arg("device"))
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
          [](sparkle::Session& s, const Objects& inputs) {
            const Given given = take(s, inputs);
            return unlocked([&] { return s.report(given.tensors); });
          },
          nb::arg("inputs"));
}
