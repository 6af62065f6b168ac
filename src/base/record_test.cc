// Records, dims and layouts: what is printed reads back, what is malformed is refused.
#include "base/record.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/tensor.h"

namespace sparkle {
namespace {

enum class Colour : uint8_t { red, green };
std::string_view name_of(Colour c) { return c == Colour::red ? "red" : "green"; }
bool parse_name(std::string_view text, Colour& c) {
  c = text == "green" ? Colour::green : Colour::red;
  return text == "red" || text == "green";
}

struct Inner {
  int a = 0;
  std::array<int64_t, 3> triple{};
  template <class V>
  void visit(V& v) {
    v("a", a), v("triple", triple);
  }
  friend bool operator==(const Inner&, const Inner&) = default;
};

struct Outer {
  int64_t m = 0;
  uint8_t small = 0;
  bool flag = false;
  double x = 0;
  Colour colour = Colour::red;
  std::string word;
  Dims dims;
  Inner inner;
  std::vector<Inner> list;
  std::vector<double> numbers;
  template <class V>
  void visit(V& v) {
    v("m", m), v("small", small), v("flag", flag), v("x", x), v("colour", colour), v("word", word), v("dims", dims);
    v("inner", inner), v("list", list), v("numbers", numbers);
  }
  friend bool operator==(const Outer&, const Outer&) = default;
};

Outer random_record(std::mt19937_64& rng) {
  const auto integer = [&] { return static_cast<int64_t>(rng()); };
  const auto real = [&] {
    double value = 0;
    do {
      value = std::bit_cast<double>(rng());
    } while (!std::isfinite(value));
    return value;
  };
  Outer r;
  r.m = integer(), r.small = static_cast<uint8_t>(rng()), r.flag = rng() % 2, r.x = real();
  r.colour = rng() % 2 ? Colour::green : Colour::red;
  r.word = rng() % 3 ? "w" + std::to_string(rng() % 100) : "";
  for (size_t i = rng() % 9; i > 0; --i) r.dims.push_back(integer());
  r.inner = {static_cast<int>(rng()), {integer(), integer(), integer()}};
  for (size_t i = rng() % 4; i > 0; --i) r.list.push_back({static_cast<int>(rng()), {integer(), 0, -1}});
  for (size_t i = rng() % 4; i > 0; --i) r.numbers.push_back(real());
  return r;
}

TEST(Record, RoundTripsExactly) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 rng(seed);
    const Outer record = random_record(rng);
    const std::string text = to_text(record);
    const auto back = from_text<Outer>(text);
    ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << back.error().message;
    EXPECT_TRUE(*back == record) << "seed " << seed << ": " << text;
    EXPECT_EQ(to_text(*back), text);
  }
}

TEST(Record, PrintsAsTheHeaderSays) {
  Inner inner{3, {1, 2, 3}};
  EXPECT_EQ(to_text(inner), "a=3 triple=[1,2,3]");
  Outer outer;
  outer.inner = inner;
  EXPECT_NE(to_text(outer).find("inner={a=3 triple=[1,2,3]}"), std::string::npos);
}

TEST(Record, ExtremeDoublesSurvive) {
  for (double x : {0.0, -0.0, 0.1, 1e-320, std::numeric_limits<double>::max(), std::numeric_limits<double>::infinity(),
                   -std::numeric_limits<double>::infinity()}) {
    Outer record;
    record.x = x;
    const auto back = from_text<Outer>(to_text(record));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(std::bit_cast<uint64_t>(back->x), std::bit_cast<uint64_t>(x)) << to_text(record);
  }
}

TEST(Record, RefusesWithTheFieldsName) {
  const auto problem = [](std::string_view text) {
    const auto r = from_text<Inner>(text);
    return r.ok() ? std::string() : r.error().message;
  };
  EXPECT_EQ(problem("a=1 triple=[1,2,3]"), "");
  EXPECT_EQ(problem("triple=[1,2,3] a=1"), "");  // any order
  EXPECT_NE(problem("a=1").find("'triple' is missing"), std::string::npos);
  for (std::string_view text : {"a=x triple=[1,2,3]", "a=99999999999 triple=[1,2,3]", "a= triple=[1,2,3]",
                                "a=1.5 triple=[1,2,3]", "a=1e3 triple=[1,2,3]"})
    EXPECT_NE(problem(text).find("'a' cannot be read"), std::string::npos) << text;
  for (std::string_view text : {"a=1 triple=[1,2]", "a=1 triple=[1,2,3,4]", "a=1 triple=1,2,3", "a=1 triple=[",
                                "a=1 triple=[1,,3]", "a=1 triple=[1,2,3", "a=1 triple=[[1],2,3]"})
    EXPECT_NE(problem(text).find("'triple' cannot be read"), std::string::npos) << text;
}

TEST(Record, ListsLongerThanDimsAreRefused) {
  Outer record;
  std::string text = to_text(record);
  const std::string empty = "dims=[]";
  text.replace(text.find(empty), empty.size(), "dims=[1,2,3,4,5,6,7,8]");
  EXPECT_TRUE(from_text<Outer>(text).ok());
  text.replace(text.find("7,8]"), 4, "7,8,9]");
  EXPECT_FALSE(from_text<Outer>(text).ok());
}

// Any change of single bytes of a good text gives a value or a sentence, and what is accepted prints and reads back.
TEST(Record, HostileTextIsSurvived) {
  std::mt19937_64 rng(7);
  const std::string_view alphabet = "{}[]=, -0123456789aemx.\n";
  for (int round = 0; round < 3000; ++round) {
    std::string text = to_text(random_record(rng));
    for (uint64_t edits = 1 + rng() % 4; edits > 0; --edits) {
      const size_t at = rng() % text.size();
      if (rng() % 3 == 0) {
        text.erase(at, 1 + rng() % 5);
      } else {
        text.insert(at, 1, alphabet[rng() % alphabet.size()]);
      }
      if (text.empty()) break;
    }
    const auto r = from_text<Outer>(text);
    if (!r.ok()) {
      EXPECT_FALSE(r.error().message.empty());
    } else if (r->word.find_first_of("{}[]\n") == std::string::npos) {
      const auto again = from_text<Outer>(to_text(*r));
      ASSERT_TRUE(again.ok()) << text;
      EXPECT_EQ(to_text(*again), to_text(*r));
    }
  }
}

TEST(Record, HashIsTheSameEverywhere) {
  EXPECT_EQ(hash_text(""), 14695981039346656037ull);
  EXPECT_EQ(hash_text("a"), 0xaf63dc4c8601ec8cull);
}

TEST(DimsList, InsertEraseProductText) {
  Dims d{2, 3};
  d.insert(1, 7);
  EXPECT_EQ(d, (Dims{2, 7, 3}));
  d.insert(0, 1);
  EXPECT_EQ(d.to_string(), "1x2x7x3");
  EXPECT_EQ(d.product(), 42);
  d.erase(0);
  d.erase(2);
  EXPECT_EQ(d, (Dims{2, 7}));
  EXPECT_EQ(d.back(), 7);
  EXPECT_EQ(Dims{}.product(), 1);
  EXPECT_EQ(Dims{}.to_string(), "scalar");
  EXPECT_EQ((Dims{0, 5}).product(), 0);
  EXPECT_EQ(Dims::filled(20, 1).size(), kMaxRank);  // beyond: dropped
}

// Dense layouts name every place once, in the order they claim.
TEST(Layouts, DenseLayoutsAreBijections) {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 200; ++round) {
    Dims shape, order;
    const int rank = static_cast<int>(rng() % 6);
    for (int i = 0; i < rank; ++i) shape.push_back(1 + static_cast<int64_t>(rng() % 4)), order.push_back(i);
    for (int i = rank - 1; i > 0; --i) std::swap(order[i], order[static_cast<int>(rng() % static_cast<uint64_t>(i + 1))]);
    for (const Layout& layout : {row_major(shape), channels_last(shape), dense(shape, order)}) {
      std::vector<int> seen(static_cast<size_t>(shape.product()), 0);
      Dims at = Dims::filled(rank, 0);
      for (int64_t n = shape.product(); n > 0; --n) {
        int64_t place = layout.offset;
        for (int i = 0; i < rank; ++i) place += at[i] * layout.strides[i];
        ASSERT_GE(place, 0);
        ASSERT_LT(place, shape.product());
        ++seen[static_cast<size_t>(place)];
        for (int i = rank - 1; i >= 0 && ++at[i] == shape[i]; --i) at[i] = 0;
      }
      for (int count : seen) ASSERT_EQ(count, 1);
      EXPECT_TRUE(is_dense(shape, layout));
      EXPECT_EQ(extent(shape, layout), shape.product());
    }
    EXPECT_TRUE(is_row_major(shape, row_major(shape)));
    EXPECT_TRUE(is_channels_last(shape, channels_last(shape)));
  }
}

TEST(Layouts, NamesAndExtents) {
  const Dims shape{2, 3, 4, 5};
  EXPECT_EQ(name_of(shape, row_major(shape)), "nchw");
  EXPECT_EQ(name_of(shape, channels_last(shape)), "nhwc");
  Layout part = channels_last(shape);
  part.strides[3] = 6, part.strides[2] = 30, part.strides[0] = 120;
  EXPECT_EQ(name_of(shape, part), "nhwc+view");
  EXPECT_FALSE(is_dense(shape, part));
  EXPECT_EQ(extent(shape, part), 1 * 120 + 2 * 1 + 3 * 30 + 4 * 6 + 1);
  EXPECT_EQ(extent({2, 0}, row_major({2, 0})), 0);
  Layout reversed = row_major({4});
  reversed.strides[0] = -1, reversed.offset = 3;
  EXPECT_EQ(extent({4}, reversed), 4);
  // An axis of one element may have any stride.
  Layout loose = row_major({1, 5});
  loose.strides[0] = 77;
  EXPECT_TRUE(is_row_major({1, 5}, loose));
}

}  // namespace
}  // namespace sparkle
