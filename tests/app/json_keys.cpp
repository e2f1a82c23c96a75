#include "tests/app/json_keys.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <regex>
#include <sstream>

namespace tests {

std::map<std::string, Keys> documented_keys() {
    std::ifstream file(TEMPOSCOPE_SOURCE_DIR "/docs/commands.md");
    const std::regex list(R"(^\*\*([a-z ]+)\*\*: `([a-z0-9_, ]+)`.*)");
    std::map<std::string, Keys> documented;
    for (std::string line; std::getline(file, line);) {
        std::smatch match;
        if (!std::regex_match(line, match, list)) continue;
        std::istringstream words(match[2]);
        for (std::string word; std::getline(words >> std::ws, word, ',');) {
            documented[match[1]].insert(word);
        }
    }
    return documented;
}

Keys keys_of(const nlohmann::json& object) {
    Keys keys;
    for (const auto& item : object.items()) keys.insert(item.key());
    return keys;
}

Keys documented(const std::string& name) {
    static const auto all = documented_keys();
    const auto found = all.find(name);
    EXPECT_NE(found, all.end()) << name << " is not in docs/commands.md";
    return found == all.end() ? Keys() : found->second;
}

}  // namespace tests
