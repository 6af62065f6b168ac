// What products of bytes on Tensor Cores need beside their operands.
#include <cstring>

#include "backends/cuda/kernels/integers/filters_record.h"
#include "backends/cuda/stages/products/integers.h"

namespace sparkle::cuda {
namespace {

constexpr int64_t kPadding = 16;
constexpr uint32_t kFlip = 0x80808080u;

// What rows of the right operand add up to: one number each, or (taps > 0) one for each rectangle of taps along h and w from
// the first to any, by rows of w: [h][w][row].
struct RowSums {
  int64_t rows = 0, h = 0, w = 0;  // taps; 0: all at once
  int64_t planes() const { return (h + 1) * (w + 1); }
  int64_t bytes() const { return 4 * rows * planes(); }
  int64_t whole() const { return 4 * rows * (planes() - 1); }  // where those of all taps begin
};

// Rows of the right operand, matrices one behind the other, as FilterStrides says; what they add up to lies from `sums` on.
struct PackedBytes {
  GemmSetup setup;
  int64_t offset, sums;
  RowSums table;
  uint8_t flip;

  void operator()(const std::byte* from, std::byte* to, Executor& executor) const {
    const FilterStrides& f = setup.filters;
    const GemmRecord& g = setup.record;
    const int64_t matrices = f.matrices[0] * f.matrices[1] * f.matrices[2] * f.matrices[3];
    parallel_for(executor, static_cast<int>(matrices * g.n), [&](int number, int) {
      int64_t origin = offset + number % g.n * f.filter, left = number / g.n;
      for (int i = 3; i >= 0; --i) {
        if (f.matrices[i] > 1) origin += left % f.matrices[i] * f.instance[i];
        left /= f.matrices[i];
      }
      auto* row = reinterpret_cast<uint8_t*>(to) + int64_t{number} * g.w_stride;
      std::memset(row, 0, static_cast<size_t>(g.w_stride));
      int32_t sum = 0;
      const auto sum_at = [&](int64_t h, int64_t w) -> int32_t& {
        return reinterpret_cast<int32_t*>(to + sums)[(h * (table.w + 1) + w) * table.rows + number];
      };
      if (table.h > 0) {
        for (int64_t h = 0; h <= table.h; ++h) sum_at(h, 0) = 0;
        for (int64_t w = 0; w <= table.w; ++w) sum_at(0, w) = 0;
      }
      for (int64_t t = 0; t < f.size[0]; ++t)
        for (int64_t r = 0; r < f.size[1]; ++r)
          for (int64_t s = 0; s < f.size[2]; ++s) {
            const int32_t before = sum;
            for (int64_t c = 0; c < f.size[3]; ++c) {
              const int64_t at = origin + t * f.strides[0] + r * f.strides[1] + s * f.strides[2] + c * f.strides[3];
              *row = static_cast<uint8_t>(static_cast<uint8_t>(from[at]) ^ flip);
              sum += static_cast<int8_t>(*row++);
            }
            if (table.h > 0) sum_at(r + 1, s + 1) = sum_at(r, s + 1) + sum_at(r + 1, s) - sum_at(r, s) + (sum - before);
          }
      if (table.h == 0) sum_at(0, 0) = sum;
    });
  }
};

// Whether some tap of some output lies outside of the image.
bool reaches_outside(const GemmRecord& g) {
  for (int axis = 1; axis < 3; ++axis) {
    const int32_t last =
        static_cast<int32_t>(g.rows_by[axis].size - 1) * g.stride[axis] - g.pad[axis] + (g.filter[axis] - 1) * g.dilation[axis];
    if (g.pad[axis] > 0 || last >= g.x_size[axis]) return true;
  }
  return false;
}

std::string key_of(const GemmSetup& setup, const TensorDesc& w, const RowSums& table) {
  const FilterStrides& f = setup.filters;
  std::string key = "cuda.bytes:" + std::string(name_of(w.dtype)) + std::to_string(setup.record.w_stride) + ":" +
                    w.shape.to_string() + "@" + w.layout.strides.to_string() + "+" + std::to_string(w.layout.offset) + ":";
  for (int i = 0; i < 4; ++i)
    key += std::to_string(f.matrices[i]) + "x" + std::to_string(f.instance[i]) + "," + std::to_string(f.size[i]) + "x" +
           std::to_string(f.strides[i]) + ",";
  return key + std::to_string(f.filter) + (table.h > 0 ? ":taps" : "");
}

FiltersRecord filters_record(const GemmSetup& setup, uint8_t flip, const RowSums& table, bool rows) {
  const FilterStrides& f = setup.filters;
  FiltersRecord r;
  r.flip = flip;
  r.taps_h = static_cast<int32_t>(table.h), r.taps_w = static_cast<int32_t>(table.w);
  r.n_by = divisor_of(setup.record.n);
  int64_t matrices = 1;
  for (size_t i = 0; i < 4; ++i) {
    matrices *= f.matrices[i];
    r.matrices[i] = divisor_of(f.matrices[i]), r.instance[i] = static_cast<int32_t>(f.matrices[i] > 1 ? f.instance[i] : 0);
    r.size[i] = divisor_of(f.size[i]), r.strides[i] = static_cast<int32_t>(f.strides[i]);
  }
  r.filter = static_cast<int32_t>(f.filter);
  r.k = static_cast<int32_t>(f.size[0] * f.size[1] * f.size[2] * f.size[3]), r.w_stride = setup.record.w_stride;
  r.rows = rows ? static_cast<uint32_t>(matrices * setup.record.n) : 0;
  return r;
}

}  // namespace

Status add_integer_operands(CudaKernel& kernel, KernelLaunch& product, GemmSetup& setup, size_t at, bool engine,
                            const Workshop& shop, uint32_t constants, int64_t& workspace) {
  const Stage& stage = kernel.stage;
  const auto& p = get<GemmParams>(stage.params);
  SPARKLE_CHECK(check_integer_stage(stage.inputs, stage.outputs[0], p.epilogue));
  const IntegerOperands io = integer_operands(p.epilogue);
  GemmRecord& g = setup.record;
  const TensorDesc &w = stage.inputs[1], &x_zero = stage.inputs[static_cast<size_t>(io.a_zero)];
  g.x_flip = !engine && stage.inputs[0].dtype == DType::u8 ? kFlip : 0;
  g.w_unsigned = w.dtype == DType::u8;
  const IntegerRange range = output_range(stage.outputs[0].dtype, p.epilogue);
  g.low = static_cast<int32_t>(range.low), g.high = static_cast<int32_t>(range.high);
  const auto bind = [&](size_t place, int operand, int64_t offset = 0) {
    product.addresses.push_back({at + place, operand, offset});
  };
  const auto stride = [&](int operand) { return filter_stride(stage.inputs[static_cast<size_t>(operand)]); };
  if (io.scale >= 0) bind(offsetof(GemmRecord, scale), io.scale), g.scale_stride = stride(io.scale);
  if (io.bias >= 0) bind(offsetof(GemmRecord, bias), io.bias), g.bias_stride = stride(io.bias);
  if (io.y_zero >= 0) bind(offsetof(GemmRecord, y_zero), io.y_zero);
  bind(offsetof(GemmRecord, w_zero), io.b_zero), g.w_zero_stride = stride(io.b_zero);
  bind(offsetof(GemmRecord, x_zero), io.a_zero);

  const int64_t sums = rounded_up(setup.w_elements, 16);
  RowSums table{setup.w_elements / g.w_stride};
  const bool taps = engine && p.loader == Loader::window && reaches_outside(g);
  if (taps) table.h = g.filter[1], table.w = g.filter[2], g.w_rows = static_cast<int32_t>(table.rows);
  const auto flip = static_cast<uint8_t>(g.w_unsigned ? 0x80 : 0);
  const bool packed = constants >> 1 & 1, padded = engine || (constants >> io.a_zero & 1);
  FiltersRecord r = filters_record(setup, flip, table, !packed);
  std::vector<KernelLaunch::Address> addresses;
  if (packed) {
    kernel.packings.push_back(
        {1, sums + table.bytes(), key_of(setup, w, table), PackedBytes{setup, w.layout.offset, sums, table, flip}});
  } else {
    addresses.insert(addresses.end(), {{offsetof(FiltersRecord, from), 1, 0},
                                       {offsetof(FiltersRecord, to), kWorkspace, workspace},
                                       {offsetof(FiltersRecord, sums), kWorkspace, workspace + sums}});
  }
  const int filters = packed ? 1 : kWorkspace;
  const int64_t from = packed ? 0 : workspace;
  bind(offsetof(GemmRecord, w), filters, from), bind(offsetof(GemmRecord, w_sums), filters, from + sums + table.whole());
  if (taps) bind(offsetof(GemmRecord, w_taps), filters, from + sums);
  if (!packed) workspace += rounded_up(sums + table.bytes(), 256);
  if (engine) {
    // Zeros are what it has for padding.
  } else if (padded) {
    const int64_t offset = x_zero.layout.offset;
    kernel.packings.push_back({io.a_zero, kPadding, "cuda.padding:" + std::to_string(offset),
                               [offset](const std::byte* from, std::byte* to, Executor&) {
                                 std::memset(to, static_cast<int>(from[offset]), static_cast<size_t>(kPadding));
                               }});
    bind(offsetof(GemmRecord, padding), io.a_zero);
  } else {
    bind(offsetof(GemmRecord, padding), kWorkspace, workspace);
    addresses.insert(addresses.end(), {{offsetof(FiltersRecord, x_zero), io.a_zero, 0},
                                       {offsetof(FiltersRecord, padding), kWorkspace, workspace}});
    workspace += 256;
  }
  if (packed && padded) return ok();
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_integer_filters", r, {std::max(1u, r.rows), 1, 1}, kFiltersThreads,
                                4 * kFiltersThreads));
  launch.addresses = std::move(addresses);
  kernel.launches.push_back(std::move(launch));
  return ok();
}

}  // namespace sparkle::cuda
