#include "run_command/stream/stream.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>

#include "base/files/mapped_file.h"
#include "base/files/new_file.h"
#include "base/printable.h"
#include "base/system/cpu_count.h"
#include "onnx/model_file.h"
#include "report/float_type.h"
#include "vision/pictures/picture.h"
#include "vision/tasks/picture_task.h"
#include "run/pipeline/ordered_work.h"
#include "report/report_text.h"
#include "run/pipeline/shared_pipeline.h"
#include "prepare/compiled_file.h"
#include "prepare/shape_advice.h"
#include "run_command/progress.h"
#include "run_command/show_answer.h"
#include "run_command/stream/answer_pictures.h"
#include "run_command/stream/answers.h"
#include "run_command/stream/frames.h"
#include "run_command/stream/gather.h"
#include "run_command/stream/item_task.h"
#include "run_command/stream/items.h"
#include "run_command/stream/row_items.h"

namespace sparkle::cli {
namespace {

constexpr int kMostReaders = 4;
constexpr int64_t kReadAhead = 8;  // items a reader

// An item read and turned into the model's input; nothing: there are no more.
struct Item {
  HostTensor tensor;
  Picture picture;  // what its answer needs of it; of a tensor nothing
};
using Read = std::optional<Result<Item>>;

struct Counts {
  std::atomic<int64_t> answered{0}, unreadable{0}, failed{0}, dropped{0};
};

// Whether the model is made for a single row.
bool is_for_one(const Session& session) {
  const Dims& shape = session.inputs()[0].shape;
  return shape.size() > 1 && shape[0] == 1;
}

class Stream {
 public:
  Stream(const CommonOptions& common, const RunOptions& options, const Together& devices,
         const std::vector<std::string>& labels)
      : common_(common), options_(options), devices_(devices), session_(devices.sessions[0]), labels_(labels) {
    if (!options.trace.empty()) trace = std::make_shared<PipelineTrace>();
  }

  // `alone`: an item is the whole of the input, which has no axis for several.
  Status prepare(int64_t batch, bool alone) {
    const SessionInput& input = session_->inputs()[0];
    if (alone && batch > 1)
      return Error{Reason::bad_usage, "Input " + listed_inputs({input}) +
                                          " takes one picture, without an axis for several; "
                                          "leave --batch out."};
    if (alone) return ok();
    SPARKLE_TRY(rows, batch_of(input, batch));
    rows_ = rows, fixed_ = input.shape.size() > 0 && input.shape[0] > 1;
    return ok();
  }
  // How many items a run takes, and whether an item is a single row of the model's input.
  int64_t rows() const { return rows_; }
  bool takes_rows() const { return rows_ > 1 || is_for_one(*session_); }
  // Of pictures alone.
  Status choose_task(const Preprocess& preprocess) {
    SPARKLE_TRY(chosen, ItemTask::of_stream(options_, *session_, preprocess, rows_));
    task = std::move(chosen);
    return ok();
  }

  // Items from `begin` on, as many as there are.
  Status run(int64_t begin, int64_t end, const std::function<Read(int64_t)>& read, Answers& answers, Progress& progress) {
    if (devices_.sessions.size() == 1) {
      PipelineOptions options;
      options.trace = trace, options.name = devices_.names[0];
      Pipeline pipeline(session_, options);
      return run(pipeline, begin, end, read, answers, progress);
    }
    SharedPipelineOptions options;
    options.names = devices_.names, options.trace = trace;
    if (end < INT64_MAX) options.items = (end - begin + rows_ - 1) / rows_;
    if (options_.split == "always") options.split = Split::always;
    (void)parse_name(common_.fallback, options.fallback);
    SharedPipeline pipeline(devices_.sessions, options);
    Status status = run(pipeline, begin, end, read, answers, progress);
    shares = pipeline.shares(), why = pipeline.why();
    return status;
  }

  Counts counts;
  ItemTask task;
  std::optional<AnswerPictures> pictures;  // where --output is a folder
  std::vector<DeviceShare> shares;         // of several devices
  std::string why;                         // these work
  std::shared_ptr<PipelineTrace> trace;

 private:
  struct Place {
    int64_t item;
    Picture picture;
  };
  template <class P>
  Status run(P& pipeline, int64_t begin, int64_t end, const std::function<Read(int64_t)>& read, Answers& answers,
             Progress& progress) {
    const int readers = std::clamp(usable_threads(common_.threads).threads, 1, kMostReaders);
    OrderedWork<Read> ahead(begin, end, readers, kReadAhead * readers, read);
    for (int64_t i = begin; i < end && !stopped(); ++i) {
      Read item = ahead.take();
      if (!item) break;
      if (!item->ok()) {
        ++counts.unreadable;
        stop_with(answers.put_error(i, item->error().message));
        const std::lock_guard lock(mutex_);  // of the progress too
        progress.clear();
        print_note(item->error().message);
        progress.step();
        continue;
      }
      HostTensor tensor = std::move((*item)->tensor);
      if (!gathered_.empty() && !(gathered_[0].shape == tensor.shape && gathered_[0].dtype == tensor.dtype))
        hand_over(pipeline, answers, progress);
      gathered_.push_back(std::move(tensor)), of_.push_back({i, std::move((*item)->picture)});
      if (static_cast<int64_t>(gathered_.size()) == rows_) hand_over(pipeline, answers, progress);
    }
    if (!gathered_.empty()) hand_over(pipeline, answers, progress);
    pipeline.close();
    return std::move(stopped_);
  }
  // What --require says, held against the plans of the first item of each shape.
  Status meets_requirements(const std::vector<HostTensor>& inputs) {
    const std::string shape = inputs[0].shape.to_string();
    if (common_.require.empty() || required_.contains(shape)) return ok();
    bool all = true;
    for (size_t i = 0; i < devices_.sessions.size(); ++i) {
      if (devices_.sessions[i]->in_parts())
        return Error{Reason::bad_usage,
                     "--require is about the layers of a plan, and this model runs in parts, without one; leave it out."};
      CommonOptions one = common_;
      one.device = devices_.names[i];
      auto plan = devices_.sessions[i]->prepare(inputs);
      all = all && plan.ok();
      if (plan.ok()) SPARKLE_CHECK(check_fallback(**plan, one));  // what is wrong with an item is the item's
    }
    if (all) required_.insert(shape);
    return ok();
  }
  static bool ends_all(Reason reason) {
    return reason == Reason::device_lost || reason == Reason::device_unusable || reason == Reason::file_unwritable;
  }
  bool stopped() {
    const std::lock_guard lock(mutex_);
    return !stopped_.ok();
  }
  void stop_with(Status status) {
    if (status.ok()) return;
    const std::lock_guard lock(mutex_);
    if (stopped_.ok()) stopped_ = std::move(status);
  }

  template <class P>
  void hand_over(P& pipeline, Answers& answers, Progress& progress) {
    // The model's own batch is filled; an open one is as long as there are items.
    const int64_t rows = fixed_ ? rows_ : static_cast<int64_t>(gathered_.size());
    auto batch = put_together(gathered_, rows);
    const auto of = std::make_shared<const std::vector<Place>>(std::move(of_));
    gathered_.clear(), of_.clear();
    const auto done = [this, of, rows, &answers, &progress](Pipeline::Outputs outputs) {
      for (size_t r = 0; r < of->size(); ++r) {
        const Place& place = (*of)[r];
        auto said = outputs.ok() ? answer(*outputs, static_cast<int64_t>(r), rows, place) : Result<Said>(outputs.error());
        if (said.ok()) {
          ++counts.answered;
          stop_with(answers.put(place.item, said->outputs, said->answer));
        } else {
          ++counts.failed;
          // What no other item would survive ends the stream. It is no answer: who goes on with the file tries the item again.
          if (ends_all(said.error().reason)) stop_with(said.error());
          else stop_with(answers.put_error(place.item, said.error().message));
        }
      }
      const std::lock_guard lock(mutex_);
      progress.step(static_cast<int64_t>(of->size()));
    };
    if (!batch.ok()) return done(batch.error());
    std::vector<HostTensor> inputs{std::move(*batch)};
    if (auto met = meets_requirements(inputs); !met.ok()) return stop_with(std::move(met));
    if (!options_.live) {
      stop_with(pipeline.submit(std::move(inputs), done));
      return;
    }
    auto taken = pipeline.try_submit(inputs, done);
    if (!taken.ok()) return stop_with(taken.error());
    if (*taken) return;
    for (const Place& place : *of) {
      ++counts.dropped;
      stop_with(answers.put_error(place.item, "dropped: the device was busy"));
    }
  }

  struct Said {
    nlohmann::json outputs, answer;
  };
  Result<Said> answer(const std::vector<HostTensor>& outputs, int64_t row, int64_t rows, const Place& place) const {
    Said said{nlohmann::json::array(), {}};
    std::vector<HostTensor> own;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = session_->outputs()[i].name;
      SPARKLE_TRY(part, row_of(outputs[i], name, row, rows));
      SPARKLE_TRY(figures, in_float_type(part, DType::f32));
      said.outputs.push_back(show_output(name, figures, part.dtype, labels_, task.beyond_classes() ? 0 : options_.top, true));
      own.push_back(std::move(part));
    }
    SPARKLE_TRY(answered, task.answer(own, place.picture, labels_, pictures ? &*pictures : nullptr, place.item));
    said.answer = std::move(answered);
    return said;
  }

  const CommonOptions& common_;
  const RunOptions& options_;
  const Together& devices_;
  const std::shared_ptr<Session> session_;
  const std::vector<std::string>& labels_;
  int64_t rows_ = 1;
  bool fixed_ = false;
  std::vector<HostTensor> gathered_;
  std::vector<Place> of_;
  std::set<std::string> required_;  // shapes of inputs whose plans have been looked at
  std::mutex mutex_;
  Status stopped_ = ok();
};

// Whether a picture is the whole of the input, without an axis for several.
bool takes_one_picture(const SessionInput& input) {
  const auto wanted = picture_input(input.dtype, input.shape);
  return wanted && !wanted->batched;
}

// How an item of one picture becomes the input of one row, guessed from what the outputs are for one.
Result<Preprocess> preprocess_of(Session& session, const RunOptions& o) {
  SessionInput input = session.inputs()[0];
  if (takes_one_picture(input)) return choose_preprocess(input, known_output_forms(session), o.metadata, o.words);
  const int64_t rows = input.shape.size() > 0 ? std::exchange(input.shape[0], 1) : 1;
  std::vector<OutputForm> outputs = known_output_forms(session);
  for (OutputForm& output : outputs)
    if (!output.shape.empty() && output.shape[0] == rows) output.shape[0] = 1;
  return choose_preprocess(input, outputs, o.metadata, o.words);
}

Result<Item> item_of(Picture picture, const Preprocess& preprocess, DType type, const ItemTask& task) {
  SPARKLE_TRY(tensor, to_tensor(picture.rows(), preprocess));
  SPARKLE_TRY(typed, in_float_type(tensor, type));
  return Item{std::move(typed), task.needed(std::move(picture))};
}

Result<Item> tensor_item(RowItems& items, int64_t i, int64_t rows) {
  SPARKLE_TRY(tensor, items.tensor(i));
  SPARKLE_CHECK(check_row(tensor, items.names()[static_cast<size_t>(i)], rows));
  return Item{std::move(tensor), {}};
}

// What answers depend on beside the items: the model's bytes and those of its files of weights, how pictures are prepared, what
// is answered. 16 digits.
std::string run_of(const RunOptions& o, const std::string& preparation, const std::vector<std::string>& labels) {
  std::string text = preparation + "\n" + o.task + "\n" + std::to_string(o.threshold) + " " + std::to_string(o.iou) + " " +
                     std::to_string(o.top);
  for (const std::string& label : labels) text += "\n" + label;
  uint64_t model = 0;
  const auto add_file = [&](const std::string& path) {
    if (const auto file = MappedFile::open(path); file.ok()) model = model * 31 + hash_bytes(file->bytes());
  };
  add_file(o.model);
  const std::filesystem::path folder = std::filesystem::path(o.model).parent_path();
  for (const std::string& file : data_files_of(o.model)) add_file((folder / file).string());
  char digits[24];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(model ^ hash_bytes(std::as_bytes(std::span(text)))));
  return digits;
}

nlohmann::json shares_json(const std::vector<DeviceShare>& shares) {
  nlohmann::json list = nlohmann::json::array();
  for (const DeviceShare& share : shares)
    list.push_back({{"name", share.name},
                    {"used", share.used},
                    {"lost", share.lost},
                    {"runs", share.items},
                    {"predicted_ms", share.predicted * 1e3},
                    {"measured_ms", share.seconds * 1e3}});
  return list;
}

// "cpu 12, vulkan:0 30 (lost)".
std::string shares_text(const std::vector<DeviceShare>& shares) {
  std::string text;
  for (const DeviceShare& share : shares)
    text += (text.empty() ? "" : ", ") + share.name + " " + std::to_string(share.items) + (share.lost ? " (lost)" : "");
  return text;
}

int summary(const CommonOptions& common, const RunOptions& o, const Stream& stream, const Together& devices,
            const Answers& answers, double seconds, const char* items) {
  const int64_t before = answers.done(), failed_before = answers.failed_before();
  const Counts& c = stream.counts;
  const int64_t answered = c.answered, unreadable = c.unreadable, failed = c.failed, dropped = c.dropped;
  const double rate = seconds > 0 ? static_cast<double>(answered) / seconds : 0;
  std::vector<FallbackEvent> events;
  for (const auto& session : devices.sessions)
    for (FallbackEvent& event : session->events().all()) events.push_back(std::move(event));
  if (common.json && !o.output.empty()) {
    std::printf("%s\n", nlohmann::json{{"device", devices.note},
                                       {"devices", shares_json(stream.shares)},
                                       {"why", stream.why},
                                       {"answered", answered},
                                       {"answered_before", before - failed_before},
                                       {"failed_before", failed_before},
                                       {"unreadable", unreadable},
                                       {"failed", failed},
                                       {"dropped", dropped},
                                       {"seconds", seconds},
                                       {"items_per_second", rate},
                                       {"events", json_of(events)},
                                       {"output", o.output}}
                            .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                            .c_str());
  } else {
    std::string text = std::to_string(answered) + " " + items + " answered";
    if (before > 0) text += ", " + std::to_string(before) + " had been before";
    if (failed_before > 0)
      text +=
          " (" + std::to_string(failed_before) + " of them with an error; these are not tried again: give another --output)";
    if (unreadable > 0) text += ", " + std::to_string(unreadable) + " could not be read";
    if (failed > 0) text += ", " + std::to_string(failed) + " failed";
    if (o.live) text += ", " + std::to_string(dropped) + " dropped";
    char rates[64];
    std::snprintf(rates, sizeof rates, "; %.2f s, %.1f %s a second", seconds, rate, items);
    // Answers on standard output stay alone there.
    std::FILE* to = o.output.empty() ? stderr : stdout;
    std::fprintf(to, "%s%s\n", text.c_str(), rates);
    if (!stream.why.empty())
      std::fprintf(to, "devices  %s\nruns     %s\n", printable_sentence(stream.why).c_str(),
                   shares_text(stream.shares).c_str());
    if (!o.output.empty()) std::printf("written  %s\n", printable(o.output).c_str());
  }
  return unreadable + failed + failed_before > 0 ? kCheckFailed : kDone;
}

}  // namespace

bool is_stream(const RunOptions& o, const Session& session) {
  if (!o.frames.empty() || Answers::is_name(o.output) || o.batch > 1) return true;
  if (std::any_of(o.inputs.begin(), o.inputs.end(), names_several)) return true;
  if (session.inputs().size() != 1 || o.inputs.size() != 1) return session.inputs().size() == 1 && o.inputs.size() > 1;
  return is_for_one(session) && is_tensor_file(o.inputs[0]) && RowItems::rows_of(o.inputs[0], session.inputs()[0].shape) > 1;
}

int run_stream(const CommonOptions& common, const RunOptions& o, const Together& devices,
               const std::vector<std::string>& labels) {
  const std::shared_ptr<Session>& session = devices.sessions[0];
  if (session->inputs().size() != 1)
    return fail({Reason::bad_usage, "Many items are for models with one input; this one has " +
                                        std::to_string(session->inputs().size()) +
                                        ", so give one file for each: " + listed_inputs(session->inputs()) + "."});
  if (auto applies = refuse_options(*o.command, {"--repeat", "--shape", "--tile", "--overlap", "--reference", "--shrink-first"},
                                    "is for one run, and many items are given");
      !applies.ok())
    return fail(applies.error());
  if (o.live && o.frames.empty())
    return fail({Reason::bad_usage, "--live drops frames that there is no time for; it goes with --frames."});
  if (o.inputs.empty())
    return fail({Reason::bad_usage, "Nothing is given to run on; give files, a folder, a pattern, or with --frames - ."});
  if (!o.trace.empty()) {
    if (auto apart = check_apart(o.trace, o.model); !apart.ok()) return fail(apart.error());
    if (auto writable = check_writable(o.trace); !writable.ok()) return fail(writable.error());
  }
  Stream stream(common, o, devices, labels);
  const DType type = session->inputs()[0].dtype;
  std::vector<std::string> files;
  std::unique_ptr<Frames> frames;
  if (o.frames.empty()) {
    auto found = items_of(o.inputs);
    if (!found.ok()) return fail(found.error());
    files = std::move(*found);
  } else {
    if (o.inputs.size() != 1)
      return fail({Reason::bad_usage, "--frames reads one stream of frames; give one file, or - for standard input."});
    auto opened = Frames::open(o.inputs[0], o.frames);
    if (!opened.ok()) return fail(opened.error());
    frames = std::move(*opened);
  }
  Preprocess preprocess;
  const bool pictures = frames || !std::all_of(files.begin(), files.end(), is_tensor_file);
  if (auto prepared = stream.prepare(o.batch, pictures && takes_one_picture(session->inputs()[0])); !prepared.ok())
    return fail(prepared.error());
  RowItems items(files, stream.takes_rows() ? std::optional(session->inputs()[0].shape) : std::nullopt);
  if (pictures) {
    auto chosen = preprocess_of(*session, o);
    if (!chosen.ok()) return fail(chosen.error());
    preprocess = *chosen;
    if (auto task = stream.choose_task(preprocess); !task.ok()) return fail(task.error());
  }
  if (o.output.ends_with(".csv") && !o.task.empty() && o.task != "classify")
    return fail({Reason::bad_usage, "CSV holds classes, and --task " + o.task + " answers others; write --output FILE.jsonl."});
  std::string lines = o.output;
  const auto drawn = stream.task.task() && is_drawn(stream.task.task()->task);
  if (!o.output.empty() && !Answers::is_name(o.output) && drawn && !frames) {
    auto folder = AnswerPictures::open(o.output, items.names());
    if (!folder.ok()) return fail(folder.error());
    stream.pictures = std::move(*folder);
    lines = stream.pictures->lines();
  }
  auto answers = Answers::open(lines, o.model, run_of(o, pictures ? note_of(preprocess, o) : "", labels), items.names(), o.top);
  if (!answers.ok()) return fail(answers.error());
  const int64_t begin = (*answers)->done();
  if (frames && begin > 0)
    return fail(
        {Reason::bad_usage, "'" + printable(o.output) +
                                "' is there already, and frames that are gone cannot be gone on with; give another --output."});
  if (!common.json && !o.output.empty()) {
    std::printf("device   %s\n", devices.note.c_str());
    if (pictures) std::printf("input    %s\n", note_of(preprocess, o).c_str());
    if (stream.task.task())
      std::printf("task     %s, %s%s\n", name_of(stream.task.task()->task), printable(stream.task.task()->why).c_str(),
                  o.task.empty() ? "; --task says otherwise" : "");
    if (begin > 0) std::printf("resumes  %lld items have lines already\n", static_cast<long long>(begin));
    std::fflush(stdout);
  }
  const auto read = [&](int64_t i) -> Read {
    if (frames) {
      auto picture = frames->next(i);
      if (!picture) return {};
      return picture->ok() ? item_of(std::move(**picture), preprocess, type, stream.task) : Result<Item>(picture->error());
    }
    const std::string& path = items.path(i);
    if (is_tensor_file(path)) return tensor_item(items, i, stream.rows());
    auto picture = read_picture(path);
    return picture.ok() ? item_of(std::move(*picture), preprocess, type, stream.task) : Result<Item>(picture.error());
  };
  const int64_t end = frames ? INT64_MAX : items.count();
  Progress progress(frames ? "frames" : "items", frames ? 0 : end - begin, !common.json, true);
  const auto started = std::chrono::steady_clock::now();
  Status status = stream.run(begin, end, read, **answers, progress);
  if (status.ok()) status = (*answers)->close();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  progress.clear();
  if (stream.trace) {
    const std::string text = pipeline_trace_text(*stream.trace);
    if (auto written = write_file(o.trace, std::as_bytes(std::span(text))); !written.ok()) return fail(written.error());
  }
  if (!status.ok() && o.output.empty() && reader_is_gone()) return kBadInput;  // the program ends without a word
  if (!status.ok()) return fail(status.error(), common);
  return summary(common, o, stream, devices, **answers, seconds, frames ? "frames" : "items");
}

}  // namespace sparkle::cli
