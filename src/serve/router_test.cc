// Endpoints without a socket: what each answers, with which status, over a repository on disk.
#include "serve/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/folder_testing.h"
#include "networks/writer.h"
#include "run/pipeline/slow_backend_testing.h"
#include "run/opening/open_model.h"
#include "serve/serve_testing.h"

namespace sparkle::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Result<std::shared_ptr<Session>> open_file(const std::string& path) {
  SPARKLE_TRY(model, read_model(path));
  SPARKLE_TRY(session, open_session(std::move(model), make_reference_backend(), {}));
  return std::shared_ptr<Session>(std::move(session));
}

class ServeRouter : public ::sparkle::testing::FolderTest {
 protected:
  void save(const std::string& name, int64_t C = 4) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    ASSERT_TRUE(write_onnx(::sparkle::testing::rows_network(false, C), path(name)).ok());
  }
  static Call call(const std::string& method, const std::string& path) { return {method, path, {}, {}, {}, {}, {}}; }
  static std::string body(int64_t rows = 1, int64_t C = 4) {
    json data = json::array();
    for (int64_t i = 0; i < rows * C; ++i) data.push_back(0.5 * static_cast<double>(i));
    return json{{"inputs", {{{"name", "x"}, {"datatype", "FP32"}, {"shape", {rows, C}}, {"data", data}}}}}.dump();
  }
  // As the server does it.
  static Reply ask(const Router& router, const Call& call, const std::string& body = "") {
    if (auto early = router.refuse_early(call, body.size())) return *early;
    return router.answer(call, body);
  }
};

TEST_F(ServeRouter, AnswersWhatTheProtocolNames) {
  save("repository/apart.onnx");
  save("repository/versions/2/model.onnx");
  save("repository/versions/10/model.onnx", 6);
  save("repository/plain/model.onnx");
  fs::create_directories(path("repository/empty/3"));
  Repository models({path("repository")}, open_file, {});
  ASSERT_TRUE(models.load_all().ok());
  ModelService service(models, {"9.9", "", {}});
  Router router(service, {1 << 20, false});
  EXPECT_EQ(json::parse(ask(router, call("GET", "/v2")).body)["version"], "9.9");
  // Triton's clients look at the status, KServe's at the body.
  EXPECT_EQ(ask(router, call("GET", "/v2/health/live")).status, 200);
  EXPECT_EQ(ask(router, call("GET", "/v2/health/live")).body, R"({"live":true})");
  EXPECT_EQ(ask(router, call("GET", "/v2/health/ready")).status, 200);
  EXPECT_EQ(ask(router, call("GET", "/v2/health/ready")).body, R"({"ready":true})");
  EXPECT_EQ(ask(router, call("GET", "/v2/models/plain/ready")).body, R"({"name":"plain","ready":true})");
  const json about = json::parse(ask(router, call("GET", "/v2/models/versions")).body);
  EXPECT_EQ(about["versions"], json({"2", "10"}));
  EXPECT_EQ(about["inputs"], json::parse(R"([{"name":"x","datatype":"FP32","shape":[-1,6]}])"));
  EXPECT_EQ(json::parse(ask(router, call("GET", "/v2/models/versions/versions/2")).body)["inputs"][0]["shape"][1], 4);
  EXPECT_EQ(ask(router, call("GET", "/v2/models/versions/versions/3")).status, 404);
  EXPECT_EQ(ask(router, call("GET", "/v2/models/versions/versions/2/ready")).status, 200);
  EXPECT_EQ(ask(router, call("GET", "/v2/models/plain/ready")).status, 200);
  EXPECT_EQ(ask(router, call("GET", "/v2/models/other/ready")).status, 404);
  const Reply answer = ask(router, call("POST", "/v2/models/versions/versions/2/infer"), body(3));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(json::parse(answer.body)["model_version"], "2");
  EXPECT_EQ(json::parse(answer.body)["outputs"][0]["shape"], json({3, 3}));
  EXPECT_EQ(ask(router, call("POST", "/v2/models/versions/infer"), body(3)).status, 400);  // the newest has six columns
  EXPECT_EQ(ask(router, call("POST", "/v2/models/versions/infer"), body(3, 6)).status, 200);
  const json index = json::parse(ask(router, call("POST", "/v2/repository/index")).body);
  EXPECT_EQ(index.size(), 4u);
  for (const json& row : index) EXPECT_EQ(row["state"], "READY");
  EXPECT_NE(ask(router, call("GET", "/")).body.find("<td>versions</td><td>10</td>"), std::string::npos);
  const std::string metrics = ask(router, call("GET", "/metrics")).body;
  EXPECT_NE(metrics.find("sparkle_requests_total{model=\"versions\",version=\"2\"} 1\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("sparkle_request_failures_total{model=\"versions\",version=\"10\",reason=\"invalid\"} 1\n"),
            std::string::npos);
  EXPECT_NE(metrics.find("sparkle_request_seconds_bucket{model=\"versions\",version=\"2\",le=\"+Inf\"} 1\n"),
            std::string::npos);
  service.stop();
  EXPECT_EQ(ask(router, call("GET", "/v2/health/ready")).status, 503);
  EXPECT_EQ(ask(router, call("GET", "/v2/health/live")).status, 200);
}

TEST_F(ServeRouter, ReportsSayWhatLayersTake) {
  save("m.onnx");
  Repository models({path("m.onnx")}, open_file, {});
  ASSERT_TRUE(models.load_all().ok());
  ModelService service(models, {"1", "", {}});
  const Router router(service, {1 << 20, false});
  const Call get = call("GET", "/v2/models/m/report"), post = call("POST", "/v2/models/m/versions/1/report");
  const auto report = [&](const Call& c) {
    const Reply reply = ask(router, c);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body, nullptr, false);
  };
  json told = report(get);
  EXPECT_EQ(told["model"], "m");
  EXPECT_EQ(told["version"], "1");
  EXPECT_EQ(told["measured"], false);
  EXPECT_NE(std::string(told["basis"]).find("nothing was run"), std::string::npos);
  EXPECT_EQ(told["inputs"], json::parse(R"([{"name":"x","datatype":"FP32","shape":[1,4]}])"));
  ASSERT_FALSE(told["steps"].empty());
  for (const char* key : {"name", "predicted_ms", "percent_of_roof", "bound", "reason"})
    EXPECT_TRUE(told["steps"][0].contains(key)) << key;
  EXPECT_TRUE(told["changes"].is_array());
  EXPECT_EQ(told["no_changes"], "");
  const auto page = [&] { return ask(router, call("GET", "/v2/models/m/report.html")); };
  EXPECT_EQ(page().type, "text/html; charset=utf-8");
  EXPECT_NE(page().body.find("predicted by the plan"), std::string::npos);
  // Measured, and kept.
  told = report(post);
  EXPECT_EQ(told["measured"], true);
  EXPECT_GT(told["steps"][0]["measured_ms"], 0);
  EXPECT_EQ(report(post), told);
  EXPECT_EQ(report(get), told);
  EXPECT_EQ(page().body.find("predicted by the plan"), std::string::npos);
  // Another shape is another report.
  EXPECT_EQ(ask(router, call("POST", "/v2/models/m/infer"), body(3)).status, 200);
  told = report(get);
  EXPECT_EQ(told["inputs"][0]["shape"], json({3, 4}));
  EXPECT_EQ(told["measured"], false);
  EXPECT_EQ(ask(router, call("GET", "/v2/models/other/report")).status, 404);
  EXPECT_EQ(ask(router, call("GET", "/v2/models/m/report/more")).status, 404);
  EXPECT_EQ(ask(router, call("DELETE", "/v2/models/m/report")).status, 405);
  EXPECT_EQ(ask(router, call("POST", "/v2/models/m/report.html")).status, 405);
  service.stop();
  EXPECT_EQ(ask(router, post).status, 503);
  EXPECT_EQ(ask(router, get).status, 200);
}

TEST_F(ServeRouter, ReportsGiveWayToRequests) {
  save("m.onnx");
  auto backend = std::make_shared<::sparkle::testing::SlowBackend>();
  const auto open_slow = [&](const std::string& path) -> Result<std::shared_ptr<Session>> {
    SPARKLE_TRY(model, read_model(path));
    SPARKLE_TRY(session, open_session(std::move(model), backend, {}));
    return std::shared_ptr<Session>(std::move(session));
  };
  Repository models({path("m.onnx")}, open_slow, {});
  ASSERT_TRUE(models.load_all().ok());
  ModelService service(models, {"1", "", {}});
  const Router router(service, {1 << 20, false});
  EXPECT_EQ(ask(router, call("POST", "/v2/models/m/infer"), body()).status, 200);  // its plan is there, its weights too
  backend->hold();
  std::thread client([&] { EXPECT_EQ(ask(router, call("POST", "/v2/models/m/infer"), body()).status, 200); });
  while (models.loaded()[0]->batcher->under_way() == 0) std::this_thread::yield();
  const Reply refused = ask(router, call("POST", "/v2/models/m/report"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("Requests are under way"), std::string::npos);
  EXPECT_EQ(ask(router, call("GET", "/v2/models/m/report")).status, 200);  // predicted: nothing is run
  backend->release();
  client.join();
  EXPECT_EQ(models.loaded()[0]->batcher->under_way(), 0);
  EXPECT_EQ(ask(router, call("POST", "/v2/models/m/report")).status, 200);
}

TEST_F(ServeRouter, RefusesByTheHeadAlone) {
  save("m.onnx");
  Repository models({path("m.onnx")}, open_file, {});
  ASSERT_TRUE(models.load_all().ok());
  ModelService service(models, {"1", "secret", {}});
  const Router router(service, {1000, false});
  const auto early = [&](Call c, uint64_t bytes = 0) {
    const auto reply = router.refuse_early(c, bytes);
    EXPECT_TRUE(!reply || json::parse(reply->body).size() == 1);
    return reply ? reply->status : 0;
  };
  Call infer = call("POST", "/v2/models/m/infer");
  for (const char* wrong : {"", "secret", "Bearer secre", "Bearer secretx", "Bearer Secret", "Basic secret"}) {
    infer.authorization = wrong;
    EXPECT_EQ(early(infer), 401) << wrong;
  }
  EXPECT_EQ(early(call("GET", "/v2/health/live")), 0);
  EXPECT_EQ(early(call("GET", "/metrics")), 401);
  for (const char* report : {"/v2/models/m/report", "/v2/models/m/versions/1/report", "/v2/models/m/report.html"}) {
    Call own = call("GET", report);
    EXPECT_EQ(early(own), 401) << report;
    own.authorization = "Bearer secret";
    EXPECT_EQ(early(own), 0) << report;
    own.origin = "http://elsewhere";
    EXPECT_EQ(early(own), 403) << report;
  }
  EXPECT_EQ(early(call("GET", "/nothing")), 401);
  infer.authorization = "Bearer secret";
  EXPECT_EQ(early(infer), 0);
  EXPECT_EQ(early(infer, 1000), 0);
  EXPECT_EQ(early(infer, 1001), 413);
  Call other = infer;
  other.content_encoding = "gzip";
  EXPECT_EQ(early(other), 415);
  other = infer, other.origin = "http://elsewhere", other.host = "localhost:8000";
  EXPECT_EQ(early(other), 403);
  other.origin = "http://localhost:8000";
  EXPECT_EQ(early(other), 0);
  other = infer, other.method = "GET";
  EXPECT_EQ(early(other), 405);
  for (const char* unknown : {"/v2/models/none/infer", "/v2/models/m/versions/2/infer", "/v2/models/m/infer/more", "/v2/models",
                              "/v3", "/v2/models/m/generate", "/v2/models/../m/infer", "/v2/models/m/config/more", "//"}) {
    other = infer, other.path = unknown;
    EXPECT_EQ(early(other), 404) << unknown;
  }
  // Extensions that are refused have one sentence, whatever the method.
  for (const char* method : {"GET", "POST"})
    for (const char* none : {"/v2/systemsharedmemory/status", "/v2/cudasharedmemory/region/r/register", "/v2/logging",
                             "/v2/trace/setting", "/v2/models/m/trace/setting"}) {
      other = infer, other.method = method, other.path = none;
      EXPECT_EQ(early(other), 400) << none;
    }
}

TEST_F(ServeRouter, NamesOfOtherMachinesAreRefused) {
  save("m.onnx");
  Repository models({path("m.onnx")}, open_file, {});
  ASSERT_TRUE(models.load_all().ok());
  ModelService service(models, {"1", "", {}});
  const Router router(service, {1000, true});
  for (const char* host : {"", "localhost", "localhost:8000", "127.0.0.1:80", "[::1]", "[::1]:8000"}) {
    Call own = call("GET", "/v2");
    own.host = host;
    EXPECT_FALSE(router.refuse_early(own, 0)) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil", "[::2]:8000", ":", "::1"}) {
    Call other = call("GET", "/v2");
    other.host = host, other.origin = "http://" + other.host;
    const auto reply = router.refuse_early(other, 0);
    EXPECT_EQ(reply ? reply->status : 0, std::string(host) == ":" ? 0 : 403) << host;
  }
}

TEST_F(ServeRouter, ModelsComeAndGo) {
  save("repository/a.onnx");
  Repository models({path("repository")}, open_file, {});
  ASSERT_TRUE(models.load_all().ok());
  ModelService service(models, {"1", "", {}});
  const Router router(service, {1 << 20, false});
  const auto control = [&](const std::string& name, const char* what, const std::string& body = "") {
    return ask(router, call("POST", "/v2/repository/models/" + name + "/" + what), body).status;
  };
  EXPECT_EQ(control("a", "unload"), 200);
  EXPECT_EQ(ask(router, call("GET", "/v2/models/a/ready")).status, 503);
  EXPECT_EQ(ask(router, call("POST", "/v2/models/a/infer"), body()).status, 503);
  EXPECT_EQ(json::parse(ask(router, call("POST", "/v2/repository/index")).body)[0]["state"], "UNAVAILABLE");
  EXPECT_EQ(ask(router, call("POST", "/v2/repository/index"), "{\"ready\":true}").body, "[]");
  EXPECT_EQ(control("a", "load"), 200);
  EXPECT_EQ(ask(router, call("POST", "/v2/models/a/infer"), body()).status, 200);
  EXPECT_EQ(control("b", "load"), 404);
  EXPECT_EQ(control("../a", "load"), 404);
  EXPECT_EQ(control("a", "load", R"({"parameters":{"config":"{}"}})"), 400);
  // A file that came later, one that is damaged, and one that is another one now.
  save("repository/b.onnx", 5);
  EXPECT_EQ(json::parse(ask(router, call("POST", "/v2/repository/index")).body)[1]["reason"], "not loaded");
  EXPECT_EQ(control("b", "load"), 200);
  EXPECT_EQ(ask(router, call("POST", "/v2/models/b/infer"), body(1, 5)).status, 200);
  std::ofstream(path("repository/b.onnx")) << "no model";
  EXPECT_EQ(control("b", "load"), 400);
  EXPECT_EQ(ask(router, call("POST", "/v2/models/b/infer"), body(1, 5)).status, 200);  // what ran before still does
  save("repository/b.onnx", 6);
  EXPECT_EQ(control("b", "load"), 200);
  EXPECT_EQ(ask(router, call("POST", "/v2/models/b/infer"), body(1, 5)).status, 400);
  EXPECT_EQ(ask(router, call("POST", "/v2/models/b/infer"), body(1, 6)).status, 200);
  fs::remove(path("repository/b.onnx"));
  EXPECT_EQ(control("b", "load"), 404);
}

TEST_F(ServeRouter, RepositoriesThatAreNoneAreNamed) {
  fs::create_directories(path("empty"));
  const auto refusal = [](std::vector<std::string> paths) {
    Repository models(std::move(paths), open_file, {});
    const Status loaded = models.load_all();
    return loaded.ok() ? std::string() : loaded.error().message;
  };
  EXPECT_NE(refusal({path("empty")}).find("has no models"), std::string::npos);
  EXPECT_NE(refusal({path("none.onnx")}).find("none.onnx"), std::string::npos);
  save("m.onnx"), save("other/m.onnx");
  EXPECT_NE(refusal({path("m.onnx"), path("other")}).find("is there twice"), std::string::npos);
}

TEST_F(ServeRouter, NamesAreEscapedOnThePageAndInMetrics) {
  save("<b>\"\\.onnx");
  Repository models({path("<b>\"\\.onnx")}, open_file, {});
  ASSERT_TRUE(models.load_all().ok());
  ModelService service(models, {"1", "", {}});
  const Router router(service, {1 << 20, false});
  EXPECT_EQ(ask(router, call("GET", "/")).body.find("<b>"), std::string::npos);
  EXPECT_NE(ask(router, call("GET", "/metrics")).body.find("{model=\"<b>\\\"\\\\\",version=\"1\"}"), std::string::npos);
}

TEST(ServeMetrics, BucketsAreRight) {
  LatencyHistogram histogram;
  for (const double seconds : {0.0004, 0.0005, 0.0006, 0.02, 30.0}) histogram.add(seconds);
  const auto counts = histogram.counts();
  EXPECT_EQ(counts.in[0], 2u);
  EXPECT_EQ(counts.in[1], 1u);
  EXPECT_EQ(counts.in[5], 1u);
  EXPECT_EQ(counts.in.back(), 1u);
  EXPECT_EQ(counts.count, 5u);
  EXPECT_NEAR(counts.seconds, 30.0215, 1e-6);
  EXPECT_EQ(counts.quantile(0.4), 0.0005);
  EXPECT_EQ(counts.quantile(0.8), 0.025);
  EXPECT_TRUE(std::isinf(counts.quantile(0.99)));
  // Prometheus' buckets hold what is in the smaller ones too.
  ModelMetrics metrics;
  for (const double seconds : {0.0004, 0.0009, 30.0}) metrics.latency.add(seconds);
  const std::string page = print_metrics({{"m", "1", &metrics, 4}});
  for (const char* line :
       {"_bucket{model=\"m\",version=\"1\",le=\"0.0005\"} 1\n", "le=\"0.001\"} 2\n", "le=\"10\"} 2\n", "le=\"+Inf\"} 3\n",
        "_count{model=\"m\",version=\"1\"} 3\n", "sparkle_queue_length{model=\"m\",version=\"1\"} 4\n"})
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
}

}  // namespace
}  // namespace sparkle::serve
