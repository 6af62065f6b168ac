// Tensor files and .npy files: round trips of every type, both orders, hostile headers. The writer and the networks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/files/new_file.h"
#include "base/folder_testing.h"
#include "networks/network_builder.h"
#include "onnx/npy.h"
#include "onnx/reader.h"
#include "onnx/tensor_file.h"
#include "onnx/tensor_proto.h"
#include "networks/video_unet.h"
#include "networks/writer.h"
#include "networks/zoo.h"

namespace sparkle {
namespace {

HostTensor random_tensor(DType type, const Dims& shape) {
  HostTensor tensor = HostTensor::zeros(type, shape);
  std::mt19937 random(7);
  for (int64_t i = 0; i < tensor.size_bytes(); ++i)
    tensor.bytes[i] = static_cast<std::byte>(
        type == DType::boolean ? random() % 2 : random() % (1u << std::min<int64_t>(8, stored_bits(type))));
  return tensor;
}

void expect_same(const HostTensor& a, const HostTensor& b) {
  ASSERT_EQ(a.dtype, b.dtype);
  ASSERT_EQ(a.shape, b.shape);
  EXPECT_EQ(std::memcmp(a.bytes.get(), b.bytes.get(), static_cast<size_t>(a.size_bytes())), 0);
}

std::string temporary(const std::string& name) { return (std::filesystem::path(::testing::TempDir()) / name).string(); }

TEST(TensorFiles, RoundTripsOfEveryType) {
  for (int t = 0; t < kDTypes; ++t)
    for (const Dims& shape : {Dims{}, Dims{0}, Dims{3}, Dims{2, 3, 4}, Dims{40, 50}}) {
      const DType type = static_cast<DType>(t);
      const HostTensor tensor = random_tensor(type, shape);
      const std::string pb = temporary("sparkle_t.pb"), npy = temporary("sparkle_t.npy");
      ASSERT_TRUE(write_tensor_pb(pb, "name", tensor).ok());
      const auto back = read_tensor_pb(pb);
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(back->name, "name");
      expect_same(back->value, tensor);
      if (type == DType::bf16 || is_narrow(type)) {
        EXPECT_EQ(write_npy(npy, tensor).error().reason, Reason::type_not_served);
        continue;
      }
      ASSERT_TRUE(write_npy(npy, tensor).ok());
      const auto array = read_npy(npy);
      ASSERT_TRUE(array.ok()) << array.error().message;
      expect_same(*array, tensor);
    }
}

// Elements of 4 and 2 bits lie side by side, the first in the lowest bits, as raw bytes, in int32_data and in files beside the
// model; a byte too few or too many is an error.
TEST(TensorFiles, SmallElementsArePacked) {
  const auto expect = [](const HostTensor& tensor, const std::vector<uint8_t>& elements) {
    ASSERT_EQ(tensor.elements(), static_cast<int64_t>(elements.size()));
    EXPECT_EQ(std::memcmp(tensor.bytes.get(), elements.data(), elements.size()), 0);
  };
  struct Packed {
    DType type;
    std::vector<uint8_t> bytes, elements;
  };
  for (const Packed& p : {Packed{DType::i4, {0x21, 0xf8, 0x07}, {1, 2, 8, 15, 7}}, Packed{DType::u4, {0x21, 0x03}, {1, 2, 3}},
                          Packed{DType::f4e2m1, {0xf0}, {0, 15}}, Packed{DType::u2, {0xe4, 0x02}, {0, 1, 2, 3, 2}},
                          Packed{DType::i2, {0x1b}, {3, 2, 1, 0}}, Packed{DType::f8e8m0, {0xff, 0x7f}, {0xff, 0x7f}}}) {
    ::onnx::TensorProto raw, typed, beside;
    for (::onnx::TensorProto* proto : {&raw, &typed, &beside}) {
      proto->set_data_type(onnx_type_of(p.type));
      proto->add_dims(static_cast<int64_t>(p.elements.size()));
    }
    const std::string text(p.bytes.begin(), p.bytes.end());
    raw.set_raw_data(text);
    for (const uint8_t byte : p.bytes) typed.add_int32_data(byte);
    beside.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto& location = *beside.add_external_data();
    location.set_key("location"), location.set_value("sparkle_packed.bin");
    ASSERT_TRUE(write_file(temporary("sparkle_packed.bin"), std::as_bytes(std::span(text))).ok());
    for (const ::onnx::TensorProto& proto : {raw, typed, beside}) {
      ::onnx::TensorProto given = proto;
      const auto tensor = take_tensor(given, "t", ::testing::TempDir());
      ASSERT_TRUE(tensor.ok()) << tensor.error().message;
      expect(*tensor, p.elements);
    }
    ::onnx::TensorProto written;
    put_tensor(*take_tensor(raw, "t", ""), "t", written);
    EXPECT_EQ(written.raw_data(), text) << name_of(p.type);
    raw.set_raw_data(text + '\0'), typed.add_int32_data(0);
    for (::onnx::TensorProto* proto : {&raw, &typed}) {
      const auto tensor = take_tensor(*proto, "t", "");
      ASSERT_FALSE(tensor.ok());
      EXPECT_EQ(tensor.error().reason, Reason::bad_model);
    }
  }
}

std::string npy_text(const std::string& header, const std::string& data, char version = 1) {
  std::string text = std::string("\x93NUMPY") + version + '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + header + data;
}

TEST(Npy, OrdersAndVersions) {
  const std::string data = {0, 1, 2, 3, 4, 5};
  for (char version : {1, 2, 3}) {
    const std::string text = npy_text("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", data, version);
    const auto array = read_npy_bytes(std::as_bytes(std::span(text)), "a.npy");
    ASSERT_TRUE(array.ok()) << array.error().message;
    const uint8_t expected[] = {0, 2, 4, 1, 3, 5};
    EXPECT_EQ(std::memcmp(array->bytes.get(), expected, 6), 0);
  }
  const std::string big = npy_text("{'descr': '>i2', 'fortran_order': False, 'shape': (3,)}", data);
  const auto array = read_npy_bytes(std::as_bytes(std::span(big)), "a.npy");
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->data<int16_t>()[1], 0x0203);
}

TEST(Npy, HostileHeaders) {
  for (const char* header : {"", "{", "{}", "{'descr': '|u1'}", "{'descr': '|u1', 'fortran_order': False, 'shape': (7,)}",
                             "{'descr': '|u1', 'fortran_order': False, 'shape': (-6,)}",
                             "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
                             "{'descr': '|O', 'fortran_order': False, 'shape': (6,)}",
                             "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}",
                             "{'descr': '|u1', 'fortran_order': Maybe, 'shape': (6,)}",
                             "{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6)}",
                             "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (6,)}"}) {
    const std::string text = npy_text(header, "012345");
    const auto array = read_npy_bytes(std::as_bytes(std::span(text)), "bad.npy");
    ASSERT_FALSE(array.ok()) << header;
    EXPECT_NE(array.error().message.find("bad.npy"), std::string::npos);
  }
  const std::string good = npy_text("{'descr': '|u1', 'fortran_order': False, 'shape': (6,)}", "012345");
  for (size_t i = 0; i < good.size(); ++i) EXPECT_FALSE(read_npy_bytes(std::as_bytes(std::span(good).first(i)), "cut").ok());
}

// What the writer writes reads back as the same operators on the same constants.
TEST(OnnxWriter, NetworksRoundTrip) {
  for (std::string_view name : zoo_names()) {
    if (!name.starts_with("tiny") && name != "squeezenet1.1") continue;
    for (bool batchnorm : {false, true}) {
      const auto graph = zoo_network(name, {1, batchnorm, 2});
      ASSERT_TRUE(graph.ok());
      const auto bytes = onnx_bytes(*graph);
      ASSERT_TRUE(bytes.ok()) << bytes.error().message;
      const auto back = read_onnx_bytes(std::as_bytes(std::span(*bytes)), "", "back");
      ASSERT_TRUE(back.ok()) << back.error().message;
      ASSERT_EQ(back->ops.size(), graph->ops.size());
      for (size_t i = 0; i < graph->ops.size(); ++i) {
        EXPECT_EQ(back->ops[i].params.index(), graph->ops[i].params.index()) << graph->ops[i].name;
        EXPECT_EQ(back->ops[i].name, graph->ops[i].name);
      }
      EXPECT_EQ(back->tensor(back->inputs[0]).shape, graph->tensor(graph->inputs[0]).shape);
      EXPECT_EQ(back->tensor(back->outputs[0]).name, graph->tensor(graph->outputs[0]).name);
    }
  }
}

class OnnxWriterFiles : public testing::FolderTest {};

TEST_F(OnnxWriterFiles, WeightsLieBesideTheModel) {
  for (DType type : {DType::f32, DType::bf16}) {
    const auto graph = video_unet({1, 16, 16, type});
    ASSERT_TRUE(graph.ok());
    const Status written = write_onnx(*graph, path("model.onnx"), Weights::beside);
    ASSERT_TRUE(written.ok()) << written.error().message;
    const auto back = read_onnx(path("model.onnx"));
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_EQ(back->ops.size(), graph->ops.size());
    int64_t parameters = 0;
    for (size_t i = 0; i < graph->ops.size(); ++i)
      for (size_t j = 0; j < graph->ops[i].inputs.size(); ++j) {
        const auto &wrote = graph->tensor(graph->ops[i].inputs[j]).constant,
                   &read = back->tensor(back->ops[i].inputs[j]).constant;
        ASSERT_EQ(wrote.has_value(), read.has_value());
        if (!wrote) continue;
        if (wrote->dtype == type) parameters += wrote->elements();
        EXPECT_EQ(read->dtype, wrote->dtype);
        ASSERT_EQ(read->size_bytes(), wrote->size_bytes());
        EXPECT_EQ(std::memcmp(read->bytes.get(), wrote->bytes.get(), static_cast<size_t>(wrote->size_bytes())), 0);
      }
    EXPECT_LT(std::filesystem::file_size(path("model.onnx")), 250000u);
    EXPECT_GT(static_cast<int64_t>(std::filesystem::file_size(path("model.onnx.data"))), parameters * size_of(type) * 9 / 10);
  }
  EXPECT_EQ(video_unet({1, 24, 16}).error().reason, Reason::bad_usage);
  EXPECT_EQ(video_unet({1, 16, 16, DType::i32}).error().reason, Reason::bad_usage);
}

TEST(OnnxWriter, RefusesUnknownOperators) {
  Graph graph;
  graph.inputs = {graph.add({})};
  graph.outputs = {graph.add({})};
  graph.ops.push_back({"odd", "Odd", UnknownOp{"it is odd"}, graph.inputs, graph.outputs});
  EXPECT_EQ(onnx_bytes(graph).error().reason, Reason::operator_not_served);
}

TEST(Zoo, WeightsAreTheSameEverywhereAndNearlyNormal) {
  EXPECT_EQ(normal_at(1, 1, 0), normal_at(1, 1, 0));
  EXPECT_NE(normal_at(1, 1, 0), normal_at(1, 2, 0));
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double x = static_cast<double>(normal_at(5, 3, static_cast<uint64_t>(i)));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.02);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
  EXPECT_EQ(zoo_network("nothing").error().reason, Reason::bad_usage);
}

}  // namespace
}  // namespace sparkle
