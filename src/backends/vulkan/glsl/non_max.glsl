// What the steps of non-maximum suppression share: how many boxes each task (a class of an image) has kept, then where its rows
// begin; the boxes it has kept; and a bit for each box that is out, 32 boxes of a thread to a word.
const uint kThreads = 256, kNone = 0xffffffffu;

// As NonMaxRecord of non_max.cc.
struct NonMaxRecord {
  uint tasks, classes, boxes, most, rows, words;
  uint kept, out_at;  // places in the workspace
  float overlap, threshold;
  int box[3], score[3], row[2];  // strides
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer NonMaxRecords { NonMaxRecord v; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint v[]; };

layout(push_constant, scalar) uniform Push {
  Floats boxes, scores;
  Ints rows;
  Words work;
  NonMaxRecords record;
} push;
#define R push.record.v
