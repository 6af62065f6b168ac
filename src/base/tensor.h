// Tensors as data: shape, type, layout in memory, and views of memory that somebody else owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dims.h"
#include "base/dtype.h"

namespace sparkle {

// Where the elements of a tensor lie: axis order, stride per axis and offset into the buffer. A slice, a part of a
// concatenation and a transposition are views: another Layout of the same buffer.
struct Layout {
  Dims order;          // logical axes, outermost first; channels-last of NCHW is {0,2,3,1}
  Dims strides;        // distance in elements between neighbours along each logical axis; may be 0 or negative
  int64_t offset = 0;  // elements from the start of the buffer to element (0,...,0)

  friend bool operator==(const Layout&, const Layout&) = default;
};

// Dense layouts of a shape: logical order (what ONNX files hold), channels last (NHWC), or any order of axes.
Layout row_major(const Dims& shape);
Layout channels_last(const Dims& shape);
Layout dense(const Dims& shape, const Dims& order);
// True where the elements fill their range without gaps in `order`.
bool is_dense(const Dims& shape, const Layout& layout);
bool is_row_major(const Dims& shape, const Layout& layout);
bool is_channels_last(const Dims& shape, const Layout& layout);
// "nchw", "nhwc" or the order as digits, with "+view" where the strides are not dense.
std::string name_of(const Dims& shape, const Layout& layout);
// Elements from the lowest to one past the highest touched, counted from the buffer's start.
int64_t extent(const Dims& shape, const Layout& layout);

// A tensor without memory.
struct TensorDesc {
  DType dtype = DType::f32;
  Dims shape;  // logical order, as the ONNX specification names the axes (N, C, spatial ...)
  Layout layout;

  int64_t elements() const { return shape.product(); }
  int64_t bytes() const { return elements() * size_of(dtype); }
};
TensorDesc dense_desc(DType dtype, const Dims& shape);

// Memory that somebody else owns, seen as a tensor. `data` is the start of the buffer; layout.offset is not yet added.
struct TensorView {
  std::byte* data = nullptr;
  TensorDesc desc;

  template <class T>
  T* at_origin() const {
    return reinterpret_cast<T*>(data) + desc.layout.offset;
  }
};

// A tensor in host memory, row-major, that owns its bytes (shared, never changed once shared).
struct HostTensor {
  DType dtype = DType::f32;
  Dims shape;
  std::shared_ptr<std::byte[]> bytes;

  static HostTensor zeros(DType dtype, const Dims& shape);
  static HostTensor uninitialized(DType dtype, const Dims& shape);
  template <class T>
  static HostTensor of(DType dtype, const Dims& shape, const std::vector<T>& values) {
    HostTensor t = zeros(dtype, shape);
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }
  int64_t elements() const { return shape.product(); }
  int64_t size_bytes() const { return elements() * size_of(dtype); }
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(bytes.get());
  }
  TensorView view() const { return {bytes.get(), dense_desc(dtype, shape)}; }
};

}  // namespace sparkle
