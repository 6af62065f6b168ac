#include "base/files/read_file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/folder_testing.h"
#include "base/files/mapped_file.h"

namespace sparkle {
namespace {

class ReadFile : public testing::FolderTest {
 protected:
  std::string written(const std::string& bytes) const {
    std::ofstream(path("file"), std::ios::binary) << bytes;
    return path("file");
  }
};

std::string why_not(const std::string& path, const FileKind& kind = {"list"}) {
  const auto bytes = read_file(path, kind);
  return bytes.ok() ? "read" : bytes.error().message;
}

TEST_F(ReadFile, GivesAllBytes) {
  for (const size_t size : {0u, 1u, 4095u, 4096u, 4097u, 300000u}) {
    std::string bytes(size, 'x');
    if (size > 2) bytes[size / 2] = '\0';
    EXPECT_EQ(*read_file(written(bytes), {}), bytes);
  }
  EXPECT_FALSE(read_file("/proc/self/stat", {})->empty());  // claims no bytes and has some
}

TEST_F(ReadFile, NamesWhatIsNoRegularFile) {
  EXPECT_EQ(why_not(folder_.string()),
            "The list '" + folder_.string() + "' cannot be read: it is a folder, not a regular file.");
  EXPECT_NE(why_not("/dev/zero").find("it is a device, not a regular file"), std::string::npos);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(why_not(path("pipe")).find("it is a pipe, not a regular file"), std::string::npos);
  EXPECT_NE(why_not(path("none")).find("No such file"), std::string::npos);
  EXPECT_NE(why_not(written("x") + std::string("\0y", 2)).find("a byte of value 0"), std::string::npos);
  for (const std::string& no_file : {folder_.string(), path("pipe"), std::string("/dev/zero"), path("none")})
    EXPECT_EQ(MappedFile::open(no_file).error().reason, Reason::file_unreadable) << no_file;
}

TEST_F(ReadFile, KeepsItsLimit) {
  const std::string file = written(std::string(100, 'x'));
  EXPECT_TRUE(read_file(file, {"list", 100}).ok());
  const auto refused = read_file(file, {"list", 99});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, Reason::size_overflow);
  EXPECT_NE(refused.error().message.find("larger than 99 bytes"), std::string::npos);
}

TEST_F(ReadFile, PipesWhereTheyMakeSense) {
  const FileKind kind{"list", 1000, true};
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(why_not(path("pipe"), kind).find("nothing is written into this pipe"), std::string::npos);  // and is not waited for
  for (const size_t size : {500u, 5000u}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::thread writer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const std::string bytes(size, 'x');
      EXPECT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(size));
      ::close(ends[1]);
    });
    const auto bytes = read_file("/proc/self/fd/" + std::to_string(ends[0]), kind);
    EXPECT_EQ(bytes.ok(), size < 1000) << size;
    writer.join();
    ::close(ends[0]);
  }
}

}  // namespace
}  // namespace sparkle
