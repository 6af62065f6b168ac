// Winograd's transforms of tiles of 2x2 or 4x4 outputs: one axis at a time, with the points of families/winograd. A tile has
// (kTile + 2)^2 points; what belongs to one point of all tiles is one operand of a product of matrices.
layout(constant_id = kTile_id) const int kTile = 2;
const int kPoints = kTile + 2;

// Tiles of an image's rows and columns, and of all images; the record is that of the convolution.
ivec2 tiles_of_image() { return (G.rows.zw + kTile - 1) / kTile; }
int all_tiles() { return G.rows.x * tiles_of_image().x * tiles_of_image().y; }
// Image, and the tile's first output pixel.
ivec3 place_of(int tile) {
  const ivec2 tiles = tiles_of_image();
  return ivec3(tile / (tiles.x * tiles.y), tile / tiles.y % tiles.x * kTile, tile % tiles.y * kTile);
}

// Inputs of a line to its points, in place.
void input_line(inout float x[6]) {
  if (kTile == 2) {
    const float a = x[2] - x[0], b = x[2] + x[1], c = x[2] - x[1], d = x[3] - x[1];
    x[0] = a, x[1] = b, x[2] = c, x[3] = d;
  } else {
    // a^2 of the pairs: 1/2 and 2.
    const float first = x[0] + x[4] - 2.5 * x[2], last = x[1] + x[5] - 2.5 * x[3];
    const float even = x[4] - 2.0 * x[2], odd = 0.70710678118654752 * (x[3] - 2.0 * x[1]);
    const float even2 = x[4] - 0.5 * x[2], odd2 = 1.41421356237309505 * (x[3] - 0.5 * x[1]);
    x[0] = first, x[1] = even + odd, x[2] = even - odd, x[3] = even2 + odd2, x[4] = even2 - odd2, x[5] = last;
  }
}
// Points of a line to its outputs, in place: output i is the sum over points of a^i times the product there.
void output_line(inout float m[6]) {
  const float even = m[1] + m[2], odd = m[1] - m[2];
  if (kTile == 2) {
    m[0] = m[0] + even;
    m[1] = odd + m[3];
  } else {
    const float even2 = m[3] + m[4], odd2 = m[3] - m[4], last = m[5];
    m[0] = m[0] + even + even2;
    m[1] = 0.70710678118654752 * odd + 1.41421356237309505 * odd2;
    m[2] = 0.5 * even + 2.0 * even2;
    m[3] = 0.35355339059327376 * odd + 2.82842712474619010 * odd2 + last;
  }
}
// The same along one axis of a square.
#define BOTH_AXES(line, square, first, second)                               \
  [[unroll]] for (int i_ = 0; i_ < first; ++i_) {                            \
    float v_[6];                                                             \
    [[unroll]] for (int j_ = 0; j_ < kPoints; ++j_) v_[j_] = square[i_][j_]; \
    line(v_);                                                                \
    [[unroll]] for (int j_ = 0; j_ < kPoints; ++j_) square[i_][j_] = v_[j_]; \
  }                                                                          \
  [[unroll]] for (int j_ = 0; j_ < second; ++j_) {                           \
    float v_[6];                                                             \
    [[unroll]] for (int i_ = 0; i_ < kPoints; ++i_) v_[i_] = square[i_][j_]; \
    line(v_);                                                                \
    [[unroll]] for (int i_ = 0; i_ < kPoints; ++i_) square[i_][j_] = v_[i_]; \
  }
