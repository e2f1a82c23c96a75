#include "app/commands/options/list_option.h"

namespace app {

models::Result<std::vector<std::string>> split_list(std::string_view option,
                                                    std::string_view list) {
    std::vector<std::string> items;
    for (std::string_view rest = list;;) {
        const std::size_t comma = rest.find(',');
        std::string item(rest.substr(0, comma));
        if (item.empty()) {
            return models::fail("{} '{}' has an empty item: write items with commas between.",
                                option, list);
        }
        append_once(items, std::move(item));
        if (comma == std::string_view::npos) return items;
        rest.remove_prefix(comma + 1);
    }
}

}  // namespace app
