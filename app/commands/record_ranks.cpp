#include "app/commands/record_ranks.h"

#include "app/commands/console/terminal.h"
#include "app/commands/options/values.h"
#include "profiler/analysis/step/expert_routing.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/file/write_file.h"

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <system_error>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::Result;

/// "rank-0003.tscope", or the remains of a killed rank: "rank-0003.tscope.partial".
bool is_of_rank(const fs::path& trace) {
    const std::string name = trace.filename().string();
    return name.starts_with("rank-") && name.find(".tscope") != std::string::npos;
}

/// Makes room for the traces of a run's ranks.
Result<void> empty_folder(const std::string& folder, bool overwrites) {
    std::error_code error;
    const auto traces = profiler::traces_in(folder);
    if (!traces) return tl::unexpected(traces.error());
    if (traces->empty()) return {};
    const auto other = std::ranges::find_if_not(*traces, is_of_rank);
    if (other != traces->end()) {
        return models::fail("{} has {}, which is no rank's trace: give another folder.", folder,
                            other->filename().string());
    }
    if (!overwrites) {
        return models::fail("{} has traces already: give another folder, or --overwrite.", folder);
    }
    // First the partial ones: where one is being written, the others are of the same launch.
    const auto is_partial = [](const fs::path& trace) { return trace.extension() == ".partial"; };
    for (const fs::path& trace : *traces | std::views::filter(is_partial)) {
        profiler::remove_partial(trace);
        if (!fs::exists(trace, error)) continue;
        return models::fail("Another launch records into {}: give another folder.", folder);
    }
    for (const fs::path& trace : *traces) {
        fs::remove(trace, error);
        fs::remove(profiler::oom_trace_of(trace), error);
    }
    return {};
}

Result<std::optional<ProgramTarget>> target_of(const std::string& gpu) {
    if (gpu.empty()) return std::optional<ProgramTarget>();
    auto target = ProgramTarget::find(gpu);
    if (!target) return tl::unexpected(target.error());
    return std::optional(std::move(*target));
}

}  // namespace

bool names_folder(const std::string& output) {
    std::error_code error;
    return !output.empty() && (fs::is_directory(output, error) || output.ends_with('/') ||
                               !fs::path(output).has_extension());
}

Result<RecordedProgramRun> run_on(const std::string& gpu, ProgramRun& run) {
    auto target = target_of(gpu);
    if (!target) return tl::unexpected(target.error());
    if (*target) run.card = (*target)->card();
    auto result = run_program(run);
    if (!result) return tl::unexpected(result.error());
    return RecordedProgramRun{std::move(*result), std::move(*target)};
}

void complete_trace(const std::optional<ProgramTarget>& target, const std::string& file,
                    LaterPeak& later_peak, std::string& sentence) {
    const auto ok = target ? target->model_times(file) : Result<void>();
    if (!ok) sentence += " It has no times: " + ok.error().message;
    if (later_peak.bytes > 0) (void)note_later_peak(later_peak, file);
}

std::string verdict_on(const std::string& file) {
    if (file.empty()) return {};
    const auto trace = profiler::read_trace(file);
    if (!trace) return {};
    for (std::size_t row = trace->failures.size(); row-- > 0;) {
        const profiler::Id<profiler::Failure> id(row);
        if (profiler::lacked_memory(trace->failures[id])) {
            return profiler::failure_sentence(*trace, id);
        }
    }
    return {};
}

void print_verdict(const std::string& verdict, const fs::path& trace) {
    print_error(verdict);
    print_error(next_line(fmt::format("explain {}", shell_word(trace.string()))));
}

ValueReads value_reads_of(const std::string& file) {
    if (file.empty()) return {};
    const auto trace = profiler::read_trace(file);
    if (!trace || trace->value_reads.empty()) return {};
    ValueReads reads{.lines = profiler::value_read_lines(*trace), .sentences = {}};
    const int64_t peak_bytes = profiler::find_peak(*trace).allocated_bytes;
    for (const std::string& sentence :
         {profiler::value_read_sentence(reads.lines),
          profiler::routing_sentence(*trace, reads.lines, peak_bytes)}) {
        if (!sentence.empty()) reads.sentences.push_back(sentence);
    }
    return reads;
}

tl::expected<ProgramResult, Failure> record_ranks(ProgramRun& run, const RecordRequest& request) {
    // A GPU that does not exist must not cost the traces of the run before.
    if (const auto known = target_of(request.gpu); !known) return failed(known.error());
    const auto link =
        request.link.empty() ? Result<int64_t>(0) : parse_size("--link", request.link);
    if (!link) return wrong_usage(link.error());
    const auto folder = profiler::MadeFolder::make(request.output);
    if (!folder) return failed(folder.error());
    if (const auto ok = empty_folder(request.output, request.overwrites); !ok) {
        return wrong_usage(ok.error());
    }
    run.folder = fs::absolute(request.output).string();
    auto recorded = run_on(request.gpu, run);
    if (!recorded) return failed(recorded.error());
    auto& [result, target] = *recorded;
    if (target && *link > 0) target->set_link(static_cast<double>(*link));
    for (RankResult& rank : result.ranks) {
        if (rank.file.ends_with(".tscope")) {
            complete_trace(target, rank.file, rank.later_peak, rank.sentence);
        }
        if (!rank.is_complete) print_error(fmt::format("rank {}: {}", rank.rank, rank.sentence));
    }
    print_error(result.sentence);
    const auto highest = std::ranges::max_element(
        result.ranks, {}, [](const RankResult& rank) { return rank.later_peak.bytes; });
    if (highest != result.ranks.end() && highest->later_peak.bytes > 0) {
        print_error(fmt::format("rank {}: {}", highest->rank, highest->later_peak.sentence));
    }
    for (const RankResult& rank : result.ranks) {
        const ValueReads reads = target ? value_reads_of(rank.file) : ValueReads();
        for (const std::string& sentence : reads.sentences) {
            print_error(fmt::format("rank {}: {}", rank.rank, sentence));
        }
        if (!reads.sentences.empty()) break;  // the others run the same program
    }
    for (const RankResult& rank : result.ranks) {
        const std::string verdict = verdict_on(rank.failure_file);
        if (verdict.empty()) continue;
        fs::path next = request.output;
        if (rank.failure_file != rank.file) next /= fs::path(rank.failure_file).filename();
        print_verdict(fmt::format("rank {}: {}", rank.rank, verdict), next);
        return std::move(result);
    }
    const bool has_traces = std::ranges::any_of(
        result.ranks, [](const RankResult& rank) { return !rank.file.empty(); });
    if (has_traces && !request.next.empty()) print_error(next_line(request.next));
    return std::move(result);
}

}  // namespace app
