// The networks of the zoo that have a file of their own.
#pragma once

#include "networks/network_builder.h"

namespace sparkle {

void replknet(NetworkBuilder& net, int64_t batch);
void tiny_detector(NetworkBuilder& net, int64_t batch);
void tiny_attention(NetworkBuilder& net, int64_t batch);

}  // namespace sparkle
