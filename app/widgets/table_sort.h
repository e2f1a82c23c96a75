#pragma once

namespace app {

/// Points the sort arrow of the current table at a column. The table then reports this order, as
/// after a click.
void point_sort_arrow(int column, bool descending);

}  // namespace app
