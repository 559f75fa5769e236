// Options of builders: strict names, units and ranges, and the texts that `simsync list strategies` shows.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "strategies/builders.hpp"
#include "strategies/names.hpp"

namespace simsync {

/// One option that a builder knows.
struct OptionInfo {
  std::string name;
  std::string fallback;  ///< the default, as a user would write it
  std::string meaning;
};

/// The options of one request, with defaults filled in from a list of what is known.
class Options {
public:
  /// `owner` is whose options they are, for messages: `strategy 'ddp'`. @throws InputError when `given` holds a name
  /// that is not in `known`.
  Options(std::string owner, const std::vector<OptionInfo>& known, const std::map<std::string, std::string>& given);

  // Each throws InputError when the text is not of the type or out of range, saying what was expected.
  [[nodiscard]] bool boolean(const std::string& name) const;
  [[nodiscard]] std::int64_t integer(const std::string& name, std::int64_t low, std::int64_t high) const;
  [[nodiscard]] Bytes bytes(const std::string& name, std::int64_t low) const;
  [[nodiscard]] Seconds seconds(const std::string& name) const;
  /// Positive.
  [[nodiscard]] BytesPerSecond bandwidth(const std::string& name) const;
  [[nodiscard]] double number(const std::string& name, double low, double high) const;
  [[nodiscard]] const std::string& text(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  template <class E>
  [[nodiscard]] E one_of(const std::string& name, const Words<E>& words) const {
    if (const auto known = find_word(words, text(name))) return *known;
    fail_choice(name, text(name), names_in(words));
  }
  /// The values of a list, separated by commas, each once.
  template <class E>
  [[nodiscard]] std::vector<E> some_of(const std::string& name, const Words<E>& words) const {
    std::vector<E> out;
    for (const std::string& item : items(name)) {
      const auto value = find_word(words, item);
      if (!value) fail_choice(name, item, names_in(words));
      if (std::find(out.begin(), out.end(), *value) == out.end()) out.push_back(*value);
    }
    return out;
  }
  /// The values of a list, separated by commas.
  [[nodiscard]] std::vector<Bytes> sizes(const std::string& name, std::int64_t low) const;
  [[nodiscard]] std::vector<Seconds> times(const std::string& name) const;
  /// For a rule of the builder that the value breaks.
  [[noreturn]] void fail(const std::string& name, const std::string& message, const std::string& help = {}) const;

private:
  [[noreturn]] void fail_choice(const std::string& name, const std::string& value,
                                const std::vector<std::string>& names) const;
  [[nodiscard]] std::vector<std::string> items(const std::string& name) const;
  [[nodiscard]] Bytes size_of_text(const std::string& name, const std::string& text, std::int64_t low) const;
  [[nodiscard]] Seconds time_of_text(const std::string& name, const std::string& text) const;
  std::string owner_;
  std::map<std::string, std::string> values_;
};

}  // namespace simsync
