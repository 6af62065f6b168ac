// Programs behind sums (Epilogue::post_op): which kernels have a place for one, said here for all families. Printed to GLSL
// they are compiled into the anchor's own shader; kernels that were compiled when Sparkle was built take none.
#pragma once

#include "families/values/epilogue.h"
#include "families/family.h"
#include "families/stage.h"

namespace sparkle {

// Beside the value that goes through it: so many addresses are left in what a GPU is pushed.
inline constexpr int kMostPostOpOperands = 4;

// Whether anchors on this device may have post-ops.
bool takes_post_ops(const Device& device);
// Whether a program can be one: computed in f32, few operands.
bool can_be_post_op(const PointwiseParams& program);
// Reason::none where the variant's kernel takes the stage with its post-op, or the stage has none.
Reason post_op_refusal(const Stage& stage, const Variant& variant, const Device& device);

// What Device::denylist knows a program by.
std::string post_op_name(const PointwiseParams& post_op);

// By how much the post-op's result may change where its first operand is off by `error`: for comparisons.
double post_op_slack(const PointwiseParams& post_op, std::span<const double> operands, double error);

}  // namespace sparkle
