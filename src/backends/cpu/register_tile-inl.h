// A tile of vectors that live in registers: kRows x kVectors of floats. Where vectors have a size an array of them would be as
// fast; SVE's have none and can be in no array and no class. So the vectors are parameters of a function, the tile has a
// reference to each, and whatever works on the tile is compiled into that function, where the references vanish
// (docs/decisions/0030-register-tile.md). Included once per CPU target by kernel files after simd.h.
#if defined(SPARKLE_REGISTER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_REGISTER_TILE_INL_H_
#undef SPARKLE_REGISTER_TILE_INL_H_
#else
#define SPARKLE_REGISTER_TILE_INL_H_
#endif

#include <cstdint>
#include <utility>

// Stands behind the parameters of a lambda: made for this target, compiled into its caller.
#undef SPARKLE_INLINED
#define SPARKLE_INLINED HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using Floats = hn::Vec<FloatTag>;
HWY_INLINE int64_t float_lanes() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

// f(0), f(1), ... f(kCount - 1), each a constant to the code that f becomes.
template <int kCount, class F>
HWY_INLINE void unrolled(const F& f) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>)
      SPARKLE_INLINED { (f(kIndex), ...); }(std::make_integer_sequence<int, kCount>());
}

template <int kIndex>
struct Register {
  Floats& vector;
};
template <int kIndex>
using FloatsOf = Floats;

template <int kRows, int kVectors, class Indices = std::make_integer_sequence<int, kRows * kVectors>>
class RegisterTile;

template <int kRows, int kVectors, int... kIndex>
class RegisterTile<kRows, kVectors, std::integer_sequence<int, kIndex...>> : Register<kIndex>... {
 public:
  // Calls f with a tile of zeros, which is gone when f returns.
  template <class F>
  static HWY_INLINE void with_zeros(const F& f) {
    with((static_cast<void>(kIndex), hn::Zero(FloatTag()))..., f);
  }

  // f(vector, r, v) for each vector, row after row; r and v are constants as those of unrolled().
  template <class F>
  HWY_INLINE void each(const F& f) const {
    (f(Register<kIndex>::vector, kIndex / kVectors, kIndex % kVectors), ...);
  }

  // f(row, r) for each row, which is a tile too.
  template <class F>
  HWY_INLINE void each_row(const F& f) const {
    [&]<int... kRow>(std::integer_sequence<int, kRow...>) SPARKLE_INLINED {
      (f(row<kRow>(std::make_integer_sequence<int, kVectors>()), kRow), ...);
    }(std::make_integer_sequence<int, kRows>());
  }

  // Each vector += the vector in its place in `other`.
  HWY_INLINE void add(RegisterTile other) const {
    ((Register<kIndex>::vector = hn::Add(Register<kIndex>::vector, other.Register<kIndex>::vector)), ...);
  }
  // Each vector += x * the vector in its place in `factors`.
  HWY_INLINE void add_products(Floats x, RegisterTile factors) const {
    ((Register<kIndex>::vector = hn::MulAdd(x, factors.Register<kIndex>::vector, Register<kIndex>::vector)), ...);
  }

 private:
  template <int, int, class>
  friend class RegisterTile;
  HWY_INLINE explicit RegisterTile(Register<kIndex>... registers) : Register<kIndex>(registers)... {}

  template <class F>
  static HWY_INLINE void with(FloatsOf<kIndex>... vectors, const F& f) {
    f(RegisterTile(Register<kIndex>{vectors}...));
  }
  template <int kRow, int... kVector>
  HWY_INLINE RegisterTile<1, kVectors> row(std::integer_sequence<int, kVector...>) const {
    return RegisterTile<1, kVectors>(Register<kVector>{Register<kRow * kVectors + kVector>::vector}...);
  }
};

#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
