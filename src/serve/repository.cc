#include "serve/repository.h"

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/printable.h"
#include "onnx/metadata.h"
#include "serve/page/picture_form.h"
#include "serve/reports/changes.h"

namespace sparkle::serve {
namespace {

namespace fs = std::filesystem;

std::string quoted_name(const std::string& name) { return "'" + printable(name) + "'"; }

bool is_version(const std::string& text) {
  return !text.empty() && text.size() <= 18 && text[0] != '0' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Rows that a request may have, where the first axis of a picture and of all outputs is one of rows: open, or 1.
int64_t rows_of_pictures(const ModelDescription& model, int64_t max_batch) {
  const SessionInput& picture = model.inputs[0];
  if (!picture.rank_known || picture.shape.size() != 4 || picture.shape[0] > 1 || picture.shape[0] == 0) return 0;
  for (const SessionInput& output : model.outputs)
    if (!output.rank_known || output.shape.size() == 0 || (output.shape[0] < 0) != (picture.shape[0] < 0) ||
        output.shape[0] > 1)
      return 0;
  return picture.shape[0] < 0 ? max_batch : 1;
}

Refusal unknown_model(const std::string& name) {
  return {Failure::unknown,
          "There is no model " + quoted_name(name) + "; POST /v2/repository/index lists those that there are."};
}

}  // namespace

Repository::Repository(std::vector<std::string> paths, Open open, const BatcherOptions& options)
    : paths_(std::move(paths)), open_(std::move(open)), options_(options) {}

Result<std::vector<Repository::Place>> Repository::places() const {
  std::vector<Place> found;
  for (const std::string& path : paths_) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      const size_t before = found.size();
      SPARKLE_CHECK(places_in(path, found));
      if (found.size() == before)
        return Error{Reason::bad_usage,
                     "The folder " + quoted_name(path) +
                         " has no models; they lie in it as NAME.onnx, NAME/model.onnx or NAME/VERSION/model.onnx."};
    } else {
      found.push_back({fs::path(path).stem().string(), {"1"}, path});
    }
  }
  for (size_t i = 0; i < found.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (found[i].name == found[j].name && found[i].version == found[j].version)
        return Error{Reason::bad_usage, "Version " + found[i].version.text + " of model " + quoted_name(found[i].name) +
                                            " is there twice, as " + quoted_name(found[j].path) + " and as " +
                                            quoted_name(found[i].path) + "; rename one of them."};
  return found;
}

Status Repository::places_in(const std::string& folder, std::vector<Place>& found) const {
  std::error_code error;
  std::vector<fs::path> entries;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error))
    entries.push_back(at->path());
  if (error)
    return Error{Reason::file_unreadable, "The folder " + quoted_name(folder) + " cannot be read: " + error.message() + "."};
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    std::error_code ignored;
    const std::string name = entry.filename().string();
    if (name.starts_with(".")) continue;
    if (!fs::is_directory(entry, ignored)) {
      if (entry.extension() == ".onnx") found.push_back({entry.stem().string(), {"1"}, entry.string()});
      continue;
    }
    if (fs::exists(entry / "config.pbtxt", ignored))
      log(LogLevel::warning, "The settings in " + quoted_name((entry / "config.pbtxt").string()) +
                                 " are not read; 'sparkle serve --help' lists what can be set.");
    if (fs::is_regular_file(entry / "model.onnx", ignored)) found.push_back({name, {"1"}, (entry / "model.onnx").string()});
    for (auto at = fs::directory_iterator(entry, ignored); !ignored && at != fs::directory_iterator(); at.increment(ignored)) {
      const std::string version = at->path().filename().string();
      std::error_code none;
      if (is_version(version) && fs::is_regular_file(at->path() / "model.onnx", none))
        found.push_back({name, {version}, (at->path() / "model.onnx").string()});
    }
  }
  return ok();
}

Result<std::shared_ptr<Model>> Repository::open(const Place& place, std::shared_ptr<ModelMetrics> metrics) const {
  FileStamp file = stamp_of(place.path);
  SPARKLE_TRY(session, open_(place.path));
  auto model = std::make_shared<Model>();
  model->description.name = place.name, model->description.version = place.version.text;
  model->description.inputs = session->inputs(), model->description.outputs = session->outputs();
  SPARKLE_CHECK(check_types(model->description));
  if (options_.max_batch > 1 && !has_open_batch(*session))
    log(LogLevel::warning, "Requests of model " + quoted_name(place.name) +
                               " are not put together, as --max-batch asks for: its first axes are not open.");
  const auto metadata = read_metadata(place.path);
  auto labels = labels_of(metadata);
  if (const auto picture = picture_of(model->description, metadata)) {
    model->form =
        picture_form(model->description, *picture, labels).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    model->description.picture_rows = rows_of_pictures(model->description, options_.max_batch);
    model->description.channels_last = picture->channels_last;
  }
  if (!labels.empty()) model->description.labels = std::make_shared<const std::vector<std::string>>(std::move(labels));
  model->metrics = std::move(metrics);
  model->reports = std::make_unique<ModelReports>(place.name, std::move(file), session);
  model->batcher = std::make_unique<Batcher>(place.name, std::move(session), options_, *model->metrics);
  return model;
}

Status Repository::load_all() {
  const std::lock_guard loading(loading_);
  SPARKLE_TRY(all, places());
  std::map<std::string, std::vector<Place>> by_name;
  for (Place& place : all) by_name[place.name].push_back(std::move(place));
  for (const auto& [name, own] : by_name) SPARKLE_CHECK(load_places(name, own));
  return ok();
}

// All versions of a name, or none.
Status Repository::load_places(const std::string& name, const std::vector<Place>& places) {
  Versions before;
  {
    const std::lock_guard lock(mutex_);
    before = models_[name];
  }
  Versions after;
  for (const Place& place : places) {
    Slot slot;
    if (const auto was = before.find(place.version); was != before.end()) slot.metrics = was->second.metrics;
    auto model = open(place, slot.metrics);
    if (!model.ok()) {
      const std::lock_guard lock(mutex_);
      Slot& kept = models_[name][place.version];
      if (!kept.model) kept.reason = model.error().message;
      return model.error();
    }
    slot.model = std::move(*model);
    after[place.version] = std::move(slot);
  }
  for (auto& [version, slot] : before)
    if (!after.contains(version)) after[version] = {nullptr, slot.metrics, "its file is gone"};
  const std::lock_guard lock(mutex_);
  models_[name].swap(after);
  return ok();
}

std::optional<Refusal> Repository::load(const std::string& name) {
  const std::lock_guard loading(loading_);
  auto all = places();
  if (!all.ok()) return refusal_of(all.error());
  std::erase_if(*all, [&](const Place& place) { return place.name != name; });
  if (all->empty()) return unknown_model(name);
  const Status loaded = load_places(name, *all);
  if (loaded.ok()) return {};
  return Refusal{Failure::invalid, loaded.error().message};
}

std::optional<Refusal> Repository::unload(const std::string& name) {
  const std::lock_guard loading(loading_);
  std::vector<std::shared_ptr<Model>> gone;  // goes after the lock below: its end waits for what runs
  const std::lock_guard lock(mutex_);
  const auto at = models_.find(name);
  if (at == models_.end()) return unknown_model(name);
  for (auto& [version, slot] : at->second) {
    gone.push_back(std::move(slot.model));
    slot.model = nullptr, slot.reason = "unloaded";
  }
  return {};
}

Repository::Found Repository::find(const std::string& name, const std::string& version) const {
  const std::lock_guard lock(mutex_);
  const auto at = models_.find(name);
  if (at == models_.end()) return unknown_model(name);
  const Versions& all = at->second;
  if (!version.empty()) {
    const auto exact = all.find({version});
    if (exact == all.end())
      return Refusal{Failure::unknown, "Model " + quoted_name(name) + " has no version " + quoted_name(version) + "."};
    if (exact->second.model) return exact->second.model;
    return Refusal{Failure::unavailable, "Version " + version + " of model " + quoted_name(name) + " is not loaded."};
  }
  for (auto newest = all.rbegin(); newest != all.rend(); ++newest)
    if (newest->second.model) return newest->second.model;
  return Refusal{Failure::unavailable,
                 "Model " + quoted_name(name) + " is not loaded; POST /v2/repository/models/NAME/load does that."};
}

std::vector<std::string> Repository::versions(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> list;
  if (const auto at = models_.find(name); at != models_.end())
    for (const auto& [version, slot] : at->second)
      if (slot.model) list.push_back(version.text);
  return list;
}

std::vector<IndexRow> Repository::index() const {
  std::vector<Place> all;
  if (auto now = places(); now.ok()) all = std::move(*now);
  const std::lock_guard lock(mutex_);
  std::vector<IndexRow> rows;
  for (const auto& [name, versions] : models_)
    for (const auto& [version, slot] : versions)
      rows.push_back({name, version.text, slot.model ? "" : slot.reason, slot.model != nullptr});
  for (const Place& place : all)
    if (const auto at = models_.find(place.name); at == models_.end() || !at->second.contains(place.version))
      rows.push_back({place.name, place.version.text, "not loaded", false});
  return rows;
}

std::vector<std::shared_ptr<Model>> Repository::loaded() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Model>> list;
  for (const auto& [name, versions] : models_)
    for (const auto& [version, slot] : versions)
      if (slot.model) list.push_back(slot.model);
  return list;
}

std::vector<MetricsRow> Repository::metrics() const {
  const std::lock_guard lock(mutex_);
  std::vector<MetricsRow> rows;
  for (const auto& [name, versions] : models_)
    for (const auto& [version, slot] : versions)
      rows.push_back({name, version.text, slot.metrics.get(), slot.model ? slot.model->batcher->waiting() : 0});
  return rows;
}

}  // namespace sparkle::serve
