import type { CompiledModule } from './compile.ts';
import { WasmError } from './errors.ts';

/** A function that a guest may import. i64 arguments and results are bigint, all others numbers. */
export type HostFunction = (...args: never[]) => number | bigint | void;

/** Host functions by module name, then by function name. */
export type HostImports = Readonly<Record<string, Readonly<Record<string, HostFunction>>>>;

/** The host side of one kind of guest. */
export interface SandboxHost {
  /**
   * Builds the functions offered to one instance. Called once per instance, before any guest code runs: the functions
   * may use `instance` when they are called, not while they are built. Only functions can be offered; a memory that the
   * guest imports becomes the instance's own.
   */
  imports(instance: SandboxInstance): HostImports;
  /** Runs once per new instance (`_initialize`, `wapc_init`, ...), before the snapshot that `restore` puts back. */
  init?(instance: SandboxInstance): void;
}

/** Fuel for a module's start function and its kind's init routine: Go and Rust runtimes need below 10 M. */
export const INIT_FUEL = 1_000_000_000;

/**
 * One instance of a module: its exports, its memory, its fuel. Belongs to one thread, is not reentrant.
 * Guest kinds normally use it through `Sandbox.call`.
 */
export class SandboxInstance {
  readonly #exports: WebAssembly.Exports;
  #u8: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #memory: WebAssembly.Memory | undefined;

  constructor(compiled: CompiledModule, host: SandboxHost) {
    const imports: WebAssembly.Imports = host.imports(this);
    const missing = compiled.shape.imports.filter(({ module, name }) => imports[module]?.[name] === undefined);
    if (missing.length > 0 && !missing.every((m) => m.name === 'memory')) {
      throw new WasmError(
        'import-missing',
        `the module imports ${missing.map(({ module, name }) => `${module}.${name}`).join(', ')}, which this host does not offer`,
      );
    }
    if (missing.length > 0) {
      this.#memory = new WebAssembly.Memory({ initial: 64 });
      imports['env'] = { ...imports['env'], memory: this.#memory };
    }
    this.#exports = new WebAssembly.Instance(compiled.module, imports).exports;
    const memory = this.#exports['memory'];
    if (memory instanceof WebAssembly.Memory) {
      this.#memory = memory;
    }
    host.init?.(this);
  }

  /** Whether the guest exports a function of that name. */
  has(name: string): boolean {
    return typeof this.#exports[name] === 'function';
  }

  /**
   * The guest's exported function.
   * @throws WasmError `export-missing`
   */
  func(name: string): (...args: (number | bigint)[]) => number | bigint | undefined {
    const value = this.#exports[name];
    if (typeof value !== 'function') {
      throw new WasmError('export-missing', `the module does not export the function ${name}`);
    }
    return value as never;
  }

  /** The value of a guest's exported global of a number type; undefined when there is none. */
  globalValue(name: string): number | bigint | undefined {
    const value = this.#exports[name];
    return value instanceof WebAssembly.Global ? (value.value as number | bigint) : undefined;
  }

  /** The guest's memory, for READING only (writes past `write*` would survive `restore`). Do not keep it: growth detaches it. */
  get u8(): Uint8Array {
    this.#refresh();
    return this.#u8;
  }

  /** Size of the guest's memory as the guest sees it, in bytes. */
  get memoryBytes(): number {
    this.#refresh();
    return this.#u8.length;
  }

  /**
   * A view (no copy) of guest memory; valid until guest code runs again.
   * @throws WasmError `bad-pointer`
   */
  view(ptr: number, length: number): Uint8Array {
    const at = this.#check(ptr, length);
    return this.#u8.subarray(at, at + (length >>> 0));
  }

  /** A copy of guest memory. @throws WasmError `bad-pointer` */
  read(ptr: number, length: number): Uint8Array {
    return this.view(ptr, length).slice();
  }

  /** UTF-8 text in guest memory; invalid sequences become U+FFFD. @throws WasmError `bad-pointer` */
  readString(ptr: number, length: number): string {
    return new TextDecoder().decode(this.view(ptr, length));
  }

  /** Copies bytes into guest memory. @throws WasmError `bad-pointer` */
  write(ptr: number, bytes: Uint8Array): void {
    const at = this.#check(ptr, bytes.length);
    this.#u8.set(bytes, at);
  }

  /** Writes text as UTF-8 and returns the bytes written. @throws WasmError `bad-pointer` when it does not fit in `maxBytes`. */
  writeString(ptr: number, text: string, maxBytes: number): number {
    const at = this.#check(ptr, maxBytes);
    const { read, written } = new TextEncoder().encodeInto(text, this.#u8.subarray(at, at + maxBytes));
    if (read !== text.length) {
      throw new WasmError('bad-pointer', `text does not fit in ${maxBytes} bytes of guest memory`);
    }
    return written;
  }

  getUint8(ptr: number): number {
    return this.#view.getUint8(this.#check(ptr, 1));
  }

  getUint32(ptr: number): number {
    const at = this.#check(ptr, 4);
    return this.#view.getUint32(at, true);
  }

  setUint8(ptr: number, value: number): void {
    const at = this.#check(ptr, 1);
    this.#view.setUint8(at, value);
  }

  setUint32(ptr: number, value: number): void {
    const at = this.#check(ptr, 4);
    this.#view.setUint32(at, value, true);
  }

  setUint64(ptr: number, value: bigint): void {
    const at = this.#check(ptr, 8);
    this.#view.setBigUint64(at, value, true);
  }

  /** Gives the guest this much fuel from now on, and starts counting `fuelUsed` from zero. */
  setFuel(_fuel: number): void {
    // The first version does not meter.
  }

  /** Takes fuel for work that the host does on the guest's behalf. @throws WasmError `out-of-fuel` */
  chargeFuel(_fuel: number): void {
    // The first version does not meter.
  }

  /** Fuel used since the last `setFuel`. */
  get fuelUsed(): number {
    return 0;
  }

  /** Whether `restore` can put this instance back. */
  get resettable(): boolean {
    return false;
  }

  /** Puts memory, globals and growth back to what they were after init. False: throw the instance away. */
  restore(): boolean {
    return false;
  }

  #refresh(): void {
    const memory = this.#memory;
    if (memory === undefined) {
      throw new WasmError('export-missing', 'the module has no memory');
    }
    if (this.#u8.buffer !== memory.buffer) {
      this.#u8 = new Uint8Array(memory.buffer);
      this.#view = new DataView(memory.buffer);
    }
  }

  #check(ptr: number, length: number): number {
    this.#refresh();
    const at = ptr >>> 0;
    if (!(length >= 0 && at + length <= this.#u8.length)) {
      throw new WasmError(
        'bad-pointer',
        `expected a range within ${this.#u8.length} bytes of guest memory, got ${length} bytes at ${at}`,
      );
    }
    return at;
  }
}

/**
 * A guest of one module: an instance that is put back, or replaced, after every call. What every guest kind is built on.
 * The first instance is made at once, so that a module that cannot run fails here.
 */
export class Sandbox {
  readonly #compiled: CompiledModule;
  readonly #host: SandboxHost;
  #instance: SandboxInstance | undefined;

  constructor(compiled: CompiledModule, host: SandboxHost) {
    this.#compiled = compiled;
    this.#host = host;
    this.#instance = this.#create();
  }

  /**
   * Runs `body` with an instance in the state that follows init, with that much fuel. What `body` returns must not be
   * a view of guest memory. Traps, stack overflow and exhausted fuel become WasmError `trap` / `out-of-fuel`; other
   * exceptions (host functions', `body`'s own) pass unchanged. After any exception the instance is thrown away; catch an
   * orderly exit (`proc_exit`) inside of `body`.
   */
  call<T>(fuel: number, body: (instance: SandboxInstance) => T): T {
    const instance = this.#instance ?? this.#create();
    this.#instance = undefined;
    instance.setFuel(fuel);
    let result: T;
    try {
      result = body(instance);
    } catch (error) {
      throw asWasmError(error);
    }
    if (instance.resettable && instance.restore()) {
      this.#instance = instance;
    }
    return result;
  }

  /** Fuel that the last call used. */
  get fuelUsed(): number {
    return 0;
  }

  #create(): SandboxInstance {
    try {
      return new SandboxInstance(this.#compiled, this.#host);
    } catch (error) {
      throw asWasmError(error);
    }
  }
}

function asWasmError(error: unknown): unknown {
  if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) {
    return new WasmError('trap', `the guest trapped: ${error.message}`, { cause: error });
  }
  return error;
}
