#pragma once

#include "profiler/analysis/compare/comparison.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/planner/plan_figures.h"
#include "profiler/tables/columns.h"
#include "profiler/view/theme.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// What the Compare panel and the comparison chart draw: one column per recipe with its memory by
/// category, its maximum batch and its throughput, each compared with the baseline.
///
/// Values have units (bytes, sequences per second), and colours are given as categories and recipe
/// indices, so the same view serves every size of window or paper.
namespace profiler {

/// How a value differs from that of its baseline: "-38.2 %". Empty for a baseline itself, and where
/// one of the two values is missing.
struct Change {
    std::string text;
    double ratio = 0;  // (value - baseline) / baseline
    Tone tone = Tone::kNeutral;

    bool empty() const { return text.empty(); }
};

/// One layer of a stacked bar, from `start_bytes` to `start_bytes + size_bytes`.
struct StackSegment {
    Category category = Category::kUnknown;
    int64_t start_bytes = 0;
    int64_t size_bytes = 0;
    std::string text;  // "12.4 GiB"
};

struct CurvePoint {
    int64_t batch_size = 0;
    double sequences_per_s = 0;      // from the median step time
    double sequences_per_s_min = 0;  // spread over the samples
    double sequences_per_s_max = 0;
    int64_t peak_bytes = 0;
    std::string text;  // "B=8: 12.4 sequences/s (12.1 to 12.6), peak 3.20 GiB"
};

struct CompareColumn {
    std::string recipe;
    std::size_t index = 0;  // in the order of the comparison
    std::size_t color = 0;  // for recipe_color and recipe_marker
    bool is_baseline = false;
    bool is_planned = false;    // no file holds it: a plan says what it would be
    bool is_predicted = false;  // planned, or its files hold a predicted step
    std::string source;         // "measured on the CPU"

    std::vector<StackSegment> stack;  // at the peak, in kCategoryStackOrder, without empty ones
    int64_t peak_bytes = 0;           // 0: these files hold no captured step
    std::string peak_text;            // "3.20 GiB"; "≥ 3.20 GiB, out of memory"
    bool memory_is_predicted = false;
    std::string short_peak_text;  // "≥ 3.20 GiB"
    std::string why_no_peak;      // "out of memory", "does not fit"; empty: the step fitted
    bool out_of_memory = false;   // the captured step did not fit
    bool is_cut_off = false;      // memory ran out in it: its peak would be higher
    std::string batch_text;       // "B=1", of the captured step; empty: all ran one batch
    Change peak_change;
    std::string peak_phase_text;  // "backward"; empty: outside a phase

    int64_t saved_bytes = 0;  // held from forward to backward; not the same as the peak
    std::string saved_text;
    Change saved_change;

    std::optional<int64_t> max_batch_size;
    int64_t largest_batch = 0;   // the maximum, or the largest that trained if it is unknown
    std::string max_batch_text;  // "12", "≥ 8, < 16", "≥ 64" (no limit met), "–" (no sweep)
    Change max_batch_change;

    double sequences_per_s = 0;   // of the captured step; 0 = none
    std::string throughput_text;  // "(busy)" where the machine was
    Change throughput_change;     // of the medians
    std::string step_time_text;
    Change step_time_change;  // of the medians; empty for steps that were measured in turn
    bool was_in_turn = false;
    std::string step_ratio_text;  // "0.92 (0.89 to 0.96), 6 pairs"; empty: too few pairs, or none
    Tone step_ratio_tone = Tone::kNeutral;

    std::string loss_text;  // of the last step

    std::vector<CurvePoint> curve;               // of a sweep: batches that trained, ascending
    std::optional<CurvePoint> captured;          // the captured step, which no sweep ran
    std::optional<std::size_t> best_point;       // index into `curve`: the fastest
    std::optional<int64_t> out_of_memory_batch;  // the smallest batch that did not fit
    std::string best_text;                       // "14.1 at batch 16", "(busy)"
    Change best_change;

    std::optional<PlanRow> planned;   // what a plan says, drawn under what was measured
    Change planned_max_batch_change;  // between plans
    Change planned_best_change;

    std::vector<std::string> files;
};

/// The title of the column of losses. They agree where recipes compute the same function, so they
/// matter only when they do not.
inline constexpr const char* kLossTitle = "Loss";

struct CompareView {
    std::vector<CompareColumn> columns;  // in the order of the comparison
    std::vector<Category> categories;    // that occur in any stack, in kCategoryStackOrder
    TextTable table;                     // a row per recipe

    std::string workload;  // "bert-large, 3 layers, no head, B=8 S=512, fp32"
    std::string sentence;  // what a user would quote
    std::string source;    // "Measured on the CPU (AMD EPYC ...), median of 3 steps"
    std::vector<std::string> notes;

    int64_t max_peak_bytes = 0;    // ends of the axes
    int64_t step_limit_bytes = 0;  // to draw beside the peaks: one came near it; 0: none
    int64_t max_batch_size = 0;    // over max_batch_size and the curves
    double max_sequences_per_s = 0;

    bool has_one_baseline = false;  // all columns ran the same step, so all have the same baseline
    bool has_peak = false;          // at least one captured step
    bool has_max_batch = false;     // at least one sweep reached a limit
    bool has_throughput = false;    // at least one sweep, so there are curves to draw
    std::string memory_limit_text;  // "8.00 GiB"; empty without a limit or when the limits differ
    std::string no_max_batch_text;  // if there is nothing to draw: why, and what to run
    std::string no_throughput_text;
    std::string no_rate_text;  // the same, of the rates of captured steps

    std::string planned_on;    // "NVIDIA A100 80 GB SXM"; empty: no plan was made
    std::string no_plan_text;  // why none could be made
    /// Beside a recipe that no file holds: "predicted"; "predicted, T4" if the files are of another
    /// device.
    std::string planned_mark;
};

/// A figure of each recipe in tables that people read, and how it changes from the first recipe of
/// the same step.
struct CompareFigure {
    std::string name;          // of its row in a terminal; empty: it has none there
    TextTable::Column column;  // of the panel's table; without a title: it has none there
    std::function<std::string(const CompareColumn&)> text;
    std::function<Change(const CompareColumn&)> change = nullptr;  // null: none is shown
    std::string what_changes = {};  // in the panel: "the peak"; empty: no change is shown there
};
std::vector<CompareFigure> compare_figures();

/// Up to this many recipes stand beside each other as columns; more are rows with their names at
/// the left.
inline constexpr std::size_t kMostComparedColumns = 6;

CompareView build_compare_view(const Comparison& comparison);

/// Fills the gaps of the files from a plan of one step on one GPU: a column for each recipe without
/// a column, and the memory of each recipe that has a sweep alone. Adds nothing if the columns are
/// of several steps.
void add_planned_columns(Comparison& comparison, const Plan& plan);

/// Adds what a plan says about the recipes of a comparison: its rows are of the first step of the
/// comparison, on one GPU. Columns of other steps, and those of which the plan has no row, stay
/// without.
void add_plan(CompareView& view, const Comparison& comparison, const Plan& plan);

/// The colour of each column, as `color` of its view.
std::vector<std::size_t> comparison_colors(const Comparison& comparison);

// ---- tables for other programs ------------------------------------------------------------------

/// A row for each recipe; planned figures have columns of their own.
DataTable compare_data(const Comparison& comparison, const CompareView& view);
/// A row for each recipe and batch: what sweeps measured, and what is predicted.
DataTable throughput_data(const Comparison& comparison, const CompareView& view);

enum class Better : uint8_t { kLess, kMore };

/// How `value` differs from `baseline`; empty if one of them is not above 0.
Change change_of(double value, double baseline, Better better);

/// The maximum batch: "12"; "≥ 8, < 16" for a sweep that ended before it found the maximum; "≥ 64"
/// for one that reached no limit; empty without a batch.
std::string bounds_text(const BatchBounds& bounds);

/// A bar in kCategoryStackOrder, without empty categories.
std::vector<StackSegment> build_stack(const CategoryBytes& by_category);

}  // namespace profiler
