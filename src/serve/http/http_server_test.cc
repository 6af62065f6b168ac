// The listener by itself; what it answers is tested through the command.
#include "serve/http/http_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace sparkle::serve {
namespace {

// A stop that comes before the first connection could be taken ends the server all the same.
TEST(HttpServer, StopsHoweverEarly) {
  for (int microseconds = 0; microseconds < 400; microseconds += 4) {
    HttpServer server({});
    const auto port = server.bind("127.0.0.1", 0);
    ASSERT_TRUE(port.ok()) << port.error().message;
    std::thread answering([&] { server.run(); });
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    server.stop();
    answering.join();
  }
  HttpServer never({});
  ASSERT_TRUE(never.bind("127.0.0.1", 0).ok());
  never.stop();
  never.run();
}

}  // namespace
}  // namespace sparkle::serve
