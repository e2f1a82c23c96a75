#pragma once

#include "models/config/workload.h"
#include "profiler/analysis/step_index.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/trace.h"
#include "profiler/view/layers/layer_figures.h"
#include "profiler/view/layers/layer_flow.h"
#include "profiler/view/peak/ledger_view.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the Layer explorer draws: the calls of a layer as boxes in two lanes, and each tensor saved
/// for backward as a ribbon from its maker down to the backward call that consumes it. A second
/// trace lies over the first: ribbons that only one of them has are marked.
///
/// layer_flow.h says how makers and consumers are found. Horizontal positions run from 0 (left) to
/// 1 (right); the panel chooses the heights. All ribbons have one scale of bytes, chosen so that
/// the ribbons of each box fit below it, and all bars of time have one scale of time.
namespace profiler {

// The switches of a recipe as rows of buttons: what A and B chose, and the recipe that each other
// value leads to.

struct SwitchOption {
    std::string name;    // "in_place"
    std::string phrase;  // "in-place GELU"
    std::string recipe;  // of the whole step, with this value: "gelu=in_place,masks=bit"
};

struct RecipeSwitchRow {
    std::string name;  // "gelu"
    std::vector<SwitchOption> options;
    std::array<std::size_t, 2> chosen{kNone, kNone};  // option of A and B

    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

/// One row per switch of a layer. The chosen values are those of `layer`. An option's recipe is
/// that of B, or of A if there is no B, with the value in all layers; where the value needs other
/// switches, these are set too. Empty if a trace does not say its workload. `second` may be null.
std::vector<RecipeSwitchRow> recipe_switches(const Trace& first, const Trace* second,
                                             int64_t layer);
std::vector<RecipeSwitchRow> recipe_switches(const models::Workload& first,
                                             const models::Workload* second, int64_t layer);

struct LayerRequest {
    Steps steps;
    LayerRange layers;

    friend bool operator==(const LayerRequest&, const LayerRequest&) = default;
};

/// The calls of a module in one direction.
struct LayerNode {
    bool exists = false;
    Presence presence = Presence::kSame;  // kSame, kDisappeared: only in A, or kAdded: only in B
    OpClass op_class = OpClass::kOther;
    std::array<Id<Op>, 2> op;     // in A and B; invalid where the trace has none
    std::string calls;            // "bmm, mul_"
    std::string time_text;        // "189 µs"; of B where both have it; empty if times mean nothing
    int64_t time_ns = 0;          // of time_text; 0 without
    double time_width = 0;        // of a bar for time_ns, in the picture's; not wider than the box
    std::string difference_text;  // "+127 µs", where B takes longer or shorter by over 2 %
    std::string recomputed_text;  // "189 µs" that recompute a forward; empty: nothing does
};

struct LayerColumn {
    double left = 0;
    double right = 0;
    std::string title;  // "softmax"
    std::string path;   // "attention.self.softmax"
    LayerNode forward;
    LayerNode backward;
};

struct LayerRibbon {
    std::string name;       // "gelu_input"
    std::string size_text;  // "32.0 MiB", "-32.0 MiB", "+8.00 MiB", "4.00 MiB to 512 KiB"
    Category category = Category::kUnknown;
    Presence presence = Presence::kSame;
    std::array<int64_t, 2> bytes{};            // in A and B
    std::size_t producer = kOutside;           // column; kOutside: the layer before
    std::size_t consumer = kOutside;           // column
    bool consumer_known = true;                // false: drawn to where it was saved
    double top_left = 0, top_right = 0;        // at the maker
    double bottom_left = 0, bottom_right = 0;  // at the consumer
    std::vector<std::size_t> also;  // columns of other backward calls that are handed the tensor
    std::vector<std::pair<std::string, std::string>> details;  // for a tooltip
    std::array<std::vector<Id<Storage>>, 2> storages;          // in A and B, sorted
    std::array<Id<Storage>, 2> storage;                        // of the first layer
    std::array<Id<Allocation>, 2> block;                       // of that storage
};

struct LayerView {
    std::vector<LayerColumn> columns;
    std::vector<LayerRibbon> ribbons;  // large ones first, so that small ones are drawn on top
    std::vector<PairFigure> figures;
    bool has_other = false;
    double outside_right = 0;  // tensors of the layer before start left of this
    LayerRange layers;         // as shown, within the layers that the traces have
    int64_t num_layers = 0;
    std::array<std::string, 2> forward_text;       // "1.73 ms" of A and B; empty: not known
    std::array<std::string, 2> backward_text;      // the same
    std::string box_times_text;                    // "boxes show B"; empty if not both have times
    std::string recomputed_text;                   // "189 µs recomputed" in B, or in A alone
    std::vector<std::string> notes;                // what is left out
    std::vector<RecipeSwitchRow> switches;         // of the first shown layer
    std::array<std::vector<FlowPlace>, 2> places;  // of the calls of A and B, by id

    /// Beyond these, the smallest tensors between the same two boxes become one ribbon.
    static constexpr std::size_t kMostRibbons = 160;
};

LayerView build_layer_view(const LayerRequest& request);

/// The ribbon of a storage of A or B; nullopt if no ribbon shows it.
std::optional<std::size_t> ribbon_of(const LayerView& view, bool in_b, Id<Storage> storage);
/// The box of a call of A or B; its column is kOutside if no box shows it.
FlowPlace place_of(const LayerView& view, bool in_b, Id<Op> op);

// ---- tables for other programs ------------------------------------------------------------------

/// A row for each ribbon, with the columns of the calls that make and need it.
DataTable ribbons_data(const LayerView& view);

}  // namespace profiler
