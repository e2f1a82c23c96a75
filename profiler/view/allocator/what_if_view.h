#pragma once

#include "profiler/allocator/settings.h"
#include "profiler/tables/columns.h"
#include "profiler/view/allocator/segment_map_view.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// What other settings of PyTorch's caching allocator would do with the requests of a trace: the
/// same requests, replayed once under the trace's own settings and once under others, from the same
/// start (SimulationOptions). Where the program ran out of memory, the request that it was refused
/// is the last, and its limit holds unless another one is chosen.
namespace profiler {

/// Settings and limit of a replay.
struct WhatIfChoice {
    AllocatorSettings settings;
    std::optional<int64_t> memory_limit_bytes;

    friend bool operator==(const WhatIfChoice&, const WhatIfChoice&) = default;
};

struct WhatIfRequest {
    const StepIndex* step = nullptr;
    WhatIfChoice choice;
    bool tries_all = false;  // also replays settings_to_try

    friend bool operator==(const WhatIfRequest&, const WhatIfRequest&) = default;
};

struct WhatIfView {
    enum class Trend : uint8_t { kSame, kBetter, kWorse };

    struct Figure {
        std::string id;     // "peak_reserved_bytes"
        std::string label;  // "Peak reserved"
        int64_t recorded = 0;
        int64_t chosen = 0;
        std::string recorded_text;  // "23.4 GiB"
        std::string chosen_text;
        Trend trend = Trend::kSame;
        std::string help;
    };
    struct Tried {
        AllocatorSettings settings;
        std::string settings_text;                   // "expandable_segments:True"
        std::optional<int64_t> peak_reserved_bytes;  // none where memory runs out
        std::optional<int64_t> change_bytes;         // none where it runs out here or as recorded
        std::string reserved_text;                   // "23.0 GiB"
        std::string change_text;                     // "-384 MiB"; empty for no change
        Trend trend = Trend::kSame;
        bool fits = true;
        bool is_chosen = false;
    };

    std::string recorded_settings;  // "default settings"
    std::vector<Figure> figures;
    std::string fit_text;  // "Runs out of memory at aten::bmm in ...: ..."; empty without a limit
    bool fits = true;
    std::optional<double> out_of_memory_ns;       // on the trace's own clock
    std::vector<std::string> notes;               // what to know about the figures
    std::vector<Tried> tried;                     // best first; those that run out of memory last
    std::shared_ptr<const SegmentLayout> layout;  // of the chosen settings
};

/// "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", to be put before a command. Empty text
/// after the sign for the defaults.
std::string alloc_conf_line(const AllocatorSettings& settings);

/// `progress` gets the share that is done; the build fails when it returns false.
/// Errors: the trace has no allocations to replay, or contradicts itself.
models::Result<WhatIfView> build_what_if_view(const WhatIfRequest& request,
                                              const std::function<bool(double)>& progress);

// ---- tables for other programs ------------------------------------------------------------------

/// What was recorded beside what the chosen settings do.
DataTable what_if_data(const WhatIfView& view);
/// The settings that were tried, best first.
DataTable tried_data(const WhatIfView& view);

}  // namespace profiler
