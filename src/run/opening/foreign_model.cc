#include "run/opening/foreign_model.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <vector>

namespace sparkle {
namespace {
namespace fs = std::filesystem;

constexpr const char* kTorch = "a PyTorch file; export the model with torch.onnx.export";
constexpr const char* kKeras = "a Keras or HDF5 file; convert the model with tf2onnx";
constexpr const char* kTflite = "a TensorFlow Lite model; convert it with tf2onnx --tflite";
constexpr const char* kCoreMl = "a Core ML model; export the one it was made of to ONNX";
constexpr const char* kTensorRt = "an engine of TensorRT; give the ONNX model it was built from";
constexpr const char* kPicture = "a picture; the model comes first, pictures behind it";

// Files that say at `at` what they are.
struct Magic {
  size_t at;
  std::string_view bytes;
  const char* what;
};
constexpr Magic kMagic[] = {
    {4, "TFL3", kTflite},
    {4, "ORTM", "a model in ONNX Runtime's own format (.ort); give the ONNX model it was made of"},
    {0, "\x89HDF", kKeras},
    {0, "\x93NUMPY", "a NumPy array; the model comes first, arrays behind it"},
    {0, "GGUF", "a GGUF model, which is not supported; Sparkle reads ONNX"},
    {0, "\x89PNG", kPicture},
    {0, "\xff\xd8\xff", kPicture},
    {0, "\x1f\x8b", "compressed with gzip; unpack it first (gunzip)"},
    {0, "BZh", "compressed with bzip2; unpack it first (bunzip2)"},
    {0,
     "\xfd"
     "7zXZ",
     "compressed with xz; unpack it first (unxz)"},
    {0, "version https://git-lfs", "a pointer of Git LFS in place of the file; fetch that with 'git lfs pull'"},
    {0, "<!DOCTYPE", "a web page, not the file it links to; download the file itself"},
    {0, "<!doctype", "a web page, not the file it links to; download the file itself"},
    {0, "<html", "a web page, not the file it links to; download the file itself"},
    {0, "<?xml", "XML, as OpenVINO's models are; give the ONNX model it was made of"},
    {0, "\x80\x02", kTorch},
    {0, "\x80\x03", kTorch},
    {0, "\x80\x04", kTorch},
    {0, "\x80\x05", kTorch},
};

struct Ending {
  std::string_view ending;
  const char* what;
};
constexpr Ending kEndings[] = {
    {".pt", kTorch},
    {".pth", kTorch},
    {".ckpt", kTorch},
    {".torchscript", kTorch},
    {".h5", kKeras},
    {".keras", kKeras},
    {".tflite", kTflite},
    {".mlmodel", kCoreMl},
    {".mlpackage", kCoreMl},
    {".engine", kTensorRt},
    {".trt", kTensorRt},
    {".plan", kTensorRt},
    {".safetensors", "a file of weights alone; export the model with its operators to ONNX"},
    {".pb", "a TensorFlow graph or a tensor; models come as ONNX (tf2onnx converts them)"},
};

bool ends_with(std::string name, std::string_view ending) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.ends_with(ending);
}

Error is(const std::string& name, const std::string& what) {
  return {Reason::bad_format, "'" + name + "' is no ONNX model but " + what + "."};
}
Error unreadable(const std::string& path, const std::string& why) {
  return {Reason::file_unreadable, "'" + path + "' cannot be read: " + why + "."};
}

// The ONNX files in a folder, for advice.
std::vector<std::string> models_in(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error))
    if (ends_with(at->path().string(), ".onnx")) found.push_back(at->path().string());
  std::sort(found.begin(), found.end());
  return found;
}

Error folder_given(const std::string& path) {
  std::error_code error;
  if (fs::exists(fs::path(path) / "saved_model.pb", error))
    return unreadable(path, "it is a folder of TensorFlow (SavedModel); convert it with tf2onnx");
  if (ends_with(path, ".mlpackage") || ends_with(path, ".mlpackage/")) return is(path, kCoreMl);
  const std::vector<std::string> models = models_in(path);
  if (models.empty()) return unreadable(path, "it is a folder, and no .onnx file is in it");
  if (models.size() == 1) return unreadable(path, "it is a folder; the model in it is '" + models[0] + "'");
  return unreadable(
      path, "it is a folder; give one of the " + std::to_string(models.size()) + " models in it, as '" + models[0] + "'");
}

}  // namespace

std::optional<Error> no_path(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) return std::nullopt;
  if (path.find("://") != std::string::npos)
    return unreadable(path, "it is an address, and only files are; download it and give the file's path");
  if (path.starts_with("~"))
    return unreadable(path, "'~' stands for the home folder in a shell alone, and only without quotes; write the path in full");
  if (path.empty()) return unreadable(path, "the path is empty");
  return std::nullopt;
}

std::optional<Error> no_model_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return folder_given(path);
  if (fs::exists(status)) return std::nullopt;
  if (auto wrong = no_path(path)) return wrong;
  if (fs::is_regular_file(path + ".onnx", error))
    return unreadable(path, "there is no such file; did you mean '" + path + ".onnx'?");
  return std::nullopt;
}

std::optional<Error> foreign_model(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.empty()) return Error{Reason::bad_format, "'" + name + "' is no ONNX model: it is empty."};
  const auto begins = [&](size_t at, std::string_view magic) {
    return bytes.size() >= at + magic.size() && std::memcmp(bytes.data() + at, magic.data(), magic.size()) == 0;
  };
  for (const Magic& magic : kMagic)
    if (begins(magic.at, magic.bytes)) return is(name, magic.what);
  if (begins(0, "PK\x03\x04")) {
    if (ends_with(name, ".keras")) return is(name, kKeras);
    return is(name, "a ZIP archive, as PyTorch's files (.pt, .pth) are; export those with torch.onnx.export, unpack others");
  }
  return std::nullopt;
}

std::optional<Error> foreign_ending(const std::string& name) {
  for (const Ending& ending : kEndings)
    if (ends_with(name, ending.ending)) return is(name, ending.what);
  return std::nullopt;
}

}  // namespace sparkle
