#include "tests/app/json_keys.h"
#include "tests/app/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace {

using namespace tests;
using testing::HasSubstr;

class BenchCommand : public CommandTest {
protected:
    Ran bench(const std::vector<std::string>& arguments) const {
        return run(joined({"bench"}, arguments), with_fake_worker());
    }
    void expect_usage_error(const std::vector<std::string>& arguments,
                            const std::string& part) const {
        expect_one_sentence(bench(arguments), 2, part);
    }
};

TEST_F(BenchCommand, PutsPublishedProductsBesidePredictedOnes) {
    const auto rows = bench({"matmul", "--device", "predict:rtx3090ti", "--precision", "fp16",
                             "--size", "2048,8192", "--json"})
                          .json()["rows"];
    ASSERT_EQ(rows.size(), 4U);
    EXPECT_EQ(rows[2]["source"], "predicted");
    EXPECT_EQ(rows[3]["source"], "published");
    EXPECT_NEAR(rows[3]["model_tflops"].get<double>(), 81.3, 0.01);
    EXPECT_NEAR(rows[2]["model_tflops"].get<double>(), 81.3, 4);
    for (const auto& row : rows) {
        EXPECT_EQ(keys_of(row), documented("bench row"));
        EXPECT_EQ(row["device"], "rtx3090ti");
    }
}

TEST_F(BenchCommand, TimesTheDeviceAtHandBesideGpus) {
    const auto json =
        bench({"vector", "--device", "cpu,predict:t4,predict:a100-80gb", "--json"}).json();
    EXPECT_EQ(keys_of(json), documented("bench"));
    EXPECT_EQ(json["rows"][0]["source"], "measured");
    EXPECT_EQ(json["rows"][0]["device"], "A fake processor");
    EXPECT_EQ(json["rows"][0]["time_ns"], 2'000'000);
    const Ran table = bench({"vector", "--device", "cpu,predict:t4"});
    EXPECT_THAT(table.out, HasSubstr("A fake processor, measured: GB/s"));
    EXPECT_THAT(table.out, HasSubstr("t4, predicted: GB/s"));
}

TEST_F(BenchCommand, TellsModelAndHardwareFlopApart) {
    const auto rows = bench({"model", "--device", "cpu", "--recipe", "original,checkpoint",
                             "--accumulate", "1,4", "--json"})
                          .json()["rows"];
    ASSERT_EQ(rows.size(), 4U);
    EXPECT_EQ(rows[0]["model_flop"], rows[0]["hardware_flop"]);
    EXPECT_EQ(rows[1]["gradient_accumulation_steps"], 4);
    EXPECT_GT(rows[2]["hardware_flop"], rows[2]["model_flop"]);
    EXPECT_EQ(rows[2]["model_flop"], rows[0]["model_flop"]);
    EXPECT_DOUBLE_EQ(rows[1]["throughput_sequences_per_s"].get<double>(),
                     4 * rows[0]["throughput_sequences_per_s"].get<double>());
}

TEST_F(BenchCommand, WritesChartsCsvAndJson) {
    const std::string csv = folder_ / "bench.csv";
    const Ran ran = bench({"layer", "--device", "cpu", "--charts", folder_ / "charts", "--format",
                           "svg,html", "-o", csv});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(read_file(folder_ / "charts/bench-layer.svg"), HasSubstr("bert-large"));
    EXPECT_TRUE(std::filesystem::exists(folder_ / "charts/bench-layer.html"));
    EXPECT_THAT(ran.out, HasSubstr("bench-layer.svg"));
    const std::string text = read_file(csv);
    EXPECT_THAT(text, testing::StartsWith("benchmark,device,source,"));
    EXPECT_THAT(text, HasSubstr("layer,A fake processor,measured,,ok,,bert-large,"));
    EXPECT_EQ(bench({"layer", "--device", "cpu", "-o", folder_ / "b.json"}).exit_code, 0);
    EXPECT_THAT(read_file(folder_ / "b.json"), HasSubstr("\"model_tflops\""));
}

TEST_F(BenchCommand, WhatADeviceCannotRunIsARow) {
    const auto json = bench({"matmul", "--device", "predict:v100-16gb", "--precision", "fp16,tf32",
                             "--size", "512", "--json"})
                          .json();
    ASSERT_EQ(json["rows"].size(), 2U);
    EXPECT_EQ(json["rows"][0]["status"], "ok");
    EXPECT_EQ(json["rows"][1]["status"], "not_possible");
    EXPECT_THAT(json["rows"][1]["reason"].get<std::string>(), HasSubstr("--precision"));
    expect_one_sentence(bench({"matmul", "--device", "predict:v100-16gb", "--precision", "tf32"}),
                        1, "tf32");
}

TEST_F(BenchCommand, WhatDoesNotFitAPredictedGpuIsOutOfMemory) {
    const auto is_out_of_memory = [&](const std::vector<std::string>& arguments) {
        const std::vector<std::string> more{"--device", "predict:t4", "--precision", "fp32",
                                            "--json"};
        return bench(joined(arguments, more)).json()["rows"].at(0)["status"] == "out_of_memory";
    };
    EXPECT_TRUE(is_out_of_memory({"vector", "--size", "2147483648"}));  // 2 x 8 GiB of 16
    EXPECT_FALSE(is_out_of_memory({"vector", "--size", "536870912"}));
    EXPECT_TRUE(is_out_of_memory({"matmul", "--size", "46000"}));  // 3 x 7.9 GiB
    EXPECT_FALSE(is_out_of_memory({"matmul", "--size", "8192"}));
    const std::vector<std::string> layer{"layer", "--model", "bert-large", "--seq", "512"};
    EXPECT_TRUE(is_out_of_memory(joined(layer, {"--batch", "500"})));
    EXPECT_FALSE(is_out_of_memory(joined(layer, {"--batch", "4"})));
}

TEST_F(BenchCommand, ChartsRunWhatWasPublished) {
    const Ran ran = bench({"charts", "--device", "cpu", "--charts", folder_ / "charts", "--json"});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const auto rows = ran.json()["rows"];
    EXPECT_EQ(rows.size(), 9U) << "four layers, two passes, and a model";
    EXPECT_EQ(ran.json()["charts"].size(), 2U) << "of layers, and of models";
    expect_usage_error({"charts", "--device", "cpu"}, "--charts");
}

/// What was published for other GPUs is predicted for it, without figures beside.
TEST_F(BenchCommand, ChartsTakeAGpuWithoutPublishedFigures) {
    const Ran ran = bench({"charts", "--device", "predict:rtx3090ti,predict:t4", "--setup",
                           "mli-2023", "--charts", folder_ / "charts", "--json"});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const auto rows = ran.json()["rows"];
    const auto count = [&](const char* device, const char* source) {
        return std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
            return row["device"] == device && row["source"] == source;
        });
    };
    EXPECT_EQ(count("rtx3090ti", "predicted"), count("rtx3090ti", "published"));
    EXPECT_GE(count("t4", "predicted"), count("rtx3090ti", "predicted"));
    EXPECT_EQ(count("t4", "published"), 0);
}

TEST_F(BenchCommand, RefusesWhatCannotBe) {
    expect_usage_error({"window"}, "matmul");
    expect_usage_error({"matmul", "--device", "tpu"}, "predict:GPU");
    expect_usage_error({"matmul", "--device", "cpu,cuda"}, "two devices");
    expect_usage_error({"matmul", "--device", "predict:h900"}, "h900");
    expect_usage_error({"matmul", "--size", "0"}, "--size");
    expect_usage_error({"matmul", "--size", "65536"}, "2^31");
    expect_usage_error({"matmul", "--precision", "amp-bf16"}, "--precision");
    expect_usage_error({"layer", "--precision", "amp-bf16"}, "--precision");
    expect_usage_error({"layer", "--accumulate", "2"}, "--accumulate");
    expect_usage_error({"matmul", "--seq", "128"}, "only on layer, model, charts");
    expect_usage_error({"model", "--seconds", "1"}, "--seconds has no effect");
    expect_usage_error({"layer", "--recipe", "checkpoint"}, "whole model");
    expect_usage_error({"layer", "--model", "t5-large-encoder", "--recipe", "tempo"}, "--recipe");
    expect_usage_error({"model", "--model", "bert-huge"}, "bert-large");
    expect_usage_error({"model", "--steps", "0"}, "--steps");
    expect_usage_error({"vector", "--seconds", "0"}, "--seconds");
    expect_usage_error({"vector", "-o", folder_ / "x.txt"}, ".csv");
    expect_usage_error({"vector", "--device", "predict:t4", "--setup", "torch-9"}, "torch-9");
    for (const char* what : {"matmul", "vector", "layer", "model"}) {
        expect_usage_error({what, "--device", "cpu", "--setup", "mli-2023"},
                           "--device cpu predicts nothing: leave it out");
    }
    expect_usage_error({"vector", "--format", "png"}, "--charts");
    expect_usage_error(
        {"charts", "--device", "predict:t4", "--charts", folder_ / "charts", "--seq", "64"},
        "leave --seq out");
}

}  // namespace
