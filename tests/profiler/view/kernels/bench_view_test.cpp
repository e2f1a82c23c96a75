#include "profiler/view/kernels/bench_view.h"

#include "models/config/flop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using models::Benchmark;
using models::BenchmarkKind;
using testing::Contains;
using testing::ElementsAre;

Benchmark step(const std::string& recipe = "original", int64_t micro_batches = 1) {
    models::Workload w{
        .model = models::find_model("bert-large").value(), .batch_size = 4, .seq_len = 128};
    w = models::with_recipe(w, recipe).value();
    w.gradient_accumulation_steps = micro_batches;
    return {.kind = BenchmarkKind::kModel, .workload = std::move(w)};
}

Benchmark layer(bool has_backward) {
    Benchmark benchmark = step();
    benchmark.kind = BenchmarkKind::kLayer;
    benchmark.has_backward = has_backward;
    return benchmark;
}

BenchRow row(Benchmark benchmark, const std::string& device, BenchSource source, int64_t time_ns) {
    BenchRow row{.benchmark = std::move(benchmark), .device = device, .source = source};
    row.time = {.time_ns = time_ns, .samples = 1, .peak_allocated_bytes = int64_t{3} << 30};
    return row;
}

TEST(BenchRates, OfAStepCountModelAndHardwareFlop) {
    const BenchRates rates =
        rates_of(row(step("checkpoint", 3), "x", BenchSource::kMeasured, 1'000'000'000));
    EXPECT_DOUBLE_EQ(rates.sequences_per_s.value(), 12);
    const double flop = static_cast<double>(models::step_flop(step("original", 3).workload).model);
    EXPECT_DOUBLE_EQ(rates.model_tflops.value(), flop / 1e12);
    EXPECT_DOUBLE_EQ(rates.hardware_tflops.value(), flop * 4 / 3 / 1e12);
}

TEST(BenchRates, OfProductsAndVectors) {
    const Benchmark product{.kind = BenchmarkKind::kMatmul, .size = 1000};
    EXPECT_DOUBLE_EQ(
        rates_of(row(product, "x", BenchSource::kMeasured, 1'000'000)).model_tflops.value(), 2);
    const Benchmark vector{.kind = BenchmarkKind::kVector, .size = 1'000'000};
    EXPECT_DOUBLE_EQ(
        rates_of(row(vector, "x", BenchSource::kMeasured, 1'000'000)).bytes_per_s.value(), 8e9);
}

TEST(BenchRates, AreNoneWithoutATime) {
    BenchRow failed = row(step(), "x", BenchSource::kMeasured, 5);
    failed.time.out_of_memory = true;
    EXPECT_EQ(status_of(failed), "out_of_memory");
    EXPECT_FALSE(rates_of(failed).sequences_per_s);
    failed.time.out_of_memory = false;
    failed.reason = "No.";
    EXPECT_EQ(status_of(failed), "not_possible");
    EXPECT_FALSE(rates_of(failed).sequences_per_s);
}

TEST(BenchTables, HaveALineForEachBenchmarkAndColumnsForEachDevice) {
    const std::vector<BenchRow> rows{row(layer(false), "here", BenchSource::kMeasured, 1'000'000),
                                     row(layer(true), "here", BenchSource::kMeasured, 3'000'000),
                                     row(layer(true), "t4", BenchSource::kPredicted, 6'000'000),
                                     row(step(), "here", BenchSource::kMeasured, 1'000'000)};
    const auto tables = bench_tables(rows);
    ASSERT_EQ(tables.size(), 2U);
    EXPECT_EQ(tables[0].kind, BenchmarkKind::kLayer);
    ASSERT_EQ(tables[0].table.rows.size(), 2U);
    for (const auto& cells : tables[0].table.rows) {
        EXPECT_EQ(cells.size(), tables[0].table.columns.size());
    }
    EXPECT_THAT(tables[0].table.rows[0], Contains("forward"));
    EXPECT_THAT(tables[0].table.rows[1], Contains("forward and backward"));
    EXPECT_EQ(tables[1].kind, BenchmarkKind::kModel);
}

TEST(BenchChart, PutsSeriesBesideEachOtherInThreePanels) {
    const std::vector<BenchRow> rows{
        row(step(), "t4", BenchSource::kPredicted, 1'000'000'000),
        row(step(), "t4", BenchSource::kPublished, 2'000'000'000),
        row(step("checkpoint"), "t4", BenchSource::kPredicted, 1'500'000'000)};
    const BarChart chart = bench_chart(rows, BenchmarkKind::kModel);
    EXPECT_THAT(chart.series, ElementsAre("t4, predicted", "t4, published"));
    EXPECT_THAT(chart.devices, ElementsAre(0, 0)) << "one colour";
    ASSERT_EQ(chart.groups.size(), 2U);
    ASSERT_EQ(chart.panels.size(), 3U);
    for (const BarChart::Panel& panel : chart.panels) ASSERT_EQ(panel.groups.size(), 2U);
    EXPECT_DOUBLE_EQ(chart.panels[0].groups[0][0].value, 4);
    EXPECT_DOUBLE_EQ(chart.panels[0].groups[0][1].value, 2);
    EXPECT_EQ(chart.panels[1].groups[0][0].outer, 0) << "nothing is computed again";
    const BarChart::Bar& again = chart.panels[1].groups[1][0];
    EXPECT_NEAR(again.outer, again.value * 4 / 3, 1e-9);
    EXPECT_EQ(chart.panels[2].groups[0][0].text, "3.00 GiB");
    EXPECT_TRUE(bench_chart(rows, BenchmarkKind::kMatmul).panels.empty());
}

TEST(BenchTables, TellSoftwareEnvironmentsApart) {
    BenchRow first = row(step(), "t4", BenchSource::kPredicted, 1'000'000'000);
    BenchRow second = first;
    first.setup = "mli-2023";
    second.setup = "mli-2023-fused";
    const std::vector<BenchRow> rows{first, second};
    EXPECT_EQ(bench_tables(rows)[0].table.rows.size(), 2U);
    EXPECT_EQ(bench_chart(rows, BenchmarkKind::kModel).groups.size(), 2U);
}

TEST(BenchChart, SaysWhyABarIsMissing) {
    BenchRow failed = row(step(), "t4", BenchSource::kPredicted, 0);
    failed.time.out_of_memory = true;
    const BarChart chart = bench_chart({failed}, BenchmarkKind::kModel);
    EXPECT_EQ(chart.panels[0].groups[0][0].text, "out of memory");
    EXPECT_EQ(chart.panels[0].groups[0][0].value, 0);
}

TEST(BenchChart, OfLayersTellsThePassesApart) {
    const BarChart chart = bench_chart({row(layer(false), "t4", BenchSource::kPredicted, 1'000'000),
                                        row(layer(true), "t4", BenchSource::kPredicted, 3'000'000)},
                                       BenchmarkKind::kLayer);
    ASSERT_EQ(chart.panels.size(), 3U);
    for (const BarChart::Panel& panel : chart.panels) {
        ASSERT_EQ(panel.groups.size(), 1U);
        EXPECT_EQ(panel.groups[0].size(), 1U) << panel.title;
    }
    EXPECT_NEAR(chart.panels[0].groups[0][0].value, chart.panels[1].groups[0][0].value, 1e-9);
    EXPECT_LT(chart.panels[2].groups[0][0].value, chart.panels[1].groups[0][0].value)
        << "the gradient of the input is not computed";
}

}  // namespace
