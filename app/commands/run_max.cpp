#include "app/commands/run_max.h"

#include "app/commands/console/progress.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/values.h"
#include "app/commands/reports/batch_report.h"

namespace app {
namespace {

/// "BATCH", also of "{BATCH}".
std::string name_of_placeholder(std::string_view text) {
    const bool has_braces = text.size() > 2 && text.starts_with('{') && text.ends_with('}');
    return std::string(has_braces ? text.substr(1, text.size() - 2) : text);
}

/// All combinations of GPUs and values. "512" after "SEQ=128" is another value of SEQ.
models::Result<std::vector<ProgramCase>> cases_of(const RunMaxRequest& request,
                                                  const std::string& placeholder) {
    std::vector<std::pair<std::string, std::vector<std::string>>> lists;
    for (const std::string& word : request.values) {
        const std::size_t equals = word.find('=');
        const std::string name =
            name_of_placeholder(word.substr(0, equals == word.npos ? 0 : equals));
        if (equals != word.npos) lists.push_back({name, {}});
        if (lists.empty() || lists.back().first.empty()) {
            return models::fail("--values {}: write NAME=VALUE,VALUE.", word);
        }
        if (name == placeholder) {
            return models::fail(
                "--values {}: {{{}}} is the batch size that --max looks for; give other "
                "placeholders their values.",
                word, name);
        }
        append_once(lists.back().second, word.substr(equals == word.npos ? 0 : equals + 1));
    }
    std::vector<ProgramCase> cases;
    for (const std::string& gpu : request.gpus) {
        cases.push_back({.gpu = gpu, .values = {}, .run = request.run});
    }
    for (const auto& [name, values] : lists) {
        std::vector<ProgramCase> longer;
        for (const ProgramCase& one : cases) {
            for (const std::string& value : values) {
                longer.push_back(one);
                longer.back().values.emplace_back(name, value);
                if (fill_in(longer.back().run.words, name, value)) continue;
                return models::fail(
                    "--values {}=...: no argument of the program holds {{{}}}; write it where the "
                    "value goes.",
                    name, name);
            }
        }
        cases = std::move(longer);
    }
    return cases;
}

}  // namespace

Outcome run_max(const RunMaxRequest& request, Output& output) {
    const std::string placeholder = name_of_placeholder(request.placeholder);
    const auto cases = cases_of(request, placeholder);
    if (!cases) return wrong_usage(cases.error());
    std::vector<std::string> words = cases->front().run.words;
    if (!fill_in(words, placeholder, "1")) {
        return wrong_usage({fmt::format(
            "--max {}: no argument of the program holds {{{}}}; write it where the batch size "
            "goes, as in --batch {{{}}}.",
            placeholder, placeholder, placeholder)});
    }
    if (const auto ok = check_result_file(request.output); !ok) return failed(ok.error());
    Progress progress;
    const auto tried = [&](const ProgramCase& of, const BatchRun& one) {
        progress.update(-1, about_try(of, one));
    };
    const auto rows = find_largest_batches(placeholder, *cases, tried);
    if (!rows) return failed(rows.error());
    for (const LargestBatch& row : *rows) {
        if (!row.error.empty()) return failed({row.error});
    }
    return emit(output, program_report(*rows), request.output);
}

}  // namespace app
