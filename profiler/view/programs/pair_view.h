#pragma once

#include "profiler/analysis/step_index.h"
#include "profiler/tables/columns.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/time_map.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

/// The memory of A and of B at moments that can be compared. A recipe may halve the saved tensors
/// and hardly lower the peak, because the peak moves from the layers into the optimizer. The peak
/// alone does not show that; these moments do.
namespace profiler {

struct PairRequest {
    Steps steps;                                 // A and B
    std::shared_ptr<const Alignment> alignment;  // of B's clock to A's

    friend bool operator==(const PairRequest&, const PairRequest&) = default;
};

/// Two bars, A's and B's.
struct PairMoment {
    struct Bar {
        std::vector<StackSegment> stack;
        int64_t size_bytes = 0;
        std::string text;  // "12.4 GiB"
    };
    std::string title;  // "at A's peak"
    std::string explanation;
    std::array<Bar, 2> bars;
    Change change;  // of B against A
};

struct PairView {
    std::vector<PairMoment> moments;
    std::array<bool, 2> is_predicted{};
    int64_t max_bytes = 0;  // end of the axis
};

/// Moments of which one of the two traces knows nothing are left out.
PairView build_pair_view(const PairRequest& request);

// ---- tables for other programs ------------------------------------------------------------------

/// A row for each moment, trace and category.
DataTable pair_data(const PairView& view);

}  // namespace profiler
