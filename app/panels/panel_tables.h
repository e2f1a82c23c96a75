#pragma once

#include "app/panels/panels.h"
#include "profiler/tables/columns.h"

#include <functional>
#include <string>
#include <vector>

/// The tables that panels show, for the clipboard and for files.
namespace app {

struct PanelTable {
    std::string title;      // "Ledger 2", "Longest ops of the range"
    std::string file_name;  // "ledger-2", without extension
    /// Makes the table as the panel shows it now: filtered, sorted, zoomed. It keeps alive what it
    /// reads, so it may run on another thread.
    std::function<profiler::DataTable()> make;
};

/// Those of a window at present, with its number in their names; none if it shows no table.
/// `states` are those of the windows with this number.
std::vector<PanelTable> tables_of(const PanelWindow& window, const Workspace& workspace,
                                  const PanelStates& states);

}  // namespace app
