import type { CompiledModule } from '../instrumentation/compile.ts';
import { WasmError } from '../binary/errors.ts';
import { UNLIMITED_SHARE } from './instance-memory.ts';
import type { InstanceShare } from './instance-memory.ts';
import { CARD_SHIFT, INIT_FUEL, PAGE_BYTES } from '../instrumentation/metering.ts';
import { PrivateExport } from '../instrumentation/rewrite.ts';
import { GRANULE_BYTES, MAX_RESTORE_BYTES, RESTORE_REFUSED } from '../instrumentation/runtime-functions.ts';

/** A function that a guest can import. Arguments and results of type i64 are bigint, all others are numbers. */
export type HostFunction = (...args: never[]) => number | bigint | void;

/** Host functions by module name, then by function name. */
export type HostImports = Readonly<Record<string, Readonly<Record<string, HostFunction>>>>;

/** Callbacks of an execution mode. */
interface SandboxHost {
  /**
   * Builds the functions that an instance can import. Called once per instance, before guest code runs: the functions
   * may use `instance` only when they are called. A memory that the guest imports becomes the instance's own.
   */
  imports(instance: SandboxInstance): HostImports;
  /** Runs once per new instance (`_initialize`, `wapc_init`, ...), before the snapshot. */
  init?(instance: SandboxInstance): void;
}

interface InstanceOptions {
  /** For the start function and `init`. Default: {@link INIT_FUEL}. */
  readonly fuel?: number;
  /** Default: no limit of the memory that the instance holds. */
  readonly share?: InstanceShare;
}

type GuestFunction = (...args: (number | bigint)[]) => number | bigint | undefined;

/**
 * An instance is replaced after this many calls, so that random numbers from its initialization (hash seeds) do not
 * last forever. A new instance takes up to 2 ms (initialization, first use of its memory): 0.2 µs per call.
 */
export const CALLS_PER_INSTANCE = 10_000;

/** An instance is replaced after this time, for the same reason. */
const INSTANCE_LIFETIME_MS = 30_000;

/** The fuel global has 64 bits; larger values are not exact as numbers. */
const MAX_FUEL = Number.MAX_SAFE_INTEGER;

/**
 * Memory of an instance besides its granules: marks, exports, objects. An estimate for modules with up to 100 exports.
 */
const INSTANCE_BYTES = 64 * 1024;

/** More bytes than any memory of a guest has. */
const MAX_INT = 2 ** 31 - 1;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * One instance of a module: its exports, memory and fuel. It belongs to one thread and is not reentrant. Guests use it
 * through `Sandbox.call`.
 */
export class SandboxInstance {
  readonly #exports: WebAssembly.Exports;
  readonly #memory: WebAssembly.Memory | undefined;
  readonly #fuel: WebAssembly.Global;
  readonly #restore: GuestFunction | undefined;
  /** With write tracking: the guest's memory size in pages, and the cards of written granules. */
  readonly #pages: WebAssembly.Global | undefined;
  /** With write tracking: the number of granules that were written since the instance exists. */
  readonly #touched: WebAssembly.Global | undefined;
  /** Number of granules that the snapshot has a copy of. */
  #kept = 0;
  #cards: Uint8Array | undefined;
  #u8 = new Uint8Array(0);
  #view = new DataView(new ArrayBuffer(0));
  #fuelGiven = 0;

  /**
   * Instantiates the module, runs its start function and the host's `init`, and takes the snapshot.
   * @throws WasmError `import-missing`, `memory-limit` (the machine has no memory left), `memory-exceeded`, `trap`,
   * `out-of-fuel`, and errors of `init`
   */
  constructor(
    compiled: CompiledModule,
    host: SandboxHost,
    { fuel = INIT_FUEL, share = UNLIMITED_SHARE }: InstanceOptions = {},
  ) {
    const imports = host.imports(this);
    checkImports(compiled, imports);
    this.#exports = instantiate(compiled.module, imports);
    this.#fuel = this.#exports[PrivateExport.fuel] as WebAssembly.Global;
    this.setFuel(fuel);
    this.#memory = this.#exports[PrivateExport.memory] as WebAssembly.Memory | undefined;
    const cards = this.#exports[PrivateExport.cards] as WebAssembly.Memory | undefined;
    if (cards !== undefined) {
      this.#pages = this.#exports[PrivateExport.pages] as WebAssembly.Global;
      this.#touched = this.#exports[PrivateExport.touched] as WebAssembly.Global;
      this.#restore = this.func(PrivateExport.restore);
    }
    try {
      if (compiled.shape.hasStart) {
        this.func(PrivateExport.start)();
      }
      host.init?.(this);
      if (cards !== undefined) {
        this.#takeSnapshot(share.maxBytes);
      }
    } catch (error) {
      share.dropped(this.dropped());
      throw this.toWasmError(error);
    }
    if (cards !== undefined) {
      // Only now: the snapshot includes what the host wrote during init, and taking it grows this memory.
      this.#cards = new Uint8Array(cards.buffer);
    }
  }

  /**
   * Physical memory that the instance holds between calls: granules that were ever written, and their copies in the snapshot.
   * Granules of zeros have no copy. Of an instance that is not restored, the size of its memory.
   */
  get heldBytes(): number {
    if (this.#touched === undefined) {
      return INSTANCE_BYTES + (this.#memory?.buffer.byteLength ?? 0);
    }
    return INSTANCE_BYTES + ((this.#touched.value as number) + this.#kept) * GRANULE_BYTES;
  }

  /** Makes the instance unusable. Returns the memory that it held, with what a failed call wrote. */
  dropped(): number {
    // Counts the granules that were written.
    this.#restore?.(MAX_INT);
    return this.heldBytes;
  }

  /** Whether the guest exports a function with this name. */
  has(name: string): boolean {
    return typeof this.#exports[name] === 'function';
  }

  /**
   * A function that the guest exports.
   * @throws WasmError `export-missing`
   */
  func(name: string): GuestFunction {
    const value = this.#exports[name];
    if (typeof value !== 'function') {
      throw new WasmError('export-missing', `the module does not export the function ${name}`);
    }
    return value as GuestFunction;
  }

  /** The value of an exported global of a number type; undefined if there is none. */
  globalValue(name: string): number | bigint | undefined {
    const value = this.#exports[name];
    return value instanceof WebAssembly.Global ? (value.value as number | bigint) : undefined;
  }

  /**
   * The guest's memory, to be READ only: `restore` does not undo writes that bypass `write` and the setters. It may be
   * longer than `memoryBytes`. Do not keep the array: growth detaches it.
   */
  get u8(): Uint8Array {
    this.#refresh();
    return this.#u8;
  }

  /** Size of the memory as the guest sees it, in bytes. */
  get memoryBytes(): number {
    this.#refresh();
    return this.#pages === undefined ? this.#u8.length : (this.#pages.value as number) * PAGE_BYTES;
  }

  /**
   * A view (no copy) of guest memory, valid until guest code runs again.
   * @throws WasmError `bad-pointer`
   */
  view(ptr: number, length: number): Uint8Array {
    const at = this.#checkRange(ptr, length);
    return this.#u8.subarray(at, at + (length >>> 0));
  }

  /** A copy of guest memory. @throws WasmError `bad-pointer` */
  read(ptr: number, length: number): Uint8Array {
    return this.view(ptr, length).slice();
  }

  /** UTF-8 text in guest memory; invalid sequences become U+FFFD. @throws WasmError `bad-pointer` */
  readString(ptr: number, length: number): string {
    return decoder.decode(this.view(ptr, length));
  }

  /** Copies bytes into guest memory. @throws WasmError `bad-pointer` */
  write(ptr: number, bytes: Uint8Array): void {
    const at = this.#checkWritable(ptr, bytes.length);
    this.#u8.set(bytes, at);
  }

  /**
   * Writes text as UTF-8.
   * @param maxBytes available room; at least `Buffer.byteLength(text)`
   * @returns the number of bytes written
   * @throws WasmError `bad-pointer` when it does not fit
   */
  writeString(ptr: number, text: string, maxBytes: number): number {
    const at = this.#checkWritable(ptr, maxBytes);
    const { read, written } = encoder.encodeInto(text, this.#u8.subarray(at, at + maxBytes));
    if (read !== text.length) {
      throw new WasmError('bad-pointer', `the text does not fit: expected room for it, got ${maxBytes} bytes`);
    }
    return written;
  }

  getUint8(ptr: number): number {
    const at = this.#checkRange(ptr, 1);
    return this.#view.getUint8(at);
  }

  getUint32(ptr: number): number {
    const at = this.#checkRange(ptr, 4);
    return this.#view.getUint32(at, true);
  }

  setUint8(ptr: number, value: number): void {
    const at = this.#checkWritable(ptr, 1);
    this.#view.setUint8(at, value);
  }

  setUint32(ptr: number, value: number): void {
    const at = this.#checkWritable(ptr, 4);
    this.#view.setUint32(at, value, true);
  }

  setUint64(ptr: number, value: bigint): void {
    const at = this.#checkWritable(ptr, 8);
    this.#view.setBigUint64(at, value, true);
  }

  /** Sets the remaining fuel and resets `fuelUsed` to zero. */
  setFuel(fuel: number): void {
    this.#fuelGiven = Math.max(0, Math.min(Math.floor(fuel), MAX_FUEL));
    this.#fuel.value = BigInt(this.#fuelGiven);
  }

  /** Charges the guest for work of the host. @throws WasmError `out-of-fuel` */
  chargeFuel(fuel: number): void {
    this.#fuel.value = (this.#fuel.value as bigint) - BigInt(Math.ceil(fuel));
    if (this.isOutOfFuel) {
      throw new WasmError('out-of-fuel', outOfFuelMessage(this.#fuelGiven));
    }
  }

  /** Fuel used since the last `setFuel`. It exceeds the given fuel when the guest ran out. */
  get fuelUsed(): number {
    return this.#fuelGiven - Number(this.#fuel.value);
  }

  get isOutOfFuel(): boolean {
    return (this.#fuel.value as bigint) < 0n;
  }

  /**
   * Converts an exception from guest code to a WasmError. Returns exceptions that the guest did not cause unchanged.
   */
  toWasmError(error: unknown): unknown {
    if (error instanceof WasmError) {
      return error;
    }
    if (error instanceof WebAssembly.RuntimeError && this.isOutOfFuel) {
      return new WasmError('out-of-fuel', outOfFuelMessage(this.#fuelGiven), { cause: error });
    }
    return isGuestFault(error) ? trap(error) : error;
  }

  /**
   * Restores memory, globals and memory size to their state after init.
   * @returns false when the instance cannot be restored, or has written too much: discard it
   */
  restore(): boolean {
    return this.#restore !== undefined && this.#restore(MAX_RESTORE_BYTES) !== RESTORE_REFUSED;
  }

  #takeSnapshot(maxBytes: number): void {
    const maxGranules = Math.min(Math.floor(maxBytes / GRANULE_BYTES), MAX_INT);
    this.#kept = this.func(PrivateExport.snapshot)(maxGranules) as number;
    if (this.heldBytes > maxBytes) {
      throw new WasmError(
        'memory-exceeded',
        `an instance of the module holds ${mebibytes(this.heldBytes)} between calls (its memory, and a copy of what its ` +
          `start wrote): expected at most ${mebibytes(maxBytes)}. Let the module write less before its first call`,
      );
    }
  }

  #refresh(): void {
    // Growth detaches the old buffer, and views of it become empty.
    if (this.#u8.length === 0) {
      if (this.#memory === undefined) {
        throw new WasmError('export-missing', 'the module has no memory');
      }
      this.#u8 = new Uint8Array(this.#memory.buffer);
      this.#view = new DataView(this.#memory.buffer);
    }
  }

  #checkRange(ptr: number, length: number): number {
    const at = ptr >>> 0;
    const size = this.memoryBytes;
    if (!(length >= 0 && at + length <= size)) {
      throw new WasmError(
        'bad-pointer',
        `the guest passed a pointer outside of its memory: expected a range within ${size} bytes, got ${length} bytes at ${at}`,
      );
    }
    return at;
  }

  #checkWritable(ptr: number, length: number): number {
    const at = this.#checkRange(ptr, length);
    if (this.#cards !== undefined && length > 0) {
      const last = (at + length - 1) >>> CARD_SHIFT;
      for (let card = at >>> CARD_SHIFT; card <= last; card++) {
        this.#cards[card] = 1;
      }
    }
    return at;
  }
}

/**
 * Runs calls of one module, each with an instance in the state after its initialization. All execution modes use it.
 * The first call creates an instance: no code of the module runs before.
 */
export class Sandbox {
  readonly #compiled: CompiledModule;
  readonly #host: SandboxHost;
  readonly #share: InstanceShare;
  readonly #release = (): void => {
    this.#instance = undefined;
  };
  #instance: SandboxInstance | undefined;
  #callsLeft = 0;
  #replaceAt = 0;
  #fuelUsed = 0;

  constructor(compiled: CompiledModule, host: SandboxHost, share: InstanceShare = UNLIMITED_SHARE) {
    this.#compiled = compiled;
    this.#host = host;
    this.#share = share;
  }

  /**
   * Creates the instance of the next call now, to prove that the module can run.
   * @throws WasmError any error of creating an instance
   */
  start(): void {
    if (this.#instance === undefined) {
      this.#rest(this.#create(INIT_FUEL));
    }
  }

  /**
   * Runs `body` with an instance in the state after init. `body` must not return a view of guest memory. After an
   * exception the instance is discarded; catch an orderly exit (`proc_exit`) in `body`.
   * @param fuel fuel for this call; a new instance starts with as much, at most {@link INIT_FUEL}
   * @throws WasmError `trap` (including stack overflow and imports with a wrong signature), `out-of-fuel`; other
   * exceptions of host functions and of `body` are rethrown unchanged
   */
  call<T>(fuel: number, body: (instance: SandboxInstance) => T): T {
    const instance = this.#acquire(Math.min(fuel, INIT_FUEL));
    instance.setFuel(fuel);
    let result: T;
    try {
      result = body(instance);
    } catch (error) {
      this.#share.dropped(instance.dropped());
      throw instance.toWasmError(error);
    } finally {
      this.#fuelUsed = instance.fuelUsed;
    }
    if (--this.#callsLeft > 0 && instance.restore()) {
      this.#rest(instance);
    } else {
      this.#share.dropped(instance.dropped());
    }
    return result;
  }

  /** Fuel used by the last call. */
  get fuelUsed(): number {
    return this.#fuelUsed;
  }

  #acquire(startFuel: number): SandboxInstance {
    let instance = this.#instance;
    if (instance === undefined || performance.now() > this.#replaceAt) {
      this.#dropExpired();
      instance = this.#create(startFuel);
    }
    this.#instance = undefined;
    return instance;
  }

  #create(fuel: number): SandboxInstance {
    this.#callsLeft = CALLS_PER_INSTANCE;
    this.#replaceAt = performance.now() + INSTANCE_LIFETIME_MS;
    this.#share.starting();
    return new SandboxInstance(this.#compiled, this.#host, { fuel, share: this.#share });
  }

  #dropExpired(): void {
    const expired = this.#instance;
    this.#instance = undefined;
    if (expired !== undefined) {
      this.#share.dropped(expired.heldBytes);
    }
  }

  /** Keeps an instance for the next call, until its memory is needed for others. */
  #rest(instance: SandboxInstance): void {
    this.#instance = instance;
    this.#share.rest(instance.heldBytes, this.#release);
  }
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function checkImports(compiled: CompiledModule, provided: HostImports): void {
  const missing = compiled.shape.imports.filter(({ module, name }) => {
    const functions = Object.hasOwn(provided, module) ? provided[module] : undefined;
    return functions === undefined || !Object.hasOwn(functions, name);
  });
  if (missing.length > 0) {
    const names = missing.slice(0, 20).map(({ module, name }) => `${module}.${name}`);
    throw new WasmError(
      'import-missing',
      `the module imports ${missing.length} functions that this execution mode does not provide: ${names.join(', ')}` +
        `${missing.length > names.length ? ', ...' : ''}; check the policy's execution mode`,
    );
  }
}

function instantiate(module: WebAssembly.Module, imports: HostImports): WebAssembly.Exports {
  try {
    return new WebAssembly.Instance(module, imports).exports;
  } catch (error) {
    if (error instanceof RangeError) {
      throw new WasmError('memory-limit', `no memory for another instance: ${error.message}`, { cause: error });
    }
    throw isGuestFault(error) ? trap(error) : error;
  }
}

function trap(error: Error): WasmError {
  return new WasmError('trap', `the guest trapped: ${error.message}`, { cause: error });
}

/**
 * RuntimeError: a trap. RangeError: a stack overflow. The others: values that do not match the guest's declaration of
 * an import or export.
 */
function isGuestFault(error: unknown): error is Error {
  return (
    error instanceof WebAssembly.RuntimeError ||
    error instanceof WebAssembly.LinkError ||
    error instanceof RangeError ||
    error instanceof TypeError ||
    error instanceof SyntaxError
  );
}

function outOfFuelMessage(fuel: number): string {
  return `the guest used up its fuel: expected at most ${fuel} units; it may contain an endless loop, or its limit is too low`;
}
