#include "vision/pictures/tiled.h"

#include <algorithm>
#include <cstring>

#include "base/system/out_of_memory.h"
#include "report/float_type.h"

namespace sparkle {
namespace {

// Tiles along one axis: the last is moved inwards so that all have one size.
int count_tiles(int64_t size, int tile, int overlap) {
  if (size <= tile) return 1;
  const int64_t stride = tile - 2 * overlap;
  return static_cast<int>(1 + (size - tile + stride - 1) / stride);
}

int64_t start_of(int index, int64_t size, int tile, int overlap) {
  return std::min<int64_t>(static_cast<int64_t>(index) * (tile - 2 * overlap), size - tile);
}

void copy_block(const HostTensor& from, int64_t from_y, int64_t from_x, const HostTensor& to, int64_t to_y, int64_t to_x,
                int64_t height, int64_t width) {
  const int64_t from_w = from.shape[3], to_w = to.shape[3];
  for (int64_t c = 0; c < from.shape[1]; ++c)
    for (int64_t y = 0; y < height; ++y)
      std::memcpy(to.data<float>() + (c * to.shape[2] + to_y + y) * to_w + to_x,
                  from.data<float>() + (c * from.shape[2] + from_y + y) * from_w + from_x,
                  static_cast<size_t>(width) * sizeof(float));
}

}  // namespace

Result<TiledPlan> plan_tiles(Session& session, const Dims& input, const TileOptions& options) {
  TiledPlan p;
  if (input.size() != 4 || session.outputs().size() != 1) return p;
  if (options.tile > 0 && (options.overlap < 0 || options.tile <= 2 * options.overlap))
    return Error{Reason::bad_usage, "A tile of " + std::to_string(options.tile) +
                                        " pixels must be more than twice the overlap of " + std::to_string(options.overlap) +
                                        "."};
  const auto side = [&](int64_t size) {
    return static_cast<int>(options.tile > 0 ? std::min<int64_t>(size, options.tile) : size);
  };
  p.tile_h = side(input[2]);
  p.tile_w = side(input[3]);
  p.down = count_tiles(input[2], p.tile_h, options.overlap);
  p.across = count_tiles(input[3], p.tile_w, options.overlap);
  SPARKLE_TRY(plan, session.prepare({HostTensor{session.inputs()[0].dtype, {1, input[1], p.tile_h, p.tile_w}, nullptr}}));
  p.plan = std::move(plan);
  const TensorDesc& out = p.plan->tensors[static_cast<size_t>(p.plan->outputs[0])].desc;
  if (!is_float(out.dtype) || out.shape.size() != 4 || out.shape[0] != 1 || out.shape[1] != input[1]) return p;
  const int64_t factor = out.shape[2] / p.tile_h;
  if (factor >= 2 && factor * p.tile_h == out.shape[2] && factor * p.tile_w == out.shape[3])
    p.factor = static_cast<int>(factor);
  return p;
}

Result<TiledRun> run_tiles(Session& session, const HostTensor& input, const TiledPlan& p, const TileOptions& options,
                           const std::function<void()>& done) {
  const int64_t height = input.shape[2], width = input.shape[3];
  const int64_t f = p.factor;
  TiledRun result;
  SPARKLE_TRY(whole, allocate_tensor(DType::f32, {1, input.shape[1], height * f, width * f}, "The enlarged picture"));
  result.output = std::move(whole);
  for (int row = 0; row < p.down; ++row)
    for (int column = 0; column < p.across; ++column) {
      const int64_t y = start_of(row, height, p.tile_h, options.overlap);
      const int64_t x = start_of(column, width, p.tile_w, options.overlap);
      HostTensor tile = input;
      if (p.tiles() > 1) {
        SPARKLE_TRY(cut, allocate_tensor(DType::f32, {1, input.shape[1], p.tile_h, p.tile_w}, "A tile"));
        tile = std::move(cut);
        copy_block(input, y, x, tile, 0, 0, p.tile_h, p.tile_w);
      }
      RunReport report;
      SPARKLE_TRY(typed, in_float_type(tile, session.inputs()[0].dtype));
      SPARKLE_TRY(outputs, session.run({typed}, &report));
      SPARKLE_TRY(enlarged, in_float_type(outputs[0], DType::f32));
      result.seconds += report.seconds;
      if (row == 0 && column == 0) result.first_seconds = report.seconds;
      // Towards a neighbour the overlap is left out; later tiles overwrite what earlier ones share with them.
      const int64_t top = row > 0 ? options.overlap : 0, left = column > 0 ? options.overlap : 0;
      copy_block(enlarged, top * f, left * f, result.output, (y + top) * f, (x + left) * f, (p.tile_h - top) * f,
                 (p.tile_w - left) * f);
      if (done) done();
    }
  return result;
}

}  // namespace sparkle
