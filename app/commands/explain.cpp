#include "profiler/analysis/advice/explain.h"
#include "app/commands/command.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/values.h"
#include "app/commands/reports/reports.h"
#include "app/programs/remedy_runs.h"
#include "app/user/settings.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/trace/printable.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/advice/advice_view.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// `temposcope explain`: what happened, what fills the memory, what is unusual, what to do.
namespace app {
namespace {

using namespace profiler;
using models::fail;
using models::Result;
using Json = nlohmann::json;

struct ExplainOptions {
    std::vector<std::string> files;
    std::vector<std::string> words;  // of the program, for a trace that does not know them
    int64_t num_verified = 0;
    std::string target;
    int64_t timeout_s = 0;
};

/// A file, or a folder of ranks, explained.
struct Explained {
    std::string file;
    NamedTrace named;
    Explanation explanation;
    std::vector<std::string> notes;  // of the file, before those of the explanation
};

// ---- JSON -----------------------------------------------------------------------------------

std::string_view name_of(RemedyChange::Kind kind) {
    constexpr std::array<std::string_view, 6> kNames{"setting", "apply", "edit",
                                                     "batch",   "gpu",   "several"};
    return kNames[static_cast<std::size_t>(kind)];
}

Json change_json(const RemedyChange& change) {
    return {{"kind", name_of(change.kind)},
            {"text", change.text},
            {"file", known_json(change.file)},
            {"line", change.line > 0 ? Json(change.line) : Json()}};
}

Json remedy_json(const Remedy& remedy) {
    const StepOutcome outcome = remedy.outcome();
    Json parts = Json::array();
    for (const RemedyChange& part : remedy.parts) parts.push_back(change_json(part));
    return {{"id", remedy.id},
            {"title", remedy.title},
            {"sentence", remedy.sentence},
            {"finding", known_json(remedy.finding)},
            {"evidence", remedy.verified ? "verified" : "estimated"},
            {"saved_bytes", known_json(remedy.saved_bytes)},
            {"peak_allocated_bytes", known_json(outcome.peak_allocated_bytes)},
            {"peak_reserved_bytes", known_json(outcome.peak_reserved_bytes)},
            {"step_time_ns", known_json(outcome.step_time_ns)},
            {"fits", outcome.is_sure ? Json(outcome.fits) : Json()},
            {"code_lines", remedy.code_lines},
            {"change", change_json(remedy.change)},
            {"members", remedy.members},
            {"parts", std::move(parts)},
            {"problem", known_json(remedy.problem)}};
}

Json facts_json(const Trace& trace, const FailureFacts& facts) {
    Json json = failure_json(trace, facts.failure);
    json.update({{"code", known_json(facts.code)},
                 {"cached_pieces", facts.cached.num},
                 {"cached_bytes", facts.cached.total_bytes},
                 {"largest_cached_bytes", facts.cached.largest_bytes}});
    return json;
}

Json shares_json(const std::vector<Share>& shares, const char* name) {
    Json rows = Json::array();
    for (const Share& share : shares) {
        rows.push_back({{name, share.name}, {"bytes", share.size_bytes}});
        if (!share.code.empty()) rows.back()["code"] = share.code;
    }
    return rows;
}

Json explanation_json(const Explained& explained) {
    const Explanation& e = explained.explanation;
    const Trace& trace = *explained.named.trace;
    Json findings = Json::array(), remedies = Json::array();
    for (const Finding& finding : e.findings) {
        findings.push_back({{"id", finding.id},
                            {"sentence", finding.sentence + "."},
                            {"bytes", known_json(finding.size_bytes)}});
    }
    for (const Remedy& remedy : e.remedies) remedies.push_back(remedy_json(remedy));
    return {
        {"file", explained.file},
        {"verdict",
         {{"kind", kVerdictNames[static_cast<std::size_t>(e.verdict)]}, {"sentence", e.sentence}}},
        {"failure", e.failure ? facts_json(trace, *e.failure) : Json()},
        {"peak",
         {{"allocated_bytes", e.memory.allocated_bytes},
          {"reserved_bytes", known_json(e.memory.reserved_bytes)},
          {"by_line", shares_json(e.memory.by_line, "line")},
          {"by_module", shares_json(e.memory.by_module, "module")},
          {"by_category", shares_json(e.memory.by_category, "category")}}},
        {"step_time_ns", known_json(e.step_time_ns)},
        {"growth", growing_lines_json(e.growth)},
        {"findings", findings},
        {"remedies", remedies},
        {"target",
         {{"gpu", known_json(e.target.gpu)},
          {"limit_bytes", known_json(e.target.limit_bytes)},
          {"batch", known_json(e.target.batch_size)},
          {"largest_batch", known_json(e.largest_batch)}}},
        {"notes", e.notes}};
}

// ---- text -----------------------------------------------------------------------------------

std::vector<TableColumn<Share>> share_columns(int64_t whole_bytes, const char* title) {
    using enum Unit;
    const auto part = [whole_bytes](const Share& share) {
        return static_cast<double>(share.size_bytes) / static_cast<double>(whole_bytes);
    };
    return std::vector<TableColumn<Share>>{{"name", title, kText, "", &Share::name},
                                           {"bytes", "memory", kBytes, "", &Share::size_bytes},
                                           {"share", "share", kShare, "", part},
                                           {"code", "code", kText, "", &Share::code}};
}

/// The first rows of a table, and what the others add up to.
void print_shares(Output& output, const std::vector<Share>& shares, int64_t whole_bytes,
                  const char* title, std::size_t most) {
    if (shares.empty() || whole_bytes <= 0) return;
    std::vector<Share> shown(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(
                                                                  std::min(most, shares.size())));
    if (shown.size() < shares.size()) {
        Share rest{.name = fmt::format("{} more", shares.size() - shown.size())};
        for (std::size_t i = shown.size(); i < shares.size(); ++i) {
            rest.size_bytes += shares[i].size_bytes;
        }
        shown.push_back(std::move(rest));
    }
    output.table(text_table(share_columns(whole_bytes, title), shown));
}

std::string list_of(const std::vector<Share>& shares, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < std::min(most, shares.size()); ++i) {
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", shares[i].name,
                            format_bytes(shares[i].size_bytes));
    }
    return text;
}

void print_memory(Output& output, const Explanation& e, int64_t recorded_batch) {
    const MemoryFacts& memory = e.memory;
    std::string reserved;
    if (memory.reserved_bytes > 0) {
        reserved = fmt::format(", {} reserved", format_bytes(memory.reserved_bytes));
    }
    std::string batch;
    if (e.target.batch_size > 0 && e.target.batch_size != recorded_batch) {
        batch = fmt::format(" with the recorded batch of {}", recorded_batch);
    }
    output.heading(fmt::format("What fills it{}: {} allocated{}", batch,
                               format_bytes(memory.allocated_bytes), reserved));
    constexpr std::size_t kLines = 6, kNames = 6;
    print_shares(output, memory.by_line, memory.allocated_bytes, "line", kLines);
    output.line("By category: " + list_of(memory.by_category, kNames) + ".");
    if (memory.by_module.size() > 1) {
        output.line("By module: " + list_of(memory.by_module, kNames) + ".");
    }
}

void print_findings(Output& output, const Explanation& e) {
    if (e.findings.empty() && e.growth.empty()) return;
    output.heading("What is unusual");
    for (const Finding& finding : e.findings) output.line(fmt::format("- {}.", finding.sentence));
}

/// What to paste, below the place where it goes.
void print_change(Output& output, const RemedyChange& change) {
    if (change.line > 0) {
        const std::string file = std::filesystem::path(change.file).filename().string();
        output.line(fmt::format("       below {}:{}:", printable(file), change.line));
    }
    for (const std::string_view line : split_lines(change.text)) {
        output.line(fmt::format("       {}", line));
    }
}

void print_remedies(Output& output, const Explanation& e) {
    if (e.remedies.empty()) return;
    const std::string limit = e.target.limit_bytes < 0
                                  ? ""
                                  : fmt::format(", within {}", format_bytes(e.target.limit_bytes));
    output.heading(
        fmt::format("What to do{}{}", e.target.gpu.empty() ? "" : " on " + e.target.gpu, limit));
    const std::vector<NumberedRemedy> rows = numbered_remedies(e);
    output.table(text_table(remedy_columns(), rows));
    for (const NumberedRemedy& row : rows) {
        output.line(fmt::format("{}. {}", row.number, row.remedy->sentence));
        const Remedy& remedy = *row.remedy;
        for (const RemedyChange& change : remedy.changes()) print_change(output, change);
        if (!row.remedy->problem.empty()) {
            output.line(output.styled("   Not verified: " + row.remedy->problem, Style::kWarning));
        }
    }
    const bool has_swap = std::ranges::any_of(e.remedies, [](const Remedy& remedy) {
        return std::ranges::count(remedy.changes(), RemedyChange::Kind::kApply,
                                  &RemedyChange::kind) > 0;
    });
    if (has_swap) {
        output.line(
            "temposcope.swap goes below the line that makes the model, with `import temposcope` at "
            "the top. `temposcope run --apply NAME` tries it without a change.");
    }
}

void print_explanation(Output& output, const Explained& explained) {
    const Explanation& e = explained.explanation;
    output.line(
        output.styled(e.sentence, e.verdict == Verdict::kFits ? Style::kGood : Style::kBad));
    if (e.failure && !e.failure->code.empty()) output.line("    " + e.failure->code);
    print_memory(output, e, explained.named.trace->run().batch_size);
    print_findings(output, e);
    print_remedies(output, e);
    for (const std::string& note : e.notes) output.line("Note: " + note);
    const auto may_be_verified = [](const Remedy& remedy) {
        return !remedy.verified && remedy.problem.empty() && remedy.can_be_run();
    };
    const auto is_found = [](const Remedy& remedy) {
        return remedy.verified && remedy.verified->fits;
    };
    if (std::ranges::any_of(e.remedies, is_found)) return;
    if (std::ranges::any_of(e.remedies, may_be_verified)) {
        const std::string next = fmt::format("explain {} --verify 3", shell_word(explained.file));
        output.line(output.styled(next_line(next), Style::kDim));
    }
}

// ---- the command ----------------------------------------------------------------------------

/// "batch=128,gpu=a100-40gb,limit=20GiB".
Result<ExplainTarget> parse_target(const std::string& text) {
    ExplainTarget target;
    if (text.empty()) return target;
    const auto items = split_list("--to-fit", text);
    if (!items) return tl::unexpected(items.error());
    std::set<std::string> seen;
    for (const std::string& item : *items) {
        const std::size_t equals = std::min(item.find('='), item.size());
        const std::string name = item.substr(0, equals);
        const std::string value = equals < item.size() ? item.substr(equals + 1) : "";
        if (!seen.insert(name).second) return fail("--to-fit names {} twice.", name);
        if (name == "gpu") {
            if (value.empty()) return fail("--to-fit gpu= names no GPU: write gpu=a100-40gb.");
            target.gpu = value;
        } else if (name == "limit") {
            const auto bytes = parse_bytes(value);
            if (!bytes || *bytes <= 0) {
                return fail("--to-fit limit={}: give a size, such as 20GiB.", value);
            }
            target.limit_bytes = *bytes;
        } else if (name == "batch") {
            const auto [end, error] =
                std::from_chars(value.data(), value.data() + value.size(), target.batch_size);
            if (error != std::errc() || end != value.data() + value.size() ||
                target.batch_size < 1) {
                return fail("--to-fit batch={}: give a number of 1 or more.", value);
            }
        } else {
            return fail(
                "--to-fit {}: write batch=N, gpu=ID or limit=SIZE, with commas between them.",
                item);
        }
    }
    return target;
}

/// The rank that stands for the others: the first that failed, else that of the largest peak.
std::size_t telling_rank(const std::vector<NamedTrace>& ranks) {
    std::size_t largest = 0;
    int64_t peak_bytes = -1;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (fatal_failure(*ranks[i].trace).valid()) return i;
        const int64_t bytes = find_peak(*ranks[i].trace).allocated_bytes;
        if (bytes > peak_bytes) {
            peak_bytes = bytes;
            largest = i;
        }
    }
    return largest;
}

Result<Explained> explain_file(const std::string& file, const ExplainRequest& request) {
    Explained explained{.file = file, .named = {}, .explanation = {}, .notes = {}};
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
        auto folder = open_folder(file);
        if (!folder) return tl::unexpected(folder.error());
        const std::size_t rank = telling_rank(folder->traces);
        if (folder->traces.size() > 1) {
            explained.notes.push_back(fmt::format(
                "{} is shown, of {} traces in the folder: it is the first that failed, or the one "
                "with the largest peak.",
                folder->traces[rank].file, folder->traces.size()));
        }
        explained.named = std::move(folder->traces[rank]);
    } else {
        auto named = open_trace(file);
        if (!named) return tl::unexpected(named.error());
        explained.named = std::move(*named);
    }
    auto explanation = explain(StepIndex(*explained.named.trace), request);
    if (!explanation) return tl::unexpected(explanation.error());
    explained.explanation = std::move(*explanation);
    return explained;
}

/// A trace that does not tell all of its step names the command that does.
void name_the_way_to_the_rest(Explained& explained) {
    Explanation& e = explained.explanation;
    if (e.unknown_rest.empty() || !explained.named.trace->run().command.valid()) return;
    e.notes.push_back(fmt::format(
        "A run with enough memory shows what the whole step needs: temposcope explain {} "
        "--verify.",
        shell_word(explained.file)));
}

/// The steps of a program may fit, and what came after them may not.
void name_the_failure_beside(Explained& explained) {
    const std::filesystem::path beside = oom_trace_of(explained.file);
    std::error_code error;
    if (explained.file == beside || !std::filesystem::exists(beside, error)) return;
    explained.notes.push_back(
        fmt::format("Memory ran out after the recorded steps: temposcope explain {}.",
                    shell_word(beside.string())));
}

Result<void> verify(Explained& explained, const ExplainOptions& options,
                    const ExplainRequest& request) {
    auto rerun = rerun_of(*explained.named.trace, options.words, request.target);
    if (!rerun) return tl::unexpected(rerun.error());
    rerun->run.timeout = std::chrono::seconds(options.timeout_s);
    Progress progress;
    if (!explained.explanation.unknown_rest.empty()) {
        progress.update(-1, "running the program with enough memory");
        find_whole_step(explained.explanation, *rerun, request);
    }
    verify_remedies(explained.explanation, *rerun, static_cast<std::size_t>(options.num_verified),
                    [&](const RemedyTry& one) {
                        progress.update(-1, fmt::format("{} of {}: {}", one.number, one.count,
                                                        one.remedy.title));
                    });
    return {};
}

Outcome run_explain(const ExplainOptions& options, Output& output) {
    const auto target = parse_target(options.target);
    if (!target) return wrong_usage(target.error());
    if (options.num_verified < 0) {
        return fail_with(ExitCode::kUsage, "--verify is {}: give 1 or more.", options.num_verified);
    }
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    if (!target->gpu.empty()) {
        const auto gpu = find_gpu(data->gpus, target->gpu);
        if (!gpu) return wrong_usage(gpu.error());
    }
    const ExplainRequest request{.target = *target, .data = &*data};
    std::vector<Explained> all;
    for (const std::string& file : options.files) {
        auto explained = explain_file(file, request);
        if (!explained) return failed(explained.error());
        all.push_back(std::move(*explained));
        name_the_failure_beside(all.back());
        if (options.num_verified == 0) {
            name_the_way_to_the_rest(all.back());
        } else if (const auto ok = verify(all.back(), options, request); !ok) {
            return failed(ok.error());
        }
        std::vector<std::string>& notes = all.back().explanation.notes;
        notes.insert(notes.begin(), all.back().notes.begin(), all.back().notes.end());
    }
    const auto json = [&] {
        if (all.size() == 1) return explanation_json(all.front());
        Json rows = Json::array();
        for (const Explained& one : all) rows.push_back(explanation_json(one));
        return Json{{"rows", std::move(rows)}};
    };
    const auto text = [&](Output& lines) {
        for (const Explained& one : all) {
            if (&one != &all.front()) lines.line();
            if (all.size() > 1) lines.line(lines.styled(one.file, Style::kBold));
            print_explanation(lines, one);
        }
    };
    return emit(output, {.json = json, .text = text});
}

}  // namespace

void add_explain_command(CommandLine& line) {
    Command& command = line.add_command(
        "explain", "Say what fills the memory, why it ran out, and what to do about it");
    auto options = std::make_shared<ExplainOptions>();
    command.add({.names = "FILE",
                 .help = "trace, memory snapshot, or folder with the traces of ranks",
                 .is_required = true},
                &options->files);
    command.add({.names = "--verify",
                 .help = "run the program again with each of the first N remedies, 3 without N",
                 .value_name = "N",
                 .if_alone = "3"},
                &options->num_verified);
    command.add({"--to-fit", "what shall fit: batch=N, gpu=ID, limit=SIZE, with commas", "TARGET"},
                &options->target);
    command.add({.names = "--timeout",
                 .help = "with --verify: end each run after so many seconds; 0: never",
                 .value_name = "S",
                 .needs = "--verify"},
                &options->timeout_s);
    command.add_program(&options->words);
    command.footer(
        "A remedy is estimated from the trace, or verified by a run of the program on a\n"
        "simulated GPU. Give the program's command after --, for a trace that does not know it.\n\n"
        "Examples:\n"
        "  temposcope explain train.tscope\n"
        "  temposcope explain train.tscope --verify 3\n"
        "  temposcope explain train.tscope --to-fit batch=128,gpu=a100-40gb\n"
        "  temposcope explain snapshot.pickle --json\n");
    command.on_run([options](Output& output) { return run_explain(*options, output); });
}

}  // namespace app
