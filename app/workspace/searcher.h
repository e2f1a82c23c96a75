#pragma once

#include "app/workspace/document.h"
#include "profiler/view/selected/search_view.h"

#include <memory>
#include <string>
#include <vector>

/// The search in A and B.
namespace app {

struct SearchRequest {
    std::vector<DocumentPtr> documents;  // A, and B if there is one
    std::string text;

    friend bool operator==(const SearchRequest&, const SearchRequest&) = default;
};

/// Searches, and keeps the index of the last documents, so that a key press only reads names. Used
/// by one thread: that of its slot.
class Searcher {
public:
    models::Result<profiler::SearchView> operator()(const SearchRequest& request) const;

private:
    struct Cache {
        std::vector<std::weak_ptr<const Document>> documents;
        std::shared_ptr<const profiler::SearchIndex> index;
    };
    std::shared_ptr<Cache> cache_ = std::make_shared<Cache>();  // std::function copies
};

}  // namespace app
