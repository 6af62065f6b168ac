// `sparkle serve` as a program, with a client beside it: the numbers of `sparkle run`, many clients at once, a full queue,
// clients that send nonsense or nothing, and an end under load that leaves nobody without the answer he was promised.
#include <fcntl.h>
#include <httplib.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "command/command.h"
#include "networks/zoo.h"
#include "onnx/npy.h"
#include "serve/serve_testing.h"

namespace sparkle::testing {
namespace {

using nlohmann::json;

class CommandServe : public Command {
 protected:
  void TearDown() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    Command::TearDown();
  }

  // Starts it on a free port and reads from its standard output which.
  void start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {SPARKLE_COMMAND, "serve"});
    for (const char* more : {"--http-port", "0", "--grpc-port", "-1", "--threads", "2", "--log"}) arguments.emplace_back(more);
    if (std::find(arguments.begin(), arguments.end(), "--metrics-port") == arguments.end())
      arguments.insert(arguments.end(), {"--metrics-port", "0"});
    int out[2];
    ASSERT_EQ(::pipe(out), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      const int err = ::open(path(".log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(err, STDERR_FILENO);
      ::close(out[0]), ::close(out[1]);
      if (::chdir(folder_.c_str()) != 0) ::_exit(126);
      std::vector<char*> words;
      for (std::string& word : arguments) words.push_back(word.data());
      words.push_back(nullptr);
      ::execv(words[0], words.data());
      ::_exit(127);
    }
    ::close(out[1]);
    std::string text;
    char part[512];
    while (text.find("http     ") == std::string::npos || text.back() != '\n') {
      const ssize_t got = ::read(out[0], part, sizeof part);
      if (got <= 0) break;
      text.append(part, static_cast<size_t>(got));
    }
    ::close(out[0]);
    const size_t at = text.find("http     http://127.0.0.1:");
    ASSERT_NE(at, std::string::npos) << text << text_of(".log");
    port_ = std::atoi(text.c_str() + at + 26);
    ASSERT_GT(port_, 0);
  }
  int end(int signal = SIGTERM) {
    if (child_ <= 0) return -1;
    ::kill(child_, signal);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  httplib::Client client() const {
    httplib::Client client("127.0.0.1", port_);
    client.set_read_timeout(120);
    client.set_keep_alive(true);
    return client;
  }
  std::vector<json> log_lines() const {
    std::vector<json> lines;
    std::istringstream text(text_of(".log"));
    for (std::string line; std::getline(text, line);)
      if (line.starts_with("{")) {
        lines.push_back(json::parse(line, nullptr, false));
        EXPECT_TRUE(lines.back().is_object()) << line;
      }
    return lines;
  }
  // What comes back for these bytes until the server closes, or for a while.
  std::string talk(const std::string& bytes) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval second{1, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t some = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (some <= 0) break;
      sent += static_cast<size_t>(some);
    }
    std::string answer;
    char part[4096];
    for (ssize_t got; (got = ::recv(socket, part, sizeof part, 0)) > 0;) answer.append(part, static_cast<size_t>(got));
    ::close(socket);
    return answer;
  }

  pid_t child_ = -1;
  int port_ = 0;
};

HostTensor picture(uint64_t seed) {
  std::mt19937_64 random(seed);
  HostTensor t = HostTensor::zeros(DType::f32, {1, 3, 16, 16});
  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = static_cast<float>(random() % 1000) / 500 - 1;
  return t;
}

std::string as_json(const HostTensor& t) {
  json data = json::array(), shape = json::array();
  for (int64_t i = 0; i < t.elements(); ++i) data.push_back(t.data<float>()[i]);
  for (const int64_t d : t.shape) shape.push_back(d);
  return json{{"inputs", {{{"name", "input"}, {"datatype", "FP32"}, {"shape", shape}, {"data", data}}}}}.dump();
}
struct Body {
  std::string bytes;
  httplib::Headers headers;
};
Body as_binary(const HostTensor& t) {
  json shape = json::array();
  for (const int64_t d : t.shape) shape.push_back(d);
  std::string text = json{
      {"inputs",
       {{{"name", "input"}, {"datatype", "FP32"}, {"shape", shape}, {"parameters", {{"binary_data_size", t.size_bytes()}}}}}},
      {"parameters",
       {{"binary_data_output",
         true}}}}.dump();
  const httplib::Headers headers{{"Inference-Header-Content-Length", std::to_string(text.size())}};
  text.append(reinterpret_cast<const char*>(t.bytes.get()), static_cast<size_t>(t.size_bytes()));
  return {text, headers};
}
std::vector<float> floats_in(const httplib::Response& response) {
  std::vector<float> values;
  if (!response.has_header("Inference-Header-Content-Length")) {
    const json whole = json::parse(response.body);
    for (const json& v : whole["outputs"][0]["data"]) values.push_back(v.get<float>());
    return values;
  }
  const size_t begin = std::stoul(response.get_header_value("Inference-Header-Content-Length"));
  values.resize((response.body.size() - begin) / sizeof(float));
  std::memcpy(values.data(), response.body.data() + begin, values.size() * sizeof(float));
  return values;
}

TEST_F(CommandServe, AnswersAreThoseOfRun) {
  save(*zoo_network("tiny_chain", {}), "net.onnx");
  start({"net.onnx"});
  auto http = client();
  EXPECT_EQ(http.Get("/v2/health/live")->status, 200);
  EXPECT_EQ(http.Get("/v2/health/ready")->status, 200);
  EXPECT_EQ(json::parse(http.Get("/v2")->body)["name"], "sparkle");
  const json about = json::parse(http.Get("/v2/models/net")->body);
  EXPECT_EQ(about["inputs"], json::parse(R"([{"name":"input","datatype":"FP32","shape":[1,3,16,16]}])"));
  EXPECT_EQ(http.Get("/v2/models/net/versions/1/ready")->status, 200);
  EXPECT_EQ(http.Get("/v2/models/other/ready")->status, 404);
  for (uint64_t seed = 1; seed < 4; ++seed) {
    const HostTensor x = picture(seed);
    ASSERT_TRUE(write_npy(path("x.npy"), x).ok());
    ASSERT_EQ(sparkle("run net.onnx x.npy --threads 2 --output out").status, 0);
    const auto wanted = read_npy(path("out/logits.npy"));
    ASSERT_TRUE(wanted.ok()) << wanted.error().message;
    const std::vector<float> values(wanted->data<float>(), wanted->data<float>() + wanted->elements());
    const auto text = http.Post("/v2/models/net/infer", as_json(x), "application/json");
    ASSERT_TRUE(text);
    ASSERT_EQ(text->status, 200) << text->body;
    EXPECT_EQ(floats_in(*text), values);
    const Body body = as_binary(x);
    const auto binary = http.Post("/v2/models/net/versions/1/infer", body.headers, body.bytes, "application/octet-stream");
    ASSERT_TRUE(binary);
    ASSERT_EQ(binary->status, 200) << binary->body;
    EXPECT_TRUE(binary->has_header("Inference-Header-Content-Length"));
    EXPECT_EQ(floats_in(*binary), values);
  }
  EXPECT_EQ(end(), 0);
  const auto lines = log_lines();
  EXPECT_EQ(lines.size(), 12u);
  EXPECT_EQ(lines.back()["model"], "net");
  EXPECT_EQ(lines.back()["status"], 200);
}

TEST_F(CommandServe, EightThreadsAtOnceGetTheirOwn) {
  save(rows_network(), "rows.onnx");
  for (const char* batch : {"1", "8"}) {
    start({"rows.onnx", "--max-batch", batch, "--batch-delay-us", "2000"});
    std::atomic<int> wrong{0}, right{0};
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < 8; ++thread)
      threads.emplace_back([&, thread] {
        auto http = client();
        const auto ask = [&](const json& data, int64_t rows) {
          const json body{{"inputs", {{{"name", "x"}, {"datatype", "FP32"}, {"shape", {rows, 4}}, {"data", data}}}}};
          const auto response = http.Post("/v2/models/rows/infer", body.dump(), "application/json");
          return response && response->status == 200 ? floats_in(*response) : std::vector<float>();
        };
        std::mt19937_64 random(thread + 1);
        for (int i = 0; i < 20; ++i) {
          // The rows of a request are what each row comes to in a request of its own.
          std::vector<float> values(8);
          for (float& v : values) v = static_cast<float>(random() % 100) / 50 - 1;
          const auto both = ask(values, 2);
          std::vector<float> apart = ask(std::vector<float>(values.begin(), values.begin() + 4), 1);
          const auto second = ask(std::vector<float>(values.begin() + 4, values.end()), 1);
          apart.insert(apart.end(), second.begin(), second.end());
          bool same = both.size() == 6 && apart.size() == 6;
          for (size_t e = 0; same && e < 6; ++e) same = std::abs(both[e] - apart[e]) <= 1e-5f * (1 + std::abs(apart[e]));
          ++(same ? right : wrong);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(right, 160);
    const std::string metrics = client().Get("/metrics")->body;
    EXPECT_SAYS(metrics, "sparkle_requests_total{model=\"rows\",version=\"1\"} 480\n");
    const size_t at = metrics.find("sparkle_batches_total{model=\"rows\",version=\"1\"} ");
    ASSERT_NE(at, std::string::npos);
    const int batches = std::atoi(metrics.c_str() + metrics.find("} ", at) + 2);
    if (batch[0] == '1') EXPECT_EQ(batches, 480);
    else EXPECT_LT(batches, 480);
    EXPECT_EQ(end(), 0);
  }
}

TEST_F(CommandServe, AFullQueueSaysComeAgain) {
  save(*zoo_network("squeezenet1.1", {}), "net.onnx");
  start({"net.onnx", "--queue", "1"});
  HostTensor x = HostTensor::zeros(DType::f32, {1, 3, 224, 224});
  const Body body = as_binary(x);
  std::atomic<int> answered{0}, full{0}, other{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 24; ++thread)
    threads.emplace_back([&] {
      auto http = client();
      for (int i = 0; i < 4; ++i) {
        const auto response = http.Post("/v2/models/net/infer", body.headers, body.bytes, "application/octet-stream");
        ++(!response ? other : response->status == 200 ? answered : response->status == 429 ? full : other);
        const bool told = !response || response->status != 429 || contains(response->body, "ask again later");
        EXPECT_TRUE(told);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(other, 0);
  EXPECT_GT(answered, 0);
  EXPECT_GT(full, 0);
  EXPECT_EQ(client().Get("/v2/health/ready")->status, 200);
  EXPECT_SAYS(client().Get("/metrics")->body, "reason=\"queue_full\"} " + std::to_string(full));
  EXPECT_EQ(end(SIGINT), 0);
}

TEST_F(CommandServe, WhatTakesTooLongIsToldSo) {
  ZooOptions options;
  options.batch = 8;
  save(*zoo_network("squeezenet1.1", options), "net.onnx");
  start({"net.onnx", "--timeout-ms", "1"});
  const Body body = as_binary(HostTensor::zeros(DType::f32, {8, 3, 224, 224}));
  auto http = client();
  const auto late = http.Post("/v2/models/net/infer", body.headers, body.bytes, "application/octet-stream");
  ASSERT_TRUE(late);
  EXPECT_EQ(late->status, 504) << late->body;
  EXPECT_EQ(end(), 0);
}

// Under load: who got an answer got a whole one, and each that the log calls answered reached its client.
TEST_F(CommandServe, AnEndUnderLoadAnswersAllThatWasAccepted) {
  save(*zoo_network("squeezenet1.1", {}), "net.onnx");
  const HostTensor x = HostTensor::zeros(DType::f32, {1, 3, 224, 224});
  const Body body = as_binary(x);
  for (const int signal : {SIGTERM, SIGINT}) {
    start({"net.onnx", "--queue", "64"});
    std::atomic<int> answered{0}, gone{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread)
      threads.emplace_back([&] {
        auto http = client();
        for (;;) {
          const auto response = http.Post("/v2/models/net/infer", body.headers, body.bytes, "application/octet-stream");
          if (!response) return void(++gone);  // no new requests
          ++(response->status == 200 && floats_in(*response).size() == 1000 ? answered : wrong);
        }
      });
    while (answered < 16 && gone == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(end(signal), 0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(gone, 8);
    int logged = 0;
    for (const json& line : log_lines()) logged += line["status"] == 200;
    EXPECT_EQ(answered, logged);
  }
}

TEST_F(CommandServe, NonsenseOnTheSocketIsAnswered) {
  save(rows_network(), "rows.onnx");
  start({"rows.onnx", "--max-request-bytes", "1000"});
  const auto head = [](const std::string& rest) {
    return "POST /v2/models/rows/infer HTTP/1.1\r\nHost: localhost\r\n" + rest + "\r\n";
  };
  EXPECT_SAYS(talk("nonsense\r\n\r\n"), "HTTP/1.1 400 ");
  EXPECT_SAYS(talk("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n"), "HTTP/1.1 414 ");
  std::string many = "GET /v2 HTTP/1.1\r\n";
  for (int i = 0; i < 20000; ++i) many += "x: y\r\n";
  EXPECT_SAYS(talk(many + "\r\n"), "HTTP/1.1 400 ");
  EXPECT_EQ(talk(std::string(100000, 'a')), "");
  EXPECT_SAYS(talk(head("Content-Length: 1001\r\n")), "HTTP/1.1 413 ");
  EXPECT_SAYS(talk(head("Content-Length: 99999999999999999999\r\n")), "HTTP/1.1 400 ");
  EXPECT_SAYS(talk(head("Content-Length: -1\r\n")), "HTTP/1.1 400 ");
  EXPECT_SAYS(talk(head("Content-Length: 2\r\nContent-Length: 3\r\n") + "{}"), "HTTP/1.1 400 ");
  EXPECT_SAYS(talk(head("Transfer-Encoding: chunked\r\n") + "2\r\n{}\r\n0\r\n\r\n"), "HTTP/1.1 411 ");
  EXPECT_SAYS(talk(head("Content-Encoding: gzip\r\nContent-Length: 2\r\n") + "{}"), "HTTP/1.1 415 ");
  EXPECT_SAYS(talk(head("Inference-Header-Content-Length: 2x\r\nContent-Length: 2\r\n") + "{}"), "HTTP/1.1 400 ");
  EXPECT_SAYS(talk(head("Content-Length: 2\r\n") + "{}"), "\"inputs\\\"");
  EXPECT_SAYS(talk("GET /v2 HTTP/1.1\r\nRange: bytes=0-1,2-3\r\nAccept-Encoding: br, gzip\r\nConnection: close\r\n\r\n"),
              "\"name\":\"sparkle\"");
  // Two on one connection, the second behind the first at once.
  const std::string two =
      talk("GET /v2/health/live HTTP/1.1\r\n\r\nGET /v2/health/ready HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_NE(two.find("200 OK"), two.rfind("200 OK"));
  // More connections than there is room for: told so, and the server goes on.
  std::vector<int> idle;
  for (int i = 0; i < 300; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    idle.push_back(socket);
  }
  EXPECT_SAYS(talk("GET /v2 HTTP/1.1\r\n\r\n"), "HTTP/1.1 503 ");
  for (const int socket : idle) ::close(socket);
  for (int i = 0; i < 100 && !contains(talk("GET /v2 HTTP/1.1\r\nConnection: close\r\n\r\n"), "200 OK"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_SAYS(talk("GET /v2 HTTP/1.1\r\nConnection: close\r\n\r\n"), "200 OK");
  EXPECT_EQ(end(), 0);
}

TEST_F(CommandServe, CommandLinesThatCannotBeAreSentences) {
  save(rows_network(), "rows.onnx");
  write("broken.onnx", "no model");
  EXPECT_SAYS(refusal("serve none.onnx --http-port 0"), "none.onnx");
  refusal("serve broken.onnx --http-port 0");
  EXPECT_SAYS(refusal("serve rows.onnx rows.onnx --http-port 0"), "is there twice");
  EXPECT_SAYS(refusal("serve rows.onnx --http-port 0 --max-request-bytes much"), "is not a size");
  EXPECT_SAYS(refusal("serve rows.onnx --http-port 70000"), "--http-port");
  start({"rows.onnx"});
  EXPECT_SAYS(refusal("serve rows.onnx --metrics-port 0 --grpc-port -1 --http-port " + std::to_string(port_)),
              "cannot be listened on");
  EXPECT_SAYS(refusal("serve rows.onnx --metrics-port 0 --grpc-port -1 --http-port 0 --host 192.0.2.1"),
              "cannot be listened on");
  EXPECT_EQ(end(), 0);
}

}  // namespace
}  // namespace sparkle::testing
