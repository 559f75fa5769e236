#include "hw/run/agents.hpp"
