// What src/backends/cuda/kernels/gemm_testing.h promises.
#include "backends/cuda/kernels/gemm_testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cuda/kernels/gemm_halo_record.h"
#include "backends/cuda/kernels/gemm_tma_record.h"
#include "base/half_floats.h"
#include "cuda_model/model.h"
#include "families/values/activation.h"
#include "families/values/element.h"
#include "families/values/narrow.h"

namespace sparkle::cuda {
namespace {

int bytes_of(Element type) {
  return type == Element::i8 || type == Element::u8 ? 1 : type == Element::f16 || type == Element::bf16 ? 2 : 4;
}
Element element_of(Operand operand, bool is_unsigned) {
  switch (operand) {
    case Operand::f16: return Element::f16;
    case Operand::bf16: return Element::bf16;
    case Operand::i8:
    case Operand::u8: return is_unsigned ? Element::u8 : Element::i8;
    default: return Element::f32;
  }
}
DType float8_of(Operand operand) { return operand == Operand::e4m3 ? DType::f8e4m3fn : DType::f8e5m2; }
double read(Element type, const std::vector<unsigned char>& from, size_t at) {
  const unsigned char* p = from.data() + at * static_cast<size_t>(bytes_of(type));
  uint16_t half = 0;
  float value = 0;
  int32_t integer = 0;
  switch (type) {
    case Element::i8: return static_cast<double>(static_cast<int8_t>(*p));
    case Element::u8: return static_cast<double>(*p);
    case Element::f16: std::memcpy(&half, p, 2); return static_cast<double>(half_to_float(half));
    case Element::bf16: std::memcpy(&half, p, 2); return static_cast<double>(bfloat16_to_float(half));
    case Element::i32: std::memcpy(&integer, p, 4); return integer;
    case Element::f32: break;
  }
  std::memcpy(&value, p, 4);
  return static_cast<double>(value);
}
void write(Element type, std::vector<unsigned char>& to, size_t at, double value) {
  unsigned char* p = to.data() + at * static_cast<size_t>(bytes_of(type));
  const auto real = static_cast<float>(value);
  const uint16_t half = type == Element::f16 ? float_to_half(real) : float_to_bfloat16(real);
  const auto integer = static_cast<int32_t>(value);
  if (bytes_of(type) == 1) *p = static_cast<unsigned char>(integer);
  if (bytes_of(type) == 2) std::memcpy(p, &half, 2);
  if (type == Element::f32) std::memcpy(p, &real, 4);
  if (type == Element::i32) std::memcpy(p, &integer, 4);
}
// As the hardware's conversion rounds, ties away from zero, or as the copying engine does, ties to even.
double as_tf32(double value, bool to_even) {
  uint32_t bits = 0;
  const auto real = static_cast<float>(value);
  std::memcpy(&bits, &real, 4);
  bits = (bits + (to_even ? 0xfffu + (bits >> 13 & 1) : 0x1000u)) & ~0x1fffu;
  float rounded = 0;
  std::memcpy(&rounded, &bits, 4);
  return static_cast<double>(rounded);
}
double unit_of(Element type) {  // of the rounding of what is stored, relative
  return type == Element::f16 ? 0x1p-11 : type == Element::bf16 ? 0x1p-8 : 0x1p-24;
}
cuda_model::MapType map_type(Operand operand) {
  using cuda_model::MapType;
  return operand == Operand::f16    ? MapType::f16
         : operand == Operand::bf16 ? MapType::bf16
         : operand == Operand::tf32 ? MapType::tf32
                                    : MapType::u8;
}
// Of a filter, as w lies.
int w_zero(const Convolution& v, int k) { return v.w_zero == 0 ? 0 : (v.w_zero + 3 * k) % 100 - 50; }
int multiple(int value, int of) { return (value + of - 1) / of * of; }

}  // namespace

std::string Convolution::text() const {
  const auto triple = [](const std::array<int, 3>& v) {
    return std::to_string(v[0]) + "x" + std::to_string(v[1]) + "x" + std::to_string(v[2]);
  };
  return "n" + std::to_string(n) + " g" + std::to_string(groups) + " c" + std::to_string(c) + " k" + std::to_string(k) +
         " size " + triple(size) + " filter " + triple(filter) + " stride " + triple(stride) + " dilation " + triple(dilation) +
         " pad " + triple(pad) + " out " + triple(out) + (planes ? " planes" : "") + " gaps " + std::to_string(gap_x) + "," +
         std::to_string(gap_y) + " activation " + std::to_string(activation) + " residuals " + std::to_string(before) + "+" +
         std::to_string(after) + " y " + std::to_string(static_cast<int>(y_type)) + " splits " + std::to_string(splits);
}

Convolution random_convolution(std::mt19937& random, int channels) {
  const auto pick = [&](int low, int high) { return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1)); };
  Convolution v;
  v.n = pick(1, 3), v.groups = pick(0, 3) == 0 ? pick(2, 3) : 1;
  v.c = pick(1, channels > 1 ? 5 : 20) * channels, v.k = pick(1, 90);
  if (pick(0, 2) == 0) v.c = 64, v.k = 8 * pick(1, 20);
  const int rank = pick(0, 4) == 0 ? 3 : 2;
  for (size_t axis = static_cast<size_t>(3 - rank); axis < 3; ++axis) {
    v.filter[axis] = pick(1, rank == 3 ? 2 : 4), v.stride[axis] = pick(1, 2), v.dilation[axis] = pick(1, 2);
    v.pad[axis] = pick(0, 2) - (pick(0, 9) == 0 ? 1 : 0);
    v.size[axis] = pick(v.filter[axis] * v.dilation[axis], rank == 3 ? 6 : 13);
    const int span = (v.filter[axis] - 1) * v.dilation[axis] + 1, end = pick(0, 2);
    v.out[axis] = std::max(1, (v.size[axis] + v.pad[axis] + end - span) / v.stride[axis] + 1);
  }
  v.gap_x = pick(0, 1) * channels, v.gap_y = pick(0, 1) * 3;
  v.scale = pick(0, 1), v.bias = pick(0, 1);
  const int residuals = pick(0, 2);
  v.before = pick(0, residuals), v.after = residuals - v.before;
  v.activation = pick(0, 1) ? pick(0, 14) : pick(0, 1);
  v.alpha = pick(0, 1) ? 1.0f : 0.75f, v.a = 0.2f, v.b = v.activation == 2 ? 1.5f : 0.6f;
  v.splits = pick(0, 2) == 0 ? pick(2, 4) : 1;
  v.swath = pick(1, 3);
  return v;
}

std::string run_in_model(const GemmVariant& variant, const Convolution& v, uint32_t seed) {
  const bool integers = is_integer(variant.operand), elements = variant.loader == GemmLoader::elements;
  const bool engine = variant.loader == GemmLoader::tma || variant.loader == GemmLoader::halo;
  const Element x_type = element_of(variant.operand, v.x_unsigned), w_type = element_of(variant.operand, false);
  const int element = operand_bytes(variant.operand), chunk = 16 / element;
  const bool float8 = is_float8(variant.operand);
  const auto read_factor = [&](Element type, const std::vector<unsigned char>& from, size_t at) {
    return float8 ? narrow::decode(float8_of(variant.operand), from[at]) : read(type, from, at);
  };
  const auto write_factor = [&](Element type, std::vector<unsigned char>& to, size_t at, double value) {
    if (float8) store_element(float8_of(variant.operand), value, reinterpret_cast<std::byte*>(to.data() + at));
    else write(type, to, at, value);
  };
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const auto draw = [&](Element type) {
    if (type == Element::i8) return static_cast<double>(static_cast<int>(random() % 256) - 128);
    if (type == Element::u8) return static_cast<double>(random() % 256);
    return v.positive ? std::abs(normal(random)) : normal(random);
  };

  // Operands.
  const int taps = v.filter[0] * v.filter[1] * v.filter[2], all_c = v.groups * v.c, all_k = v.groups * v.k;
  const int pixels_in = v.size[0] * v.size[1] * v.size[2], pixels_out = v.out[0] * v.out[1] * v.out[2];
  const int x_pixel = v.planes ? 1 : all_c + v.gap_x, x_channel = v.planes ? pixels_in : 1;
  const int y_pixel = v.planes ? 1 : all_k + v.gap_y, y_channel = v.planes ? pixels_out : 1;
  const int x_image = v.planes ? all_c * pixels_in : pixels_in * x_pixel,
            y_image = v.planes ? all_k * pixels_out : pixels_out * y_pixel;
  const auto nan_filled = [](size_t count, int bytes) {
    return std::vector<unsigned char>(count * static_cast<size_t>(bytes), 0xff);
  };
  std::vector<unsigned char> x = nan_filled(static_cast<size_t>(v.n * x_image), element);
  const auto x_at = [&](int image, int pixel, int c) {
    return static_cast<size_t>(image * x_image + pixel * x_pixel + c * x_channel);
  };
  for (int image = 0; image < v.n; ++image) {
    for (int pixel = 0; pixel < pixels_in; ++pixel) {
      for (int c = 0; c < all_c; ++c) write_factor(x_type, x, x_at(image, pixel, c), draw(x_type));
    }
  }
  const int c_padded = elements ? v.c : multiple(v.c, chunk), k_length = taps * c_padded, w_stride = multiple(k_length, chunk);
  std::vector<unsigned char> w(static_cast<size_t>(all_k * w_stride * element));
  std::vector<int32_t> w_sums(static_cast<size_t>(all_k)), tap_sums(static_cast<size_t>(taps * all_k));
  for (int k = 0; k < all_k; ++k) {
    for (int tap = 0; tap < taps; ++tap) {
      for (int c = 0; c < v.c; ++c) {
        const double value = draw(w_type);
        w_sums[static_cast<size_t>(k)] += static_cast<int32_t>(value);
        tap_sums[static_cast<size_t>(tap * all_k + k)] += static_cast<int32_t>(value);
        write_factor(w_type, w, static_cast<size_t>(k * w_stride + tap * c_padded + c),
                     variant.operand == Operand::tf32 ? as_tf32(value, engine) : value);
      }
    }
  }
  std::vector<float> scale(static_cast<size_t>(all_k)), bias(static_cast<size_t>(all_k));
  std::vector<int32_t> integer_bias(static_cast<size_t>(all_k));
  for (int k = 0; k < all_k; ++k) {
    const auto i = static_cast<size_t>(k);
    scale[i] = static_cast<float>(integers ? 1e-4 + 1e-3 * std::abs(normal(random)) : normal(random));
    bias[i] = static_cast<float>(normal(random));
    integer_bias[i] = static_cast<int32_t>(normal(random) * 1000);
  }
  const size_t y_elements = static_cast<size_t>(v.n * y_image);
  std::vector<unsigned char> y(y_elements * static_cast<size_t>(bytes_of(v.y_type)), 0xa5);
  std::vector<unsigned char> residual[2];
  for (auto& r : residual) {
    r.resize(y.size());
    for (size_t i = 0; i < y_elements && !integers; ++i) write(v.y_type, r, i, normal(random));
  }
  const std::vector<unsigned char> padding(16, static_cast<unsigned char>(v.x_zero));

  // Of all taps above and to the left of one.
  const int line = v.filter[2] + 1;
  std::vector<int32_t> w_taps(static_cast<size_t>((v.filter[1] + 1) * line * all_k));
  for (int r = 0; r < v.filter[1]; ++r) {
    for (int s = 0; s < v.filter[2]; ++s) {
      for (int k = 0; k < all_k; ++k) {
        const auto at = [&](int h, int w) -> int32_t& { return w_taps[static_cast<size_t>((h * line + w) * all_k + k)]; };
        at(r + 1, s + 1) =
            at(r, s + 1) + at(r + 1, s) - at(r, s) + tap_sums[static_cast<size_t>((r * v.filter[2] + s) * all_k + k)];
      }
    }
  }

  // The record.
  GemmRecord record;
  record.x = x.data(), record.w = w.data(), record.y = y.data();
  if (v.scale) record.scale = scale.data();
  std::vector<unsigned char> w_zeros(static_cast<size_t>(all_k)), y_zero(1, static_cast<unsigned char>(v.y_zero));
  for (int k = 0; k < all_k; ++k)
    w_zeros[static_cast<size_t>(k)] = static_cast<unsigned char>(w_zero(v, k) + (v.w_unsigned ? 128 : 0));
  if (integers) {
    if (v.bias) record.bias = integer_bias.data();
    record.padding = record.x_zero = padding.data();
    record.w_zero = w_zeros.data(), record.w_zero_stride = 1, record.w_unsigned = v.w_unsigned;
    record.w_sums = w_sums.data(), record.y_zero = y_zero.data();
    if (engine) record.w_taps = w_taps.data(), record.w_rows = all_k;
    else record.x_flip = v.x_unsigned ? 0x80808080u : 0;
    record.low = v.y_type == Element::u8 ? 0 : -128, record.high = v.y_type == Element::u8 ? 255 : 127;
  } else if (v.bias) {
    record.bias = bias.data();
  }
  for (int i = 0; i < v.before + v.after; ++i) record.residual[i] = residual[i].data();
  for (size_t axis = 0; axis < 3; ++axis) {
    record.rows_by[axis] = divisor_of(v.out[axis]);
    record.x_size[axis] = v.size[axis], record.filter[axis] = v.filter[axis], record.stride[axis] = v.stride[axis];
    record.dilation[axis] = v.dilation[axis], record.pad[axis] = v.pad[axis];
  }
  record.m = v.n * pixels_out, record.n = v.k, record.k = elements ? k_length : w_stride;
  const int x_strides[4] = {x_image, v.size[1] * v.size[2] * x_pixel, v.size[2] * x_pixel, x_pixel};
  const int y_strides[4] = {y_image, v.out[1] * v.out[2] * y_pixel, v.out[2] * y_pixel, y_pixel};
  for (int i = 0; i < 4; ++i) {
    record.x_strides[i] = x_strides[i], record.y_strides[i] = y_strides[i];
    record.residual_strides[0][i] = record.residual_strides[1][i] = y_strides[i];
  }
  record.x_channel = x_channel, record.y_channel = y_channel;
  record.residual_channel[0] = record.residual_channel[1] = y_channel;
  record.filter_by[0] = divisor_of(v.filter[1]), record.filter_by[1] = divisor_of(v.filter[2]);
  record.channels_by = divisor_of(c_padded);
  record.w_stride = w_stride;
  record.instances_by[2] = divisor_of(v.groups);
  record.x_instance[3] = v.c * x_channel, record.w_instance[3] = v.k * w_stride, record.y_instance[3] = v.k * y_channel;
  record.residual_instance[0][3] = record.residual_instance[1][3] = v.k * y_channel;
  record.channel_instance[3] = v.k;
  record.tiles_m = (record.m + variant.m - 1) / variant.m, record.tiles_n = (record.n + variant.n - 1) / variant.n;
  record.swath = v.swath;
  record.tiles_m = multiple(record.tiles_m, variant.cluster);
  const int steps =
      variant.loader == GemmLoader::tma ? taps * ((v.c + variant.k - 1) / variant.k) : (record.k + variant.k - 1) / variant.k;
  record.all_k = engine ? taps * v.c : steps * variant.k;
  record.split_steps = (steps + v.splits - 1) / v.splits;
  record.splits = (steps + record.split_steps - 1) / record.split_steps;
  const auto tiles = static_cast<size_t>(v.groups * record.tiles_m * record.tiles_n);
  std::vector<float> partial(record.splits > 1 ? tiles * static_cast<size_t>(record.splits * variant.m * variant.n) : 0, NAN);
  std::vector<uint32_t> counters(tiles);
  record.partial = partial.data(), record.counters = counters.data();
  record.alpha = v.alpha, record.a = v.a, record.b = v.b, record.activation = v.activation;
  record.before = v.before, record.after = v.after, record.y_type = v.y_type;
  record.vectors = !v.planes && v.k % 8 == 0 && (v.groups * v.k + v.gap_y) % 8 == 0;

  // The launch; no kernel touches what it was not given.
  std::vector<std::pair<const void*, size_t>> given = {{x.data(), x.size()}, {w.data(), w.size()}, {y.data(), y.size()}};
  given.insert(given.end(),
               {{scale.data(), scale.size() * 4}, {bias.data(), bias.size() * 4}, {w_sums.data(), w_sums.size() * 4}});
  given.insert(given.end(),
               {{integer_bias.data(), integer_bias.size() * 4}, {w_zeros.data(), w_zeros.size()}, {y_zero.data(), 1}});
  given.insert(given.end(), {{residual[0].data(), y.size()}, {residual[1].data(), y.size()}, {padding.data(), padding.size()}});
  given.emplace_back(w_taps.data(), w_taps.size() * 4);
  given.insert(given.end(), {{partial.data(), partial.size() * 4}, {counters.data(), counters.size() * 4}});
  for (const auto& [at, bytes] : given) {
    if (bytes > 0) cuda_model::allow_memory(at, bytes);
  }
  const cuda_model::Kernel* kernel = cuda_model::find_kernel(variant.kernel);
  if (kernel == nullptr) return std::string("there is no kernel ") + variant.kernel;
  cuda_model::Launch launch{
      {}, {static_cast<uint32_t>(variant.threads)}, {}, static_cast<uint32_t>(variant.shared_bytes), seed};
  launch.early = true;
  std::string error;
  if (variant.loader == GemmLoader::halo) {
    GemmHaloRecord halo;
    halo.gemm = record;
    const int width = v.out[2] + (v.filter[2] - 1) * v.dilation[2], rows = std::min(v.out[1], variant.m / width);
    const int box_rows = rows + (v.filter[1] - 1) * v.dilation[1];
    if (!halo_fits(width, rows, box_rows, (v.filter[1] - 1) * v.dilation[1] * width + (v.filter[2] - 1) * v.dilation[2]))
      return {};
    cuda_model::MapShape pixels, filters;
    pixels.type = filters.type = map_type(variant.operand);
    pixels.rank = 4, filters.rank = 3, pixels.swizzle = filters.swizzle = 128;
    pixels.address = x.data(), filters.address = w.data();
    const int x_sizes[] = {all_c, v.size[2], v.size[1], v.n}, x_strides_of[] = {1, x_pixel, v.size[2] * x_pixel, x_image};
    const int w_sizes[] = {c_padded, taps, all_k}, w_strides[] = {1, c_padded, w_stride};
    for (int i = 0; i < 4; ++i) {
      pixels.size[i] = static_cast<uint64_t>(x_sizes[i]), pixels.strides[i] = static_cast<uint64_t>(x_strides_of[i] * element);
      if (i == 3) break;
      filters.size[i] = static_cast<uint64_t>(w_sizes[i]), filters.strides[i] = static_cast<uint64_t>(w_strides[i] * element);
    }
    const int box[] = {variant.k, width, box_rows, 1}, w_box[] = {variant.k, 1, kHaloN};
    for (int i = 0; i < 4; ++i) pixels.box[i] = static_cast<uint32_t>(box[i]);
    for (int i = 0; i < 3; ++i) filters.box[i] = static_cast<uint32_t>(w_box[i]);
    for (auto [shape, map] : {std::pair(&pixels, &halo.x), std::pair(&filters, &halo.w)}) {
      const std::string refused = cuda_model::encode(*shape, *reinterpret_cast<cuda_model::TensorMap*>(map));
      if (!refused.empty()) return refused;
    }
    const int of_image = (v.out[1] + rows - 1) / rows;
    halo.channel_steps = (v.c + variant.k - 1) / variant.k, halo.x_instance = v.c, halo.w_instance = v.k;
    halo.rows = rows, halo.box_rows = box_rows, halo.width_by = divisor_of(width), halo.tiles_of_image = divisor_of(of_image);
    halo.gemm.tiles_m = v.n * of_image, halo.gemm.splits = 1;
    launch.grid.x = 1 + seed % 3;
    if (kernel->record_bytes != sizeof(halo)) return "host and kernel disagree on the record";
    error = cuda_model::launch(*kernel, launch, &halo);
  } else if (variant.loader == GemmLoader::tma) {
    GemmTmaRecord tma;
    tma.gemm = record;
    const auto unsigned_of = [&](int value) { return static_cast<uint64_t>(value); };
    cuda_model::MapShape pixels, filters;
    pixels.type = filters.type = map_type(variant.operand);
    pixels.rank = 4, pixels.address = x.data(), pixels.im2col = true, pixels.swizzle = filters.swizzle = 128;
    const int sizes[] = {all_c, v.size[2], v.size[1], v.n}, strides[] = {1, x_pixel, v.size[2] * x_pixel, x_image};
    for (int i = 0; i < 4; ++i) pixels.size[i] = unsigned_of(sizes[i]), pixels.strides[i] = unsigned_of(strides[i] * element);
    for (size_t i = 0; i < 2; ++i) {
      const size_t axis = 2 - i;
      pixels.lower[i] = -v.pad[axis];
      pixels.upper[i] = (v.out[axis] - 1) * v.stride[axis] + 1 - v.size[axis] - v.pad[axis];
      pixels.element_strides[i + 1] = static_cast<uint32_t>(v.stride[axis]);
    }
    pixels.channels = static_cast<uint32_t>(variant.k), pixels.pixels = static_cast<uint32_t>(variant.m);
    filters.rank = 3, filters.address = w.data();
    const int w_sizes[] = {c_padded, taps, all_k}, w_strides[] = {1, c_padded, w_stride};
    for (int i = 0; i < 3; ++i)
      filters.size[i] = unsigned_of(w_sizes[i]), filters.strides[i] = unsigned_of(w_strides[i] * element);
    filters.box[0] = pixels.channels, filters.box[1] = 1, filters.box[2] = static_cast<uint32_t>(variant.n / variant.cluster);
    // Outputs by the engine wherever it can.
    const int residuals = v.before + v.after, y_row = v.groups * v.k + v.gap_y;
    const int bytes = bytes_of(v.y_type), of_boxes = integers ? 1 : variant.operand == Operand::tf32 ? 4 : 2;
    tma.boxes = variant.m == kWgmmaM && bytes == of_boxes && !v.planes && all_k * bytes % 16 == 0 && y_row * bytes % 16 == 0 &&
                (v.groups == 1 || v.k * bytes % 128 == 0) && residuals <= (record.splits == 1 ? 1 : 0);
    cuda_model::MapShape outputs, added;
    outputs.type = added.type = bytes == 1   ? cuda_model::MapType::u8
                                : bytes == 2 ? cuda_model::MapType::u16
                                             : cuda_model::MapType::f32;
    outputs.swizzle = added.swizzle = 128;
    outputs.rank = 2, outputs.address = y.data(), added.rank = 3, added.address = residual[0].data();
    outputs.size[0] = added.size[0] = unsigned_of(all_k), outputs.size[1] = added.size[2] = unsigned_of(record.m);
    outputs.strides[1] = added.strides[1] = added.strides[2] = unsigned_of(bytes * y_row), added.size[1] = 1;
    outputs.box[0] = added.box[0] = static_cast<uint32_t>(128 / bytes), outputs.box[1] = kBoxRows, added.box[1] = 1,
    added.box[2] = kWgmmaM;
    for (auto [shape, map] : {std::pair(&outputs, &tma.y), std::pair(&added, &tma.residual)}) {
      if (!tma.boxes) break;
      const std::string refused = cuda_model::encode(*shape, *reinterpret_cast<cuda_model::TensorMap*>(map));
      if (!refused.empty()) return refused;
    }
    for (auto [shape, map] : {std::pair(&pixels, &tma.x), std::pair(&filters, &tma.w)}) {
      const std::string refused = cuda_model::encode(*shape, *reinterpret_cast<cuda_model::TensorMap*>(map));
      if (!refused.empty()) return refused;
    }
    tma.channel_steps = (v.c + variant.k - 1) / variant.k;
    tma.x_instance = v.c, tma.w_instance = v.k;
    launch.cluster.x = static_cast<uint32_t>(variant.cluster);
    launch.grid.x = launch.cluster.x * (1 + seed % 3);
    if (kernel->record_bytes != sizeof(tma)) return "host and kernel disagree on the record";
    error = cuda_model::launch(*kernel, launch, &tma);
  } else {
    launch.grid = {static_cast<uint32_t>(record.tiles_m * record.tiles_n), static_cast<uint32_t>(record.splits),
                   static_cast<uint32_t>(v.groups)};
    if (kernel->record_bytes != sizeof(record)) return "host and kernel disagree on the record";
    error = cuda_model::launch(*kernel, launch, &record);
  }
  for (const auto& [at, bytes] : given) cuda_model::forget_memory(at);
  if (!error.empty()) return error;
  if (cuda_model::blocks_without_leave() > 0) return "blocks never let the kernels behind them begin";
  for (const uint32_t counter : counters) {
    if (counter != 0) return "a counter is not zero again";
  }

  // Every output in double precision, and the bytes between them.
  std::vector<bool> is_output(y_elements);
  for (int image = 0; image < v.n; ++image) {
    for (int pixel = 0; pixel < pixels_out; ++pixel) {
      const std::array<int, 3> at{pixel / (v.out[1] * v.out[2]), pixel / v.out[2] % v.out[1], pixel % v.out[2]};
      for (int k = 0; k < all_k; ++k) {
        double sum = 0, size = 0;
        for (int tap = 0; tap < taps; ++tap) {
          const std::array<int, 3> part{tap / (v.filter[1] * v.filter[2]), tap / v.filter[2] % v.filter[1], tap % v.filter[2]};
          int pixel_in = 0;
          bool is_inside = true;
          for (size_t axis = 0; axis < 3; ++axis) {
            const int place = at[axis] * v.stride[axis] - v.pad[axis] + part[axis] * v.dilation[axis];
            is_inside = is_inside && place >= 0 && place < v.size[axis];
            pixel_in = pixel_in * v.size[axis] + place;
          }
          for (int c = 0; c < v.c && is_inside; ++c) {
            double a = read_factor(x_type, x, x_at(image, pixel_in, k / v.k * v.c + c)) - v.x_zero;
            if (variant.operand == Operand::tf32) a = as_tf32(a, engine);
            const double b = read_factor(w_type, w, static_cast<size_t>(k * w_stride + tap * c_padded + c));
            const double product = a * (integers ? b - w_zero(v, k) : b);
            sum += product, size += std::abs(product);
          }
        }
        const auto ki = static_cast<size_t>(k);
        const auto place = static_cast<size_t>(image * y_image + pixel * y_pixel + k * y_channel);
        is_output[place] = true;
        double bound = 0;
        if (integers) {
          const auto whole = static_cast<int32_t>(sum) + (v.bias ? integer_bias[ki] : 0);
          sum = whole;
          if (v.scale) {
            const float low = static_cast<float>(record.low - v.y_zero), high = static_cast<float>(record.high - v.y_zero);
            sum = std::nearbyint(std::min(std::max(static_cast<float>(whole) * scale[ki], low), high)) + v.y_zero;
          }
        } else {
          const double factor = static_cast<double>(v.alpha) * (v.scale ? static_cast<double>(scale[ki]) : 1.0);
          sum *= factor, size *= std::abs(factor);
          if (v.bias) sum += static_cast<double>(bias[ki]), size += std::abs(static_cast<double>(bias[ki]));
          for (int i = 0; i < v.before; ++i) {
            const double r = read(v.y_type, residual[i], place);
            sum += r, size += std::abs(r);
          }
          bound = size * 0x1p-24 * (taps * v.c + 8);
          if (float8) bound += size * 0x1p-11;  // four instructions of a step keep 13 bits each
          const auto kind = static_cast<Activation>(v.activation);
          const double a = static_cast<double>(v.a), b = static_cast<double>(v.b), y0 = activate(kind, a, b, sum);
          bound = std::max(std::abs(activate(kind, a, b, sum + bound) - y0), std::abs(activate(kind, a, b, sum - bound) - y0)) +
                  bound;
          if (v.activation > 2) bound += 4e-6 * (std::abs(sum) + 1);  // of the functions' own
          sum = y0;
          for (int i = v.before; i < v.before + v.after; ++i) sum += read(v.y_type, residual[i], place);
          bound += (std::abs(sum) + bound + 1e-7) * unit_of(v.y_type) * 1.01 + (v.y_type == Element::f16 ? 0x1p-25 : 0);
        }
        const double got = read(v.y_type, y, place);
        if (!(std::abs(got - sum) <= bound)) {
          return "image " + std::to_string(image) + " pixel " + std::to_string(pixel) + " filter " + std::to_string(k) + ": " +
                 std::to_string(got) + " instead of " + std::to_string(sum) + " +- " + std::to_string(bound);
        }
      }
    }
  }
  for (size_t i = 0; i < y_elements; ++i) {
    if (is_output[i]) continue;
    for (int b = 0; b < bytes_of(v.y_type); ++b) {
      if (y[i * static_cast<size_t>(bytes_of(v.y_type)) + static_cast<size_t>(b)] != 0xa5)
        return "a gap between outputs was written";
    }
  }
  return {};
}

}  // namespace sparkle::cuda
