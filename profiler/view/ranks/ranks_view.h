#pragma once

#include "profiler/analysis/ranks/rank_run.h"
#include "profiler/tables/columns.h"
#include "profiler/view/memory/timeline_view.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// The ranks of a run above each other, for one time window and pixel width: the memory of each,
/// how far it is from the median rank's, and its collectives, joined across the ranks.
///
/// The axis is the clock of one rank; RankRun::clocks maps those of the others onto it.
namespace profiler {

struct RanksRequest {
    std::shared_ptr<const RankRun> run;
    std::vector<const StepIndex*> ranks;  // in the order of run->ranks
    std::size_t axis_rank = 0;            // index of the rank whose clock is the axis
    double start_ns = 0;                  // window, on the axis
    double end_ns = 0;
    int width_px = 0;

    friend bool operator==(const RanksRequest&, const RanksRequest&) = default;
};

/// A collective of a rank, or several side by side that would share pixels.
struct CollectiveSpan {
    double start_ns = 0;  // on the axis
    double end_ns = 0;
    CollectiveKind kind = CollectiveKind::kOther;
    int row = 0;             // below others that run at the same time
    int64_t count = 1;       // merged spans
    std::size_t joined = 0;  // index into RankRun::joined, of the first
};

struct RankLane {
    int64_t rank = 0;
    std::string peak;        // "3.05 GiB"
    std::string difference;  // of the peak to the median one: "+2.24 GiB"; empty: none
    Tone difference_tone = Tone::kNeutral;
    TimelineTrace memory;  // on the axis
    /// For each column what the rank has more than the median of all that were recorded then.
    std::vector<double> difference_bytes = {};
    std::vector<int> rows = {};                    // of its collectives, in all windows
    int num_rows = 0;                              // at most kMostCollectiveRows
    std::vector<CollectiveSpan> collectives = {};  // those that meet the window
};
inline constexpr int kMostCollectiveRows = 3;

struct RanksView {
    RanksRequest request;  // for read_collective
    std::vector<RankLane> lanes;
    std::vector<Category> categories;   // that occur in a rank
    std::vector<CollectiveKind> kinds;  // that occur in the window
    double max_bytes = 0;               // over all ranks and all of their time
    double max_difference_bytes = 0;    // largest magnitude in the window
    std::string headline;               // rank_headline
    std::string clocks;                 // how the clocks of the ranks were compared
};

RanksView build_ranks_view(const RanksRequest& request);

/// One collective on all ranks that have a trace, for the mouse.
struct JoinedSpan {
    struct Place {
        std::size_t lane = 0;
        double start_ns = 0;  // on the axis
        double end_ns = 0;
        int row = 0;
    };
    CollectiveKind kind = CollectiveKind::kOther;
    std::vector<Place> places;                              // also outside of the window
    std::string title;                                      // "all_reduce  11.0 MiB"
    std::vector<std::pair<std::string, std::string>> rows;  // "comes last", "rank 2, ..."
};
/// Of a span that stands alone (count is 1).
JoinedSpan read_collective(const RanksView& view, const CollectiveSpan& span);

// ---- tables with a row for each rank: in the Ranks panel and in `info FOLDER` ------------------

/// What a user would quote: the rank that needs the most memory, and the rank that others wait for.
/// Empty for one rank.
std::string rank_headline(const RankRun& run);

/// Peaks by class, and what the ranks communicate.
TextTable rank_memory_table(const RankRun& run);
/// "the last step" if all ranks end with it; else "step 2, the last one that every rank recorded
/// completely", or "every rank with a complete step" if some ranks have none.
std::string name_of_shared_step(const RankRun& run);
/// What the GPUs do in the shared step. Without rows if no rank says it.
TextTable rank_time_table(const RankRun& run);
/// Both, in bytes and nanoseconds.
DataTable ranks_data(const RankRun& run);

/// The columns of ranks_data that are not bytes of a class.
std::vector<TableColumn<RankSummary>> rank_columns();

}  // namespace profiler
