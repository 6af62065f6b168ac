// Headers that most tests include, read once for all test programs (tests/CMakeLists.txt).
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "graph/graph.h"
#include "plan/plan.h"
