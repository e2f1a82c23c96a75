#pragma once

#include "app/workspace/selection.h"

#include <optional>
#include <vector>

/// The selections of the user, to go back to and forward again, like the pages of a browser. A and
/// B do not belong to it: a place in a trace means nothing in another, so the history begins anew
/// when they change.
namespace app {

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
        std::optional<SelectedActivity> activity;
        std::optional<profiler::CallMarks> marks;
    };
    static Picks picks_of(const Selection& selection);
    static bool is_same(const Picks& a, const Picks& b);
    static bool continues(const Picks& before, const Picks& now);

    std::vector<Picks> picks_{Picks()};  // oldest first
    size_t at_ = 0;                      // the one that is selected
};

}  // namespace app
