// Programs behind sums (Epilogue::tail): which kernels have a place for one, said here for all families. Printed to GLSL they
// are compiled into the anchor's own shader; kernels that were compiled when Sparkle was built take none.
#pragma once

#include "families/epilogue.h"
#include "families/family.h"
#include "families/stage.h"

namespace sparkle {

// Beside the value that goes through it: so many addresses are left in what a GPU is pushed.
inline constexpr int kMostTailOperands = 4;

// Whether anchors on this device may have tails.
bool takes_tails(const Device& device);
// Whether a program can be one: computed in f32, few operands.
bool can_be_tail(const PointwiseParams& program);
// Reason::none where the variant's kernel takes the stage with its tail, or the stage has none.
Reason tail_refusal(const Stage& stage, const Variant& variant, const Device& device);

// What Device::banned knows a program by.
std::string tail_name(const PointwiseParams& tail);

// By how much the tail's result may change where its first operand is off by `error`: for comparisons.
double tail_slack(const PointwiseParams& tail, std::span<const double> operands, double error);

}  // namespace sparkle
