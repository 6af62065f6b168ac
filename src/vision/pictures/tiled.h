// Networks that map a picture to one an integer factor larger, run in overlapping tiles of one size: one plan, bounded memory.
#pragma once

#include <functional>

#include "run/session.h"

namespace sparkle {

struct TileOptions {
  int tile = 512;   // input pixels per side, overlap included; 0: never cut
  int overlap = 8;  // input pixels that neighbours share beyond their border; exact from half the receptive field on
};

struct TiledPlan {
  std::shared_ptr<const Plan> plan;  // of one tile
  int factor = 0;                    // 0: not a network that enlarges pictures
  int tile_w = 0, tile_h = 0, across = 0, down = 0;
  int tiles() const { return across * down; }
};

// Plans for a 1xCxHxW input (its shape alone). Errors: what planning says, bad_usage where the overlap leaves nothing of a
// tile.
Result<TiledPlan> plan_tiles(Session& session, const Dims& input, const TileOptions& options);

struct TiledRun {
  HostTensor output;
  double seconds = 0;  // sum of the runs
  double first_seconds = 0;
};
// `done` is called after each tile.
Result<TiledRun> run_tiles(Session& session, const HostTensor& input, const TiledPlan& plan, const TileOptions& options,
                           const std::function<void()>& done = {});

}  // namespace sparkle
