#include "models/templates.hpp"

#include <map>

namespace simsync::detail {
namespace {

const std::map<std::string, Template>& all_templates() {
  static const auto kAll = [] {
    std::map<std::string, Template> all;
    for (const auto* group :
         {&image_templates(), &general_templates(), &dense_templates(), &sequence_templates(), &explicit_templates()}) {
      for (const NamedTemplate& entry : *group) all.emplace(entry.keyword, entry.apply);
    }
    return all;
  }();
  return kAll;
}

}  // namespace

Template find_template(const std::string& keyword) {
  const auto found = all_templates().find(keyword);
  return found == all_templates().end() ? nullptr : found->second;
}

std::vector<std::string> template_keywords() {
  std::vector<std::string> names;
  for (const auto& [keyword, apply] : all_templates()) names.push_back(keyword);
  return names;
}

}  // namespace simsync::detail
