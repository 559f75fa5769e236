#include "cli/help.hpp"

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/wrap.hpp"

namespace simsync {
namespace {

constexpr std::size_t kWidth = 80;

/// What users type, by the words that lead to a command.
const std::map<std::string, std::vector<std::string>>& examples() {
  static const std::map<std::string, std::vector<std::string>> kExamples{
      {"simsync",
       {"simsync predict --model vgg16 --cluster g4dn.12xlarge --strategy ddp --workers 16",
        "simsync sweep --model vgg16 --cluster g4dn.12xlarge --strategy all --workers 16",
        "simsync compare --model vgg16 --cluster g4dn.12xlarge --workers 16 \\\n    --strategy ps,ddp"}},
      {"simsync predict",
       {"simsync predict --model vgg16 --cluster g4dn.12xlarge --strategy ddp --workers 16",
        "simsync predict --model resnet50 --cluster dgx-1 --strategy ps --workers 16 \\\n"
        "    --set precision=amp --explain --timeline step.json",
        "simsync predict --model gpt2 --cluster dgx-h100 --strategy fsdp --workers 64 \\\n"
        "    --set precision=bf16 --export megatron"}},
      {"simsync sweep",
       {"simsync sweep --model vgg16 --cluster g4dn.12xlarge --strategy all --workers 16",
        "simsync sweep --model vgg16,resnet50 --cluster g4dn.12xlarge --strategy ddp,ps \\\n"
        "    --workers 4,8,16 --csv scaling.csv",
        "simsync sweep --model vgg16 --cluster g4dn.12xlarge --strategy ddp --workers 16 \\\n"
        "    --set link.ethernet.bandwidth=10Gbps,25Gbps,50Gbps"}},
      {"simsync search",
       {"simsync search --model vgg16 --cluster g4dn.12xlarge --workers 16 --out best.yaml",
        "simsync search --model resnet50 --evaluator measure --testbed 4 --rate 1Gbps \\\n"
        "    --set step_time=200ms --set variable_scale=0.1 --trials 50 --csv trials.csv"}},
      {"simsync compare",
       {"simsync compare --model vgg16 --cluster g4dn.12xlarge --workers 16 \\\n    --strategy ps,ddp",
        "simsync compare --model vgg16 --cluster g4dn.12xlarge --strategy ddp \\\n    --workers 16,32"}},
      {"simsync rank",
       {"simsync rank trials.csv", "simsync rank small.csv --source large.csv,other.csv --train 0,10,20,50"}},
      {"simsync validate", {"simsync validate", "simsync validate ddp-a40 --csv cases.csv"}},
      {"simsync calibrate",
       {"simsync calibrate --cluster dgx-a100 --from nccl-tests.txt --ranks 8 \\\n    --out dgx-a100.cal.yaml",
        "simsync calibrate --measure --testbed 4 --rate 1Gbps --out testbed.cal.yaml"}},
      {"simsync list", {"simsync list models", "simsync list settings --cluster dgx-1"}},
      {"simsync import",
       {"simsync import autodist-resource-spec resource_spec.yml --device T4 \\\n    --out cluster.yaml",
        "simsync import kineto trace.json --device V100-SXM2-16GB --batch 64 \\\n    --out mine.yaml"}},
      {"simsync-hw",
       {"simsync-hw measure --testbed 4 --rate 1Gbps --model resnet50 --strategy ddp,ps",
        "simsync-hw profile --model ncf --batch 64 --device cpu --out ncf-cpu.csv"}},
      {"simsync-hw measure",
       {"simsync measure --testbed 4 --rate 1Gbps --model resnet50 --strategy ddp,ps \\\n"
        "    --set step_time=200ms --csv measured.csv",
        "simsync measure --testbed 2 --model ncf --strategy ps --timeline measured.json"}},
      {"simsync-hw profile",
       {"simsync profile --model ncf --batch 64 --device cpu --out ncf-cpu.csv",
        "simsync profile --model resnet50 --batch 32 --device cuda:0 --out resnet50.csv"}},
      {"simsync-hw probe", {"simsync probe --testbed 4 --rate 1Gbps --out probes.csv"}},
  };
  return kExamples;
}

/// `simsync predict`.
std::string words_of(const CLI::App* app) {
  const std::string& name = app->get_name();
  return app->get_parent() == nullptr ? name : words_of(app->get_parent()) + " " + name;
}

class HelpFormatter : public CLI::Formatter {
public:
  std::string make_description(const CLI::App* app) const override {
    std::string out = wrapped(app->get_description(), kWidth) + "\n";
    const auto found = examples().find(words_of(app));
    if (found == examples().end()) return out;
    out += "\nExamples:\n";
    for (const auto& example : found->second) out += "  " + example + "\n";
    return out + "\n";
  }

  std::string make_subcommand(const CLI::App* sub) const override {
    std::stringstream out;
    CLI::detail::format_help(out, sub->get_display_name(true), in_column(sub->get_description()), column_width_);
    return out.str();
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    return in_column(option->get_description());
  }

  /// The kind of value; its range is told when it is wrong.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string out;
    if (option->get_type_size() != 0) {
      const std::string type = option->get_type_name();
      const std::size_t colon = type.find(':');
      const bool named = colon != std::string::npos && type.starts_with("TEXT");
      out = " " + (named ? type.substr(colon + 1) : type.substr(0, colon));
      if (!option->get_default_str().empty()) out += "=" + option->get_default_str();
      if (option->get_expected_max() == CLI::detail::expected_max_vector_size) out += " ...";
      if (option->get_required()) out += " REQUIRED";
    }
    return out + names_text(" Needs: ", option->get_needs()) + names_text(" Not with: ", option->get_excludes());
  }

  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = app->get_footer();
    return footer.empty() ? footer : wrapped(footer, kWidth) + "\n";
  }

private:
  /// In the order of the alphabet: a set of pointers has none that stays.
  static std::string names_text(const char* label, const std::set<CLI::Option*>& options) {
    std::set<std::string> names;
    for (const CLI::Option* option : options) names.insert(option->get_name());
    return names.empty() ? std::string{} : label + CLI::detail::join(names, ", ");
  }
  [[nodiscard]] std::string in_column(const std::string& text) const { return wrapped(text, kWidth - column_width_); }
};

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace simsync
