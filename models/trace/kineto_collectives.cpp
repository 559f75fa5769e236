#include "models/trace/kineto_collectives.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "models/trace/json_file.hpp"

namespace simsync::detail {
namespace {

using nlohmann::json;

constexpr double kMostBytes = 1e15;

/// Bytes of an element, as NCCL's records and as operators call its type; 0 for an unknown one.
double element_bytes(const std::string& type) {
  static const std::map<std::string, double> kBytes{
      {"Float", 4.0},    {"Half", 2.0},          {"BFloat16", 2.0},    {"Double", 8.0},    {"Int", 4.0},
      {"Long", 8.0},     {"Byte", 1.0},          {"Char", 1.0},        {"Bool", 1.0},      {"float", 4.0},
      {"int", 4.0},      {"double", 8.0},        {"long", 8.0},        {"c10::Half", 2.0}, {"c10::BFloat16", 2.0},
      {"long int", 8.0}, {"unsigned char", 1.0}, {"signed char", 1.0}, {"bool", 1.0}};
  const auto found = kBytes.find(type);
  return found == kBytes.end() ? 0.0 : found->second;
}

/// Elements of a tensor of that shape; 0 for what is no tensor.
double elements(const json& shape) {
  if (!shape.is_array() || shape.empty()) return 0.0;
  double product = 1.0;
  for (const json& axis : shape) product *= axis.is_number() ? axis.get<double>() : 0.0;
  return std::max(product, 0.0);
}

/// Tensors that the operator was given: those whose element type is known.
double input_bytes(const json& arguments) {
  const auto dims = arguments.find("Input Dims");
  const auto types = arguments.find("Input type");
  if (dims == arguments.end() || types == arguments.end() || !dims->is_array() || !types->is_array()) return 0.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < std::min(dims->size(), types->size()); ++i) {
    if ((*types)[i].is_string()) sum += elements((*dims)[i]) * element_bytes((*types)[i].get<std::string>());
  }
  return sum;
}

bool starts_with_any(std::string_view name, const std::array<std::string_view, 5>& heads) {
  return std::any_of(heads.begin(), heads.end(), [&](std::string_view head) { return name.starts_with(head); });
}

}  // namespace

bool is_collective_kernel(std::string_view name) {
  return name.find("nccl") != std::string_view::npos || name.find("NCCL") != std::string_view::npos ||
         name.find("rccl") != std::string_view::npos;
}

bool is_collective_range(std::string_view name) {
  return starts_with_any(name, {"gloo:", "nccl:", "mpi:", "ucc:", "xccl:"});
}

bool is_collective_call(std::string_view name) {
  return name.starts_with("c10d::") || name == "record_param_comms" || is_collective_range(name);
}

double collective_bytes(const json& arguments) {
  const double sent = number_of(arguments, "In msg nelems", 0.0);
  const double received = number_of(arguments, "Out msg nelems", 0.0);
  const double bytes = sent > 0.0 || received > 0.0
                           ? std::max(sent, received) * element_bytes(text_of(arguments, "dtype"))
                           : input_bytes(arguments);
  return bytes <= kMostBytes ? bytes : 0.0;
}

}  // namespace simsync::detail
