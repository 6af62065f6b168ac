// `sparkle run` and `bench --pipeline` with several devices: each item answered once and in order whoever computes it, stopped
// and gone on with, and the trace of who did what.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "command/command.h"
#include "networks/zoo.h"

namespace sparkle::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kPictures = 30;

class CommandTogether : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    save(*zoo_network("tiny_chain", {}), "net.onnx");
    fs::create_directory(folder_ / "pictures");
    for (int i = 0; i < kPictures; ++i) {
      std::string pixels;
      for (int p = 0; p < 16 * 16 * 3; ++p) pixels += static_cast<char>((p * (i + 3) * 7) % 251);
      write(name_of(i), "P6\n16 16\n255\n" + pixels);
    }
  }
  static std::string name_of(int i) { return "pictures/" + std::string(i < 10 ? "0" : "") + std::to_string(i) + ".ppm"; }
  // What Mesa's software device wants to be quick, and a cache of its own.
  std::string shell() const {
    return "export XDG_CACHE_HOME='" + path("cache") + "' VK_LOADER_LAYERS_DISABLE='~implicit~' LP_NATIVE_VECTOR_WIDTH=128; ";
  }
  Said stream(const std::string& rest) const { return sparkle("run net.onnx pictures --preset unit " + rest, shell()); }
  bool vulkan() const { return sparkle("run net.onnx --device vulkan:0", shell()).status == 0; }

  // The answers of both files: the same items, and numbers as devices differ.
  void expect_like(const std::string& got, const std::string& wanted) const {
    std::istringstream a(text_of(got)), b(text_of(wanted));
    int lines = 0;
    for (std::string x, y; std::getline(b, y); ++lines) {
      ASSERT_TRUE(std::getline(a, x)) << got << " ends after " << lines << " lines";
      expect_near(json::parse(x, nullptr, false), json::parse(y, nullptr, false), got + ", line " + std::to_string(lines));
    }
    EXPECT_EQ(lines, kPictures);
    std::string more;
    EXPECT_FALSE(std::getline(a, more)) << more;
  }
  static void expect_near(const json& a, const json& b, const std::string& where) {
    ASSERT_EQ(a.is_number(), b.is_number()) << where;
    if (a.is_number()) {
      EXPECT_NEAR(a.get<double>(), b.get<double>(), 1e-3) << where;
      return;
    }
    ASSERT_EQ(a.type(), b.type()) << where;
    ASSERT_EQ(a.size(), b.size()) << where;
    if (!a.is_structured()) {
      EXPECT_EQ(a, b) << where;
      return;
    }
    for (auto i = a.items().begin(), j = b.items().begin(); i != a.items().end(); ++i, ++j)
      expect_near(i.value(), j.value(), where + "/" + i.key());
  }
};

TEST_F(CommandTogether, LogicalDevicesGiveTheFileOfOneAlone) {
  ASSERT_EQ(stream("--device cpu --threads 1 --output one.jsonl").status, 0);
  const Said said = stream("--device cpu,cpu,cpu --threads 1 --split always --output three.jsonl");
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "30 items answered");
  EXPECT_SAYS(said.out, "devices  cpu and cpu and cpu, as asked for");
  EXPECT_EQ(text_of("three.jsonl"), text_of("one.jsonl"));
  // Stopped anywhere and gone on with: the same file.
  const std::string whole = text_of("one.jsonl");
  for (const size_t bytes : {size_t{0}, whole.size() / 3, whole.size() - 1}) {
    write("part.jsonl", whole.substr(0, bytes));
    EXPECT_EQ(stream("--device cpu,cpu --threads 1 --split always --output part.jsonl").status, 0);
    EXPECT_EQ(text_of("part.jsonl"), whole) << "stopped at byte " << bytes;
  }
}

TEST_F(CommandTogether, WhereOneAloneIsFasterItWorksAloneAndALineSaysSo) {
  const Said said = stream("--device cpu,reference --output a.jsonl");
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "devices  cpu alone: predicted ");
  EXPECT_SAYS(said.out, "; without reference, whose cores are those of cpu");
  EXPECT_SAYS(said.out, "runs     cpu 30, reference 0");
  const auto told = json::parse(stream("--device cpu,reference --split always --output b.jsonl --json").out, nullptr, false);
  ASSERT_TRUE(told.is_object());
  EXPECT_EQ(told["answered"], kPictures);
  ASSERT_EQ(told["devices"].size(), 2u);
  EXPECT_EQ(told["devices"][0]["name"], "cpu");
  EXPECT_EQ(told["devices"][0]["runs"].get<int>() + told["devices"][1]["runs"].get<int>(), kPictures);
  EXPECT_EQ(told["events"], json::array());
  expect_like("b.jsonl", "a.jsonl");
}

// A device of the list that is not here: an error, or where that is allowed the others take its part, and an event says so.
TEST_F(CommandTogether, ADeviceThatIsMissingIsLeftOutWhereAllowed) {
  ASSERT_EQ(stream("--device cpu --threads 1 --output one.jsonl").status, 0);
  const std::string list = "--threads 1 --split always --output all.jsonl --json --device ";
  for (const std::string devices : {"cpu,vulkan:99", "vulkan:98,cpu,vulkan:99,cpu", "vulkan:98,vulkan:99"}) {
    SCOPED_TRACE(devices);
    fs::remove(folder_ / "all.jsonl");
    EXPECT_EQ(stream(list + devices).status, 2);
    EXPECT_EQ(stream(list + devices + " --fallback allow --require device=vulkan").status, 3);
    EXPECT_FALSE(fs::exists(folder_ / "all.jsonl"));
    const Said said = stream(list + devices + " --fallback allow");
    ASSERT_EQ(said.status, 0) << said.err;
    EXPECT_SAYS(said.err, "The items go to cpu");
    EXPECT_EQ(text_of("all.jsonl"), text_of("one.jsonl"));
    const auto told = json::parse(said.out, nullptr, false);
    ASSERT_EQ(told["events"].size(), devices.find("98") == std::string::npos ? 1u : 2u);
    EXPECT_EQ(told["events"][0]["what"], "device");
    EXPECT_EQ(told["events"][0]["reason"], "device_unusable");
    EXPECT_SAYS(told["events"].back()["from"].get<std::string>(), "vulkan:99");
  }
  EXPECT_SAYS(stream(list + "cpu,vulkan:x --fallback allow").err, "'vulkan:x' is no name of a device");
}

TEST_F(CommandTogether, SoftwareDevicesAndTheCpuShareAStream) {
  if (!vulkan()) GTEST_SKIP() << "no Vulkan device is here";
  ASSERT_EQ(stream("--device cpu --output cpu.jsonl").status, 0);
  ASSERT_EQ(stream("--device vulkan:0 --output gpu.jsonl").status, 0);
  const Said two = stream("--device vulkan:0,vulkan:0 --split always --output two.jsonl");
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_EQ(text_of("two.jsonl"), text_of("gpu.jsonl"));
  const Said said = stream("--device vulkan:0,cpu,vulkan:0 --split always --trace trace.json --output three.jsonl");
  EXPECT_EQ(said.status, 0) << said.err;
  expect_like("three.jsonl", "cpu.jsonl");
  // Of "all" a software device is none.
  const Said all = stream("--device all --output all.jsonl");
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_SAYS(all.out, "device   cpu, ");
  EXPECT_EQ(all.out.find("vulkan"), std::string::npos) << all.out;

  // The trace: JSON, a process for each device, and the spans of an item in their order.
  const json trace = json::parse(text_of("trace.json"), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::map<int, std::map<std::string, std::pair<double, double>>> items;
  std::map<int, std::set<int>> processes;
  std::set<std::string> tracks;
  for (const json& e : trace["traceEvents"]) {
    if (e["name"] == "thread_name") tracks.insert(e["args"]["name"].get<std::string>());
    if (e["ph"] != "X") continue;
    const int item = e["args"]["item"];
    const std::string name = e["name"];
    const double begin = e["ts"], length = e["dur"];
    EXPECT_GE(length, 0);
    processes[item].insert(e["pid"].get<int>());
    EXPECT_TRUE(items[item].emplace(name.substr(0, name.rfind(' ')), std::pair(begin, begin + length)).second) << name;
  }
  EXPECT_EQ(tracks, (std::set<std::string>{"compute", "download", "host: bring back", "host: hand over", "upload"}));
  ASSERT_EQ(items.size(), static_cast<size_t>(kPictures));
  for (const auto& [item, spans] : items) {
    EXPECT_EQ(processes[item].size(), 1u) << item;
    double before = spans.at("hand over").first;
    for (const char* lane : {"upload", "compute", "download"}) {
      const auto span = spans.find(lane);
      if (span == spans.end()) {
        EXPECT_STRNE(lane, "compute") << item;
        continue;
      }
      EXPECT_GE(span->second.first, before - 1e-3) << item << " " << lane;
      before = span->second.second;
    }
    EXPECT_TRUE(spans.contains("bring back")) << item;
  }
}

TEST_F(CommandTogether, BenchHasRatesAloneAndTogether) {
  const std::string bench = "bench net.onnx --pipeline --device cpu,reference --threads 1 --items 24 ";
  const auto told = json::parse(sparkle(bench + "--json --trace trace.json", shell()).out, nullptr, false);
  ASSERT_TRUE(told.is_object());
  ASSERT_EQ(told["devices"].size(), 2u);
  double share = 0, rates = 0;
  for (const json& row : told["devices"]) {
    EXPECT_GT(row["alone_ms"].get<double>(), 0);
    share += row["share_percent"].get<double>(), rates += row["alone_items_per_second"].get<double>();
  }
  EXPECT_NEAR(share, 100, 1e-6);
  EXPECT_NEAR(told["efficiency_percent"].get<double>(), 100 * told["together_items_per_second"].get<double>() / rates, 1e-6);
  EXPECT_SAYS(told["checked"].get<std::string>(), "480 items, each to the bit");
  EXPECT_GT(told["stream_ms"].get<double>(), 0);
  const double best = std::min(told["devices"][0]["alone_ms"].get<double>(), told["devices"][1]["alone_ms"].get<double>());
  EXPECT_NEAR(told["stream_over_best_alone"].get<double>(), best / told["stream_ms"].get<double>(), 1e-6);
  EXPECT_SAYS(told["stream"].get<std::string>(), "alone");
  EXPECT_TRUE(json::parse(text_of("trace.json"), nullptr, false).is_object());
  const Said said = sparkle(bench, shell());
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "% of the sum of the rates alone");
  EXPECT_SAYS(said.out, " times the best alone: ");
}

TEST_F(CommandTogether, OneDeviceHasATraceToo) {
  EXPECT_EQ(stream("--device cpu --trace trace.json --output a.jsonl").status, 0);
  EXPECT_EQ(json::parse(text_of("trace.json"), nullptr, false)["otherData"]["spans left out"], 0);
  EXPECT_EQ(sparkle("bench net.onnx --pipeline --items 8 --trace bench.json", shell()).status, 0);
  EXPECT_SAYS(text_of("bench.json"), "compute 7");
}

TEST_F(CommandTogether, WhatDoesNotGoTogetherIsRefused) {
  EXPECT_SAYS(refusal("run net.onnx --device cpu,cpu"), "share many items; give a folder");
  EXPECT_SAYS(refusal("run net.onnx pictures --device cpu,"), "is no list of devices");
  EXPECT_SAYS(refusal("run net.onnx pictures --device cpu,none"), "There is no device 'none'");
  EXPECT_SAYS(refusal("run net.onnx pictures --device cpu,cpu --precision fp16"), "does not go with several devices");
  EXPECT_SAYS(refusal("run net.onnx pictures --split always"), "is for several devices");
  EXPECT_SAYS(refusal("run net.onnx --trace t.json"), "is for many items");
  EXPECT_SAYS(refusal("bench net.onnx --device cpu,cpu"), "names several devices");
  EXPECT_SAYS(refusal("bench net.onnx --trace t.json"), "needs --pipeline");
}

}  // namespace
}  // namespace sparkle::testing
