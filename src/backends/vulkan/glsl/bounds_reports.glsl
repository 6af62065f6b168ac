// What a kernel finds in its data against its family's rules, for the host to read once the work is complete. As BoundsReports of
// bounds_reports.h: the first place is kept, and what lay there is among the last that were seen to be first.
const uint kMostSeen = 16;
struct BoundsReport {
  uint number;
  int low, high;  // the value there, 64 bits
};
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer BoundsReports {
  uint first, taken;
  BoundsReport seen[kMostSeen];
};

void report_bounds(BoundsReports to, uint number, int low, int high) {
  if (atomicMin(to.first, number) <= number) return;
  to.seen[atomicAdd(to.taken, 1) % kMostSeen] = BoundsReport(number, low, high);
}
