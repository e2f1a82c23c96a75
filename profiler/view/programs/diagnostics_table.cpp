#include "profiler/view/programs/diagnostics_table.h"

namespace profiler {

DataTable diagnostics_data(
    std::span<const std::pair<std::string, std::vector<DiagnosticItem>>> traces) {
    DataTable table{.columns = {"trace", "severity", "code", "count", "explanation"}};
    for (const auto& [name, items] : traces) {
        for (const DiagnosticItem& item : items) {
            table.rows.push_back(
                {name, name_of(item.severity), item.code, item.count, item.explanation});
        }
    }
    return table;
}

}  // namespace profiler
