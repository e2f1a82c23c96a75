#include "profiler/analysis/step/step_report.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/app/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

/// Runs the whole pipeline with the real worker: commands, worker, libtorch, file and reports. The
/// shapes are small, so all tests take seconds.
namespace {

using namespace tests;
using testing::HasSubstr;

class RealWorker : public CommandTest {
protected:
    void SetUp() override {
        if (!std::filesystem::exists(TEMPOSCOPE_BINARY_DIR "/temposcope-worker")) {
            GTEST_SKIP() << "temposcope-worker is not built";
        }
    }
    std::vector<std::string> small(const std::string& command, const std::string& output,
                                   const std::vector<std::string>& more) const {
        const std::string step = " --model bert-base --layers 3 --hidden 64 --heads 2 --seq 37";
        return joined(joined(words(command + step + " --steps 2 -o"), {output}), more);
    }
};

TEST_F(RealWorker, LedgerOfAMiddleLayerEqualsItsClosedForm) {
    const std::string out = folder_ / "out";
    run_well(small("capture", out, {"--recipe", "original,tempo,tempo-packed", "--batch", "3"}));
    for (const char* recipe : {"original", "tempo", "tempo-packed"}) {
        const std::string file = out + "/" + recipe + ".tscope";
        const auto json =
            run({"info", file, "--ledger", "--scope", "encoder.layer.1", "--json"}).json();
        EXPECT_EQ(json["closed_form"]["equal"], true) << recipe << json["closed_form"];
        EXPECT_EQ(json["total_bytes"], json["closed_form"]["closed_form_bytes"]) << recipe;
        int64_t total = 0;
        for (const auto& row : json["rows"]) total += row["size_bytes"].get<int64_t>();
        EXPECT_EQ(total, json["total_bytes"]) << recipe;
    }
    const Ran table =
        run({"info", out + "/tempo.tscope", "--ledger", "--scope", "encoder.layer.1"});
    for (const char* tensor :
         {"hidden_states", "query", "attention_probs", "keep_mask", "branch_mask"}) {
        EXPECT_THAT(table.out, HasSubstr(tensor));
    }
    const auto comparison = run({"compare", out, "--json"}).json();
    EXPECT_EQ(comparison["rows"].size(), 3u);
    for (const auto& note : comparison["notes"]) {
        EXPECT_THAT(note.get<std::string>(), HasSubstr("machine was busy"));  // as tests make it
    }
    EXPECT_LT(comparison["rows"][2]["kept_bytes"], comparison["rows"][1]["kept_bytes"]);
    EXPECT_EQ(comparison["rows"][0]["loss"].is_number(), true);
}

/// Below 450 MB of address space the worker's libraries cannot be mapped; a little above, its first
/// allocations or threads fail. The words by which it says so are those of the C++ library.
TEST_F(RealWorker, SaysThatTheLimitOnMemoryIsTooSmall) {
    for (const char* limit : {"300000", "400000", "450000"}) {  // KiB
        const Surroundings little{.shell_setup = std::string("ulimit -v ") + limit};
        expect_one_sentence(run(small("capture", folder_ / "out.tscope", {}), little), 3, "memory");
        EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << limit;
    }
}

TEST_F(RealWorker, TrainsMicroBatches) {
    const std::string file = folder_ / "k.tscope";
    run_well(small("capture", file,
                   {"--batch", "2", "--accumulate", "3", "--head", "mlm", "--recipe", "tempo"}));
    const auto json = run({"info", file, "--json"}).json();
    EXPECT_EQ(json["gradient_accumulation_steps"], 3);
    EXPECT_EQ(json["closed_form"]["equal"], true);
    EXPECT_NEAR(json["throughput_sequences_per_s"].get<double>(),
                6e9 / json["step_time_ns"].get<double>(), 1e-3);
    EXPECT_THAT(run({"info", file}).out, HasSubstr("3 micro-batches of B=2 S=37"));
    const auto trace = profiler::read_trace(file).value();
    EXPECT_EQ(trace.phases.size(), 2U * (3 * 3 + 1));
}

TEST_F(RealWorker, TimesBenchmarks) {
    const auto rows_of = [](const std::string& benchmark) {
        return run_well(words("bench " + benchmark + " --device cpu --json")).json()["rows"];
    };
    for (const auto& row : rows_of("matmul --size 64 --precision fp32,bf16 --seconds 0.02")) {
        EXPECT_GT(row["model_tflops"], 0);
    }
    const std::string sizes = " --hidden 64 --heads 2 --seq 16 --batch 2";
    const auto layers = rows_of("layer --model bert-base,t5-base-decoder --seconds 0.02" + sizes);
    ASSERT_EQ(layers.size(), 4U);
    for (const auto& row : layers) EXPECT_EQ(row["status"], "ok") << row;
    const auto models =
        rows_of("model --model bert-base --layers 2 --accumulate 1,3 --steps 1" + sizes);
    ASSERT_EQ(models.size(), 2U);
    for (const auto& row : models) EXPECT_GT(row["time_ns"], 0) << row;
    EXPECT_GT(models[0]["peak_allocated_bytes"], 0);
    EXPECT_GE(models[1]["peak_allocated_bytes"], models[0]["peak_allocated_bytes"]);
}

TEST_F(RealWorker, FindsTheOrdersOfASmallLayer) {
    const std::string layer = "layouts --hidden 16 --heads 2 --seq 8 --batch 1 --rounds 1";
    const auto arguments = words(layer + " --device cpu --json --chart");
    const auto json = run_well(joined(arguments, {folder_ / "layouts.svg"})).json();
    EXPECT_EQ(json["rows"].size(), 34U);
    int64_t best_ns = 0;
    for (const auto& row : json["rows"]) {
        EXPECT_GT(row["time_ns"], 0) << row;
        EXPECT_LE(row["best_ns"], row["time_ns"]) << row;
        EXPECT_LE(row["best_ns"], row["torch_ns"]) << row;
        best_ns += row["best_ns"].get<int64_t>();
    }
    // The path may take torch's orders too.
    EXPECT_LE(best_ns, json["time_ns"]);
    EXPECT_LE(json["time_ns"], json["torch_ns"]);
    EXPECT_GT(json["whole_layer_ns"], 0);
    EXPECT_GT(json["torch_whole_layer_ns"], 0);
    EXPECT_THAT(read_file(folder_ / "layouts.svg"), HasSubstr("</svg>"));
}

TEST_F(RealWorker, SearchesRunRealStepsAndPredictOthers) {
    const auto rows_of = [&](const std::string& modes_and_device) {
        const std::string step = " --model bert-base --layers 2 --hidden 64 --heads 2 --seq 32";
        return run_well(words("sweep --json --auto " + modes_and_device + step)).json()["rows"];
    };
    const auto measured = rows_of("fast,smart --device cpu --memory-limit 8MiB --steps 1");
    ASSERT_EQ(measured.size(), 3U);
    const auto predicted = rows_of("all --device predict:a100-40gb");
    ASSERT_EQ(predicted.size(), 4U);
    for (const auto& rows : {measured, predicted}) {
        for (const auto& row : rows) {
            EXPECT_GE(row["max_batch_size"], rows[0]["max_batch_size"]) << row;
            EXPECT_GT(row["throughput_sequences_per_s"], 0) << row;
            if (row["mode"] != "none") {
                EXPECT_GT(row["search_time_ns"], 0) << row;
            }
        }
    }
    EXPECT_GT(measured[2]["tried_batches"], 0);
}

/// When each recorded step began, in seconds since 1970.
std::vector<double> step_starts_s(const profiler::Trace& trace) {
    std::vector<double> starts_s;
    for (std::size_t i = 0; i < trace.counters.size(); ++i) {
        const auto counter = trace.counters[profiler::Id<profiler::Counter>(i)];
        if (trace.text(counter.name) == "wall_clock_s") starts_s.push_back(counter.value);
    }
    return starts_s;
}

TEST_F(RealWorker, RecipesOfOneCaptureRunTheirStepsInTurn) {
    const std::string out = folder_ / "out";
    run_well(small("capture", out, {"--recipe", "original,tempo", "--batch", "2"}));
    const auto original = profiler::read_trace(out + "/original.tscope").value();
    const auto tempo = profiler::read_trace(out + "/tempo.tscope").value();
    const std::vector<double> a = step_starts_s(original), b = step_starts_s(tempo);
    ASSERT_EQ(a.size(), 2u);
    ASSERT_EQ(b.size(), 2u);
    const std::vector<double> order{a[0], b[0], b[1], a[1]};
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "a b, then b a";
    // Both steps of tempo fall into the wait of original, which is not part of its trace.
    const auto start_ns = original.steps.column<&profiler::Step::start_ns>();
    const double waited_s = a[1] - a[0] - static_cast<double>(start_ns[1] - start_ns[0]) * 1e-9;
    double tempo_s = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        const auto step = tempo.steps[profiler::Id<profiler::Step>(i)];
        tempo_s += static_cast<double>(step.end_ns - step.start_ns) * 1e-9;
    }
    EXPECT_GE(waited_s, tempo_s);
    EXPECT_EQ(run({"compare", out, "--json"}).json()["rows"][1]["step_time_ratio"]["pairs"], 2);
}

TEST_F(RealWorker, RecipesOfOneSweepTakeTurns) {
    const std::string out = folder_ / "sweep";
    run_well(small("sweep", out,
                   {"--recipe", "original,tempo", "--batch", "1", "--memory-limit", "24MiB"}));
    const auto turns = [&](const std::string& recipe) {
        const auto trace = profiler::read_trace(out + "/" + recipe + ".tscope").value();
        return nlohmann::json::parse(trace.text(trace.run().software))["measured_in_turn"];
    };
    EXPECT_EQ(turns("original")["recipes"], 2);
    EXPECT_EQ(turns("original"), turns("tempo"));
}

TEST_F(RealWorker, CudaWithoutAGpuSaysWhatIsMissingAndHowToGoOn) {
    if (std::filesystem::exists("/proc/driver/nvidia/version")) GTEST_SKIP() << "there is a driver";
    for (const char* command : {"capture", "sweep"}) {
        const Ran ran = run(small(command, folder_ / "cuda.tscope", {"--device", "cuda"}));
        EXPECT_EQ(ran.exit_code, 1) << ran.err;
        EXPECT_EQ(ran.out, "");
        EXPECT_THAT(ran.err, HasSubstr("no NVIDIA driver"));
        EXPECT_THAT(ran.err, HasSubstr("predict the step for a GPU"));
        EXPECT_TRUE(std::filesystem::is_empty(folder_ / ""));
    }
}

TEST_F(RealWorker, ASweepFindsTheLargestBatchUnderALimit) {
    const std::string out = folder_ / "sweep.tscope";
    const Ran ran =
        run_well(small("sweep", out, {"--batch", "1", "--memory-limit", "24MiB", "--json"}));
    const auto row = ran.json()["rows"][0];
    ASSERT_TRUE(row["max_batch_size"].is_number()) << row;
    EXPECT_GE(row["max_batch_size"], 1);
    const auto curve = run({"compare", out, "--json"}).json()["rows"][0]["curve"];
    for (const auto& point : curve) {
        const bool fits = point["batch_size"] <= row["max_batch_size"];
        EXPECT_EQ(point["outcome"], fits ? "ok" : "out_of_memory") << point;
        if (fits) {
            EXPECT_LE(point["peak_allocated_bytes"], 24 << 20) << point;
        }
    }
}

TEST_F(RealWorker, APlanFromTwoBatchesEqualsTheReplayOfAThird) {
    std::filesystem::create_directory(folder_ / "two");
    const std::string third = folder_ / "third.tscope";
    for (const char* batch : {"2", "4"}) {
        const std::string file = folder_ / "two/" + batch + ".tscope";
        run_well(small("capture", file, {"--batch", batch}));
    }
    run_well(small("capture", third, {"--batch", "3"}));
    const std::string step = " --model bert-base --layers 3 --hidden 64 --heads 2 --seq 37";
    const auto plan = words("plan --gpu t4,a100-80gb --batch 3 --json" + step + " --traces");
    const auto replay = run({"replay", third, "--json"}).json();
    const nlohmann::json printed = run_well(joined(plan, {folder_ / "two"})).json();
    for (const auto& row : printed["rows"]) {
        EXPECT_EQ(row["peak_allocated_bytes"], replay["peak_allocated_bytes"]);
        EXPECT_EQ(row["peak_reserved_bytes"], replay["peak_reserved_bytes"]);
        EXPECT_GT(row["throughput_sequences_per_s"], 0);
    }
}

/// What does not fit is a result: the other recipe is measured, and the trace shows what filled
/// the memory.
TEST_F(RealWorker, ARecipeThatDoesNotFitLeavesItsTrace) {
    const std::string out = folder_ / "out";
    const std::string step =
        "capture --model bert-base --layers 2 --hidden 64 --heads 2 --batch 32 --seq 64 --steps 1";
    const Ran ran =
        run(joined(words(step + " --recipe original,tempo --memory-limit 21MiB -o"), {out}));
    EXPECT_EQ(ran.exit_code, 3) << ran.err << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("does not fit the limit of 21.0 MiB"));
    EXPECT_THAT(ran.out, HasSubstr("original ran out of memory at"));
    const auto original = profiler::read_trace(out + "/original.tscope");
    ASSERT_TRUE(original) << original.error().message;
    ASSERT_FALSE(original->allocator_events.empty());
    const auto refusal = original->allocator_events[profiler::Id<profiler::AllocatorEvent>(
        original->allocator_events.size() - 1)];
    EXPECT_EQ(refusal.action, profiler::AllocatorAction::kOom);
    EXPECT_GT(refusal.size_bytes, refusal.free_bytes);
    const profiler::PeakReport peak = profiler::find_peak(*original);
    EXPECT_LE(peak.allocated_bytes, 21 << 20);
    EXPECT_EQ(peak.allocated_bytes + refusal.free_bytes, 21 << 20);
    EXPECT_THAT(run({"info", out + "/original.tscope", "--health"}).out,
                HasSubstr("out_of_memory"));
    EXPECT_TRUE(profiler::read_trace(out + "/tempo.tscope"));
}

// If this fails, what is predicted has changed: run scripts/examples.
TEST_F(RealWorker, TheExamplesAreWhatIsPredicted) {
    const std::string out = folder_ / "predicted";
    run_well({"capture", "--model", "bert-large", "--head", "mlm", "--batch", "8", "--seq", "512",
              "--precision", "amp-bf16", "--recipe", "original,tempo", "--device",
              "predict:a100-40gb", "-o", out});
    for (const std::string name : {"/original.tscope", "/tempo.tscope"}) {
        const auto shipped = profiler::read_trace(TEMPOSCOPE_SOURCE_DIR "/assets/examples" + name);
        const auto predicted = profiler::read_trace(out + name);
        ASSERT_TRUE(shipped && predicted);
        EXPECT_EQ(shipped->allocations.size(), predicted->allocations.size()) << name;
        EXPECT_EQ(shipped->ops.size(), predicted->ops.size()) << name;
        EXPECT_EQ(profiler::report_step(*shipped).peak.allocated_bytes,
                  profiler::report_step(*predicted).peak.allocated_bytes)
            << name;
    }
}

TEST_F(RealWorker, ARefusedWriteNamesThePlace) {
    const Ran ran = run(small("capture", "/proc/one.tscope", {}));
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, HasSubstr("/proc/one.tscope"));
}

TEST_F(RealWorker, SameSeedSameNumbers) {
    // On a busy machine products may take fewer threads than at other times, and then add up in
    // another order (docs/commands.md, "capture").
    setenv("OMP_NUM_THREADS", "1", 1);
    std::vector<nlohmann::json> rows;
    for (const char* name : {"a.tscope", "b.tscope"}) {
        auto arguments =
            small("capture", folder_ / name, {"--recipe", "tempo", "--batch", "2", "--json"});
        rows.push_back(run(arguments).json()["rows"][0]);
    }
    unsetenv("OMP_NUM_THREADS");
    EXPECT_EQ(rows[0]["loss"], rows[1]["loss"]);
    EXPECT_EQ(rows[0]["peak_allocated_bytes"], rows[1]["peak_allocated_bytes"]);
}

}  // namespace
