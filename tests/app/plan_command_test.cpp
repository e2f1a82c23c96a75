#include "models/config/recipe.h"
#include "tests/app/plan_traces.h"
#include "tests/app/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

using namespace tests;
using testing::AllOf;
using testing::HasSubstr;

using PlanWithWorker = CommandTest;

class PlanCommand : public CommandTest {
protected:
    PlanCommand() {
        write_plan_traces(folder_ / "traces", "original");
        write_plan_traces(folder_ / "traces", "tempo");
    }

    /// Runs `plan` on traces of the small model.
    Ran plan(const std::vector<std::string>& more) const {
        std::vector<std::string> arguments = plan_arguments(folder_ / "traces");
        if (std::find(more.begin(), more.end(), "--seq") != more.end()) {  // takes its place
            const auto seq = std::find(arguments.begin(), arguments.end(), "--seq");
            arguments.erase(seq, seq + 2);
        }
        return run(joined(arguments, more),
                   {.environment = {"XDG_CONFIG_HOME=" + (folder_ / "config")}});
    }

    void expect_failure(const std::vector<std::string>& more, int exit_code,
                        const std::string& part) const {
        expect_one_sentence(plan(more), exit_code, part);
    }
};

TEST_F(PlanCommand, MakesARowForEveryCell) {
    const auto json = plan({"--recipe", "original,tempo", "--gpu", "t4,v100-16gb,mi300x",
                            "--budget", "4GiB", "--json"})
                          .json();
    ASSERT_EQ(json["rows"].size(), 6U);
    for (const auto& row : json["rows"]) {
        EXPECT_EQ(row["status"], "ok") << row["reason"];
        EXPECT_EQ(row["batch_size"], row["max_batch_size"]);
        EXPECT_GT(row["peak_reserved_bytes"], 0);
        EXPECT_EQ(row["step_time_ns"].is_null(), row["gpu"] == "mi300x");
    }
    EXPECT_GT(json["rows"][3]["max_batch_size"], json["rows"][0]["max_batch_size"]);
    EXPECT_EQ(json["rows"][1]["setup"], "tempo-2022");
}

TEST_F(PlanCommand, MakesOneRowForACellThatIsGivenTwice) {
    const auto json = plan({"--recipe", "original,original", "--gpu", "t4,t4", "--json"}).json();
    EXPECT_EQ(json["rows"].size(), 1U);
}

TEST_F(PlanCommand, TakesTheNamesOfGpusInAnyCase) {
    EXPECT_EQ(plan({"--gpu", "T4", "--json"}).json()["rows"][0]["gpu"], "t4");
}

TEST_F(PlanCommand, OfAllRecipesHasARowForEachPreset) {
    const auto rows = plan({"--recipe", "all", "--gpu", "t4", "--json"}).json()["rows"];
    ASSERT_EQ(rows.size(), models::recipe_presets().size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i]["recipe"], std::string(models::recipe_presets()[i].name));
        EXPECT_EQ(rows[i]["status"] == "ok", rows[i]["reason"] == "");
    }
    EXPECT_EQ(rows[0]["status"], "ok");
}

TEST_F(PlanCommand, PrintsATableAndWhatWasAssumed) {
    const Ran ran = plan({"--gpu", "t4,a100-80gb", "--batch", "8"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("largest batch"), HasSubstr("a100-80gb"),
                               HasSubstr("Assumptions"), HasSubstr("CUDA context of 500"),
                               HasSubstr("are at batch 8."), HasSubstr("best TFLOPS")));
    EXPECT_THAT(ran.out, HasSubstr("\n  no embeddings and no head: --head mlm adds them\n"));
    const Ran one = plan({"--gpu", "t4"});
    EXPECT_THAT(one.out,
                AllOf(HasSubstr("optimizer_state"), HasSubstr("contraction"),
                      HasSubstr("= allocated"), HasSubstr("are at the largest batch that fits.")));
}

TEST_F(PlanCommand, OneImpossibleCellStopsNothing) {
    const Ran ran = plan({"--recipe", "original,flash", "--gpu", "t4", "--json"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    const auto rows = ran.json()["rows"];
    EXPECT_EQ(rows[0]["status"], "ok");
    EXPECT_EQ(rows[1]["status"], "not_supported");
    EXPECT_THAT(rows[1]["reason"].get<std::string>(), HasSubstr("capability 8.0"));
}

TEST_F(PlanCommand, WithoutAPossibleRowFailsWithTheReason) {
    expect_failure({"--recipe", "flash", "--gpu", "a100-80gb"}, 1, "no fp32 kernel");
    expect_failure({"--recipe", "flash", "--gpu", "t4"}, 1, "capability 8.0");
    for (const char* part : {"original: Batch 1 needs", "flash: attention=flash needs"}) {
        expect_failure({"--recipe", "original,flash", "--budget", "520MiB", "--gpu", "t4"}, 1,
                       part);
    }
    expect_failure({"--recipe", "flash", "--precision", "fp16", "--gpu", "t4"}, 1,
                   "capability 8.0");
    expect_failure({"--batch", "500000", "--gpu", "t4"}, 1, "2^31");
    expect_failure({"--budget", "520MiB", "--gpu", "t4"}, 1, "more than the budget has");
    expect_failure({"--budget", "300MiB", "--gpu", "t4"}, 1,
                   "Nothing is left for tensors: the CUDA context takes 500 MiB");
    // Another length was not traced.
    expect_failure({"--seq", "16", "--gpu", "t4"}, 1, "capture one into it");
}

TEST_F(PlanCommand, WritesItsRowsWhereNoneIsPossible) {
    expect_failure({"--recipe", "flash", "--gpu", "t4", "-o", folder_ / "plan.json"}, 1,
                   "capability 8.0");
    const auto row = nlohmann::json::parse(read_file(folder_ / "plan.json"))["rows"].at(0);
    EXPECT_EQ(row["status"], "not_supported");
    EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr("capability 8.0"));
    expect_failure({"--recipe", "flash", "--gpu", "t4", "-o", folder_ / "plan.csv"}, 1, "8.0");
    EXPECT_THAT(read_file(folder_ / "plan.csv"), HasSubstr("not_supported"));
}

TEST_F(PlanCommand, NamesTheRowsOfAnAssumptionAndWhyOthersAreImpossible) {
    const Ran ran =
        plan({"--recipe", "original,flash", "--gpu", "t4,v100-16gb,mi300x", "--batch", "8"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("\nWhy not\n  flash, t4: attention=flash needs compute"),
                               HasSubstr("  flash, mi300x: attention=flash has no fp32 kernel"),
                               HasSubstr("\n  mi300x: memory only"), HasSubstr("not supported\n"),
                               HasSubstr("  v100-16gb: PyTorch 2.11.0 does not run on v100-16gb")));
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line) && line != "Why not";) {
        EXPECT_LT(line.size(), 180U) << line;  // reasons stand below the table, not in a column
    }
}

TEST_F(PlanCommand, RefusesWrongUsageInOneSentence) {
    expect_failure({"--gpu", "rtx3080ti"}, 2, "rtx3090ti");
    expect_failure({"--gpu", "V100"}, 2, "did you mean v100-16gb, v100-32gb, v100-32gb-pcie?");
    expect_failure({"--gpu", "t4,"}, 2, "--gpu 't4,' has an empty item");
    expect_failure({"--precision", "fp32,,fp16"}, 2, "empty item");
    expect_failure({"--setup", "torch-9"}, 2, "torch-2.11");
    expect_failure({"--recipe", "temp"}, 2, "tempo");
    expect_failure({"--batch", "0"}, 2, "at least 1");
    expect_failure({"--zero", "2"}, 2, "--gpus");
    expect_failure({"--gpus", "4", "--zero", "4"}, 2, "0 to 3");
    expect_failure({"--gpus", "0"}, 2, "at least 1");
    expect_failure({"--gpus", "9223372036854775807"}, 2, "at most");
    expect_failure({"--alloc-conf", "per_process_memory_fraction:0.5"}, 2, "--budget");
    expect_failure({"--budget", "much"}, 2, "much");
    expect_failure({"--alloc-conf", "no_such:1"}, 2, "no_such");
    expect_failure({"-o", "plan.txt"}, 2, ".csv");
    expect_failure({"--seq", "32,x"}, 2, "'x'");
    expect_failure({"--head", "lm"}, 2, "has no head 'lm'");
    expect_failure({"--link", "44GB"}, 2, "--gpus");
    for (const char* option : {"--budget", "--link", "--alloc-conf", "-o"}) {
        expect_failure({option, ""}, 2, "empty");
    }
}

TEST_F(PlanCommand, ReadsTheUsersGpus) {
    const std::string config = folder_ / "config";
    std::filesystem::create_directories(config + "/temposcope");
    const std::string file = config + "/temposcope/gpus.json";
    std::ofstream(file) << R"({"sources": {"s": "mine"}, "gpus": [{"id": "mine"}]})";
    expect_failure({}, 1, "gpus.json, mine: the field 'name' is missing.");
    std::ofstream(file) << R"({"sources": {"s": "mine"}, "gpus": [{
        "id": "mine", "name": "Mine", "tier": "server", "compute_capability": "9.0",
        "memory_gib": {"value": 2, "source": "s"}, "usable_memory_gib": {"value": 2, "source": "s"},
        "bandwidth_gb_per_s": {"value": 1, "source": "s"},
        "fp32_tflops": {"value": 1, "source": "s"}, "sm_count": {"value": 1, "source": "s"},
        "l2_mib": {"value": 1, "source": "s"}}]})";
    const auto rows = plan({"--gpu", "mine", "--json"}).json()["rows"];
    EXPECT_EQ(rows[0]["gpu"], "mine");
    EXPECT_EQ(rows[0]["usable_bytes"], int64_t{2} << 30);
}

TEST_F(PlanCommand, WritesFiles) {
    EXPECT_EQ(plan({"--gpu", "t4", "-o", folder_ / "plan.csv"}).exit_code, 0);
    const std::vector<std::string> lines = lines_of(folder_ / "plan.csv");
    EXPECT_THAT(lines.at(0),
                AllOf(testing::StartsWith("model,head,recipe,gpu,setup,"),
                      HasSubstr(",best_throughput_sequences_per_s,best_model_tflops,gpus,"),
                      HasSubstr(",link_bytes_per_s,"), HasSubstr(",parameter_bytes,"),
                      HasSubstr(",cached_bytes,"), HasSubstr(",contraction_ns,")));
    EXPECT_THAT(lines.at(1), HasSubstr("t4"));
    const Ran ran = plan({"--gpu", "t4", "--json", "-o", folder_ / "plan.json"});
    EXPECT_EQ(nlohmann::json::parse(read_file(folder_ / "plan.json")), ran.json());
}

TEST_F(PlanWithWorker, SaysByItsExitCodeThatThisMachineRanOutOfMemory) {
    const std::vector<std::string> arguments{"plan", "--model", "bert-base", "--gpu", "t4"};
    for (const auto& ran :
         {run(arguments, with_fake_worker("out-of-memory")),
          run(joined(arguments, {"--auto"}), with_fake_worker("out-of-memory"))}) {
        expect_one_sentence(ran, 3, "There is not enough memory on this machine");
    }
}

TEST_F(PlanCommand, ZeroStagesAreNamedTerms) {
    const auto json = plan({"--gpu", "t4", "--gpus", "4", "--zero", "2", "--link", "44GB",
                            "--batch", "8", "--json"})
                          .json();
    EXPECT_EQ(json["gpus"], 4);
    EXPECT_EQ(json["link_bytes_per_s"], 44e9);
    EXPECT_THAT(json["rows"][0]["notes"].dump(), HasSubstr("GPUs linked at 44 GB/s"));
    const auto row = json["rows"][0];
    EXPECT_GT(row["terms"]["nccl_bytes"], 0);
    EXPECT_EQ(row["terms"]["reduce_bucket_bytes"], 25 << 20);
    EXPECT_GT(row["time_by_class"]["all_reduce_ns"], 0);
}

}  // namespace
