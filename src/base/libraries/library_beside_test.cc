// Libraries opened when they are needed: found, not there, without what is asked for. That they are found beside the code is
// tried where they are: pictures by the interface's tests, gRPC by the server's.
#include "base/libraries/library_beside.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

TEST(LibraryBeside, TheSystemsOwnIsFound) {
  const Result<void*> found = entry_of_library("libm.so.6", {"", "../lib"}, "cos");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(*found)(0.0), 1.0);
}

TEST(LibraryBeside, SaysWhichAndWhy) {
  const Result<void*> none = entry_of_library("libsparkle_nowhere.so.9", {""}, "door");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().reason, Reason::file_unreadable);
  EXPECT_NE(none.error().message.find("libsparkle_nowhere.so.9 does not load ("), std::string::npos) << none.error().message;
  EXPECT_NE(none.error().message.find("No such file"), std::string::npos) << none.error().message;
  const Result<void*> old = entry_of_library("libm.so.6", {}, "sparkle_no_such_door");
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().message, "libm.so.6 does not load (it is of another version)");
}

}  // namespace
}  // namespace sparkle
