#include "app/workspace/searcher.h"

#include <algorithm>

namespace app {
namespace {

bool are_the_same(const std::vector<std::weak_ptr<const Document>>& cached,
                  const std::vector<DocumentPtr>& wanted) {
    return std::equal(
        cached.begin(), cached.end(), wanted.begin(), wanted.end(),
        [](const auto& one, const DocumentPtr& other) { return one.lock() == other; });
}

}  // namespace

models::Result<profiler::SearchView> Searcher::operator()(const SearchRequest& request) const {
    if (!cache_->index || !are_the_same(cache_->documents, request.documents)) {
        profiler::Steps steps{request.documents[0]->index.get()};
        if (request.documents.size() > 1) steps.b = request.documents[1]->index.get();
        cache_->index =
            std::make_shared<const profiler::SearchIndex>(profiler::build_search_index(steps));
        cache_->documents.assign(request.documents.begin(), request.documents.end());
    }
    return profiler::search(cache_->index, request.text);
}

}  // namespace app
