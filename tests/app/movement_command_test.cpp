#include "models/config/workload.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/app/json_keys.h"
#include "tests/app/program.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace tests;
using namespace profiler;
using testing::HasSubstr;
using testing::Not;

/// A layer of BERT-large as Substation ran it; a product and a pass over data ran in it.
std::string write_step(const CommandFolder& folder, bool on_gpu) {
    models::Workload workload{.model = *models::find_model("substation-encoder"),
                              .precision = models::Precision::kFp16,
                              .batch_size = 8,
                              .seq_len = 512};
    TraceBuilder b(workload);
    const auto layer = b.module_path("encoder.layer.0", 0);
    const auto module = b.module_path("encoder.layer.0.output.dense", 0, layer);
    b.begin_step();
    b.begin_phase(PhaseKind::kForward);
    for (const bool is_product : {true, false}) {
        const Id<Op> op = b.op(is_product ? "aten::addmm" : "aten::gelu", module);
        b.allocate({.bytes = 16, .op = op});
        auto& ops = b.trace().ops;
        ops.set<&Op::flop>(op, is_product ? 50'000'000 : 1'000'000);
        ops.set<&Op::read_words>(op, 100'000);
        ops.set<&Op::written_words>(op, 50'000);
        ops.set<&Op::op_class>(op, is_product ? OpClass::kContraction : OpClass::kElementWise);
        ops.set<&Op::end_ns>(op, ops.get<&Op::start_ns>(op) + 2000);
        if (on_gpu) {
            b.trace().kernels.append(
                {.name = b.text("kernel"), .op = op, .start_ns = 0, .end_ns = 1000});
        }
    }
    b.end_phase();
    b.end_step();
    Trace trace = b.finish();
    if (on_gpu) {
        trace.runs.set<&Run::source>(Id<Run>(0), Source::kMeasuredCuda);
        trace.runs.set<&Run::device_name>(Id<Run>(0), trace.strings.intern("Tesla V100-SXM2-16GB"));
        trace.devices.set<&Device::total_bytes>(Id<Device>(0), -1);
    }
    std::string path = folder / "step.tscope";
    EXPECT_TRUE(write_trace(trace, path));
    return path;
}

class MovementCommand : public CommandTest {
protected:
    Ran movement(const std::vector<std::string>& more, bool on_gpu = true) {
        return run(joined({"movement", on_gpu ? gpu_ : cpu_}, more));
    }

    CommandFolder cpu_folder_;
    std::string gpu_ = write_step(folder_, true);
    std::string cpu_ = write_step(cpu_folder_, false);
};

TEST_F(MovementCommand, ListsTheOpsThatRan) {
    const Ran ran = movement({"--gpu", "v100-16gb"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("aten::addmm"));
    EXPECT_THAT(ran.out, HasSubstr("MUE %"));
    EXPECT_THAT(ran.out, HasSubstr("of the time."));
    EXPECT_EQ(run({"roofline", gpu_, "--gpu", "v100-16gb"}).out, ran.out);
    const auto json = movement({"--gpu", "v100-16gb", "--json"}).json();
    ASSERT_EQ(json["rows"].size(), 2U);
    const auto& product = json["rows"][0];
    EXPECT_EQ(product["name"], "aten::addmm");
    EXPECT_EQ(product["class"], "contraction");
    EXPECT_EQ(product["flop"], 50'000'000);
    EXPECT_EQ(product["read_words"], 100'000);
    EXPECT_EQ(product["written_words"], 50'000);
    EXPECT_EQ(product["time_ns"], 1000);
    EXPECT_EQ(product["phase"], "forward");
    EXPECT_EQ(product["module"], "output.dense");
    EXPECT_GT(product["peak_share"].get<double>(), 0.3);
    EXPECT_EQ(movement({"--gpu", "V100-16GB", "--json"}).json()["gpu"], "v100-16gb");
}

TEST_F(MovementCommand, IvanovsSharesStandBesideTheLayersAndNotBesideTheWholeStep) {
    const auto share = [&](const char* scope) {
        return movement({"--scope", scope, "--json"}).json()["classes"][0]["ivanov_time_share"];
    };
    EXPECT_EQ(share("layers"), 0.61);
    EXPECT_TRUE(share("all").is_null());
    EXPECT_THAT(movement({}).out, HasSubstr("Ivanov"));
    EXPECT_THAT(movement({"--scope", "all"}).out, Not(HasSubstr("Ivanov")));
}

TEST_F(MovementCommand, AFileWithoutOpsFailsWithASentence) {
    TraceBuilder b;
    b.allocate({.bytes = 4096});
    const std::string snapshot = folder_ / "blocks.tscope";
    ASSERT_TRUE(write_trace(b.finish(), snapshot));
    const char* why = "does not say what its ops read and write";
    expect_one_sentence(run({"movement", snapshot}), 1, why);
    expect_one_sentence(run({"movement", snapshot, "--json"}), 1, why);
    // Ops that ran, but not in the layers.
    TraceBuilder step(models::Workload{});
    step.begin_step();
    step.begin_phase(PhaseKind::kLoss);
    const Id<Op> op = step.op("aten::mm");
    step.trace().ops.set<&Op::flop>(op, 1000);
    step.end_phase();
    step.end_step();
    const std::string loss = folder_ / "loss.tscope";
    ASSERT_TRUE(write_trace(step.finish(), loss));
    expect_one_sentence(run({"movement", loss}), 1, "--scope all");
    run_well({"movement", loss, "--scope", "all"});
}

TEST_F(MovementCommand, LogicalOpsAreThoseOfThePaper) {
    const auto json = movement({"--ops", "logical", "--json"}).json();
    const auto rounded = [](const nlohmann::json& flop) {
        return std::round(flop.get<double>() / 1e7) / 100;
    };
    EXPECT_DOUBLE_EQ(rounded(json["total"]["flop"]), 335.69);
    EXPECT_DOUBLE_EQ(rounded(json["layer"]["flop"]), 335.69);
    EXPECT_DOUBLE_EQ(rounded(json["attention"]["flop"]), 43.17);
    EXPECT_NEAR(json["attention"]["flop_per_word"].get<double>(), 153.6, 0.05);
    ASSERT_EQ(json["classes"].size(), 3U);
    EXPECT_NEAR(json["classes"][0]["flop_share"].get<double>(), 0.9980, 0.00005);
    EXPECT_NEAR(json["classes"][1]["flop_share"].get<double>(), 0.0017, 0.00005);
    EXPECT_NEAR(json["classes"][2]["flop_share"].get<double>(), 0.0003, 0.00005);
    const Ran table = movement({"--ops", "logical", "--gpu", "v100-16gb"});
    EXPECT_THAT(table.out, HasSubstr("Logical ops of the layer, forward and backward"));
    EXPECT_THAT(table.out, HasSubstr("335.69 Gflop"));
    EXPECT_THAT(table.out, HasSubstr("Its attention, forward: 43.168 Gflop"));
    EXPECT_THAT(table.out, HasSubstr("99.80 %"));
}

TEST_F(MovementCommand, AddsUpByClassAndLayer) {
    const auto by_class = movement({"--by", "class", "--json"}).json();
    ASSERT_EQ(by_class["rows"].size(), 2U);
    EXPECT_EQ(by_class["rows"][0]["name"], "contraction");
    const auto by_layer = movement({"--by", "layer", "--json"}).json();
    ASSERT_EQ(by_layer["rows"].size(), 1U);
    EXPECT_EQ(by_layer["rows"][0]["name"], "encoder.layer.0");
    EXPECT_EQ(by_layer["rows"][0]["flop"], 51'000'000);
    EXPECT_TRUE(by_layer["rows"][0]["class"].is_null());
}

TEST_F(MovementCommand, PrintsTheDocumentedKeys) {
    const auto json = movement({"--ops", "logical", "--json"}).json();
    Keys keys = documented("movement");
    keys.merge(documented("trace"));
    EXPECT_EQ(keys_of(json), keys);
    EXPECT_EQ(keys_of(json["rows"][0]), documented("movement row"));
    EXPECT_EQ(keys_of(json["total"]), documented("movement sum"));
    EXPECT_EQ(keys_of(json["attention"]), documented("movement sum"));
    EXPECT_EQ(keys_of(json["classes"][0]), documented("movement class"));
}

TEST_F(MovementCommand, OnAProcessorWithoutPeaksASentenceSaysWhatIsMissing) {
    const auto json = movement({"--json"}, false).json();
    EXPECT_TRUE(json["gpu"].is_null());
    EXPECT_TRUE(json["rows"][0]["mue"].is_null());
    EXPECT_GT(json["rows"][0]["time_ns"].get<int64_t>(), 0);
    ASSERT_EQ(json["notes"].size(), 1U);
    EXPECT_THAT(movement({}, false).out, HasSubstr("calibrate this machine"));
    // Times of a processor are not compared with a GPU.
    const auto other = movement({"--gpu", "v100-16gb", "--json"}, false).json();
    EXPECT_TRUE(other["rows"][0]["mue"].is_null());
    EXPECT_GT(other["rows"][0]["memory_limit_ns"].get<int64_t>(), 0);
}

TEST_F(MovementCommand, WritesChartsAndTables) {
    const std::string charts = folder_ / "charts";
    const auto json = movement({"--charts", charts, "--format", "svg,png,pdf,html", "--gpu",
                                "v100-16gb", "--ops", "logical", "--json"})
                          .json();
    ASSERT_EQ(json["charts"].size(), 8U);
    const std::string roofline = read_file(charts + "/movement-roofline.svg");
    EXPECT_THAT(roofline, HasSubstr("flop per byte"));
    const std::string flow = read_file(charts + "/movement-flow.svg");
    EXPECT_THAT(flow, HasSubstr("QKV product"));
    EXPECT_THAT(flow, HasSubstr("33.6 M"));
    EXPECT_THAT(flow, HasSubstr("8.59 Gflop"));
    const std::string csv = folder_ / "rows.csv";
    const Ran table = movement({"-o", csv});
    EXPECT_EQ(table.exit_code, 0);
    EXPECT_THAT(table.out, HasSubstr("wrote " + csv));
    EXPECT_THAT(read_file(csv), testing::StartsWith("phase,module,name,class,calls,flop,"));
}

TEST_F(MovementCommand, RefusesWhatCannotBe) {
    expect_one_sentence(movement({"--by", "colour"}), 2, "colour");
    expect_one_sentence(movement({"--gpu", "voodoo2"}), 2, "voodoo2");
    expect_one_sentence(movement({"--ops", "logical", "--scope", "all"}), 2, "--scope all");
    expect_one_sentence(movement({"-o", "rows.txt"}), 2, "rows.txt");
    expect_one_sentence(movement({"--format", "png"}), 2, "--charts");
    expect_one_sentence(run({"compare", gpu_, "--format", "png"}), 2, "--charts");
    expect_one_sentence(movement({"-o", gpu_ + ".csv", "--charts", gpu_}), 1, "cannot be made");
    expect_one_sentence(run({"movement", folder_ / "none.tscope"}), 1, "none.tscope");
}

}  // namespace
