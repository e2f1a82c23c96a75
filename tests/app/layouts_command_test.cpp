#include "tests/app/json_keys.h"
#include "tests/app/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

/// Tests `layouts`. A fake worker without torch makes up the times (fake_worker.cpp).
namespace {

using namespace tests;
using testing::HasSubstr;

class LayoutsCommand : public CommandTest {
protected:
    /// A small layer on the CPU, where `more` does not say otherwise.
    Ran layouts(const std::vector<std::string>& more) const {
        std::vector<std::string> arguments{"layouts"};
        for (const auto& [option, value] :
             {std::pair{"--device", "cpu"}, {"--hidden", "24"}, {"--heads", "3"}, {"--seq", "6"}}) {
            if (std::ranges::find(more, option) != more.end()) continue;
            arguments.insert(arguments.end(), {option, value});
        }
        return run(joined(arguments, more), with_fake_worker());
    }
};

TEST_F(LayoutsCommand, HasTheDocumentedKeysAndSumsThatFit) {
    const auto json = layouts({"--json", "--rounds", "7"}).json();
    EXPECT_EQ(keys_of(json), documented("layouts"));
    EXPECT_EQ(json["rounds"], 7);
    EXPECT_EQ(json["device_name"], "A processor of a test");
    int64_t time_ns = 0, best_ns = 0;
    for (const auto& row : json["rows"]) {
        EXPECT_EQ(keys_of(row), documented("layouts row"));
        time_ns += row["time_ns"].get<int64_t>() + row["copies_ns"].get<int64_t>();
        best_ns += row["best_ns"].get<int64_t>();
        EXPECT_GE(row["time_ns"], row["best_ns"]);
        EXPECT_GE(row["slowest_ns"], row["time_ns"]);
    }
    EXPECT_EQ(json["rows"].size(), 34u);
    EXPECT_EQ(json["time_ns"], time_ns);
    EXPECT_EQ(json["layout_free_ns"], best_ns);
    EXPECT_GE(json["torch_ns"], json["time_ns"]);
    EXPECT_GE(json["time_ns"], json["layout_free_ns"]);
    EXPECT_EQ(json["whole_layer_ns"], 1'000'000);
    EXPECT_EQ(json["torch_whole_layer_ns"], 2'000'000);
}

TEST_F(LayoutsCommand, PrintsATableAndWritesFiles) {
    for (const char* name : {"chart.svg", "chart.html"}) {
        const Ran ran = layouts({"--chart", folder_ / name, "-o", folder_ / "layouts.csv"});
        EXPECT_EQ(ran.exit_code, 0) << ran.err;
        EXPECT_THAT(ran.out, HasSubstr("The fastest orders take"));
        EXPECT_THAT(ran.out, HasSubstr("wrote " + (folder_ / name)));
        EXPECT_THAT(read_file(folder_ / name), HasSubstr("scores dQ"));
    }
    EXPECT_THAT(read_file(folder_ / "layouts.csv"), testing::StartsWith("op,class,phase,orders"));
}

TEST_F(LayoutsCommand, RefusesWrongUsageInOneSentence) {
    expect_one_sentence(layouts({"--rounds", "0"}), 2, "--rounds is 0");
    expect_one_sentence(layouts({"--device", "predict:t4"}), 2, "choose auto, cpu or cuda");
    expect_one_sentence(layouts({"-o", "out.txt"}), 2, "out.txt");
    expect_one_sentence(layouts({"--chart", "chart.gif"}), 2, "gif");
    expect_one_sentence(layouts({"--heads", "5"}), 2, "heads");
    expect_one_sentence(layouts({"--batch", "0"}), 2, "batch");
}

}  // namespace
