// The models of a server by name and version: files and folders on the command line, what of them is loaded, and loading and
// unloading while others answer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "serve/batcher.h"
#include "serve/reports/model_reports.h"
#include "serve/protocol.h"

namespace sparkle::serve {

// A model that is loaded: whoever holds it may run it, also once it was unloaded.
struct Model {
  ModelDescription description;
  std::shared_ptr<ModelMetrics> metrics;  // those of its name and version, over all loads
  std::unique_ptr<ModelReports> reports;
  std::unique_ptr<Batcher> batcher;
  std::string form;  // JSON for the page at /: how a picture becomes its input; empty: it takes none
};

class Repository {
 public:
  using Open = std::function<Result<std::shared_ptr<Session>>(const std::string& path)>;
  // `paths`: model files, called by their names without the suffix, and folders with NAME.onnx, NAME/model.onnx (version 1) or
  // NAME/VERSION/model.onnx.
  Repository(std::vector<std::string> paths, Open open, const BatcherOptions& options);

  // Loads all there are. Errors: bad_usage for a path without models, or two models of one name; those of opening.
  Status load_all();
  // Looks at the paths again. What runs on the model before ends there. Errors leave it as it was.
  std::optional<Refusal> load(const std::string& name);
  std::optional<Refusal> unload(const std::string& name);

  // An empty version is the newest.
  using Found = std::variant<std::shared_ptr<Model>, Refusal>;
  Found find(const std::string& name, const std::string& version = "") const;
  // Of a name, the oldest first; those that are loaded.
  std::vector<std::string> versions(const std::string& name) const;
  // Also those that are not loaded.
  std::vector<IndexRow> index() const;
  std::vector<std::shared_ptr<Model>> loaded() const;
  // Also of models that are not loaded any more; what it points to lives as long as the repository.
  std::vector<MetricsRow> metrics() const;

 private:
  struct Version {
    std::string text;
    // By the number: 10 comes after 9.
    bool operator<(const Version& other) const {
      return std::pair(text.size(), text) < std::pair(other.text.size(), other.text);
    }
    bool operator==(const Version&) const = default;
  };
  struct Place {
    std::string name;
    Version version;
    std::string path;
  };
  struct Slot {
    std::shared_ptr<Model> model;  // nothing: not loaded
    std::shared_ptr<ModelMetrics> metrics = std::make_shared<ModelMetrics>();
    std::string reason;  // why it is not loaded
  };
  using Versions = std::map<Version, Slot>;

  Result<std::vector<Place>> places() const;
  Status places_in(const std::string& folder, std::vector<Place>& found) const;
  Result<std::shared_ptr<Model>> open(const Place& place, std::shared_ptr<ModelMetrics> metrics) const;
  Status load_places(const std::string& name, const std::vector<Place>& places);

  const std::vector<std::string> paths_;
  const Open open_;
  const BatcherOptions options_;
  std::mutex loading_;        // held while models are opened, one at a time
  mutable std::mutex mutex_;  // of all below; never held for long
  std::map<std::string, Versions> models_;
};

}  // namespace sparkle::serve
