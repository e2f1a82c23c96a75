#include "app/commands/worker/batch_search.h"

#include "app/commands/worker/temporary_folder.h"
#include "profiler/trace/trace_file.h"

#include <algorithm>
#include <fstream>

namespace app {
namespace {

using models::fail;
using models::Result;
using namespace profiler;

std::string replaced(std::string word, const std::string& placeholder, int64_t value) {
    const std::string text = std::to_string(value);
    for (std::size_t at = word.find(placeholder); at != std::string::npos;
         at = word.find(placeholder, at + text.size())) {
        word.replace(at, placeholder.size(), text);
    }
    return word;
}

std::string last_line(const std::filesystem::path& file) {
    std::ifstream lines(file);
    std::string last;
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty()) last = line;
    }
    return last;
}

void read_peak(const Trace& trace, BatchTry& one) {
    const PeakReport peak = find_peak(trace);
    one.peak_allocated_bytes = peak.allocated_bytes;
    one.peak_reserved_bytes = peak.reserved_bytes;
    one.by_category = peak.by_category;
    if (peak.phase.valid()) one.place = name_of(trace.phases.get<&Phase::kind>(peak.phase));
    if (!peak.op.valid()) return;
    const Id<ModulePath> module = trace.ops.get<&Op::module_path>(peak.op);
    if (!module.valid()) return;
    if (!one.place.empty()) one.place += ", ";
    one.place += trace.text(trace.module_paths.get<&ModulePath::path>(module));
}

class Search {
public:
    Search(const ProgramRun& run, const std::string& placeholder,
           const std::function<void(const BatchTry&)>& tried)
        : run_(run), placeholder_("{" + placeholder + "}"), tried_(tried) {}

    Result<LargestBatch> run() {
        if (!folder_.exists()) return fail(kNoTemporaryFolder);
        const bool is_used = std::any_of(
            run_.words.begin(), run_.words.end(),
            [&](const std::string& word) { return word.find(placeholder_) != std::string::npos; });
        if (!is_used) {
            return fail("No argument of the program holds {}: write it where the batch size goes.",
                        placeholder_);
        }
        LargestBatch found{.gpu = run_.gpu};
        int64_t next = 1;
        while (next <= kMostBatch) {
            const auto one = try_batch(next);
            if (!one) return tl::unexpected(one.error());
            (one->fits ? found.largest : found.first_above) = *one;
            const int64_t below = found.largest ? found.largest->batch_size : 0;
            if (!found.first_above) {
                next = 2 * below;
                continue;
            }
            const int64_t above = found.first_above->batch_size;
            if (above - below <= 1) break;
            next = below + (above - below) / 2;
        }
        return found;
    }

private:
    Result<BatchTry> try_batch(int64_t batch_size) {
        ProgramRun run = run_;
        for (std::string& word : run.words) word = replaced(word, placeholder_, batch_size);
        run.file = (folder_ / "try.tscope").string();
        run.log = (folder_ / "log").string();
        run.steps = 2;
        run.skip = 0;
        run.stops = true;
        std::error_code ignored;
        std::filesystem::remove(run.file, ignored);
        const auto result = run_program(run);
        if (!result) return tl::unexpected(result.error());
        const bool ran_out = result->exception == "OutOfMemoryError";
        const bool trained = result->exit_code == 0 && result->recorded_steps > 0;
        if (!ran_out && !trained) {
            return fail("With {} = {} the program ended with exit code {}: {}", placeholder_,
                        batch_size, result->exit_code, reason(*result, run.log));
        }
        BatchTry one{.batch_size = batch_size, .fits = trained && !ran_out};
        if (!result->file.empty()) {
            const auto trace = read_trace(result->file);
            if (!trace) return tl::unexpected(trace.error());
            read_peak(*trace, one);
        }
        if (tried_) tried_(one);
        return one;
    }

    static std::string reason(const ProgramResult& result, const std::filesystem::path& log) {
        const std::string line = last_line(log);
        return line.empty() || result.exit_code == 0 ? result.sentence : line;
    }

    const ProgramRun& run_;
    const std::string placeholder_;
    const std::function<void(const BatchTry&)>& tried_;
    const TemporaryFolder folder_;
};

}  // namespace

Result<LargestBatch> find_largest_batch(const ProgramRun& run, const std::string& placeholder,
                                        const std::function<void(const BatchTry&)>& tried) {
    return Search(run, placeholder, tried).run();
}

}  // namespace app
