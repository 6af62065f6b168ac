// Where instances and rows of a product lie in memory; G stands for the record of the stage.
// Of numbers that are not negative: by constants that are powers of two, one shift or mask each.
int udiv(int a, int b) { return int(uint(a) / uint(b)); }
int umod(int a, int b) { return int(uint(a) % uint(b)); }

// Positions of an instance in each operand.
struct Instance {
  int x, w, y, r0, r1, channel, packed, number;
};
Instance instance_at(int index) {
  ivec4 at;
  uint outer = uint(index);
  [[unroll]] for (int i = 3; i > 0; --i) at[i] = int(fast_divmod(outer, G.instances_by[i - 1]));
  at.x = int(outer);
  const int number = ((at.x * G.instances.y + at.y) * G.instances.z + at.z) * G.instances.w + at.w;
  Instance r;
  r.x = at.x * G.x_instance.x + at.y * G.x_instance.y + at.z * G.x_instance.z + at.w * G.x_instance.w;
  r.w = at.x * G.w_instance.x + at.y * G.w_instance.y + at.z * G.w_instance.z + at.w * G.w_instance.w;
  r.y = at.x * G.y_instance.x + at.y * G.y_instance.y + at.z * G.y_instance.z + at.w * G.y_instance.w;
  r.r0 = at.x * G.r_instance[0].x + at.y * G.r_instance[0].y + at.z * G.r_instance[0].z + at.w * G.r_instance[0].w;
  r.r1 = at.x * G.r_instance[1].x + at.y * G.r_instance[1].y + at.z * G.r_instance[1].z + at.w * G.r_instance[1].w;
  r.packed = at.x * G.packed_instance.x + at.y * G.packed_instance.y + at.z * G.packed_instance.z + at.w * G.packed_instance.w;
  r.channel = number * G.channel_instance;
  r.number = number;
  return r;
}

// Row m as output pixel n,d,h,w.
ivec4 pixel_of(int m) {
  ivec4 p;
  uint outer = uint(m);
  [[unroll]] for (int i = 3; i > 0; --i) p[i] = int(fast_divmod(outer, G.rows_by[i - 1]));
  p.x = int(outer);
  return p;
}
// Where the tile of a workgroup begins, if a tile has so many rows and columns; beyond the last row for workgroups without one.
// Those of the same rows follow each other along the grid's x and y.
ivec2 tile_origin(int rows, int columns) {
  const int tile = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x), across = (G.n + columns - 1) / columns;
  return ivec2(udiv(tile, across) * rows, umod(tile, across) * columns);
}
int dot4(ivec4 a, ivec4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
