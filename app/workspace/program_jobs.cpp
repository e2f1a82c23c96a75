#include "app/workspace/program_jobs.h"

#include "app/prediction/prediction_target.h"
#include "profiler/trace/file/temporary_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::fail;
using models::Result;

/// The words of a command: quotes keep spaces, a backslash takes the next letter as it is.
Result<std::vector<std::string>> words_of_command(const std::string& command) {
    std::vector<std::string> words;
    std::string word;
    bool is_open = false;  // a word has begun
    char quote = 0;
    for (std::size_t i = 0; i < command.size(); ++i) {
        const char c = command[i];
        if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
            word += command[++i];
            is_open = true;
        } else if (quote != 0) {
            if (c == quote) {
                quote = 0;
            } else {
                word += c;
            }
        } else if (c == '"' || c == '\'') {
            quote = c;
            is_open = true;
        } else if (c == ' ' || c == '\t' || c == '\n') {
            if (is_open) words.push_back(std::exchange(word, {}));
            is_open = false;
        } else {
            word += c;
            is_open = true;
        }
    }
    if (quote != 0) return fail("The command has a {} that nothing closes.", quote);
    if (is_open) words.push_back(std::move(word));
    if (words.empty()) return fail("The command is empty: write it as in a terminal.");
    return words;
}

/// "train" of `python -u train.py`.
std::string stem_of(const std::vector<std::string>& words) {
    const auto script =
        std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
    return fs::path(script == words.end() ? words.front() : *script).stem().string();
}

/// A file in the program's folder that does not exist: "train.tscope", "train-2.tscope".
fs::path new_trace_file(const fs::path& folder, const std::string& stem) {
    std::error_code ignored;
    for (int number = 1;; ++number) {
        const std::string name =
            number == 1 ? stem + ".tscope" : fmt::format("{}-{}.tscope", stem, number);
        if (!fs::exists(folder / name, ignored)) return folder / name;
    }
}

/// The last line that the program printed: of one that failed it tells why.
std::string last_line_of(const fs::path& log) {
    std::ifstream file(log);
    std::string last;
    for (std::string line; std::getline(file, line);) {
        if (!line.empty()) last = std::move(line);
    }
    return last;
}

Result<EndedProgram> run_form(const ProgramForm& form, const std::stop_token& stop) {
    const auto words = words_of_command(form.command);
    if (!words) return tl::unexpected(words.error());
    std::optional<ProgramTarget> target;
    if (!form.gpu.empty()) {
        auto found = ProgramTarget::find(form.gpu);
        if (!found) return tl::unexpected(found.error());
        target = std::move(*found);
    }
    const profiler::TemporaryFolder folder;
    if (!folder.exists()) return fail("{}", profiler::kNoTemporaryFolder);
    std::error_code error;
    const fs::path home = fs::absolute(form.folder.empty() ? "." : form.folder, error);
    const fs::path file = new_trace_file(home, stem_of(*words));
    const fs::path log = folder / "log";
    ProgramRun run{.words = *words,
                   .variables = {},
                   .file = file.string(),
                   .folder = {},
                   .recipe = {},
                   .layers = {},
                   .steps = form.steps,
                   .with_stacks = true,
                   .stops = true,
                   .log = log.string(),
                   .working_folder = home.string(),
                   .stop = stop,
                   .ranks = {}};
    if (target) run.card = target->card();
    const auto result = run_program(run);
    if (!result) return tl::unexpected(result.error());
    if (result->was_asked_to_end) return EndedProgram{.sentence = "The program was stopped."};
    if (target && result->file == run.file) (void)target->model_times(run.file);
    EndedProgram ended{.file = result->failure_file.empty() ? result->file : result->failure_file,
                       .sentence = result->sentence};
    if (ended.file.empty()) {
        return fail("{} left no trace: {}", stem_of(*words),
                    last_line_of(log).empty() ? result->sentence : last_line_of(log));
    }
    return ended;
}

/// "train_oom with Let segments grow": names the document, which has no file.
std::string name_of(const Document& document, const profiler::Remedy& remedy) {
    return fmt::format("{}, {}", document.file.stem().string(), remedy.title);
}

EndedProgram run_remedy(const DocumentPtr& document, profiler::Remedy remedy,
                        const profiler::ExplainTarget& target, const std::stop_token& stop) {
    EndedProgram ended{.of = document, .trial = {}, .document = {}, .file = {}, .sentence = {}};
    std::string name = name_of(*document, remedy);
    auto rerun = rerun_of(*document->trace, {}, target);
    if (rerun) {
        rerun->run.stop = stop;
        if (auto trace = record_remedy(remedy, std::move(*rerun))) {
            ended.document = make_document(
                std::move(name), std::make_shared<const profiler::Trace>(std::move(*trace)));
        }
    } else {
        remedy.problem = rerun.error().message;
    }
    ended.trial = {.target = target,
                   .id = remedy.id,
                   .sentence = remedy.sentence,
                   .estimated = remedy.estimated,
                   .verified = remedy.verified,
                   .problem = remedy.problem};
    return ended;
}

}  // namespace

std::string problem_of(const ProgramForm& form) {
    const auto words = words_of_command(form.command);
    if (!words) return words.error().message;
    std::error_code error;
    if (!form.folder.empty() && !fs::is_directory(form.folder, error)) {
        return fmt::format("There is no folder {}.", form.folder);
    }
    return {};
}

void ProgramJobs::start(std::string name, std::function<Result<EndedProgram>()> run) {
    jobs_.start(std::move(name), [this, run = std::move(run)](const auto&) {
        started_ = std::chrono::steady_clock::now();
        return run();
    });
}

void ProgramJobs::start(const ProgramForm& form) {
    start(form.command, [form, stop = stop_.get_token()] { return run_form(form, stop); });
}

void ProgramJobs::try_remedy(const DocumentPtr& document, const profiler::Remedy& remedy,
                             const profiler::ExplainTarget& target) {
    if (is_trying(document, remedy.id)) return;
    tried_.emplace_back(document, remedy.id);
    start(name_of(*document, remedy), [document, remedy, target, stop = stop_.get_token()] {
        return Result<EndedProgram>(run_remedy(document, remedy, target, stop));
    });
}

void ProgramJobs::stop() {
    stop_.request_stop();
    stop_ = std::stop_source();
    jobs_.cancel();
    tried_.clear();
}

bool ProgramJobs::is_trying(const DocumentPtr& document, std::string_view remedy) const {
    return std::ranges::any_of(tried_, [&](const auto& one) {
        return one.first.lock() == document && one.second == remedy;
    });
}

std::string ProgramJobs::running() const {
    const auto progress = jobs_.progress();
    if (!progress) return {};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::steady_clock::now() - started_.load());
    return fmt::format("{}, {} s", progress->name, seconds.count());
}

void ProgramJobs::keep(const EndedProgram& ended) {
    std::erase_if(trials_, [](const Trials& one) { return one.of.expired(); });
    auto known =
        std::ranges::find_if(trials_, [&](const Trials& one) { return one.of.lock() == ended.of; });
    if (known == trials_.end()) known = trials_.insert(known, {ended.of, {}});
    std::erase_if(known->trials, [&](const auto& one) {
        return one.id == ended.trial.id && one.target == ended.trial.target;
    });
    known->trials.push_back(ended.trial);
}

std::vector<Result<EndedProgram>> ProgramJobs::take() {
    auto results = jobs_.take();
    for (const Result<EndedProgram>& result : results) {
        if (!result || !result->of) continue;
        std::erase_if(tried_, [&](const auto& one) {
            return one.first.lock() == result->of && one.second == result->trial.id;
        });
        keep(*result);
    }
    return results;
}

std::vector<profiler::RemedyTrial> ProgramJobs::trials_of(const DocumentPtr& document) const {
    const auto known =
        std::ranges::find_if(trials_, [&](const Trials& one) { return one.of.lock() == document; });
    return known == trials_.end() ? std::vector<profiler::RemedyTrial>() : known->trials;
}

}  // namespace app
