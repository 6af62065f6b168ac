// Encoded messages of gRPC taken apart before they are parsed: what is kept, and what is no request or too much of one.
#include "serve/wire.h"

#include <gtest/gtest.h>

namespace sparkle::serve {
namespace {

std::string field(int number, const std::string& contents) { return bytes_field(number, contents.size()) + contents; }
std::string repeated(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST(ServeWire, RawTensorsStayWhereTheyAre) {
  const std::string tensor(300, 'x');
  const std::string input = field(1, "x") + field(2, "FP32") + std::string("\x1a\x02\x01\x04", 4);
  const std::string head = field(1, "model") + field(5, input) + field(6, field(1, "y"));
  const std::string message = field(7, tensor) + head + field(7, "");
  InferParts parts;
  EXPECT_EQ(split_infer_request(message, parts), "");
  EXPECT_EQ(parts.head, head);
  ASSERT_EQ(parts.raw.size(), 2u);
  EXPECT_EQ(parts.raw[0], tensor);
  EXPECT_EQ(parts.raw[0].data(), message.data() + 3);  // the field's number, and a length of two bytes
  EXPECT_EQ(parts.raw[1], "");
}

TEST(ServeWire, WhatIsNoRequestIsSaid) {
  const std::string wrong[] = {std::string("\x00", 1),  // field 0
                               "\x0a",                  // no length
                               "\x0a\x05"
                               "abc",                                           // a length beyond the end
                               "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  // and beyond all memory
                               repeated("\xff", 11),
                               "\x2b\x2c",
                               "\x0f",
                               "\x0d\x01",
                               "\x09"
                               "1234567",
                               field(5,
                                     "\x0a\x05"
                                     "abc"),
                               field(4, field(2, "\x0b"))};
  for (const std::string& message : wrong) {
    InferParts parts;
    EXPECT_NE(split_infer_request(message, parts).find("no ModelInferRequest"), std::string::npos)
        << ::testing::PrintToString(message);
  }
}

TEST(ServeWire, RecordsAreBoundedBeforeTheyTakeMemory) {
  const std::string entries = repeated(field(4, ""), 40000);
  const std::string many[] = {repeated(field(5, ""), 1025),
                              repeated(field(6, ""), 1025),
                              repeated(field(7, ""), 1025),
                              repeated(field(4, ""), 65537),
                              field(5, entries + entries),
                              field(5, field(5, repeated("\x08\x01", 70000))),
                              field(6, repeated(field(2, ""), 70000)),
                              repeated("\x08\x01", 70000)};
  for (const std::string& message : many) {
    InferParts parts;
    EXPECT_NE(split_infer_request(message, parts).find("more than 65536 fields"), std::string::npos) << message.size();
  }
  // Packed, a tensor's contents are one of them.
  InferParts parts;
  EXPECT_EQ(split_infer_request(field(5, field(5, field(6, std::string(4 * 100000, 0)))), parts), "");
}

}  // namespace
}  // namespace sparkle::serve
