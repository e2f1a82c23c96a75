#include "tests/app/json_keys.h"
#include "tests/app/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// Tests `sweep --auto`. A fake worker without torch has steps whose best recipe is known:
/// fake_worker.cpp says what a layer takes.
namespace {

using namespace tests;
using testing::HasSubstr;

class AutoSearchCommand : public CommandTest {
protected:
    Ran search(const std::string& modes, const std::vector<std::string>& more) const {
        const std::string step = " --model bert-base --layers 4 --hidden 512 --heads 8";
        return run(joined(words("sweep --auto " + modes + step), more), with_fake_worker());
    }
    Ran on_cpu(const std::string& modes, const std::vector<std::string>& more = {}) const {
        return search(modes, joined({"--device", "cpu", "--memory-limit", "64MiB"}, more));
    }
};

TEST_F(AutoSearchCommand, HasTheDocumentedKeysAndARowForEachMode) {
    const auto json = on_cpu("all", {"--json"}).json();
    EXPECT_EQ(keys_of(json), documented("auto search"));
    ASSERT_EQ(json["rows"].size(), 4u);
    for (const auto& row : json["rows"]) {
        EXPECT_EQ(keys_of(row), documented("auto search row"));
    }
    EXPECT_EQ(json["rows"][0]["mode"], "none");
    EXPECT_EQ(json["rows"][0]["recipe"], "original");
    EXPECT_EQ(json["rows"][0]["max_batch_size"], 4);
    EXPECT_EQ(json["measured_in_turn"], true);
}

/// Four layers: in-place GELU makes room for batch 5 at no cost, LayerNorm does not pay.
TEST_F(AutoSearchCommand, SmartLeavesOutWhatDoesNotPayAndFastCannot) {
    const auto rows = on_cpu("smart,fast", {"--json"}).json()["rows"];
    EXPECT_EQ(rows[1]["recipe"], "gelu=in_place");
    EXPECT_EQ(rows[1]["max_batch_size"], 5);
    EXPECT_GT(rows[1]["throughput_ratio"], 1.0);
    EXPECT_THAT(rows[1]["why"].get<std::string>(), HasSubstr("gelu=in_place in 4 of 4 layers"));
    EXPECT_EQ(rows[2]["recipe"], "original") << "all techniques together are slower";
    EXPECT_EQ(rows[2]["throughput_ratio"], 1.0);
    EXPECT_GT(rows[1]["tried_recipes"], rows[2]["tried_recipes"]);
}

TEST_F(AutoSearchCommand, CountsTheSequencesOfAllMicroBatches) {
    const nlohmann::json found = on_cpu("all", {"--accumulate", "3", "--json"}).json();
    for (const auto& row : found["rows"]) {
        if (row["recipe"].is_null()) continue;
        const double sequences = 3 * row["batch_size"].get<double>();
        EXPECT_NEAR(row["throughput_sequences_per_s"].get<double>(),
                    sequences * 1e9 / row["step_time_ns"].get<double>(), 1e-3)
            << row;
    }
}

TEST_F(AutoSearchCommand, SaysThatPredictionsNeedACalibration) {
    const auto row = on_cpu("predicted", {"--json"}).json()["rows"][1];
    EXPECT_EQ(row["recipe"], nullptr);
    EXPECT_THAT(row["why"].get<std::string>(), HasSubstr("sweep --calibrate"));
}

TEST_F(AutoSearchCommand, RunsAllModesOnAPredictedGpu) {
    const auto json = search("all", {"--device", "predict:t4", "--json"}).json();
    ASSERT_EQ(json["rows"].size(), 4u);
    EXPECT_EQ(json["measured_in_turn"], false);
    for (const auto& row : json["rows"]) EXPECT_GE(row["max_batch_size"], 1) << row;
    // The planner's search is exact under its model, and none of these is faster.
    const double best = json["rows"][3]["throughput_sequences_per_s"];
    EXPECT_GE(best * 1.01, json["rows"][2]["throughput_sequences_per_s"].get<double>());
}

TEST_F(AutoSearchCommand, PrintsATableAndWritesFiles) {
    const Ran ran = on_cpu("smart", {"-o", folder_ / "search.csv"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("from original to"));
    EXPECT_THAT(ran.out, HasSubstr("smart"));
    EXPECT_THAT(read_file(folder_ / "search.csv"), testing::StartsWith("mode,recipe,max_batch"));
    const Ran json = on_cpu("smart", {"-o", folder_ / "search.json", "--json"});
    EXPECT_EQ(nlohmann::json::parse(read_file(folder_ / "search.json"))["rows"].size(),
              json.json()["rows"].size());
}

TEST_F(AutoSearchCommand, SaysWhereNotEvenOneSequenceFits) {
    const auto rows =
        search("fast", {"--device", "cpu", "--memory-limit", "1MiB", "--json"}).json()["rows"];
    EXPECT_EQ(rows[0]["max_batch_size"], 0);
    EXPECT_EQ(rows[0]["throughput_sequences_per_s"], nullptr);
    EXPECT_THAT(rows[0]["why"].get<std::string>(), HasSubstr("Not even one sequence"));
    EXPECT_EQ(rows[1]["recipe"], nullptr);
    EXPECT_THAT(rows[1]["why"].get<std::string>(), HasSubstr("not even one sequence"));
}

TEST_F(AutoSearchCommand, ACardWithoutModelledTimesIsRefused) {
    expect_one_sentence(search("fast", {"--device", "predict:mi300x"}), 1, "no modelled times");
    expect_one_sentence(search("fast", {"--device", "predict:foo"}), 2, "foo");
}

TEST_F(AutoSearchCommand, RefusesWrongUsageInOneSentence) {
    expect_one_sentence(search("smart", {"--device", "cpu"}), 2, "--memory-limit");
    expect_one_sentence(on_cpu("clever"), 2, "not a mode of --auto");
    expect_one_sentence(on_cpu("smart", {"--batch", "8"}), 2, "leave --batch out");
    expect_one_sentence(on_cpu("smart", {"--recipe", "tempo"}), 2, "name the two");
    expect_one_sentence(on_cpu("smart", {"--recipe", "original,tempo@0-1"}), 2, "'@'");
    expect_one_sentence(on_cpu("smart", {"--recipe", "original,deepspeed-none"}), 2, "the same");
    expect_one_sentence(on_cpu("smart", {"-o", "out.txt"}), 2, "out.txt");
    expect_one_sentence(on_cpu("smart", {"--steps", "0"}), 2, "at least 1 step");
}

}  // namespace
