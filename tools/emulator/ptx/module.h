// SPDX-License-Identifier: MIT
// A loaded PTX module: what the front end produces and the machine executes.
//
// Registers are slots: every declared virtual register of a function is one slot, 64 bits per lane
// (.b128 takes two consecutive slots, low half first; .pred holds 0 or 1). Names, scopes and labels
// are resolved when this exists; what could not be understood was refused with a PtxError.
#pragma once

#include <bitset>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/ptx/types.h"

namespace emu {
class Warp;
}

namespace emu::ptx {

constexpr uint32_t no_register = ~0u;
constexpr uint32_t no_target = ~0u;
constexpr uint32_t no_variable = ~0u;

enum class Special : uint8_t {
  none,
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  zero,  // .w of a vector
  envreg,
  envreg1,
  envreg2,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock64,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  dynamic_smem_size,
  total_smem_size,
  aggr_smem_size,
};

// Entered by a call at run time, not expanded: a function that recurs, or whose address is taken.
// Its code lies after the kernel's; its registers are slots of their own, which a second
// activation saves, and its local memory is a frame on the thread's stack.
struct Routine {
  struct Parameter {
    uint32_t offset, bytes, align;  // in the frame
  };
  std::string name;
  uint64_t address = 0;  // what a register that names it holds
  uint32_t start = 0, first_slot = 0, end_slot = 0, frame_bytes = 0;
  std::vector<Parameter> results, parameters;
};
// No memory is there: as data, the address of a function leads nowhere.
constexpr uint64_t first_function_address = 0x100000, function_spacing = 16;

// One operand. Immediates hold the bits of the instruction's type (0f3F800000 -> 0x3F800000).
struct Operand {
  enum class Kind : uint8_t {
    none,
    reg,      // reg
    imm,      // imm
    special,  // special
    symbol,   // the address of a variable in `space`: see imm and variable; with a reg, that far
              // after it (local memory of a routine)
    sink,     // _
    vector,   // elements: reg, imm or sink
    address,  // [base + imm]: base is reg, or with base_is_symbol a variable in `space`.
              // elements: the coordinates of [tensorMap, {c0, c1 ..}]
  };
  Kind kind = Kind::none;
  bool negated = false;          // !%p
  bool base_is_symbol = false;   // address
  bool written = false;          // reg: a destination
  Space space = Space::generic;  // symbol, and address with a symbol base
  Special special = Special::none;
  uint32_t reg = no_register;   // a slot
  uint32_t name = no_register;  // of Function::register_names; not given: the slot's
  // For a symbol, by space, with any constant offset added:
  //   shared_cta        the CTA-relative address, 0x400 = start of the window (add the rank's
  //   bits);
  //                     .extern .shared lies after the static variables at dynamic_shared_align
  //   param, local      the offset in the function's parameter block, in the thread's local memory
  //   global, constant  the offset from Module::variables[variable].address
  int64_t imm = 0;
  uint32_t variable = no_variable;
  Type declared = Type::none;  // reg: the type of its .reg declaration (only its width is binding)
  std::vector<Operand> elements;
};

// Every modifier that may follow a base opcode gets a number, in modifiers.def; an instruction
// holds the set, since their order is free (ptx-wise `.cta_group::2.shared::cluster` = the
// reverse).
enum class Mod : uint16_t {
#define EMU_MOD(id, text) id,
#include "tools/emulator/ptx/modifiers.def"
#undef EMU_MOD
  count
};
using ModSet = std::bitset<size_t(Mod::count)>;

struct Instr;
struct CallSite;

// What only calls are made of, after the binders of opcodes.def: those of routines, and those of
// functions that the driver brings along, with the function's name for an opcode.
enum class Inner : uint8_t { call, landing, leave, system, count };

// Executes one instruction for the lanes in `active`.
enum class Step : uint8_t {
  next,     // done: go on after this instruction
  polled,   // done, and has found what it found before: others go on first
  blocked,  // nothing changed: try again when something else has happened (Warp::waiting says why)
  jumped,   // the instruction set the lanes' next position itself (bra, ret, exit, call)
};
using Exec = Step (*)(Warp&, const Instr&, uint32_t active);

// Chosen when the module is loaded, from the opcode row's binder. A binder returns nullptr (and
// says why) for a combination that the row admits but the machine does not do.
using Binder = Exec (*)(const Instr&, std::string& why);

// Where the compiler says an instruction comes from (.loc); file counts as .file does, 0 = unknown.
struct CudaLine {
  uint32_t file = 0, line = 0;
  uint32_t from = 0;  // inlined at Function::callers[from - 1]; 0: not inlined
  auto operator<=>(const CudaLine&) const = default;
};

struct Instr {
  Exec exec = nullptr;
  const char* opcode = "";  // base opcode: "add", "mbarrier.try_wait", "tcgen05.mma"
  ModSet mods;              // modifiers, types excluded
  Type types[5] = {};       // type modifiers in the order written: cvt.rn.f16x2.f32 -> f16x2, f32
  uint8_t type_count = 0;
  std::vector<Operand> ops;      // as written; `a|b` gives two
  uint32_t guard = no_register;  // @p
  bool guard_negated = false;
  uint32_t target = no_target;      // bra, call: index into Function::code
  uint32_t reconverge = no_target;  // bra: index of the immediate post-dominator, no_target = exit
  std::shared_ptr<const CallSite> call = {};  // of a routine, or the system's
  SourcePos pos;
  CudaLine cuda;

  bool has(Mod m) const { return mods.test(size_t(m)); }
  Type type(int i = 0) const { return types[i]; }
};

// A call of a routine: of one by its number, or of what the first operand names.
struct CallSite {
  struct Argument {
    Operand at;  // in the caller's local memory
    uint32_t bytes, align;
  };
  uint32_t routine = no_target;
  std::vector<Argument> results, arguments;
};

struct Param {
  std::string name;
  uint32_t offset = 0, bytes = 0, align = 1;
  uint32_t element_bytes = 0;  // of an array
};

// A .shared variable that the function sees, for reports. Dynamic ones have no size of their own.
struct SharedVariable {
  std::string name;
  uint32_t address = 0, bytes = 0;
  bool dynamic = false;
};

struct Function {
  std::string name;
  bool is_entry = false;
  std::vector<Param> params;
  uint32_t param_bytes = 0;
  uint32_t register_slots = 0;
  std::vector<std::string> register_names;  // for reports: per slot, then those that share slots
  std::vector<Instr> code;
  std::vector<CudaLine> callers;  // each after its own caller
  std::vector<SharedVariable> shared;
  uint32_t static_shared_bytes = 0;    // from the window's start (offset 0 here = address 0x400)
  uint32_t dynamic_shared_align = 16;  // largest alignment of the .extern .shared it sees
  uint32_t local_bytes = 0;
  std::vector<Routine> routines;
  uint32_t frame = no_register;  // the slot that holds where a routine's frame begins
  uint32_t reqntid[3] = {}, maxntid[3] = {}, reqnctapercluster[3] = {};  // 0 = not given
  uint32_t maxnreg = 0, minnctapersm = 0;                                // 0 = not given
  bool explicit_cluster = false;
  bool bounds_clusters = false;  // .maxclusterrank
  bool counts_clusters = false;  // .blocksareclusters: a launch's grid is in clusters
};

// A module-scope .global or .const variable; the driver gives it memory and sets `address`.
struct Variable {
  std::string name;
  Space space = Space::global;
  uint32_t align = 1;
  uint64_t bytes = 0;
  std::vector<uint8_t> init;  // shorter than bytes: the rest is zero
  struct Address {
    uint64_t at;        // offset of the address in init
    uint32_t variable;  // the variable of the module whose address it is
    int64_t offset;     // is added to the address
  };
  std::vector<Address> addresses;
  uint64_t address = 0;
};

// Kernels of a module whose bodies were found right and are not read yet.
class Unread {
 public:
  virtual ~Unread() = default;
  virtual void read(const Function& function) = 0;
  virtual uint64_t most_shared(const Function& function) const = 0;
};

struct Module {
  std::string source;  // kept for reports
  int version = 0;     // 86 = 8.6
  std::string target;  // "sm_100a", "sm_100f" ...
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<Variable> variables;
  std::vector<uint32_t> constants;        // of them, those in .const
  std::map<uint64_t, std::string> files;  // .file
  // "load.h:12, from gemm.cu:40" of an instruction of the function, or nothing.
  std::string cuda_line(const Function& function, const Instr& in) const;
  // Who adds what the PTX text lacks by the manual, where its compiler counts on that; or nullptr.
  const char* left_to_ptxas() const;
  const Function* entry(std::string_view name) const;
  // The function with its code and sizes, read now if load() did not. Not for two threads at once.
  const Function& whole(const Function& function) const;
  // Its static shared memory or, where it is not read yet, no less than that.
  uint64_t most_shared(const Function& function) const;
  // All of `to`'s bytes, for when every variable has its address.
  void initialise(const Variable& variable, uint8_t* to) const;
  std::shared_ptr<Unread> unread = {};  // nullptr: nothing
};

enum class Reading : uint8_t { now, when_asked };

// Text to Module, for a device of that compute capability (100, 90 ...), executed by what `binders`
// choose: one for each OPCODE of opcodes.def, in its order. Throws PtxError: unknown text, a rule
// of the manual broken, a target that the device does not run, a binder's refusal. These are found
// now in any case; with Reading::when_asked the code and the sizes of most kernels are there after
// Module::whole.
std::unique_ptr<Module> load(std::string_view text, int compute_capability, const Binder* binders,
                             Reading reading);

}  // namespace emu::ptx
