// What `check` found as a page for browsers.
#pragma once

#include "check/check.h"
#include "report/page/page.h"

namespace sparkle {

PageTarget check_page(const Verdict& verdict, const std::string& called);

}  // namespace sparkle
