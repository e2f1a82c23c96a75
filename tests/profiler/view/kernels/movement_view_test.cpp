#include "profiler/view/kernels/movement_view.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace profiler {
namespace {

using ::tests::TraceBuilder;

const DevicePeaks kCard{.name = "card", .flop_per_s = 100e12, .bytes_per_s = 1e12};

struct CallOfOp {
    std::string name;
    std::string module;
    OpClass op_class = OpClass::kElementWise;
    int64_t flop = 0;
    int64_t words = 0;
    int64_t time_ns = 0;
    PhaseKind phase = PhaseKind::kForward;
};

Trace trace_with(const std::vector<CallOfOp>& calls) {
    TraceBuilder b;
    b.begin_step();
    for (const CallOfOp& call : calls) {
        b.begin_phase(call.phase);
        const auto module = b.module_path("encoder.layer.0." + call.module, 0);
        const Id<Op> op = b.op(call.name, module);
        b.trace().ops.set<&Op::flop>(op, call.flop);
        b.trace().ops.set<&Op::read_words>(op, call.words / 2);
        b.trace().ops.set<&Op::written_words>(op, call.words / 2);
        b.trace().ops.set<&Op::op_class>(op, call.op_class);
        b.trace().kernels.append(
            {.name = b.text("kernel"), .op = op, .start_ns = 0, .end_ns = call.time_ns});
        b.end_phase();
    }
    return b.finish();
}

std::vector<CallOfOp> two_ops() {
    return {{.name = "aten::addmm",
             .module = "output.dense",
             .op_class = OpClass::kContraction,
             .flop = 40'000'000,
             .words = 10'000,
             .time_ns = 1000},
            {.name = "aten::gelu",
             .module = "act",
             .flop = 1'000'000,
             .words = 1'000'000,
             .time_ns = 8000},
            {.name = "aten::copy_", .module = "act", .words = 100'000, .time_ns = 500}};
}

MovementRequest request_of(const StepIndex& step) {
    return {.steps = {&step}, .peaks = {PeaksOfTrace{kCard, true, {}}}};
}

MovementView view_of(const Trace& trace) {
    const StepIndex step(trace);
    return build_movement_view(request_of(step));
}

Trace trace_of(const models::Workload& workload) {
    Trace trace = trace_with(two_ops());
    trace.runs.set<&Run::workload>(Id<Run>(0),
                                   trace.strings.intern(models::to_json(workload).dump()));
    return trace;
}

const MovementDot* dot_named(const MovementTrace& trace, std::string_view name) {
    const auto found = std::find_if(trace.dots.begin(), trace.dots.end(), [&](const auto& dot) {
        return trace.rows[dot.row].row.name == name;
    });
    return found == trace.dots.end() ? nullptr : &*found;
}

TEST(MovementView, DotsStandAtTheirIntensityAndRate) {
    const MovementView view = view_of(trace_with(two_ops()));
    ASSERT_EQ(view.traces.size(), 1U);
    EXPECT_DOUBLE_EQ(view.ridge, 100);
    const MovementDot* const product = dot_named(view.traces[0], "aten::addmm");
    ASSERT_NE(product, nullptr);
    EXPECT_DOUBLE_EQ(product->x, 1000);  // 4 bytes a word
    EXPECT_DOUBLE_EQ(product->y, 40e12);
    const MovementDot* const map = dot_named(view.traces[0], "aten::gelu");
    ASSERT_NE(map, nullptr);
    EXPECT_DOUBLE_EQ(map->x, 0.25);
    EXPECT_DOUBLE_EQ(map->radius, 1);
    EXPECT_NEAR(product->radius, std::sqrt(1.0 / 8), 1e-9);
    for (const MovementDot& dot : view.traces[0].dots) {
        EXPECT_GT(dot.x, view.first_x);
        EXPECT_LT(dot.x, view.last_x);
        EXPECT_GT(dot.y, view.first_y);
        EXPECT_LT(dot.y, view.last_y);
    }
}

TEST(MovementView, AnOpWithoutArithmeticStandsInTheGutterAsFarBelowTheRoofAsItsBandwidth) {
    const MovementView view = view_of(trace_with(two_ops()));
    const MovementDot* const copy = dot_named(view.traces[0], "aten::copy_");
    ASSERT_NE(copy, nullptr);
    EXPECT_TRUE(view.has_gutter);
    EXPECT_FALSE(copy->has_arithmetic);
    EXPECT_DOUBLE_EQ(copy->x, view.gutter_x);
    // 400 kB in 500 ns: 800 GB/s of 1 TB/s.
    EXPECT_NEAR(copy->y / roof_at(kCard, view.gutter_x), 0.8, 1e-9);
    ASSERT_FALSE(view.x_ticks.empty());
    EXPECT_GT(view.x_ticks.front().value, view.gutter_x);
}

TEST(MovementView, TheLargerOfTheTwoLimitsIsStrong) {
    const MovementView view = view_of(trace_with(two_ops()));
    for (const MovementViewRow& row : view.traces[0].rows) {
        EXPECT_EQ(row.is_peak_larger, row.row.name == "aten::addmm") << row.row.name;
        EXPECT_EQ(row.is_mue_larger, row.row.name != "aten::addmm") << row.row.name;
    }
    const TextTable table = movement_table(view.traces[0].rows, MovementBy::kOp);
    const auto column = [&](std::string_view title) {
        const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                        [&](const auto& c) { return c.title == title; });
        return static_cast<std::size_t>(found - table.columns.begin());
    };
    // Sorted by time: the first row is the pass over data.
    EXPECT_EQ(table.rows[0][column("MUE %")], "50.0");
    EXPECT_EQ(table.tones[0][column("MUE %")], Tone::kStrong);
    EXPECT_EQ(table.tones[0][column("% of peak")], Tone::kNeutral);
}

TEST(MovementView, TheHeadlineSaysWhatMemoryBoundOpsTake) {
    const MovementView view = view_of(trace_with(two_ops()));
    EXPECT_EQ(view.headline,
              "Memory-bound ops take 89.5 % of the time in the layers, by the limits of card.");
}

TEST(MovementView, WithoutPeaksOfItsDeviceThereIsNoHeadline) {
    const Trace trace = trace_with(two_ops());
    const StepIndex step(trace);
    MovementRequest request = request_of(step);
    request.peaks[0] = {.notes = {"Why."}};
    const MovementView view = build_movement_view(request);
    EXPECT_EQ(view.headline, "");
    EXPECT_EQ(view.notes, std::vector<std::string>{"Why."});
    EXPECT_FALSE(view.traces[0].dots.empty());
    for (const MovementViewRow& row : view.traces[0].rows) {
        EXPECT_EQ(row.cells[static_cast<std::size_t>(MovementColumn::kMue)], "–");
        EXPECT_FALSE(row.is_mue_larger || row.is_peak_larger);
    }
}

TEST(MovementView, JoinsOpsOfAWithThoseOfB) {
    auto calls = two_ops();
    const Trace first = trace_with(calls);
    calls[0].time_ns = 2000;
    calls[1].name = "tempo::gelu_forward";  // of the same module and class, if the copy is joined
    const Trace second = trace_with(calls);
    const StepIndex a(first), b(second);
    MovementRequest request = request_of(a);
    request.steps.b = &b;
    request.peaks[1] = request.peaks[0];
    const MovementView view = build_movement_view(request);
    ASSERT_EQ(view.traces.size(), 2U);
    for (const MovementDot& dot : view.traces[0].dots) {
        ASSERT_TRUE(dot.other.has_value());
        const MovementRow& own = view.traces[0].rows[dot.row].row;
        const MovementRow& other = view.traces[1].rows[view.traces[1].dots[*dot.other].row].row;
        EXPECT_EQ(own.module, other.module);
        EXPECT_EQ(other.name, own.name == "aten::gelu" ? "tempo::gelu_forward" : own.name);
    }
    EXPECT_NE(view.headline.find("in B"), std::string::npos);
}

TEST(MovementView, SortsByAnyColumn) {
    const Trace trace = trace_with(two_ops());
    const StepIndex step(trace);
    MovementRequest request = request_of(step);
    const auto first_name = [&](MovementColumn by, bool descending) {
        request.sort_by = by;
        request.descending = descending;
        return build_movement_view(request).traces[0].rows[0].row.name;
    };
    EXPECT_EQ(first_name(MovementColumn::kTime, true), "aten::gelu");
    EXPECT_EQ(first_name(MovementColumn::kTime, false), "aten::copy_");
    EXPECT_EQ(first_name(MovementColumn::kFlop, true), "aten::addmm");
    EXPECT_EQ(first_name(MovementColumn::kOp, false), "aten::addmm");
    EXPECT_EQ(first_name(MovementColumn::kOp, true), "aten::gelu");
    EXPECT_EQ(first_name(MovementColumn::kPhase, false), "aten::addmm");
}

TEST(MovementView, LogicalOpsStandAtTheLimitOfTheCard) {
    const models::Workload workload{.model = *models::find_model("substation-encoder"),
                                    .precision = models::Precision::kFp16,
                                    .batch_size = 8,
                                    .seq_len = 512};
    const Trace trace = trace_of(workload);
    Trace unknown = trace_with(two_ops());
    unknown.runs.set<&profiler::Run::workload>(Id<profiler::Run>(0), StringId());
    const StepIndex step(trace), unknown_step(unknown);
    MovementRequest request = request_of(step);
    request.ops = MovementOps::kLogical;
    const MovementView view = build_movement_view(request);
    const MovementTrace& logical = view.traces[0];
    EXPECT_FALSE(view.has_times);
    for (const MovementDot& dot : logical.dots) {
        if (!dot.has_arithmetic) continue;
        EXPECT_NEAR(dot.y, roof_at(kCard, dot.x), dot.y * 1e-9);
    }
    EXPECT_NE(logical.per_layer.find("335.69 Gflop"), std::string::npos) << logical.per_layer;
    EXPECT_NE(logical.per_layer.find("43.168 Gflop"), std::string::npos);
    EXPECT_NE(logical.per_layer.find("153.6 flop a word"), std::string::npos);
    ASSERT_EQ(logical.classes.size(), 3U);
    EXPECT_DOUBLE_EQ(*logical.classes[0].ivanov_time_share, 0.61);
    // Without a workload there is nothing to draw.
    request.steps.a = &unknown_step;
    EXPECT_TRUE(build_movement_view(request).traces[0].rows.empty());
}

TEST(MovementView, FindsTheRowOfACall) {
    Trace trace = trace_with(two_ops());
    const Id<Op> inner =
        trace.ops.append({.name = trace.strings.intern("kernel wrapper"), .parent = Id<Op>(1)});
    const MovementView view = view_of(trace);
    const MovementTrace& movement = view.traces[0];
    const auto row = row_of(movement, trace, inner);
    ASSERT_TRUE(row.has_value());
    EXPECT_EQ(movement.rows[*row].row.name, "aten::gelu");
    EXPECT_FALSE(row_of(movement, trace, Id<Op>()).has_value());
    EXPECT_FALSE(row_of(movement, trace, Id<Op>(1000)).has_value());
}

TEST(MovementView, AnEmptyTraceHasNoRows) {
    const MovementView view = view_of(Trace());
    ASSERT_EQ(view.traces.size(), 1U);
    EXPECT_TRUE(view.traces[0].rows.empty());
    EXPECT_TRUE(build_movement_view({}).traces.empty());
}

TEST(MovementView, UnitsFollowTheSizesOfASmallModel) {
    auto calls = two_ops();
    calls[0].flop = 4200;
    calls[0].words = 640;
    const MovementView view = view_of(trace_with(calls));
    const auto cell = [&](std::string_view name, MovementColumn column) {
        const auto& rows = view.traces[0].rows;
        const auto row = std::find_if(rows.begin(), rows.end(),
                                      [&](const auto& r) { return r.row.name == name; });
        return row->cells[static_cast<std::size_t>(column)];
    };
    EXPECT_EQ(cell("aten::addmm", MovementColumn::kFlop), "4.20 k");
    EXPECT_EQ(cell("aten::addmm", MovementColumn::kRead), "320");
    EXPECT_EQ(cell("aten::addmm", MovementColumn::kBandwidth), "2.56 GB/s");
    EXPECT_EQ(cell("aten::gelu", MovementColumn::kFlop), "1.00 M");
    EXPECT_EQ(cell("aten::copy_", MovementColumn::kFlop), "–");
    EXPECT_EQ(view.traces[0].total.find("1.0042 Mflop, 1.1006 Mwords"), 0U) << view.traces[0].total;
}

TEST(MovementView, IvanovsSharesStandOnlyBesideHisWorkload) {
    models::Workload workload{.model = *models::find_model("bert-large"),
                              .precision = models::Precision::kFp16,
                              .batch_size = 8,
                              .seq_len = 512};
    const auto has_paper = [&](MovementScope scope = MovementScope::kLayers) {
        const Trace trace = trace_of(workload);
        const StepIndex step(trace);
        MovementRequest request = request_of(step);
        request.scope = scope;
        const MovementView view = build_movement_view(request);
        return view.traces[0].classes[0].ivanov_time_share.has_value();
    };
    EXPECT_TRUE(has_paper());
    EXPECT_FALSE(has_paper(MovementScope::kAll));  // the paper's layer has no loss, head, optimizer
    workload.seq_len = 128;
    EXPECT_FALSE(has_paper());
    workload.seq_len = 512;
    workload.precision = models::Precision::kFp32;
    EXPECT_FALSE(has_paper());
    workload.precision = models::Precision::kAmpBf16;
    EXPECT_TRUE(has_paper());
    // A table without his shares has no columns for them.
    const TextTable table = movement_class_table({{.op_class = OpClass::kContraction}});
    EXPECT_EQ(table.columns.size(), 3U);
}

TEST(MovementView, LabelsSayAsMuchOfTheModuleAsTellsItFromOthers) {
    const auto row = [](const char* module, const char* name, bool is_logical = false) {
        MovementRow result;
        if (!is_logical) result.call = Id<Op>(0);
        result.module = module;
        result.name = name;
        return result;
    };
    OpLabels labels;
    for (const char* module :
         {"attention.self.query", "attention.self.dropout", "attention.output.dense",
          "attention.output.dropout", "output.dense", "output.dropout", "intermediate.dense",
          "attention.output.LayerNorm", "output.LayerNorm", "intermediate.act_fn", ""}) {
        labels.add(row(module, "aten::copy_"));
    }
    const auto label = [&](const char* module, const char* name) {
        return labels.label_of(row(module, name));
    };
    EXPECT_EQ(label("attention.self.query", "aten::addmm"), "query addmm");
    EXPECT_EQ(label("attention.output.dense", "aten::addmm"), "attention.output.dense addmm");
    EXPECT_EQ(label("output.dense", "aten::addmm"), "output.dense addmm");
    EXPECT_EQ(label("intermediate.dense", "aten::addmm"), "intermediate.dense addmm");
    EXPECT_EQ(label("attention.self.dropout", "tempo::dropout_forward"), "self dropout_forward");
    EXPECT_EQ(label("output.dropout", "tempo::dropout_forward"), "output dropout_forward");
    EXPECT_EQ(label("output.LayerNorm", "aten::native_layer_norm"), "output native_layer_norm");
    EXPECT_EQ(label("", "aten::add_"), "add_");

    const auto first = row("attention", "residual", true), second = row("mlp", "residual", true),
               product = row("mlp", "FF1 product", true);
    for (const MovementRow& logical : {first, second, product}) labels.add(logical);
    EXPECT_EQ(labels.label_of(first), "attention residual");
    EXPECT_EQ(labels.label_of(second), "mlp residual");
    EXPECT_EQ(labels.label_of(product), "FF1 product");
}

}  // namespace
}  // namespace profiler
