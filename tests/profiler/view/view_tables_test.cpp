#include "profiler/view/allocator/segment_map_view.h"
#include "profiler/view/allocator/what_if_view.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/kernels/movement_view.h"
#include "profiler/view/layers/layer_view.h"
#include "profiler/view/memory/blocks_view.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/peak/flame_view.h"
#include "profiler/view/peak/ledger_view.h"
#include "profiler/view/plan/planner_view.h"
#include "profiler/view/plan/recipe_frontier_view.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/programs/diagnostics_table.h"
#include "profiler/view/programs/pair_view.h"
#include "profiler/view/selected/inspector_view.h"
#include "profiler/view/selected/range_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace {

using namespace profiler;
using testing::ElementsAre;
using testing::HasSubstr;

DataTable make_table() {
    return {.columns = {"tensor", "size_bytes", "share"},
            .rows = {{std::string("probs"), int64_t{1024}, 0.5},
                     {std::string("a,\"b\""), int64_t{-5}, Cell()}}};
}

TEST(DataTable, WritesRawNumbersAndQuotesTexts) {
    EXPECT_EQ(to_csv(make_table()),
              "tensor,size_bytes,share\n"
              "probs,1024,0.5\n"
              "\"a,\"\"b\"\"\",-5,\n");
    EXPECT_EQ(to_tsv(make_table()),
              "tensor\tsize_bytes\tshare\n"
              "probs\t1024\t0.5\n"
              "a,\"b\"\t-5\t\n");
}

/// Names come from files: they stay in their cell and are no formulas. Numbers stay numbers.
TEST(DataTable, GuardsNames) {
    const DataTable table{.columns = {"name"},
                          .rows = {{std::string("=HYPERLINK(\"x\",1)")},
                                   {std::string("@a\nb\tc\x1b[0m")},
                                   {std::string("-x")},
                                   {int64_t{-1}}}};
    EXPECT_EQ(to_csv(table),
              "name\n\"'=HYPERLINK(\"\"x\"\",1)\"\n'@a\\x0ab\\x09c\\x1b[0m\n'-x\n-1\n");
    EXPECT_EQ(to_tsv(table), "name\n'=HYPERLINK(\"x\",1)\n'@a\\x0ab\\x09c\\x1b[0m\n'-x\n-1\n");
}

TEST(DataTable, WritesJsonOfAnyBytes) {
    DataTable table = make_table();
    table.rows.push_back(
        {std::string("\xff"), int64_t{1}, std::numeric_limits<double>::infinity()});
    table.left_out = "3 more rows";
    const auto json = nlohmann::json::parse(to_json(table));
    EXPECT_EQ(json["rows"].size(), 3u);
    EXPECT_EQ(json["rows"][0]["size_bytes"], 1024);
    EXPECT_TRUE(json["rows"][1]["share"].is_null());
    EXPECT_TRUE(json["rows"][2]["share"].is_null());
    EXPECT_EQ(json["left_out"], "3 more rows");
    EXPECT_THAT(to_csv(table), testing::EndsWith("3 more rows\n"));
}

TEST(TableColumns, MakeTheSameTableForPeopleAndForPrograms) {
    struct Row {
        std::string name;
        int64_t bytes;
        std::optional<double> rate;
        bool fits;
    };
    const std::vector<TableColumn<Row>> all{
        {"name", "of", Unit::kText, "", &Row::name},
        {"size_bytes", "size", Unit::kBytes, "in tensors", &Row::bytes},
        {"rate", "seq/s", Unit::kRate, "", &Row::rate},
        {"fits", "", Unit::kYesNo, "", &Row::fits,
         [](const Row& row) { return row.fits ? "" : "does not fit"; }}};
    const std::vector<Row> rows{{"a", 1024, 12.0, true}, {"b", 0, std::nullopt, false}};
    const DataTable data = data_table(all, rows);
    EXPECT_EQ(to_csv(data), "name,size_bytes,rate,fits\na,1024,12,true\nb,0,,false\n");
    EXPECT_EQ(to_csv(data, Decimals::kAsJson),
              "name,size_bytes,rate,fits\na,1024,12.0,true\nb,0,,false\n");
    EXPECT_EQ(json_rows(data).dump(), R"([{"fits":true,"name":"a","rate":12.0,"size_bytes":1024},)"
                                      R"({"fits":false,"name":"b","rate":null,"size_bytes":0}])");
    const TextTable text = text_table(join<Row>({pick(all, {"fits", "rate"}), {all[1]}}), rows);
    EXPECT_THAT(text.rows[0], ElementsAre("", "12.0", "1.00 KiB"));
    EXPECT_THAT(text.rows[1], ElementsAre("does not fit", "–", "0 B"));
    EXPECT_EQ(text.columns[2].title, "size");
    EXPECT_EQ(text.columns[2].align, Align::kRight);
    EXPECT_EQ(text.columns[2].explanation, "in tensors");
}

TEST(LedgerData, HoldsTheShownColumnsInTheirOrder) {
    LedgerView view;
    view.rows.push_back({.tensor = "probs", .module_path = "encoder.layer.1", .size_bytes = 64});
    const std::vector columns{LedgerColumn::kTensor, LedgerColumn::kSize,
                              LedgerColumn::kDifference};
    const DataTable some = ledger_data(view, columns);
    EXPECT_THAT(some.columns, ElementsAre("tensor", "size_bytes")) << "there is no second trace";
    EXPECT_EQ(to_csv(some), "tensor,size_bytes\nprobs,64\n");
    view.has_other = true;
    EXPECT_EQ(ledger_data(view, columns).columns.size(), 3u);
    view.has_closed_form = true;
    EXPECT_EQ(ledger_data(view).columns.size(), kNumLedgerColumns);
}

TEST(CompareData, HoldsMeasuredAndPredictedFigures) {
    Comparison comparison;
    ComparisonColumn column;
    column.recipe = "tempo";
    column.peak_allocated_bytes = 100;
    column.peak_by_category[static_cast<std::size_t>(Category::kActivation)] = 100;
    column.curve.push_back({.batch_size = 4, .step_time_ns = 8, .sequences_per_s = 5});
    column.curve.push_back({.batch_size = 8, .out_of_memory = true});
    comparison.columns.push_back(column);
    CompareView view = build_compare_view(comparison);
    view.columns[0].planned = PlanRow{.max_batch_size = 7};
    view.planned_on = "NVIDIA T4";
    const std::string csv = to_csv(compare_data(comparison, view));
    EXPECT_THAT(csv, HasSubstr("peak_activation_bytes"));
    EXPECT_THAT(csv, HasSubstr("NVIDIA T4,7"));
    EXPECT_THAT(to_csv(throughput_data(comparison, view)), HasSubstr("tempo,measured,8,"));
}

TEST(RangeData, NamesUnitsAndTheSecondTraceOnlyWhereThereIsOne) {
    RangeView view;
    view.figures = {{.name = "time", .values = {5, 7}, .difference = 2},
                    {.name = "freed", .values = {64, 32}, .difference = -32}};
    EXPECT_EQ(to_csv(range_figures_data(view)), "name,unit,a\ntime,ns,5\nfreed,bytes,64\n");
    view.has_other = true;
    EXPECT_EQ(to_csv(range_figures_data(view)),
              "name,unit,a,b,difference\ntime,ns,5,7,2\nfreed,bytes,64,32,-32\n");
    EXPECT_THAT(range_data(view, view.figures, "bytes").columns,
                ElementsAre("name", "scope", "a_bytes", "b_bytes", "difference_bytes"));
}

TEST(PlannerData, JoinsMemoryAndSpeedByBatch) {
    PlannerView view{.gpu = "t4", .usable_bytes = 100};
    PlanRow row{.max_batch_size = 9};
    row.workload.recipe_name = "tempo";
    row.memory_curve = {{.batch_size = 1, .needed_bytes = 10},
                        {.batch_size = 4, .needed_bytes = 40}};
    row.curve = {{.batch_size = 4, .step_time_ns = 5, .sequences_per_s = 2}};
    view.recipes = {{.row = row}};
    const DataTable table = planner_data(view);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(to_csv(table).substr(to_csv(table).find('\n') + 1),
              "tempo,t4,1,10,100,,,9\ntempo,t4,4,40,100,5,2,9\n");
}

TEST(DiagnosticsData, HasARowForEachDiagnostic) {
    const std::vector<std::pair<std::string, std::vector<DiagnosticItem>>> traces{
        {"tempo",
         {{.code = "x", .severity = Severity::kWarning, .count = 2, .explanation = "y."}}}};
    EXPECT_THAT(to_csv(diagnostics_data(traces)), HasSubstr("tempo,warning,x,2,y.\n"));
}

}  // namespace
