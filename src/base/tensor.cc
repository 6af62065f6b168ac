#include "base/tensor.h"

#include <cstring>
#include <limits>
#include <new>

#include "base/system/huge_pages.h"
#include "base/system/out_of_memory.h"

namespace sparkle {

Layout dense(const Dims& shape, const Dims& order) {
  Layout layout;
  layout.order = order;
  layout.strides = Dims::filled(shape.size(), 0);
  int64_t step = 1;
  for (int i = order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    layout.strides[axis] = step;
    step *= shape[axis];
  }
  return layout;
}

Layout row_major(const Dims& shape) {
  Dims order;
  for (int i = 0; i < shape.size(); ++i) order.push_back(i);
  return dense(shape, order);
}

Layout channels_last(const Dims& shape) {
  if (shape.size() < 3) return row_major(shape);
  Dims order{0};
  for (int i = 2; i < shape.size(); ++i) order.push_back(i);
  order.push_back(1);
  return dense(shape, order);
}

namespace {

// Axes of size 1 may have any stride.
bool same_offsets(const Dims& shape, const Layout& a, const Layout& b) {
  for (int i = 0; i < shape.size(); ++i)
    if (shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}

}  // namespace

bool is_dense(const Dims& shape, const Layout& layout) { return same_offsets(shape, layout, dense(shape, layout.order)); }
bool is_row_major(const Dims& shape, const Layout& layout) { return same_offsets(shape, layout, row_major(shape)); }
bool is_channels_last(const Dims& shape, const Layout& layout) { return same_offsets(shape, layout, channels_last(shape)); }

std::string name_of(const Dims& shape, const Layout& layout) {
  std::string name;
  if (layout.order == row_major(shape).order) {
    name = shape.size() == 4 ? "nchw" : "row";
  } else if (layout.order == channels_last(shape).order) {
    name = shape.size() == 4 ? "nhwc" : "last";
  } else {
    for (int64_t axis : layout.order) name += static_cast<char>('0' + axis);
  }
  return is_dense(shape, layout) ? name : name + "+view";
}

int64_t extent(const Dims& shape, const Layout& layout) {
  int64_t highest = layout.offset;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    if (layout.strides[i] > 0) highest += (shape[i] - 1) * layout.strides[i];
  }
  return highest + 1;
}

TensorDesc dense_desc(DType dtype, const Dims& shape) { return {dtype, shape, row_major(shape)}; }

HostTensor HostTensor::uninitialized(DType dtype, const Dims& shape) {
  HostTensor t;
  t.dtype = dtype;
  t.shape = shape;
  // Some room behind the last element: whole-vector readers may look there.
  constexpr int64_t kRoom = 64;
  const auto wanted = tensor_bytes(dtype, shape);
  if (!wanted || *wanted > std::numeric_limits<int64_t>::max() - kRoom) throw std::bad_alloc();  // behind guard_memory()
  const auto bytes = static_cast<size_t>(*wanted + kRoom);
  constexpr std::align_val_t alignment{64};
  auto* memory = static_cast<std::byte*>(::operator new(bytes, alignment));
  prefer_huge_pages(memory, bytes);
  t.bytes = std::shared_ptr<std::byte[]>(memory, [](std::byte* p) { ::operator delete(p, std::align_val_t{64}); });
  return t;
}

HostTensor HostTensor::zeros(DType dtype, const Dims& shape) {
  HostTensor t = uninitialized(dtype, shape);
  std::memset(t.bytes.get(), 0, static_cast<size_t>(t.size_bytes()));
  return t;
}

}  // namespace sparkle
