#include "peers/onnxruntime_model.h"

#include <cstring>
#include <utility>

#include "onnx/tensor_proto.h"

namespace sparkle::cli {
namespace {

// Elements of 4 bits and fewer lie one a byte here and packed there.
bool lies_alike(DType type) { return !is_narrow(type) || stored_bits(type) == 8; }

Error lies_otherwise(const std::string& name, const std::string& type) {
  return {Reason::type_not_served,
          "The tensor '" + name + "' is " + type + ", which lies in memory differently in ONNX Runtime and is not compared."};
}

std::vector<const char*> pointers(const std::vector<std::string>& names) {
  std::vector<const char*> list;
  for (const std::string& name : names) list.push_back(name.c_str());
  return list;
}

}  // namespace

RuntimeModel::RuntimeModel(std::shared_ptr<OnnxRuntime> runtime, std::vector<std::string> inputs,
                           std::vector<std::string> outputs)
    : runtime_(std::move(runtime)), inputs_(std::move(inputs)), outputs_(std::move(outputs)), output_values_(outputs_.size()) {}

RuntimeModel::~RuntimeModel() {
  for (void* value : input_values_) runtime_->release(OnnxRuntime::kReleaseValue, value);
  for (void* value : output_values_) runtime_->release(OnnxRuntime::kReleaseValue, value);
  runtime_->release(OnnxRuntime::kReleaseSession, session_);
}

Result<std::unique_ptr<RuntimeModel>> RuntimeModel::open(std::shared_ptr<OnnxRuntime> runtime, const std::string& path,
                                                         std::vector<std::string> inputs, std::vector<std::string> outputs) {
  std::unique_ptr<RuntimeModel> model(new RuntimeModel(std::move(runtime), std::move(inputs), std::move(outputs)));
  SPARKLE_CHECK(model->runtime_->session_of_file(path, OnnxRuntime::kAllOptimisations, &model->session_));
  return model;
}

Result<std::unique_ptr<RuntimeModel>> RuntimeModel::of_bytes(std::shared_ptr<OnnxRuntime> runtime, const std::string& bytes,
                                                             std::vector<std::string> inputs, std::vector<std::string> outputs,
                                                             bool optimised) {
  std::unique_ptr<RuntimeModel> model(new RuntimeModel(std::move(runtime), std::move(inputs), std::move(outputs)));
  const int level = optimised ? OnnxRuntime::kAllOptimisations : OnnxRuntime::kNoOptimisation;
  SPARKLE_CHECK(model->runtime_->session(bytes, level, &model->session_));
  return model;
}

Status RuntimeModel::give(const std::vector<HostTensor>& inputs) {
  for (void*& value : input_values_) runtime_->release(OnnxRuntime::kReleaseValue, std::exchange(value, nullptr));
  given_ = inputs;
  input_values_.assign(given_.size(), nullptr);
  for (size_t i = 0; i < given_.size(); ++i) {
    const HostTensor& t = given_[i];
    if (!lies_alike(t.dtype)) return lies_otherwise(inputs_[i], std::string(name_of(t.dtype)));
    const std::vector<int64_t> shape(t.shape.begin(), t.shape.end());
    SPARKLE_CHECK(
        runtime_->tensor(t.bytes.get(), static_cast<size_t>(t.size_bytes()), shape, onnx_type_of(t.dtype), &input_values_[i]));
  }
  return ok();
}

Status RuntimeModel::run(bool again) {
  if (!again)
    for (void*& value : output_values_) runtime_->release(OnnxRuntime::kReleaseValue, std::exchange(value, nullptr));
  const std::vector<const char*> in = pointers(inputs_), out = pointers(outputs_);
  return runtime_->call(OnnxRuntime::kRun, "run the model", session_, static_cast<const void*>(nullptr), in.data(),
                        const_cast<const void* const*>(input_values_.data()), in.size(), out.data(), out.size(),
                        output_values_.data());
}

Result<std::vector<HostTensor>> RuntimeModel::results() const {
  std::vector<HostTensor> tensors;
  for (size_t o = 0; o < outputs_.size(); ++o) {
    SPARKLE_TRY(tensor, result(o));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<HostTensor> RuntimeModel::value(void* tensor, const std::string& name) const {
  if (!tensor) return lies_otherwise(name, "an optional value that is not there");
  int is_tensor = 0;
  SPARKLE_CHECK(runtime_->call(OnnxRuntime::kIsTensor, "tell an output's kind", static_cast<const void*>(tensor), &is_tensor));
  if (!is_tensor) return lies_otherwise(name, "a sequence or an optional value");
  void* info = nullptr;
  SPARKLE_CHECK(
      runtime_->call(OnnxRuntime::kGetTensorTypeAndShape, "tell an output's shape", static_cast<const void*>(tensor), &info));
  int type = 0;
  std::vector<int64_t> sizes;
  const auto described = [&]() -> Status {
    size_t rank = 0;
    const void* const of = info;
    SPARKLE_CHECK(runtime_->call(OnnxRuntime::kGetTensorElementType, "tell an output's type", of, &type));
    SPARKLE_CHECK(runtime_->call(OnnxRuntime::kGetDimensionsCount, "tell an output's shape", of, &rank));
    sizes.resize(rank);
    return runtime_->call(OnnxRuntime::kGetDimensions, "tell an output's shape", of, sizes.data(), rank);
  }();
  runtime_->release(OnnxRuntime::kReleaseTensorTypeAndShapeInfo, info);
  if (!described.ok()) return described.error();
  const auto dtype = dtype_from_onnx(type);
  if (!dtype || !lies_alike(*dtype)) return lies_otherwise(name, onnx_type_name(type));
  SPARKLE_TRY(shape, checked_shape("The output '" + name + "' of ONNX Runtime", sizes.data(), static_cast<int>(sizes.size())));
  HostTensor copy = HostTensor::uninitialized(*dtype, shape);
  void* data = nullptr;
  SPARKLE_CHECK(runtime_->call(OnnxRuntime::kGetTensorMutableData, "tell an output's values", tensor, &data));
  if (copy.size_bytes() > 0) std::memcpy(copy.bytes.get(), data, static_cast<size_t>(copy.size_bytes()));
  return copy;
}

}  // namespace sparkle::cli
