#pragma once

#include "app/workspace/document.h"
#include "profiler/analysis/ops/calls.h"
#include "profiler/view/kernels/call_group.h"
#include "profiler/view/layers/layer_flow.h"
#include "profiler/view/memory/timeline_view.h"

#include <optional>
#include <string>
#include <vector>

/// What is selected: the traces A and B, and within them a category, a time range, a tensor and a
/// call. There is one selection for the whole window, so selecting in one panel highlights in
/// every panel.
namespace app {

/// A tensor that was clicked, wherever it is drawn. A block that no tensor is known of has only an
/// allocation.
struct PickedTensor {
    DocumentPtr document;  // A or B; the click is ignored if it is neither by now
    profiler::Id<profiler::Storage> storage;
    profiler::Id<profiler::Allocation> allocation;
};

/// The same as other panels show it. `storage`, `allocation` and `in_b` identify it.
struct SelectedTensor {
    profiler::Id<profiler::Storage> storage;  // in the trace of B when `in_b`
    profiler::Id<profiler::Allocation> allocation;
    std::string name;  // of the tensor; "aten::mm" made it if it has none
    std::string module_path;
    int64_t size_bytes = 0;
    bool in_b = false;
    std::optional<double> alloc_ns;  // on the shared time axis
    std::optional<double> free_ns;   // nullopt: lives to the end
    int64_t num_kernels = 0;         // number of kernels that ran while it lived; 0 on the CPU
};

/// A call, kernel or copy that was clicked.
struct PickedCall {
    bool in_b = false;
    profiler::CallId id;
};

/// The same as other panels show it.
struct SelectedCall {
    profiler::CallId id;
    bool in_b = false;
    profiler::Id<profiler::Op> op;  // the op that it belongs to; invalid if unknown
    profiler::Id<profiler::Op>
        forward;                // the forward op of `op`; invalid if `op` is not a backward op
    std::string name;           // short: "aten::addmm", "volta_sgemm_128x32_nt"
    profiler::TimeRange range;  // on the shared time axis
};

struct Selection {
    DocumentPtr a;          // null when no trace is open
    DocumentPtr b;          // shown beside A; null: A alone
    DocumentLabel label_a;  // meaningless while there is no A
    DocumentLabel label_b;
    bool chosen = false;  // the user chose A or B; files opened later do not change them
    std::optional<profiler::Category> category;
    std::optional<profiler::TimeRange> range;  // on the shared time axis, which is that of A
    /// The moment of panels that show a single moment, on the shared time axis. Empty: the peak of
    /// A.
    std::optional<double> moment_ns;
    /// The layers of panels that show a range of layers. Empty: a middle layer.
    std::optional<profiler::LayerRange> layers;
    std::optional<SelectedTensor> tensor;
    std::optional<SelectedCall> call;
    std::optional<profiler::SelectedCalls> marks;  // all other calls and kernels are pale
};

/// Whether anything in A and B is selected that can be described.
bool selects_something(const Selection& selection);

/// Forgets what lies at a time or in a trace; A, B, the category and the layers stay.
void forget_places(Selection& selection);

/// Fills in A and B where the user has not chosen: A is the baseline, B another recipe. A file
/// without a recorded step is chosen only if there is no other.
void choose_defaults(Selection& selection, const std::vector<DocumentPtr>& documents);

/// `alignment` maps the clock of B to the time axis of A; null when A or B is missing.
SelectedTensor select(const PickedTensor& picked, bool in_b, const profiler::Alignment* alignment);
SelectedCall select(const PickedCall& picked, const Document& document,
                    const profiler::Alignment* alignment);

/// The selections of the user, to go back to and forward again, like the pages of a browser. A and
/// B do not belong to it: a place in a trace means nothing in another, so the history begins anew
/// when they change.
class SelectionHistory {
public:
    static constexpr size_t kMostKept = 50;

    /// Remembers what is selected now, unless it is the newest already. A range that is dragged and
    /// a moment that moves replace their earlier places.
    void observe(const Selection& now);
    /// Forgets all but what is selected now.
    void restart(const Selection& now);

    bool can_step(int direction) const;
    /// Selects what was selected one step before (-1) or after (1).
    void step(int direction, Selection& selection);

private:
    /// The part of a selection that is remembered.
    struct Picks {
        std::optional<profiler::Category> category;
        std::optional<profiler::TimeRange> range;
        std::optional<double> moment_ns;
        std::optional<profiler::LayerRange> layers;
        std::optional<SelectedTensor> tensor;
        std::optional<SelectedCall> call;
        std::optional<profiler::SelectedCalls> marks;
    };
    static Picks picks_of(const Selection& selection);
    static bool is_same(const Picks& a, const Picks& b);
    static bool continues(const Picks& before, const Picks& now);

    std::vector<Picks> picks_{Picks()};  // oldest first
    size_t at_ = 0;                      // the one that is selected
};

}  // namespace app
