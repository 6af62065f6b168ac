#include "backends/cuda/stages/record_text.h"

#include <cstdio>
#include <string_view>

#include "backends/cuda/kernels/attention/attention_record.h"
#include "backends/cuda/kernels/gemm_halo_record.h"
#include "backends/cuda/kernels/gemm_one_output_record.h"
#include "backends/cuda/kernels/gemm_tma_record.h"
#include "backends/cuda/kernels/rows/rows_record.h"
#include "backends/cuda/kernels/windows/window_record.h"

namespace sparkle::cuda {
namespace {

class Fields {
 public:
  explicit Fields(const KernelLaunch& launch) : launch_(launch) {}

  template <class T>
  void add(const char* name, const T& now, const T& initial) {
    const std::string value = of(now);
    if (value.empty() || value == of(initial)) return;
    text += std::string("    ") + name + " = " + value + "\n";
  }

  std::string text;

 private:
  // Where in the record it lies tells what an address will be of.
  std::string address(const void* const& at) const {
    const auto place = static_cast<size_t>(reinterpret_cast<const std::byte*>(&at) - launch_.record.data());
    for (const KernelLaunch::Address& a : launch_.addresses) {
      if (a.at != place) continue;
      std::string where = a.operand == kWorkspace ? "workspace"
                          : a.operand == kReport  ? "report"
                                                  : "operand " + std::to_string(a.operand);
      return a.offset != 0 ? where + " + " + std::to_string(a.offset) + " bytes" : where;
    }
    return {};
  }

  template <class T>
  std::string of(const T& value) const {
    if constexpr (std::is_array_v<T>) {
      std::string list;
      for (const auto& element : value)
        if (const std::string one = of(element); !one.empty()) list += (list.empty() ? "" : " ") + one;
      return list;
    } else if constexpr (std::is_pointer_v<T>) {
      return address(reinterpret_cast<const void* const&>(value));
    } else if constexpr (std::is_same_v<T, Divisor>) {
      return std::to_string(value.size);
    } else if constexpr (std::is_enum_v<T>) {
      return std::to_string(static_cast<int>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      char number[32];
      std::snprintf(number, sizeof number, "%g", static_cast<double>(value));
      return number;
    } else {
      return std::to_string(value);
    }
  }

  const KernelLaunch& launch_;
};

#define FIELD(name) fields.add(#name, r.name, initial.name)

void add(Fields& fields, const GemmRecord& r) {
  const GemmRecord initial;
  FIELD(x), FIELD(w), FIELD(y), FIELD(scale), FIELD(bias), FIELD(residual), FIELD(padding), FIELD(partial), FIELD(m), FIELD(n),
      FIELD(k), FIELD(rows_by), FIELD(x_size), FIELD(x_strides), FIELD(x_channel), FIELD(y_strides), FIELD(y_channel),
      FIELD(residual_strides), FIELD(residual_channel), FIELD(filter), FIELD(stride), FIELD(dilation), FIELD(pad),
      FIELD(filter_by), FIELD(channels_by), FIELD(w_stride), FIELD(w_unrounded), FIELD(instances_by), FIELD(x_instance),
      FIELD(w_instance), FIELD(y_instance), FIELD(residual_instance), FIELD(channel_instance), FIELD(tiles_m), FIELD(tiles_n),
      FIELD(swath), FIELD(splits), FIELD(split_steps), FIELD(alpha), FIELD(a), FIELD(b), FIELD(activation), FIELD(before),
      FIELD(after), FIELD(y_type), FIELD(vectors), FIELD(x_flip), FIELD(w_unsigned), FIELD(x_zero), FIELD(w_zero),
      FIELD(y_zero), FIELD(w_sums), FIELD(w_taps), FIELD(w_rows), FIELD(scale_stride), FIELD(bias_stride), FIELD(w_zero_stride),
      FIELD(all_k), FIELD(low), FIELD(high);
}

void add(Fields& fields, const GemmTmaRecord& r) {
  const GemmTmaRecord initial;
  add(fields, r.gemm);
  FIELD(channel_steps), FIELD(x_instance), FIELD(w_instance), FIELD(boxes);
}

void add(Fields& fields, const GemmHaloRecord& r) {
  const GemmHaloRecord initial;
  add(fields, r.gemm);
  FIELD(channel_steps), FIELD(x_instance), FIELD(w_instance), FIELD(rows), FIELD(box_rows), FIELD(width_by),
      FIELD(tiles_of_image);
}

void add(Fields& fields, const GemmOneOutputRecord& r) {
  const GemmOneOutputRecord initial;
  add(fields, r.gemm);
  FIELD(w_strides), FIELD(channels), FIELD(count), FIELD(n_by), FIELD(m_by);
}

void add(Fields& fields, const AttentionRecord& r) {
  const AttentionRecord initial;
  FIELD(at), FIELD(axes), FIELD(size), FIELD(batch_strides), FIELD(row_strides), FIELD(column_strides), FIELD(type),
      FIELD(queries), FIELD(keys), FIELD(depth), FIELD(columns), FIELD(mask_keys), FIELD(scale), FIELD(softcap), FIELD(left),
      FIELD(right), FIELD(offset), FIELD(offset_from_length), FIELD(unseen_is_nan), FIELD(scores), FIELD(blocks),
      FIELD(in_chunks), FIELD(is_linear), FIELD(factor);
}

void add(Fields& fields, const RowsRecord& r) {
  const RowsRecord initial;
  FIELD(x), FIELD(scale), FIELD(bias), FIELD(y), FIELD(work), FIELD(rows), FIELD(elements), FIELD(lanes), FIELD(depth),
      FIELD(lanes_first), FIELD(parts), FIELD(part_length), FIELD(axes), FIELD(size), FIELD(strides), FIELD(type), FIELD(kind),
      FIELD(flags), FIELD(epsilon), FIELD(own);
}

void add(Fields& fields, const WindowRecord& r) {
  const WindowRecord initial;
  FIELD(x), FIELD(w), FIELD(y), FIELD(positions), FIELD(scale), FIELD(bias), FIELD(residual), FIELD(count), FIELD(channels),
      FIELD(d), FIELD(h), FIELD(w_size), FIELD(x_size), FIELD(x_strides), FIELD(y_strides), FIELD(i_strides), FIELD(x_channel),
      FIELD(y_channel), FIELD(i_channel), FIELD(filter), FIELD(stride), FIELD(dilation), FIELD(pad), FIELD(pad_end),
      FIELD(planes), FIELD(type), FIELD(kind), FIELD(count_pad), FIELD(power), FIELD(w_strides), FIELD(multiplier),
      FIELD(scale_stride), FIELD(bias_stride), FIELD(residual_strides), FIELD(residual_channel), FIELD(alpha), FIELD(a),
      FIELD(b), FIELD(activation), FIELD(before), FIELD(after);
}

#undef FIELD

template <class R>
void add_as(Fields& fields, const std::vector<std::byte>& record) {
  if (record.size() == sizeof(R)) add(fields, *reinterpret_cast<const R*>(record.data()));
}

// By the beginning of the kernel's name; the first that it begins with.
struct Printer {
  std::string_view kernel;
  void (*add)(Fields&, const std::vector<std::byte>&);
};
constexpr Printer kPrinters[] = {
    {"sparkle_gemm_wgmma_", add_as<GemmTmaRecord>},
    {"sparkle_gemm_halo_", add_as<GemmHaloRecord>},
    {"sparkle_gemm_one_", add_as<GemmOneOutputRecord>},
    {"sparkle_gemm_mma_", add_as<GemmRecord>},
    {"sparkle_gemm_fma_", add_as<GemmRecord>},
    {"sparkle_gemm_wmma_", add_as<GemmRecord>},
    {"sparkle_attention_", add_as<AttentionRecord>},
    {"sparkle_flash_", add_as<AttentionRecord>},
    {"sparkle_normalize_", add_as<RowsRecord>},
    {"sparkle_reduce_", add_as<RowsRecord>},
    {"sparkle_rotary_", add_as<RowsRecord>},
    {"sparkle_scan_", add_as<RowsRecord>},
    {"sparkle_softmax_", add_as<RowsRecord>},
    {"sparkle_top_k_", add_as<RowsRecord>},
    {"sparkle_depthwise_", add_as<WindowRecord>},
    {"sparkle_pool_", add_as<WindowRecord>},
};

}  // namespace

std::string record_text(const KernelLaunch& launch) {
  Fields fields(launch);
  for (const Printer& printer : kPrinters)
    if (launch.kernel.starts_with(printer.kernel)) {
      printer.add(fields, launch.record);
      break;
    }
  return fields.text + launch.maps;
}

}  // namespace sparkle::cuda
