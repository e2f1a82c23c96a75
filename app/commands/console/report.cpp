#include "app/commands/console/report.h"

#include "app/commands/console/json_values.h"
#include "profiler/trace/file/write_file.h"

namespace app {

models::Result<void> write_report(const Report& report, const std::string& file) {
    if (file.empty()) return {};
    const bool is_csv = file.ends_with(".csv");
    return profiler::write_file(file, is_csv ? report.csv() : json_text(report.json()));
}

Outcome emit(Output& output, const Report& report, const std::string& file) {
    if (auto written = write_report(report, file); !written) return failed(written.error());
    if (output.json()) {
        output.document(report.json());
    } else {
        report.text(output);
    }
    return ExitCode::kOk;
}

models::Result<void> check_ending(const std::string& file, std::string_view mode) {
    if (file.empty() || file.ends_with(".csv") || file.ends_with(".json")) return {};
    if (mode.empty()) {
        return models::fail("-o {} ends neither in .csv nor in .json: name such a file.", file);
    }
    return models::fail("With {}, -o names a file that ends in .csv or .json, not {}.", mode, file);
}

}  // namespace app
