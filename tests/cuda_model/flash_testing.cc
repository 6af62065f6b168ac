// What src/backends/cuda/kernels/attention/flash_testing.h promises.
#include "backends/cuda/kernels/attention/flash_testing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda_model/model.h"
#include "families/attention/attention_reference.h"
#include "families/attention/flash_tiles.h"
#include "families/loops/walk.h"
#include "families/values/element.h"

namespace sparkle::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// An operand [batches, heads, rows, columns] and the same in double precision, byte for byte in the same order.
struct Held {
  TensorDesc desc, wide;
  std::vector<std::byte> bytes, wide_bytes;

  Held() = default;
  Held(DType type, const Dims& shape, const Dims& shared, int gap, bool transposed) {
    Dims own = shape;
    for (int i = 0; i < shared.size(); ++i)
      if (shared[i]) own[i] = 1;
    Dims padded = own;
    padded[3] += gap;
    Layout layout = row_major(padded);
    if (transposed) {
      padded = {own[0], own[1], own[3], own[2] + gap};
      layout = row_major(padded);
      std::swap(layout.strides[2], layout.strides[3]);
    }
    for (int i = 0; i < shared.size(); ++i)
      if (shared[i]) layout.strides[i] = 0;
    desc = {type, shape, layout}, wide = desc;
    wide.dtype = is_float(type) ? DType::f64 : type;
    const auto elements = static_cast<size_t>(padded.product());
    bytes.assign(elements * static_cast<size_t>(size_of(type)), std::byte{0xff});
    wide_bytes.assign(elements * static_cast<size_t>(size_of(wide.dtype)), std::byte{0});
  }
  TensorView view() { return {wide_bytes.data(), wide}; }
  std::byte* at(const Dims& place) { return element_at(TensorView{bytes.data(), desc}, place); }
  // Stores a value as the type has it.
  void set(const Dims& place, double value) {
    store_element(desc.dtype, value, at(place));
    store_element(wide.dtype, load_element(desc.dtype, at(place)), element_at(view(), place));
  }
  template <class Draw>
  void fill(Draw&& draw) {
    for_each_index(desc.shape, [&](const Dims& place) { set(place, draw(place)); });
  }
};

bool in_chunks(const TensorDesc& d) {
  const int64_t run = 16 / size_of(d.dtype);
  const auto& s = d.layout.strides;
  return d.shape[3] % run == 0 && s[3] == 1 && s[0] % run == 0 && s[1] % run == 0 && s[2] % run == 0;
}

}  // namespace

std::string AttentionCase::text() const {
  return std::to_string(batches) + "x" + std::to_string(heads) + "/" + std::to_string(shared_heads) + " queries " +
         std::to_string(queries) + " keys " + std::to_string(keys) + " depth " + std::to_string(depth) + " columns " +
         std::to_string(columns) + " gap " + std::to_string(gap) + (transposed ? " transposed" : "") +
         (params.mask ? boolean_mask ? " bool" : " added" : "") + " mask keys " + std::to_string(mask_keys) +
         (special ? " special " : " ") + to_text(StageParams(params));
}

AttentionCase random_attention(std::mt19937& random, int size) {
  const auto pick = [&](int low, int high) { return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1)); };
  const auto chance = [&](int percent) { return pick(1, 100) <= percent; };
  AttentionCase c;
  c.batches = pick(1, 2), c.shared_heads = chance(30) ? 2 : 1, c.heads = c.shared_heads * pick(1, 2);
  c.queries = chance(20) ? 1 : pick(1, 150), c.keys = chance(15) ? pick(1, 8) : pick(1, 210);
  const int least = std::max(1, size / 2 + 1);
  c.depth = chance(50) ? size : pick(least, size), c.columns = chance(50) ? size : pick(1, size);
  if (chance(50)) c.depth = (c.depth + 7) / 8 * 8, c.columns = (c.columns + 7) / 8 * 8;
  c.gap = chance(30) ? pick(1, 3) : chance(30) ? 8 : 0, c.transposed = chance(20);
  c.special = chance(25), c.hides_rows = chance(30), c.shared_mask = chance(40);
  c.growth = chance(20) ? 0.5 : 0;
  AttentionParams& p = c.params;
  p.scale = (chance(10) ? -1 : 1) / std::sqrt(static_cast<double>(c.depth));
  if (chance(25)) p.softcap = 1.5;
  p.mask = chance(50), p.lengths = chance(30), c.boolean_mask = chance(50);
  c.mask_keys = chance(25) ? pick(1, c.keys) : c.keys;
  if (chance(40)) p.right = chance(50) ? 0 : pick(0, 70);
  if (chance(25)) p.left = pick(0, 70);
  p.offset = chance(40) ? pick(-20, 100) : 0;
  p.offset_from_length = p.lengths && chance(50);
  p.unseen_is_nan = chance(30);
  return c;
}

std::string run_in_model(const FlashKernel& of, const AttentionCase& c, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const auto one_in = [&](uint32_t count) { return random() % count == 0; };
  const AttentionParams& p = c.params;

  // Operands.
  const Dims none{0, 0}, shared{0, c.shared_heads > 1};
  const int heads = c.heads;
  Held q(of.type, {c.batches, heads, c.queries, c.depth}, none, c.gap, false);
  Held k(of.type, {c.batches, heads, c.keys, c.depth}, shared, c.gap, c.transposed);
  Held v(of.type, {c.batches, heads, c.keys, c.columns}, shared, c.gap, c.transposed);
  Held y(of.type, {c.batches, heads, c.queries, c.columns}, none, c.gap, c.transposed);
  Held mask(c.boolean_mask ? DType::boolean : of.type, {c.batches, heads, c.queries, c.mask_keys},
            Dims{c.shared_mask, c.shared_mask}, 0, c.transposed);
  q.fill([&](const Dims&) { return normal(random); });
  k.fill([&](const Dims& at) {
    return normal(random) + (c.growth > 0 && at[3] == 0 ? c.growth * static_cast<double>(at[2]) : 0);
  });
  v.fill([&](const Dims&) { return normal(random); });
  mask.fill([&](const Dims& at) {
    const bool hidden = one_in(4) || (c.hides_rows && at[2] % 3 == 1);
    if (c.boolean_mask) return hidden ? 0.0 : 1.0;
    if (c.special && one_in(200)) return one_in(2) ? kNan : kInfinity;
    return hidden ? -kInfinity : normal(random);
  });
  if (c.special) {
    q.set({0, 0, c.queries / 2, c.depth - 1}, kNan);
    k.set({c.batches - 1, heads - 1, c.keys / 2, 0}, kInfinity);
    k.set({0, 0, c.keys - 1, 0}, kNan);
  }
  std::vector<int64_t> lengths(static_cast<size_t>(c.batches * heads));
  for (int64_t& length : lengths) length = static_cast<int64_t>(random() % static_cast<uint32_t>(c.keys + 1));

  // The reference.
  std::vector<TensorView> in{q.view(), k.view(), v.view()};
  if (p.mask) in.push_back(mask.view());
  const TensorDesc lengths_desc = dense_desc(DType::i64, {c.batches, heads});
  if (p.lengths) in.push_back({reinterpret_cast<std::byte*>(lengths.data()), lengths_desc});
  const TensorView out = y.view();
  attention_reference(p, in, {&out, 1});

  // The record.
  AttentionRecord r;
  r.axes = 2, r.size[0] = divisor_of(c.batches), r.size[1] = divisor_of(heads);
  const auto give = [&](AttentionOperand o, Held& operand) {
    const TensorDesc& d = operand.desc;
    const auto stride = [&](int axis) { return static_cast<int32_t>(d.layout.strides[axis]); };
    r.at[o] = operand.bytes.data(), r.type[o] = static_cast<uint8_t>(d.dtype);
    r.batch_strides[0][o] = stride(0), r.batch_strides[1][o] = stride(1);
    r.row_strides[o] = stride(2), r.column_strides[o] = stride(3), r.in_chunks[o] = in_chunks(d);
  };
  give(kQueries, q), give(kKeys, k), give(kValues, v), give(kResult, y);
  if (p.mask) give(kMask, mask);
  if (p.lengths) r.at[kLengths] = lengths.data(), r.batch_strides[0][kLengths] = heads, r.batch_strides[1][kLengths] = 1;
  r.queries = divisor_of(c.queries), r.keys = c.keys, r.depth = c.depth, r.columns = c.columns, r.mask_keys = c.mask_keys;
  r.scale = static_cast<float>(p.scale), r.softcap = static_cast<float>(p.softcap);
  r.left = static_cast<int32_t>(p.left), r.right = static_cast<int32_t>(p.right), r.offset = static_cast<int32_t>(p.offset);
  r.offset_from_length = p.offset_from_length, r.unseen_is_nan = p.unseen_is_nan;
  const int blocks = (c.queries + of.queries - 1) / of.queries;
  r.blocks = divisor_of(blocks);
  r.is_linear = p.softcap <= 0 && (!p.mask || c.boolean_mask) && p.scale > 0;
  r.factor = static_cast<float>((r.is_linear ? p.scale : 1) * 1.4426950408889634);

  // The launch; no kernel touches what it was not given.
  const cuda_model::Kernel* kernel = cuda_model::find_kernel(of.name);
  if (kernel == nullptr) return "there is no kernel " + of.name;
  if (kernel->record_bytes != sizeof(r)) return "host and kernel disagree on the record";
  for (Held* o : {&q, &k, &v, &mask, &y}) cuda_model::allow_memory(o->bytes.data(), o->bytes.size());
  cuda_model::allow_memory(lengths.data(), lengths.size() * 8);
  cuda_model::Launch launch{
      {static_cast<uint32_t>(c.batches * heads * blocks)}, {static_cast<uint32_t>(of.threads)}, {}, 0, seed};
  launch.shared_bytes = static_cast<uint32_t>(of.matrices ? flash_shared_bytes(of.queries, of.size, p.mask)
                                                          : flash_fma_shared_bytes(of.size, c.depth, c.columns));
  launch.early = true;
  const std::string error = cuda_model::launch(*kernel, launch, &r);
  for (Held* o : {&q, &k, &v, &mask, &y}) cuda_model::forget_memory(o->bytes.data());
  cuda_model::forget_memory(lengths.data());
  if (!error.empty()) return error;

  // A score is a sum of `depth` products of about 1 in fp32, and its error moves weights as much; weights, as they are
  // multiplied, and results are rounded to the type.
  const double depth = c.depth, rounded = of.type == DType::f16 ? 0x1p-11 : of.type == DType::bf16 ? 0x1p-8 : 0x1p-24;
  const double score =
      6e-8 * ((depth + 8) * (std::abs(p.scale) * depth + 4) + 4 * depth * std::abs(p.scale) * c.growth * c.keys);
  const double weight = 2 * score + 1e-6 + 1e-7 * std::sqrt(c.keys) + 2.1 * rounded;
  double largest = 0;
  for_each_index(v.desc.shape, [&](const Dims& at) {
    largest = std::max(largest, std::abs(load_element(DType::f64, element_at(v.view(), at))));
  });
  std::string wrong;
  std::vector<std::byte> between = y.bytes;
  for_each_index(y.desc.shape, [&](const Dims& at) {
    const double got = load_element(of.type, y.at(at)), want = load_element(DType::f64, element_at(y.view(), at));
    const bool same = std::isnan(want) ? std::isnan(got) : std::abs(got - want) <= weight * largest;
    if (!same && wrong.empty())
      wrong = std::to_string(got) + " instead of " + std::to_string(want) + " at " + at.to_string() + ", off by more than " +
              std::to_string(weight * largest);
    std::fill_n(element_at(TensorView{between.data(), y.desc}, at), size_of(of.type), std::byte{0xff});
  });
  if (!wrong.empty()) return wrong;
  const bool clean = std::all_of(between.begin(), between.end(), [](std::byte b) { return b == std::byte{0xff}; });
  return clean ? "" : "wrote between the rows of its result";
}

}  // namespace sparkle::cuda
