#include "profiler/view/plan/plan_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace {

using namespace profiler;
using testing::ElementsAre;
using testing::IsEmpty;

class PlanViewOf : public testing::Test {
protected:
    PlanViewOf() {
        request_.environment = &environment_;
        environment_.id = "torch-2.11";
        for (Gpu& gpu : gpus_) request_.gpus.push_back(&gpu);
        gpus_[0].id = "t4";
        gpus_[1].id = "v100-16gb";
    }

    PlanRow& add_row(const std::string& recipe, std::size_t gpu) {
        PlanRow row{.gpu = gpus_[gpu], .environment = environment_};
        row.workload.model.name = "bert-base";
        row.workload.recipe_name = recipe;
        return plan_.rows.emplace_back(std::move(row));
    }
    void fill(PlanRow& row) {
        row.batch_size = row.max_batch_size = 8;
        row.best_batch_size = 4;
        row.memory.emplace();
        row.memory->contents.peaks.peak_reserved_bytes = int64_t{3} << 20;
        row.memory->contents.peaks.peak_allocated_bytes = int64_t{2} << 20;
        row.memory->contents.by_category[0] = int64_t{2} << 20;
        row.memory->context_bytes = int64_t{1} << 20;
        row.time.emplace();
        row.time->optimizer_ns = 2e6;
        row.sequences_per_s = 12.25;
    }
    PlanView view() const { return build_plan_view(plan_, request_); }

    SoftwareEnvironment environment_;
    std::array<Gpu, 2> gpus_;
    PlanRequest request_;
    Plan plan_;
};

TEST_F(PlanViewOf, ColumnsHaveIdsOfTheirOwnAndEachRowHasACellForEach) {
    fill(add_row("original", 0));
    add_row("tempo", 0);
    const PlanView shown = view();
    std::set<std::string> ids;
    for (const PlanColumn& column : shown.columns) ids.insert(column.id);
    EXPECT_EQ(ids.size(), shown.columns.size());
    for (const PlanViewRow& row : shown.rows) EXPECT_EQ(row.cells.size(), shown.columns.size());
}

TEST_F(PlanViewOf, CellsKeepTheirTypesAndAreEmptyWithoutAFigure) {
    fill(add_row("original", 0));
    add_row("tempo", 0).refuse({"It cannot run."});
    const PlanView shown = view();
    EXPECT_EQ(shown.cell(0, "peak_reserved_bytes"), Cell(int64_t{3} << 20));
    EXPECT_EQ(shown.cell(0, "throughput_sequences_per_s"), Cell(12.25));
    EXPECT_EQ(shown.cell(0, "step_time_ns"), Cell(int64_t{2'000'000}));
    EXPECT_EQ(shown.cell(0, "optimizer_ns"), Cell(int64_t{2'000'000}));
    EXPECT_EQ(shown.cell(0, "gpus"), Cell(int64_t{1}));
    EXPECT_EQ(shown.cell(1, "status"), Cell("not_supported"));
    EXPECT_EQ(shown.cell(1, "reason"), Cell("It cannot run."));
    EXPECT_EQ(shown.cell(1, "step_time_ns"), Cell());
    EXPECT_EQ(shown.cell(1, "parameter_bytes"), Cell());
    EXPECT_THROW(shown.cell(0, "no_such_column"), std::out_of_range);
}

TEST_F(PlanViewOf, TheTableLeavesOutWhatAllRowsShare) {
    fill(add_row("original", 0));
    add_row("original", 1).status = PlanStatus::kDoesNotFit;
    const PlanView shown = view();
    EXPECT_EQ(shown.common, "bert-base, layers, original, fp32, sequence length 512");
    EXPECT_EQ(shown.table.columns.front().title, "GPU");
    EXPECT_EQ(shown.table.columns.back().title, "status");
    EXPECT_THAT(shown.table.rows[0], ElementsAre("t4", "8", "4", "0.0", "0.0", "8", "2.00 MiB",
                                                 "3.00 MiB", "2.00 ms", "12.2", "0.0", "ok"));
    EXPECT_EQ(shown.table.rows[1].front(), "v100-16gb");
    EXPECT_EQ(shown.table.rows[1].back(), "does not fit");
}

TEST_F(PlanViewOf, TheTableLeavesOutWhatOnlyRepeats) {
    fill(add_row("original", 0));
    plan_.rows.front().best_batch_size = 8;
    const auto titles = [&] {
        std::vector<std::string> all;
        for (const auto& column : view().table.columns) all.push_back(column.title);
        return all;
    };
    EXPECT_THAT(titles(), ElementsAre("largest batch", "fastest batch", "at batch", "allocated",
                                      "reserved", "step", "seq/s", "TFLOPS"));
    plan_.rows.front().best_batch_size = 4;
    EXPECT_THAT(titles(), testing::IsSupersetOf({"best seq/s", "best TFLOPS"}));
}

TEST_F(PlanViewOf, SaysAtWhichBatchItsFiguresAre) {
    fill(add_row("original", 0));
    EXPECT_EQ(view().batch, "the largest batch that fits");
    request_.batch_size = 16;
    EXPECT_EQ(view().batch, "batch 16");
    request_.batch_size.reset();
    EXPECT_EQ(build_plan_view(AutoPlan{}, request_).batch, "the batch that was chosen");
}

TEST_F(PlanViewOf, ASentenceNamesTheFewestColumnsThatSelectItsRows) {
    for (const std::size_t gpu : {0, 1}) {
        for (const char* recipe : {"original", "tempo", "flash"}) add_row(recipe, gpu);
    }
    for (PlanRow& row : plan_.rows) {
        row.notes.emplace_back("of all rows");
        if (row.gpu.id == gpus_[0].id) row.notes.emplace_back("of a GPU");
        if (row.workload.recipe_name != "flash") row.notes.emplace_back("of two recipes");
    }
    const PlanView shown = view();
    ASSERT_EQ(shown.assumptions.size(), 3U);
    EXPECT_EQ(shown.assumptions[0].rows, "");
    EXPECT_EQ(shown.assumptions[1].rows, "t4");
    EXPECT_EQ(shown.assumptions[2].rows, "original/tempo");
    EXPECT_THAT(shown.reasons, IsEmpty());
}

TEST_F(PlanViewOf, ASentenceAboutMostRowsNamesTheOthers) {
    for (const char* recipe : {"original", "tempo", "flash", "checkpoint", "tempo-gelu"}) {
        add_row(recipe, 0);
        if (plan_.rows.back().workload.recipe_name != "flash") {
            plan_.rows.back().notes.emplace_back("of most recipes");
        }
    }
    ASSERT_EQ(view().assumptions.size(), 1U);
    EXPECT_EQ(view().assumptions[0].rows, "all recipes but flash");
}

TEST_F(PlanViewOf, ALongListOfRowsIsCut) {
    for (int i = 0; i < 20; ++i) {
        PlanRow& row = add_row("r" + std::to_string(i), 0);
        if (i < 9) row.notes.emplace_back("of nine");
    }
    EXPECT_EQ(view().assumptions.at(0).rows, "r0/r1/r2 and 6 more recipes");
}

TEST_F(PlanViewOf, SaysHowFarOffTimesMayBe) {
    add_row("original", 0);
    fill(add_row("tempo", 0));
    PlanRow& row = plan_.rows.back();
    row.time_accuracy = TimeAccuracy{.basis = RateBasis::kSpecification, .error = 0.25};
    const double step_ns = row.time->total_ns();
    EXPECT_EQ(view().cell(0, "times_calibrated"), Cell());
    EXPECT_EQ(view().cell(1, "times_calibrated"), Cell(false));
    EXPECT_EQ(view().cell(0, "step_time_ns_low"), Cell());
    EXPECT_EQ(view().cell(1, "step_time_ns_low"), Cell(whole_ns(step_ns / 1.25)));
    EXPECT_EQ(view().cell(1, "step_time_ns_high"), Cell(whole_ns(step_ns / 0.75)));
}

TEST_F(PlanViewOf, MemoryPartsAddUpToTheGpu) {
    fill(add_row("original", 0));
    std::vector<std::string> lines;
    const PlanView shown = view();
    for (const PlanPart& part : memory_parts(shown.rows[0].row)) {
        lines.push_back(part.name + " " + part.text);
    }
    EXPECT_THAT(lines, ElementsAre("parameter 2.00 MiB", "= allocated 2.00 MiB",
                                   "CUDA context 1.00 MiB", "= of the GPU 3.00 MiB"));
}

TEST(FrontierView, ShowsTheChosenPointWithItsNeighboursAndTheEnds) {
    std::vector<FrontierPoint> points;
    for (int64_t i = 0; i < 100; ++i) points.push_back({.recipe = "tempo", .batch_size = i});
    points[50].is_chosen = points[50].is_simulated = true;
    points[50].fits = true;
    const DataTable shown = data_table(frontier_columns(), points);
    EXPECT_EQ(shown.rows.size(), 100U);
    EXPECT_EQ(shown.rows[0].size(), shown.columns.size());
    std::vector<std::string> batches;
    for (const auto& row : frontier_table(points).rows) batches.push_back(row[1]);
    EXPECT_THAT(batches, testing::IsSupersetOf({"0", "49", "50", "51", "99"}));
    EXPECT_LE(batches.size(), 13U);
}

}  // namespace
