// Conversions of rows: every 16-bit pattern, every rounding case, tails of every length.
#include "backends/cpu/conversions.h"

#include <bit>

#include "backends/cpu/test_tensor.h"
#include "families/values/convert.h"

namespace sparkle::cpu {
namespace {

TEST(Conversions, EveryHalfIsReadAndWrittenBack) {
  for (const std::string& unit : test_units())
    for (const DType type : {DType::f16, DType::bf16}) {
      const Conversions c = conversions(unit, type);
      std::vector<uint16_t> bits(65536), back(65536, 1);
      for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
      std::vector<float> floats(65536);
      c.load(reinterpret_cast<const std::byte*>(bits.data()), 65536, floats.data());
      c.store(floats.data(), 65536, reinterpret_cast<std::byte*>(back.data()));
      for (size_t i = 0; i < bits.size(); ++i) {
        const double want = load_element(type, reinterpret_cast<const std::byte*>(&bits[i]));
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(floats[i])) << unit << " " << i;
        } else {
          ASSERT_EQ(static_cast<double>(floats[i]), want) << unit << " " << name_of(type) << " " << i;
          ASSERT_EQ(back[i], bits[i]) << unit << " " << name_of(type);
        }
      }
    }
}

// Between every two neighbouring values: just below, at and just above the middle.
TEST(Conversions, RoundToNearestEven) {
  for (const std::string& unit : test_units())
    for (const DType type : {DType::f16, DType::bf16}) {
      const Conversions c = conversions(unit, type);
      std::vector<float> floats;
      for (uint16_t i = 0; i < 0x7c00; ++i) {
        const uint16_t next = i + 1;
        const double a = load_element(type, reinterpret_cast<const std::byte*>(&i));
        const double b = load_element(type, reinterpret_cast<const std::byte*>(&next));
        const auto middle = static_cast<float>((a + b) / 2);
        if (!(std::isnormal(middle) && std::isfinite(b))) continue;
        for (const float v : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, INFINITY)})
          floats.push_back(v), floats.push_back(-v);
      }
      std::vector<uint16_t> got(floats.size());
      c.store(floats.data(), static_cast<int64_t>(floats.size()), reinterpret_cast<std::byte*>(got.data()));
      for (size_t i = 0; i < floats.size(); ++i) {
        uint16_t want = 0;
        store_element(type, static_cast<double>(floats[i]), reinterpret_cast<std::byte*>(&want));
        ASSERT_EQ(got[i], want) << unit << " " << name_of(type) << " " << floats[i];
      }
    }
}

// Every byte, and what lies around and between the values, as the plain loops have it.
TEST(Conversions, NarrowTypes) {
  for (const std::string& unit : test_units())
    for (int t = static_cast<int>(DType::f8e4m3fn); t < kDTypes; ++t) {
      const DType type = static_cast<DType>(t);
      const Conversions c = conversions(unit, type);
      std::vector<std::byte> codes(256);
      for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
      std::vector<float> floats(256);
      c.load(codes.data(), 256, floats.data());
      for (size_t i = 0; i < codes.size(); ++i) {
        const double want = load_element(type, &codes[i]);
        ASSERT_TRUE(static_cast<double>(floats[i]) == want || (std::isnan(floats[i]) && std::isnan(want)))
            << name_of(type) << i;
      }
      for (size_t i = 0; i < 256; ++i)
        for (const float factor : {0.75f, 1.25f, 1.5f, 1.0000001f, 0.9999999f, 300.0f, 1e-6f})
          floats.push_back(floats[i] * factor);
      for (const float special : {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 1e-40f}) floats.push_back(special);
      std::vector<std::byte> got(floats.size()), want(floats.size());
      c.store(floats.data(), static_cast<int64_t>(floats.size()), got.data());
      store_row(type, floats.data(), static_cast<int64_t>(floats.size()), want.data(), 1);
      ASSERT_EQ(got, want) << unit << " " << name_of(type);
    }
}

TEST(Conversions, TailsAndStridesTouchNothingElse) {
  for (const std::string& unit : test_units())
    for (const DType type : {DType::f16, DType::bf16, DType::i8, DType::u16, DType::i64, DType::boolean, DType::f64,
                             DType::f8e4m3fn, DType::f8e5m2fnuz, DType::f4e2m1, DType::u2, DType::u4})
      for (int64_t count = 1; count <= 40; ++count)
        for (const int64_t stride : {1, 3, -1}) {
          const Conversions c = conversions(unit, type);
          const TensorDesc desc{type, {count}, {Dims{0}, Dims{stride}, stride < 0 ? count - 1 : 0}};
          TestTensor written(desc);
          std::vector<float> floats(static_cast<size_t>(count) + 1, 77.0f), read(static_cast<size_t>(count) + 1, 77.0f);
          for (int64_t i = 0; i < count; ++i) floats[static_cast<size_t>(i)] = static_cast<float>(i % 2);
          store_floats(c, type, floats.data(), count, written.origin(), stride);
          ASSERT_TRUE(written.sentinels_hold()) << unit << " " << name_of(type) << " " << count << " " << stride;
          load_floats(c, type, written.origin(), stride, count, read.data());
          ASSERT_EQ(read, floats) << unit << " " << name_of(type) << " " << count << " " << stride;
        }
}

}  // namespace
}  // namespace sparkle::cpu
