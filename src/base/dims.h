// A short list of sizes, strides or axes held in place: tensors have at most eight axes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace sparkle {

inline constexpr int kMaxRank = 8;

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) {
    for (int64_t v : values) push_back(v);
  }
  explicit Dims(std::span<const int64_t> values) {
    for (int64_t v : values) push_back(v);
  }
  static Dims filled(int rank, int64_t value) {
    Dims d;
    for (int i = 0; i < rank; ++i) d.push_back(value);
    return d;
  }

  int size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  int64_t operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  int64_t back() const { return (*this)[rank_ - 1]; }
  // Values beyond kMaxRank are dropped: readers check ranks before they build a Dims.
  void push_back(int64_t v) {
    if (rank_ < kMaxRank) values_[static_cast<size_t>(rank_++)] = v;
  }
  void insert(int at, int64_t v) {
    push_back(v);
    for (int i = rank_ - 1; i > at; --i) std::swap((*this)[i], (*this)[i - 1]);
  }
  void erase(int at) {
    for (int i = at; i + 1 < rank_; ++i) (*this)[i] = (*this)[i + 1];
    if (rank_ > 0) values_[static_cast<size_t>(--rank_)] = 0;
  }
  int64_t* begin() { return values_.data(); }
  int64_t* end() { return values_.data() + rank_; }
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + rank_; }
  friend bool operator==(const Dims& a, const Dims& b) {
    return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin());
  }

  // Product of all values: the number of elements of a shape (1 for a scalar).
  int64_t product() const {
    int64_t p = 1;
    for (int64_t v : *this) p *= v;
    return p;
  }
  // "1x3x224x224"; "scalar" for rank 0.
  std::string to_string() const {
    if (rank_ == 0) return "scalar";
    std::string s;
    for (int i = 0; i < rank_; ++i) s += (i ? "x" : "") + std::to_string((*this)[i]);
    return s;
  }

 private:
  std::array<int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

}  // namespace sparkle
