#include "serve/page/picture_form.h"

#include "onnx/metadata.h"
#include "serve/datatypes.h"
#include "vision/tasks/guess_preprocess.h"

namespace sparkle::serve {

std::optional<Preprocess> picture_of(const ModelDescription& model, const std::map<std::string, std::string>& metadata) {
  if (model.inputs.size() != 1 || !model.inputs[0].rank_known) return {};
  const SessionInput& input = model.inputs[0];
  const auto wanted = picture_input(input.dtype, input.shape);
  if (!wanted || !wanted->batched || (input.dtype != DType::f32 && input.dtype != DType::f16 && input.dtype != DType::u8))
    return {};
  std::vector<OutputForm> outputs;
  for (const SessionInput& output : model.outputs) outputs.push_back({output.name, output.dtype, output.shape});
  auto guessed = guess_preprocess(*wanted, input.dtype, outputs, metadata);
  if (!guessed.ok()) return {};
  if (guessed->width == 0 || guessed->height == 0) guessed->fit = PictureFit::none;
  if (guessed->fit == PictureFit::crop) guessed->shorter_side = usual_shorter_side(*guessed);
  return std::move(*guessed);
}

std::vector<std::string> labels_of(const std::map<std::string, std::string>& metadata) {
  constexpr int kMost = 100000;
  std::vector<std::string> labels;
  for (const auto& [index, name] : class_names(metadata)) {
    if (index < 0 || index >= kMost) continue;
    if (static_cast<int>(labels.size()) <= index) labels.resize(static_cast<size_t>(index) + 1);
    labels[static_cast<size_t>(index)] = name;
  }
  return labels;
}

nlohmann::json picture_form(const ModelDescription& model, const Preprocess& p, const std::vector<std::string>& labels) {
  constexpr const char* kFits[] = {"crop", "stretch", "letterbox", "none"};
  constexpr const char* kColors[] = {"rgb", "bgr", "grey"};
  return {{"model", model.name},
          {"version", model.version},
          {"input", model.inputs[0].name},
          {"datatype", protocol_name(model.inputs[0].dtype)},
          {"how", p.preset + ", " + to_text(p)},
          {"fit", kFits[static_cast<int>(p.fit)]},
          {"color", kColors[static_cast<int>(p.color)]},
          {"width", p.width},
          {"height", p.height},
          {"shorter_side", p.shorter_side},
          {"scale", p.scale},
          {"mean", p.mean},
          {"std", p.std},
          {"pad", p.pad_value},
          {"centred", p.centred},
          {"channels_last", p.channels_last},
          {"labels", labels}};
}

}  // namespace sparkle::serve
