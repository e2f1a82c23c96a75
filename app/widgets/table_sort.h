#pragma once

namespace app {

/// Points the sort arrow of the current table at a column, without a new order being asked for.
void point_sort_arrow(int column, bool descending);

}  // namespace app
