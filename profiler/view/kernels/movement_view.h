#pragma once

#include "profiler/analysis/ops/movement.h"
#include "profiler/analysis/step_index.h"
#include "profiler/planner/device_peaks.h"
#include "profiler/tables/columns.h"
#include "profiler/view/axis.h"
#include "profiler/view/theme.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the Movement panel, its charts and the command `movement` show: the roofline of a card with
/// a dot for each op, and the table of Ivanov et al., "Data Movement Is All You Need".
///
///     flop/s │        ________ peak of the card
///            │      /    ●  ●  products
///            │    / ●
///            │  / ●   ○ passes over data
///            └──────────────── flop per byte
///
/// An op without arithmetic, such as a copy, has no intensity. It stands at the left edge, as far
/// below the roof as its bandwidth is below that of the card.
namespace profiler {

/// Short names of ops for pictures. As much of its module's path stands before an op as tells that
/// module from the others of the picture: "query addmm", but "attention.output.dense addmm" beside
/// "output.dense addmm". A last part that the op's name repeats is left out: the dropout of
/// "attention.output.dropout" is "attention.output dropout_forward". A logical op says where it is
/// only if its name occurs in several modules.
class OpLabels {
public:
    /// Call it for each op of the picture, then `label_of`.
    void add(const MovementRow& row);
    std::string label_of(const MovementRow& row) const;

private:
    std::string_view place_of(std::string_view module) const;

    std::set<std::pair<std::string, std::string>> seen_;     // module and, of a logical op, name
    std::map<std::string, std::size_t, std::less<>> tails_;  // modules that end so: "output.dense"
    std::map<std::string, std::size_t, std::less<>> logical_names_;  // modules that have such an op
};

enum class MovementOps : uint8_t { kRun, kLogical };
inline constexpr std::array<std::string_view, 2> kMovementOpsNames{"run", "logical"};

enum class MovementColumn : uint8_t {
    kOp,
    kModule,
    kPhase,
    kClass,
    kCalls,
    kFlop,
    kRead,
    kWritten,
    kFlopPerByte,
    kTime,
    kTimeShare,
    kPeak,
    kBandwidth,
    kMue,
    kLeastTime
};
inline constexpr std::size_t kNumMovementColumns = 15;

struct MovementRequest {
    Steps steps;
    std::array<PeaksOfTrace, 2> peaks;  // of the card of each step
    MovementOps ops = MovementOps::kRun;
    MovementScope scope = MovementScope::kLayers;
    MovementColumn sort_by = MovementColumn::kTime;
    bool descending = true;
};

/// One op, class or layer, in numbers and in words. Texts without a value are "–".
struct MovementViewRow {
    MovementRow row;
    MovementRates rates;
    double time_share = 0;                               // of the time of all rows
    std::string name;                                    // short: "addmm"
    std::string label;                                   // for pictures: OpLabels
    std::array<std::string, kNumMovementColumns> cells;  // by MovementColumn
    bool is_peak_larger = false;                         // % of peak is above MUE
    bool is_mue_larger = false;                          // or MUE above % of peak
};

/// A dot of the roofline. `x` and `y` are where it is drawn, on logarithmic axes.
struct MovementDot {
    std::size_t row = 0;  // of its source's rows
    double x = 0;         // flop per byte
    double y = 0;         // flop/s
    double radius = 0;    // 0 to 1: the root of its time over that of the longest op
    bool has_arithmetic = true;
    std::optional<std::size_t> other;  // of a dot of A: the dot of B for the same work
};

struct MovementClassRow {
    OpClass op_class = OpClass::kOther;
    double flop_share = 0;
    std::optional<double> time_share;
    std::optional<double> ivanov_flop_share;  // of the paper, where it is comparable
    std::optional<double> ivanov_time_share;
};

struct MovementTrace {
    std::vector<MovementViewRow> rows;  // in the order of the table
    std::vector<MovementDot> dots;      // large ones first
    std::vector<MovementClassRow> classes;
    std::optional<double> memory_bound_share;
    std::string total;  // sum_text
    /// Of logical ops: the sums of one layer, and of its attention.
    std::string per_layer;
};

struct MovementView {
    std::vector<MovementTrace> traces;  // as the steps
    DevicePeaks peaks;                  // of the roofline: of A's card
    std::string headline;               // "Memory-bound ops take 61.3 % of the time ..."
    std::vector<std::string> notes;
    bool has_times = false;  // dots stand at their rates; else each stands at the roof
    double ridge = 0;        // flop per byte where the two limits meet; 0: not known
    double first_x = 0.01;   // ends of the axes
    double last_x = 1000;
    double first_y = 1e9;
    double last_y = 1e15;
    bool has_gutter = false;    // there are dots without arithmetic
    double gutter_x = 0;        // where they stand
    std::vector<Tick> x_ticks;  // decades
    std::vector<Tick> y_ticks;
};

/// The shape of a dot, so that its colour can be its class.
Marker marker_of(PhaseKind phase);
/// The colour of a class.
CallClass call_class_of(OpClass op_class);
/// "8.0622 Tflop, 42.684 Gwords, 188.9 flop a word (94.4 a byte), 78.4 ms"
std::string sum_text(const MovementWork& work);

MovementView build_movement_view(const MovementRequest& request);

/// The row that holds a call, or else the row of the counted call around it. Empty: none.
std::optional<std::size_t> row_of(const MovementTrace& movement, const Trace& trace, Id<Op> call);

/// Rows with their texts.
std::vector<MovementViewRow> movement_rows(const std::vector<MovementRow>& rows,
                                           const DevicePeaks& peaks, bool peaks_fit_times);

/// Columns that have no value in any row are left out. The larger of % of peak and MUE is strong.
TextTable movement_table(const std::vector<MovementViewRow>& rows, MovementBy by);

/// Those of MovementColumn, then those for other programs alone.
const std::vector<TableColumn<MovementViewRow>>& movement_columns();
inline const TableColumn<MovementViewRow>& table_column(MovementColumn column) {
    return movement_columns()[static_cast<std::size_t>(column)];
}

/// The classes, beside Ivanov's if the paper's table is of the same workload and ops.
const std::vector<TableColumn<MovementClassRow>>& movement_class_columns();
TextTable movement_class_table(const std::vector<MovementClassRow>& classes);
std::vector<MovementClassRow> movement_classes(const MovementReport& report,
                                               const models::Workload* workload,
                                               MovementScope scope);

/// The highest rate of flop that the roof allows at an intensity.
double roof_at(const DevicePeaks& peaks, double flop_per_byte);

/// A row for each op.
DataTable movement_data(const MovementTrace& movement);

}  // namespace profiler
