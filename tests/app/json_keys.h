#pragma once

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <set>
#include <string>

/// Reads the JSON keys that docs/commands.md lists for each command.
namespace tests {

using Keys = std::set<std::string>;

/// Lines "**name**: `a, b, c`" of the document.
std::map<std::string, Keys> documented_keys();

Keys keys_of(const nlohmann::json& object);

/// The keys that the document lists under a name. If it lists none, the test fails.
Keys documented(const std::string& name);

}  // namespace tests
