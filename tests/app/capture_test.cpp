#include "models/config/recipe.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/app/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

/// Tests `capture` and `sweep` with a fake worker that has no torch: files and their names,
/// results, exit codes and Ctrl-C.
namespace {

using namespace tests;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Capture = CommandTest;
using Sweep = CommandTest;
using Doctor = CommandTest;

std::vector<std::string> small(const std::string& command, const std::string& output,
                               const std::string& recipes = "original") {
    return {command, "--model", "bert-base", "--layers", "1", "--recipe", recipes, "-o", output};
}

TEST_F(Capture, WritesOneFilePerRecipeIntoANewFolder) {
    const Ran ran =
        run(small("capture", folder_ / "new/out", "original,tempo-packed,gelu=in_place,masks=bit"),
            with_fake_worker("ok"));
    // "gelu=..." belongs to the recipe before it.
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_TRUE(std::filesystem::exists(folder_ / "new/out/original.tscope"));
    EXPECT_TRUE(
        std::filesystem::exists(folder_ / "new/out/tempo-packed,gelu=in_place,masks=bit.tscope"));
    EXPECT_THAT(ran.out, HasSubstr("wrote "));
    EXPECT_THAT(ran.out, HasSubstr("peak allocated"));
    EXPECT_THAT(ran.err, HasSubstr("original (1 of 2): warm-up 1 of 1"));
}

TEST_F(Capture, EndsWithTheCommandThatComesNext) {
    const std::string file = folder_ / "one.tscope", folder = folder_ / "out";
    for (const char* command : {"capture", "sweep"}) {
        const Ran one =
            run_well(joined(small(command, file), {"--overwrite"}), with_fake_worker("ok"));
        EXPECT_THAT(one.out, EndsWith("\nNext: temposcope info " + file + " --peak\n"));
    }
    const Ran two = run_well(small("capture", folder, "original,tempo"), with_fake_worker("ok"));
    EXPECT_THAT(two.out, EndsWith("\nNext: temposcope compare " + folder + " --by layer\n"));
    run_well({"compare", folder, "--by", "layer"});
}

TEST_F(Capture, WritesOneFileUnderAGivenName) {
    run_well(small("capture", folder_ / "one.tscope"), with_fake_worker("ok"));
    const auto trace = profiler::read_trace(folder_ / "one.tscope");
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->steps.size(), 3u);
}

/// Else the socket to the worker gets the number of a stream that is closed.
TEST_F(Capture, WorksWithoutStandardStreams) {
    for (const char* closed : {"exec 2>&-", "exec 0<&- 2>&-"}) {
        Surroundings surroundings = with_fake_worker("ok");
        surroundings.shell_setup = closed;
        auto arguments = small("capture", folder_ / "one.tscope");
        arguments.emplace_back("--overwrite");
        const Ran ran = run_well(arguments, surroundings);
        EXPECT_THAT(ran.out, HasSubstr("wrote "));
    }
    Surroundings surroundings = with_fake_worker("ok");
    surroundings.shell_setup = "exec 1>&-";
    const Ran ran = run(small("capture", folder_ / "two.tscope"), surroundings);
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr("could not be written"));
    EXPECT_TRUE(std::filesystem::exists(folder_ / "two.tscope"));
}

TEST_F(Capture, PassesTheWholeWorkloadOn) {
    const auto step = small("capture", folder_ / "one.tscope", "tempo,masks=bit");
    const std::string sizes = "--hidden 128 --heads 4 --batch 3 --seq 32 --vocab 1000 --steps 2";
    const std::string rest =
        " --dropout 0.2 --precision bf16 --seed 7 --padding random --head squad";
    run_well(joined(step, words(sizes + rest)), with_fake_worker("ok"));
    const auto trace = profiler::read_trace(folder_ / "one.tscope").value();
    const auto workload = nlohmann::json::parse(trace.text(trace.run().workload));
    EXPECT_EQ(trace.steps.size(), 2u);
    EXPECT_EQ(workload["model"]["hidden_size"], 128);
    EXPECT_EQ(workload["model"]["intermediate_size"], 512) << "four times the hidden size";
    EXPECT_EQ(workload["model"]["vocab_size"], 1000);
    EXPECT_EQ(workload["model"]["hidden_dropout_p"], 0.2);
    EXPECT_EQ(workload["model"]["attention_dropout_p"], 0.2) << "not given on its own";
    EXPECT_EQ(workload["recipe_name"], "tempo,masks=bit");
    EXPECT_EQ(workload["batch_size"], 3);
    EXPECT_EQ(workload["seq_len"], 32);
    EXPECT_EQ(workload["precision"], "bf16");
    EXPECT_EQ(workload["padding"], "random");
    EXPECT_EQ(workload["head"], "squad");
    EXPECT_EQ(workload["seed"], 7);
}

TEST_F(Capture, OfAllLeavesOutWhatTheDeviceCannotRun) {
    const auto arguments = small("capture", folder_ / "out", "all");
    const Ran ran = run_well(joined(arguments, {"--device", "cpu", "--steps", "1", "--json"}),
                             with_fake_worker("ok"));
    EXPECT_EQ(ran.json()["rows"].size(), models::recipe_presets().size() - 4);
    EXPECT_THAT(ran.err, HasSubstr("temposcope: flash is left out: attention=flash has no dropout "
                                   "on the CPU"));
    EXPECT_THAT(ran.err, HasSubstr("temposcope: flash-tempo is left out: "));
    EXPECT_THAT(ran.err, HasSubstr("temposcope: best is left out: "));
    EXPECT_THAT(ran.err, HasSubstr("temposcope: tempo-published is left out: "));
    EXPECT_TRUE(std::filesystem::exists(folder_ / "out/tempo.tscope"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out/flash.tscope"));
}

TEST_F(Capture, RefusesAnImpossibleRecipeAsWrongUsageOnEveryDevice) {
    for (const char* device : {"cpu", "cuda", "predict:rtx3090"}) {
        const auto arguments = small("capture", folder_ / "out", "original,flash");
        expect_one_sentence(run(joined(arguments, {"--device", device}), with_fake_worker("ok")), 2,
                            "attention=flash has no");
        EXPECT_FALSE(std::filesystem::exists(folder_ / "out")) << device;
    }
}

TEST_F(Capture, ThatFailsLeavesNoFolderThatItMade) {
    EXPECT_EQ(run(small("capture", folder_ / "new/out/"), with_fake_worker("dies")).exit_code, 1);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
    std::filesystem::create_directory(folder_ / "mine");
    const Ran ran = run(small("capture", folder_ / "mine/out"), with_fake_worker("dies"));
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr("temposcope: "));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "mine/out"));
    EXPECT_TRUE(std::filesystem::exists(folder_ / "mine"));
}

TEST_F(Capture, MakesTheFolderOfAFile) {
    const std::string file = folder_ / "new/deep/one.tscope";
    EXPECT_EQ(run(small("capture", file), with_fake_worker("dies")).exit_code, 1);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
    EXPECT_EQ(run(small("capture", file), with_fake_worker("ok")).exit_code, 0);
    EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(Capture, JsonHasARowPerRecipe) {
    const auto arguments = small("capture", folder_ / "out", "original,tempo");
    const auto rows = run(joined(arguments, {"--json"}), with_fake_worker("ok")).json()["rows"];
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["recipe"], "original");
    EXPECT_EQ(rows[1]["file"], folder_ / "out/tempo.tscope");
    EXPECT_EQ(rows[1]["peak_allocated_bytes"], 8000);
    EXPECT_EQ(rows[1]["loss"], 0.5);
}

TEST_F(Capture, RecipesTakeTurnsSoThatTheirStepsAreComparedInPairs) {
    const auto arguments = small("capture", folder_ / "out", "original,tempo");
    const Ran ran = run_well(joined(arguments, {"--steps", "6"}), with_fake_worker("turns"));
    EXPECT_THAT(ran.out, HasSubstr("in 6 pairs of steps)"));
    EXPECT_THAT(ran.out, HasSubstr("\n  tempo / original: 1.0"));
    const auto row = run({"compare", folder_ / "out", "--json"}).json()["rows"][1];
    EXPECT_NEAR(row["step_time_ratio"]["median"].get<double>(), 1.08, 0.005);
    EXPECT_EQ(row["step_time_ratio"]["pairs"], 6);
    const auto other = run({"compare", folder_ / "out", "--baseline", "tempo", "--json"}).json();
    EXPECT_EQ(other["baseline"], "tempo");
    EXPECT_NEAR(other["rows"][1]["step_time_ratio"]["median"].get<double>(), 1 / 1.08, 0.005);
}

TEST_F(Capture, ThreeStepsAreTooFewToTellADifferenceInSpeed) {
    const Ran ran =
        run_well(small("capture", folder_ / "out", "original,tempo"), with_fake_worker("turns"));
    EXPECT_THAT(ran.out, HasSubstr("(3 pairs of steps are too few to tell; "));
    EXPECT_THAT(ran.out, Not(HasSubstr("tempo / original")));
    const auto json = run({"compare", folder_ / "out", "--json"}).json();
    EXPECT_EQ(json["rows"][1]["step_time_ratio"]["pairs"], 3);
    EXPECT_THAT(json["sentence"].get<std::string>(), Not(HasSubstr("more time")));
}

TEST_F(Capture, ARecipeThatDoesNotFitBesideTheOthersIsMeasuredAfterThem) {
    const Ran ran =
        run_well(small("capture", folder_ / "out", "original,tempo"), with_fake_worker("large"));
    EXPECT_THAT(ran.err, HasSubstr("temposcope: The recipes do not fit into memory together"));
    EXPECT_THAT(ran.out, HasSubstr("(not measured alternately)"));
}

TEST_F(Capture, OutOfMemoryHasItsOwnExitCode) {
    const Ran ran =
        run(small("capture", folder_ / "one.tscope"), with_fake_worker("out-of-memory"));
    EXPECT_EQ(ran.exit_code, 3);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("temposcope: Out of memory: batch 8 does not fit (--batch).\n"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "one.tscope"));
}

TEST_F(Capture, ReportsAMissingWorkerInOneSentence) {
    const Ran ran = run(small("capture", folder_ / "one.tscope"),
                        {.environment = {"TEMPOSCOPE_WORKER=/nonexistent/worker"}});
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr("/nonexistent/worker"));
}

/// The worker needs a few descriptors of its own, with numbers above 9, before it is the worker.
TEST_F(Capture, SaysThatDescriptorsAreFew) {
    for (int limit = 6; limit <= 10; ++limit) {
        Surroundings surroundings = with_fake_worker("ok");
        surroundings.shell_setup = fmt::format("ulimit -n {}", limit);
        const Ran ran =
            run(joined(small("capture", folder_ / "one.tscope"), {"--overwrite"}), surroundings);
        EXPECT_EQ(ran.exit_code, 1) << limit << " descriptors";
        EXPECT_THAT(ran.err, HasSubstr("Too many open files; raise the limit (ulimit -n)"))
            << limit << " descriptors";
    }
}

TEST_F(Capture, SaysWhenTheLossIsNotANumber) {
    const Ran ran = run_well(small("capture", folder_ / "one.tscope"), with_fake_worker("nan"));
    EXPECT_THAT(ran.err, HasSubstr("is not a finite number from step 1 on"));
}

TEST_F(Capture, EndsOnCtrlCWithNothingUnderTheFinalName) {
    const Ran ran =
        run(small("capture", folder_ / "one.tscope"), with_fake_worker("slow"), [&](pid_t pid) {
            wait_for_worker(pid);
            kill(pid, SIGINT);
        });
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("cancelled"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "one.tscope"));
}

TEST_F(Capture, ASignalThatNohupIgnoresStaysIgnored) {
    Surroundings nohup = with_fake_worker("slow");
    nohup.shell_setup = "trap '' HUP";
    for (const char* command : {"capture", "sweep"}) {
        const Ran ran = run(small(command, folder_ / command), nohup, [&](pid_t pid) {
            wait_for_worker(pid);
            EXPECT_TRUE(is_ignored(pid, SIGHUP)) << command;
            kill(pid, SIGHUP);
            kill(pid, SIGINT);
        });
        EXPECT_EQ(ran.exit_code, 1) << ran.err;
        EXPECT_THAT(ran.err, HasSubstr("cancelled"));
    }
}

TEST_F(Sweep, ReportsTheLargestBatchThatTrained) {
    const auto arguments = small("sweep", folder_ / "sweep", "original,tempo");
    const Ran ran = run_well(arguments, with_fake_worker("ok"));
    EXPECT_THAT(ran.out, HasSubstr("largest batch"));
    // Nothing that was measured is lost unasked.
    const Ran again = run(arguments, with_fake_worker("ok"));
    EXPECT_EQ(again.exit_code, 2);
    EXPECT_THAT(again.err, HasSubstr("original.tscope exists already"));
    EXPECT_THAT(again.err, HasSubstr("(--overwrite)."));
    const auto rows =
        run(joined(arguments, {"--overwrite", "--json"}), with_fake_worker("ok")).json()["rows"];
    EXPECT_EQ(rows[0]["max_batch_size"], 1);
}

TEST_F(Doctor, ListsWhatTheWorkerFound) {
    const Ran table = run_well({"doctor"}, with_fake_worker("ok"));
    EXPECT_THAT(table.out, HasSubstr("Captures on the CPU can run here, and predictions"));
    const auto json = run({"doctor", "--json"}, with_fake_worker("ok")).json();
    EXPECT_EQ(json["can_capture"], true);
    bool found = false;
    for (const auto& row : json["rows"]) {
        if (row["name"] != "driver") continue;
        found = true;
        EXPECT_EQ(row["status"], "missing");
        EXPECT_EQ(row["remedy"], "Install one to measure on a GPU.");
    }
    EXPECT_TRUE(found);
}

TEST_F(Doctor, SaysHowToGetAMissingWorker) {
    const Surroundings none{.environment = {"TEMPOSCOPE_WORKER=/nonexistent/worker"}};
    const auto json = run({"doctor", "--json"}, none).json();
    EXPECT_EQ(json["can_capture"], false);
    EXPECT_THAT(run({"doctor"}, none).out, HasSubstr("TEMPOSCOPE_WORKER"));
}

}  // namespace
