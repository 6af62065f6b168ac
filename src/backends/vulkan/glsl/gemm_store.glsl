// Sums on their way out, four filters of a row at a time: finished, or as they are where workgroups share them.
struct Row {
  ivec4 pixel;
  int to;
};
Row row_at_end(int m, Instance at, int part, int index) {
  Row row;
  row.pixel = pixel_of(m);
  row.to = kPartial ? partial_at(part, index, m) : at.y + dot4(row.pixel, G.y_pitch);
  return row;
}
void store_four(Row row, Instance at, int n, vec4 sums) {
  if (kPartial) {
    if (n < G.n) Vec4s(push.y).v[(row.to + n) >> 2] = sums;
  } else if (kStoreVectors) {
    if (n >= G.n) return;
    vec4 value;
    [[unroll]] for (int l = 0; l < 4; ++l) value[l] = finished(sums[l], at, row.pixel, n + l);
    Element4s(push.y).v[(row.to + n) >> 2] = ELEMENT4(value);
  } else {
    [[unroll]] for (int l = 0; l < 4; ++l)
      if (n + l < G.n) push.y.v[row.to + (n + l) * G.channel.y] = ELEMENT(finished(sums[l], at, row.pixel, n + l));
  }
}
