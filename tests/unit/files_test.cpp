// Files that are read and written: permissions, links, what is both an input and an output, byte order marks, hashes.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <stdexcept>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/file_log.hpp"
#include "base/gzip_buffer.hpp"
#include "base/output_file.hpp"
#include "base/sha256.hpp"
#include "base/yaml.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;
namespace fs = std::filesystem;

namespace {

/// A folder that is gone with this object.
class Folder {
public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "simsync-files-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the test");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// A file with that content.
  [[nodiscard]] std::string with(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(path_)) out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

private:
  fs::path path_;
};

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

unsigned mode(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 ? file.st_mode & 07777U : 0U;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a file that is written again keeps its permissions", "[base][file]") {
  const Folder folder;
  const std::string path = folder.with("a", "old");
  for (const unsigned bits : {0600U, 0664U, 0755U}) {
    REQUIRE(::chmod(path.c_str(), bits) == 0);
    write_file(path, "new");
    CHECK(mode(path) == bits);
  }
  CHECK(content(path) == "new");
  const mode_t mask = ::umask(027);
  write_file(folder.file("b"), "");
  ::umask(mask);
  CHECK(mode(folder.file("b")) == 0640U);
}

TEST_CASE("writing through symbolic links replaces what they lead to", "[base][file]") {
  const Folder folder;
  const std::string target = folder.with("target", "old");
  fs::create_symlink("target", folder.file("near"));
  fs::create_symlink(folder.file("near"), folder.file("far"));
  write_file(folder.file("far"), "new");
  CHECK(content(target) == "new");
  CHECK(fs::is_symlink(folder.file("near")));
  CHECK(fs::is_symlink(folder.file("far")));
  fs::create_symlink("later", folder.file("dangling"));
  write_file(folder.file("dangling"), "there");
  CHECK(content(folder.file("later")) == "there");
  CHECK(fs::is_symlink(folder.file("dangling")));
  fs::create_symlink("loop", folder.file("loop"));
  CHECK_THROWS_WITH(write_file(folder.file("loop"), ""), ContainsSubstring("Too many levels of symbolic links"));
}

TEST_CASE("what is not written to its end leaves nothing behind", "[base][file]") {
  const Folder folder;
  const std::string path = folder.with("a", "old");
  const auto fail = [](std::ostream& out) {
    out << "half";
    throw std::runtime_error("any");
  };
  CHECK_THROWS_WITH(write_file(path, fail), "any");
  expect_writable(path);
  expect_writable(folder.file("b"));
  CHECK(content(path) == "old");
  CHECK(folder.names() == Names{"a"});
  CHECK_THROWS_WITH(write_file("/dev/full", "x"), ContainsSubstring("/dev/full: error: cannot be written: No space"));
  CHECK_THROWS_WITH(GrowingFile("/dev/full", "x"), ContainsSubstring("No space left on device"));
}

TEST_CASE("what killed processes left behind is removed, what others still write is not", "[base][file]") {
  const Folder folder;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  REQUIRE(::waitpid(gone, nullptr, 0) == gone);
  fs::create_directory(folder.file("below"));
  write_file(folder.file(".a.csv." + std::to_string(gone) + "-7.part"), "half");
  write_file(folder.file("below/.b." + std::to_string(gone) + "-0.part"), "half");
  const std::vector<std::string> kept{".a.csv." + std::to_string(::getpid()) + "-7.part", ".a.part", ".b.x-1.part",
                                      ".c." + std::to_string(gone) + "-.part", "a." + std::to_string(gone) + "-7.part",
                                      "below"};
  for (const std::string& name : kept)
    if (name != "below") write_file(folder.file(name), "kept");
  remove_left_files(folder.file("."));
  CHECK(folder.names() == kept);
  CHECK(fs::is_empty(folder.file("below")));
}

TEST_CASE("a disk that is full leaves the old file", "[base][file]") {
  const Folder folder;
  const std::string path = folder.with("a", "old");
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { .rlim_cur = 4096, .rlim_max = before.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK_THROWS_WITH(write_file(path, std::string(1U << 20U, 'x')),
                    ContainsSubstring("cannot be written: File too large"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(content(path) == "old");
  CHECK(folder.names() == Names{"a"});
}

TEST_CASE("a growing file goes through links and is there after every row", "[base][file]") {
  const Folder folder;
  const std::string target = folder.with("target", "old");
  fs::create_symlink("target", folder.file("link"));
  GrowingFile file(folder.file("link"), "head\n");
  file.append("row\n");
  CHECK(content(target) == "head\nrow\n");
  CHECK(fs::is_symlink(folder.file("link")));
}

TEST_CASE("no file is an input and an output, by whatever path", "[base][file]") {
  const Folder folder;
  const std::string input = folder.with("input", "text");
  fs::create_symlink("input", folder.file("link"));
  fs::create_hard_link(input, folder.file("other"));
  const std::string roundabout = "../" + fs::path(input).parent_path().filename().string() + "/./input";
  for (const std::string& name : Names{"input", "link", "other", roundabout}) {
    INFO(name);
    {
      FileLog log;
      CHECK(read_file(input) == "text");
      CHECK_THROWS_WITH(log.add_output(folder.file(name), "--csv"),
                        ContainsSubstring("is an input of this command and cannot be its output (--csv)"));
      CHECK_THROWS_WITH(write_file(folder.file(name), "new"), ContainsSubstring("is an input of this command"));
    }
    FileLog log;
    log.add_output(folder.file(name), "--csv");
    CHECK_THROWS_WITH(read_file(input), ContainsSubstring("is an input of this command"));
    CHECK(read_output(input) == "text");
  }
  CHECK(content(input) == "text");
}

TEST_CASE("no two flags name one output", "[base][file]") {
  const Folder folder;
  fs::create_symlink("new", folder.file("link"));
  FileLog log;
  log.add_output(folder.file("new"), "--csv");
  log.add_output(folder.file("new"), "--csv");
  log.add_output(folder.file("another"), "--timeline");
  CHECK_THROWS_WITH(log.add_output(folder.file("./new"), "--timeline"),
                    ContainsSubstring("is the output of both --csv and --timeline"));
  CHECK_THROWS_WITH(log.add_output(folder.file("link"), "--timeline"), ContainsSubstring("is the output of both"));
  log.add_output("/dev/null", "--csv");
  log.add_output("/dev/null", "--timeline");
}

TEST_CASE("what was read is noted once with its hash", "[base][file]") {
  const Folder folder;
  const std::string input = folder.with("input", "abc");
  fs::create_symlink("input", folder.file("link"));
  FileLog log;
  (void)read_file(folder.file("link"));
  (void)read_file(input);
  REQUIRE(log.inputs().size() == 1);
  CHECK(log.inputs().front().path == fs::canonical(input).string());
  CHECK(log.inputs().front().sha256 == sha256("abc"));
}

TEST_CASE("SHA-256 of the examples of FIPS 180-4", "[base]") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("tables and YAML may begin with a byte order mark and end lines with CR LF", "[base][file]") {
  const Folder folder;
  const CsvTable table = CsvTable::load(folder.with("t.csv", "\xEF\xBB\xBFname,time_s\r\na,1.5\r\n"));
  CHECK(table.header() == Names{"name", "time_s"});
  CHECK(table.cell(0, "name") == "a");
  CHECK(table.number(0, "time_s") == 1.5);
  const auto document = yaml::Document::load(folder.with("m.yaml", "\xEF\xBB\xBFname: a\r\nother: b\r\n"));
  {
    auto fields = document.root().mapping();
    CHECK(fields.require("name").text() == "a");
    CHECK(fields.require("other").text() == "b");
  }
  document.finish();
}

TEST_CASE("compressed files are read piece by piece, unless they are made to exhaust memory", "[base][file]") {
  const Folder folder;
  const auto compressed = [&](const std::string& name, const std::string& piece, int times) {
    const gzFile file = gzopen(folder.file(name).c_str(), "wb");
    for (int i = 0; i < times; ++i) gzwrite(file, piece.data(), static_cast<unsigned>(piece.size()));
    gzclose(file);
    return folder.file(name);
  };
  const auto size_of = [](const std::string& path) {
    GzipBuffer buffer(path);
    std::istream stream(&buffer);
    stream.exceptions(std::ios::badbit);
    return stream.ignore(std::numeric_limits<std::streamsize>::max()).gcount();
  };
  const std::string mebibyte(1U << 20U, 'a');
  CHECK(size_of(compressed("small.gz", mebibyte, 64)) == 64 << 20);  // too small to be refused, at 1000 : 1
  CHECK_THROWS_WITH(size_of(compressed("bomb.gz", mebibyte, 65)),
                    ContainsSubstring("bomb.gz: it inflates to more than 250 times its size"));
  CHECK(size_of(folder.with("plain", "text")) == 4);
  // Blanks that a reader of JSON would keep, at a ratio that is no reason.
  CHECK(size_of(folder.with("blank", std::string(16U << 20U, ' '))) == 16 << 20);
  CHECK_THROWS_WITH(size_of(folder.with("blanks", std::string(17U << 20U, '\n'))),
                    ContainsSubstring("blanks: more than 16 MiB of blanks in a row"));
}
