// What the rewriter charges, and how it tracks writes. Figures and reasons: docs/adr/0002-webassembly-sandbox.md.

/** Bytes per page of linear memory; fixed by WebAssembly. */
export const PAGE_BYTES = 65_536;

/**
 * log2 of the granule in which writes are tracked and put back. 4 KiB: a memory of 256 MiB has one page (64 KiB) of
 * cards, which is scanned in about 2 µs; smaller granules copy less but scan longer.
 */
export const CARD_SHIFT = 12;

/**
 * A mark stands for its granule and the one after it, so one mark at x covers x .. x + 4096. Offsets are rounded down to
 * a multiple of 2^11: most stores mark their bare base address, and several fields of a struct share one mark; at most
 * 2047 bytes of rounding plus 16 bytes of the widest store stay within the 4096.
 */
export const MARK_REACH_BITS = 11;

/**
 * A stretch of code gets a charge of its own from this many instructions on; below it is paid by the code around it. A
 * charge is itself about 8 instructions. Higher: cheaper, but branches that are not taken are charged too.
 */
export const BLOCK_COST_THRESHOLD = 32;

/**
 * Once a piece of code pays for this many instructions of smaller ones, the threshold falls to MIN_BLOCK_COST. Go makes
 * one loop with a big switch of every function: without this, a policy built with it is charged for four times as much
 * (measured; with a limit of zero for twice as little again, but runs 10 % slower).
 */
export const MERGED_COST_LIMIT = 128;

/** Less than this is never charged on its own: the charge would cost more than the code. */
export const MIN_BLOCK_COST = 8;

/** Fuel for the call of a host function besides what the host charges by length: the crossing takes 20-100 ns. */
export const HOST_CALL_FUEL = 64;

/**
 * Fuel that a host function charges for being called, whatever it is given. In a loop of calls that
 * was 1 to 4 µs, more than this pays for; programs call few.
 */
export const HOST_FUNCTION_FUEL = 500;

/** Locals are zeroed at function entry, so many of them cost time that no instruction shows. */
export const LOCALS_PER_FUEL = 8;

/**
 * Up to this many bytes, memory.copy, memory.fill and memory.init are charged the flat price only, and one mark covers
 * what they write (it reaches one granule far).
 */
export const SMALL_BULK_BYTES = 2 ** CARD_SHIFT;

/** The flat price of a bulk memory operation: the engine's call takes 10-100 ns for 0-4096 bytes. */
export const BULK_FUEL = 64;

/** log2 of the bytes that memory.copy, memory.fill and memory.init move per unit of fuel, beyond the flat price. */
export const BULK_BYTES_SHIFT = 4;

/** Fuel per entry that a bulk table operation touches (measured: 5-10 ns). */
export const TABLE_ENTRY_FUEL = 8;

/** Fuel per page of memory.grow: about what it costs to touch its 16 system pages for the first time. */
export const GROW_PAGE_FUEL = 4096;

/**
 * Fuel for a module's start function and its kind's init routine. Rust policies need 10,000; a Go program with its whole
 * run 130 M.
 */
export const INIT_FUEL = 300_000_000;
