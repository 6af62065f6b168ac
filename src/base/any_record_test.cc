// Records of any type held by value: copies are deep, other types are refused, equality asks for the type too.
#include "base/any_record.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

struct ToyType : RecordType {
  template <class R>
  static const ToyType of;
};
template <class R>
inline constexpr ToyType ToyType::of = {record_type<R>()};

struct Sizes {
  int m = 1;
  std::string name = "tile";
  template <class V>
  void visit(V& v) {
    v("m", m), v("name", name);
  }
  friend bool operator==(const Sizes&, const Sizes&) = default;
};
struct Other {
  int m = 1;
  std::string name = "tile";
  template <class V>
  void visit(V& v) {
    v("m", m), v("name", name);
  }
  friend bool operator==(const Other&, const Other&) = default;
};

struct Toy : AnyRecord<ToyType> {
  Toy() = default;
  template <class R>
    requires(!std::derived_from<R, Toy>)
  Toy(R record) : AnyRecord(ToyType::of<R>, std::move(record)) {}
};

TEST(AnyRecord, CopiesAreDeep) {
  Toy a = Sizes{3, "wide"}, b = a;
  EXPECT_EQ(a, b);
  get<Sizes>(b).m = 4;
  EXPECT_EQ(get<Sizes>(a).m, 3);
  EXPECT_FALSE(a == b);
  a = b;
  EXPECT_EQ(a.text(), "m=4 name=wide");
  const Toy moved = std::move(a);
  EXPECT_EQ(moved, b);
}

TEST(AnyRecord, TypesAreToldApart) {
  Toy a = Sizes{}, b = Other{};
  EXPECT_EQ(a.text(), b.text());
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(holds<Sizes>(a) && !holds<Other>(a));
  EXPECT_EQ(get_if<Other>(&a), nullptr);
  EXPECT_THROW(get<Other>(a), std::bad_cast);
}

TEST(AnyRecord, NothingIsHeldAtFirst) {
  const Toy none;
  EXPECT_EQ(none, Toy());
  EXPECT_EQ(none.text(), "");
  EXPECT_FALSE(holds<Sizes>(none) || none == Toy(Sizes{}));
}

}  // namespace
}  // namespace sparkle
