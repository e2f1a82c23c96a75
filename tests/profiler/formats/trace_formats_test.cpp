#include "profiler/formats/trace_formats.h"

#include "tests/profiler/trace/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace profiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::TemporaryFolder;

TEST(TracesIn, OrdersByNameWithoutExtension) {
    const TemporaryFolder folder;
    for (const char* name : {"tempo-packed.tscope", "tempo.tscope", "a.tscope.partial", "notes.txt",
                             "a.tscope.partial-wal"}) {
        std::ofstream(folder / name) << "x";
    }
    std::filesystem::create_directory(folder / "inside");
    std::ofstream(folder / "inside/b.tscope") << "x";
    std::vector<std::string> names;
    const auto paths = traces_in(folder.path()).value();
    for (const auto& path : paths) names.push_back(path.filename().string());
    EXPECT_THAT(names, ElementsAre("a.tscope.partial", "tempo.tscope", "tempo-packed.tscope"));
}

TEST(TracesIn, OfAFolderThatCannotBeReadIsAnError) {
    const TemporaryFolder folder;
    EXPECT_TRUE(traces_in(folder.path()).value().empty());
    const auto missing = traces_in(folder / "missing");
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().message, HasSubstr("missing cannot be read (No such file"));
    std::ofstream(folder / "file") << "x";
    EXPECT_FALSE(traces_in(folder / "file"));
}

}  // namespace
}  // namespace profiler
