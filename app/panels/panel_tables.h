#pragma once

#include "app/panels/panels.h"
#include "profiler/view/data_table.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// The tables that panels show, for the clipboard and for files.
namespace app {

struct PanelTable {
    std::string title;      // "Ledger", "Longest ops of the range"
    std::string file_name;  // "ledger", without extension
    /// Makes the table as the panel shows it now: filtered, sorted, zoomed. It keeps alive what it
    /// reads, so it may run on another thread.
    std::function<profiler::DataTable()> make;
};

/// Those of the panel with this id, at present; none if it shows no table.
std::vector<PanelTable> tables_of(std::string_view panel_id, const Workspace& workspace,
                                  const PanelStates& states);

}  // namespace app
